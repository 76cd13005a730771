/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Least privileges: what is there is probed at start, what is not needed is given up once the
 * kernel side runs, and a seccomp filter (libseccomp) closes the rest.
 */
#ifndef AGENT_PRIVILEGES_H
#define AGENT_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Capabilities that sonde can use, and what each is for. id, number, name, needed for. */
#define SONDE_CAPABILITIES(X) \
	X(BPF, 39, "CAP_BPF", "loading BPF programs and maps") \
	X(PERFMON, 38, "CAP_PERFMON", "sampling all processes") \
	X(SYS_PTRACE, 19, "CAP_SYS_PTRACE", "files and JIT maps of other users' processes") \
	X(DAC_READ_SEARCH, 2, "CAP_DAC_READ_SEARCH", "files that only their owner may read") \
	X(CHECKPOINT_RESTORE, 40, "CAP_CHECKPOINT_RESTORE", "deleted and replaced files, by map_files") \
	X(SYSLOG, 34, "CAP_SYSLOG", "names of kernel functions")

enum privilege {
#define X(id, number, name, purpose) PRIVILEGE_##id,
	SONDE_CAPABILITIES(X)
#undef X
	PRIVILEGE_COUNT
};

const char *privilege_name(enum privilege p);
const char *privilege_purpose(enum privilege p);

/* Whether the capability is effective now (CAP_SYS_ADMIN stands in for BPF and PERFMON). */
bool privilege_have(enum privilege p);

/*
 * Gives up, for good, all capabilities but those above (bounding, permitted, effective,
 * inheritable, ambient), and sets no_new_privs. 0 or -errno. Where BPF or PERFMON are missing,
 * CAP_SYS_ADMIN stays if it is there. Capabilities belong to a thread: to be called in each that
 * has started (agent_call_in_reader).
 */
int privileges_drop(void);

/*
 * Only the system calls of the running agent from now on, for all its threads; others fail with
 * EPERM and are counted by nobody, but the agent is not killed. No new program, no executable
 * memory (so no dlopen), no loading of BPF programs. 0 or -errno (kernels without seccomp:
 * -ENOSYS).
 */
int privileges_seccomp(void);

#endif
