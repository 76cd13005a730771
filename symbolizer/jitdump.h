/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of JIT code from jit-PID.dump files (the format of perf's jitdump specification, version 1):
 * records with the time at which code was loaded, moved, or the runtime ended. The writer maps the
 * file into its own memory, which is how it is found: among the process's mappings.
 * Private to symbolizer/.
 */
#ifndef SYMBOLIZER_JITDUMP_H
#define SYMBOLIZER_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbolizer/symbolizer.h"

struct jitdump;

/*
 * Looks for a mapping of jit-<ns_pid>.dump in the process whose directory in /proc is `proc_fd`,
 * and reads the file. Opened by that mapping where privileges allow, else by its path below the
 * process's root; a regular file of `uid` or root. -ENOENT if there is none, -EPERM if it is
 * not to be trusted, -EBADMSG if it is no jitdump of this process, or another -errno.
 */
int jitdump_load(int proc_fd, uint32_t ns_pid, uid_t uid, uint64_t from_ns, bool no_demangle,
		 struct jitdump **ret_dump);

/* Reads on: 1 if there was something new, 0, or -errno, which leaves what is known. */
int jitdump_refresh(struct jitdump *dump, int proc_fd, uid_t uid, uint64_t from_ns);

/* The same from memory (tests, fuzzing); pid 0: any. */
int jitdump_parse(const void *bytes, size_t len, uint32_t pid, uint64_t from_ns,
		  struct jitdump **ret_dump);

void jitdump_free(struct jitdump *dump);
size_t jitdump_bytes(const struct jitdump *dump);

/* Records that made no sense; reading stops at one whose size is wrong. */
uint64_t jitdump_bad_records(const struct jitdump *dump);

/* True if a look-up for samples from `from_ns` on may be answered otherwise later. */
bool jitdump_is_moving(const struct jitdump *dump, uint64_t from_ns);

/* As sym_jit_find. */
enum sym_reason jitdump_find(struct jitdump *dump, uint64_t addr, uint64_t from_ns,
			     struct sym_hit *ret_hit);

#endif
