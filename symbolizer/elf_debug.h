/* SPDX-License-Identifier: Apache-2.0 */
/* The separate debug file of a binary: by build-id, or by its debug link with CRC. */
#ifndef SYMBOLIZER_ELF_DEBUG_H
#define SYMBOLIZER_ELF_DEBUG_H

#include "symbolizer/elf_file.h"
#include "symbolizer/symbolizer.h"

enum { ELF_DEBUG_LINKED_MAX = 512 * 1024 * 1024 }; /* larger files' CRC is not computed */

/*
 * Opens <debug_dir>/.build-id/xx/rest.debug if it is really of this build; the caller closes
 * both outputs. -ENOENT if there is none, -ENOEXEC, -EBADMSG, -ENOMEM, -EIO.
 */
int elf_debug_open(const char *debug_dir, const char *build_id, struct elf_file *ret_elf,
		   int *ret_fd);

/*
 * The same for every place that the options name: by build-id (`build_id` is "" without one) in
 * debug_dir on this host, below symfs and below the target's root; the file at its own path below
 * symfs; then by the debug link, beside the binary, in .debug/ there and in the debug folders. What
 * is found must carry the same build-id, or have the link's CRC if one of both has no
 * build-id. What does not fit is passed over.
 */
int elf_debug_find(const struct sym_file_options *options, const struct elf_file *elf,
		   const char *build_id, struct elf_file *ret_elf, int *ret_fd);

/*
 * The file name and CRC in .gnu_debuglink: false if there is none, it is damaged, or the name
 * is not a plain one.
 */
bool elf_debug_link(const struct elf_file *elf, char ret_name[256], uint32_t *ret_crc);

#endif
