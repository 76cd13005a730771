/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Least privileges: what is there is probed at start, what is not needed is given up once the
 * kernel side runs, and a seccomp filter (libseccomp) closes the rest.
 */
#ifndef AGENT_PRIVILEGES_H
#define AGENT_PRIVILEGES_H

/* The capabilities that sonde uses, as <linux/capability.h> has them; for what: health_access.c. */
#define SONDE_CAPABILITIES(X) \
	X(BPF) X(PERFMON) X(SYS_PTRACE) X(DAC_READ_SEARCH) X(CHECKPOINT_RESTORE) X(SYSLOG)

enum privilege {
#define X(id) PRIVILEGE_##id,
	SONDE_CAPABILITIES(X)
#undef X
	PRIVILEGE_COUNT
};

/* "CAP_BPF", and the number that the kernel has for it. */
const char *privilege_name(enum privilege p);
int privilege_number(enum privilege p);

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
