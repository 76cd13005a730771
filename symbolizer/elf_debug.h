/* SPDX-License-Identifier: Apache-2.0 */
/* The separate debug file of a binary, found by build-id. */
#ifndef SYMBOLIZER_ELF_DEBUG_H
#define SYMBOLIZER_ELF_DEBUG_H

#include "symbolizer/elf_file.h"

/*
 * Opens <debug_dir>/.build-id/xx/rest.debug if it is really of this build; the caller closes
 * both outputs. -ENOENT if there is none, -ENOEXEC, -EBADMSG, -ENOMEM, -EIO.
 */
int elf_debug_open(const char *debug_dir, const char *build_id, struct elf_file *ret_elf,
		   int *ret_fd);

#endif
