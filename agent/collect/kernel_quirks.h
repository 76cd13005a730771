/* SPDX-License-Identifier: Apache-2.0 */
/* The one place where a kernel version decides: a fault that no probe can find. */
#ifndef AGENT_COLLECT_KERNEL_QUIRKS_H
#define AGENT_COLLECT_KERNEL_QUIRKS_H

#include <stdbool.h>

/*
 * Whether reading user memory from an interrupt may hang this kernel: with hardened usercopy,
 * copy_from_user_nofault took the vmalloc lock, which the interrupted code may hold. Broken
 * from 5.19, mended by kernel commit d319f344561d (6.4, and in 6.1.36 and 6.3.10).
 * `release` and `version` are what uname says. Debian's release is that of its first build
 * (6.1.0-50), and the version text tells the real one; of other distributions that patch
 * without telling, the answer may be a needless yes.
 */
bool kernel_user_reads_may_hang(const char *release, const char *version);

#endif
