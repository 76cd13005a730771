/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of kernel addresses, and build-ids of the kernel and its modules.
 *
 * The kernel takes 60 to 100 ms to write /proc/kallsyms, so a thread of its own reads it: at the start,
 * and again when an address is met that nobody knows, which may be of a module or a BPF program
 * loaded since. Until then the old names count.
 */
#ifndef AGENT_RESOLVE_KERNEL_H
#define AGENT_RESOLVE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "symbolizer/symbolizer.h"

#define KERNEL_MODULE "[kernel.kallsyms]"

struct kernel_names;

/*
 * Starts reading. proc_root NULL: no names, only build-ids. The roots (usually "/proc", "/sys")
 * must outlive it. 0 or -ENOMEM.
 */
int kernel_names_new(const char *proc_root, const char *sys_root, bool no_demangle,
		     struct kernel_names **ret_names);

/* Waits for the thread, if it is reading. */
void kernel_names_free(struct kernel_names *names);

/* Waits for the thread, if it is reading. A later one has the privileges of who then calls. */
void kernel_names_settle(struct kernel_names *names);

/* `elapsed`: since the start. Waits for the first reading; SYM_NO_KALLSYMS if it failed. */
enum sym_reason kernel_names_find(struct kernel_names *names, uint64_t addr, nsec_t elapsed,
				  struct sym_hit *ret_hit);

/* True while kallsyms is being read again: what was not found may be found soon. */
bool kernel_names_are_coming(const struct kernel_names *names);

/* That of KERNEL_MODULE or of a module as in sym_hit ("[ext4]"), in hex; "" if unknown. */
const char *kernel_names_build_id(struct kernel_names *names, const char *module);

#endif
