/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's symbols, kept on disk by build-id: the kernel takes 60 to 100 ms to write
 * kallsyms, and what it writes of itself only changes with its build (symbolizer/kallsyms_copy.h).
 *
 * Files DIR/kernel-<build-id>, a few MB each; the eight newest stay. One is used only if it belongs
 * to the user and nobody else may write to it. It holds no address of this boot, and may be taken to
 * another machine. Whatever goes wrong here, kallsyms is read as if there were no copy.
 */
#ifndef CLI_KERNEL_COPY_H
#define CLI_KERNEL_COPY_H

#include <stddef.h>

#include "base/buf.h"

enum { KERNEL_COPY_BYTES = 64 * 1024 * 1024 };

/* $XDG_CACHE_HOME/sonde or $HOME/.cache/sonde; "" if neither is set. */
void kernel_copy_default_dir(char *ret_dir, size_t size);

/* For sym_kernel_load_copy: a descriptor or -errno. The build-id may be anybody's word. */
int kernel_copy_open(const char *dir, const char *build_id);

/* Keeps a copy, and makes the directory for it if it can: 0 or -errno. */
int kernel_copy_save(const char *dir, const char *build_id, const struct buf *text);

/* Makes the copy of the running kernel unless it is there. */
void kernel_copy_prepare(const char *dir);

#endif
