/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities, by the raw system calls; see privileges.h. */
#include "agent/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LAST_NUMBER = 63 };

static const struct {
	int number;
	const char *name;
} privileges[] = {
#define X(id) [PRIVILEGE_##id] = { CAP_##id, "CAP_" #id },
	SONDE_CAPABILITIES(X)
#undef X
};

/* Sets of capabilities as bits by number. */
struct cap_sets {
	uint64_t effective, permitted, inheritable;
};

static uint64_t bit(int number)
{
	return 1ULL << number;
}

const char *privilege_name(enum privilege p)
{
	return privileges[p].name;
}

int privilege_number(enum privilege p)
{
	return privileges[p].number;
}

static int cap_get(struct cap_sets *ret_sets)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct half[2];

	if (syscall(SYS_capget, &head, half) < 0)
		return -errno;
	ret_sets->effective = half[0].effective | (uint64_t)half[1].effective << 32;
	ret_sets->permitted = half[0].permitted | (uint64_t)half[1].permitted << 32;
	ret_sets->inheritable = half[0].inheritable | (uint64_t)half[1].inheritable << 32;
	return 0;
}

static int cap_set(const struct cap_sets *sets)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct half[2] = {
		{ (uint32_t)sets->effective, (uint32_t)sets->permitted,
		  (uint32_t)sets->inheritable },
		{ (uint32_t)(sets->effective >> 32), (uint32_t)(sets->permitted >> 32),
		  (uint32_t)(sets->inheritable >> 32) },
	};

	return syscall(SYS_capset, &head, half) < 0 ? -errno : 0;
}

/* What stays of the permitted capabilities. */
static uint64_t kept_of(uint64_t permitted)
{
	uint64_t kept = 0;

	for (int i = 0; i < PRIVILEGE_COUNT; i++)
		kept |= permitted & bit(privileges[i].number);
	if (!(kept & bit(privileges[PRIVILEGE_BPF].number)) ||
	    !(kept & bit(privileges[PRIVILEGE_PERFMON].number)))
		kept |= permitted & bit(CAP_SYS_ADMIN);
	return kept;
}

/*
 * Needs CAP_SETPCAP, which a unit with a bounding set of its own does not give: that is no
 * fault, since with no_new_privs no program can gain what its starter has not.
 */
static int shrink_bounding_set(uint64_t kept)
{
	for (int number = 0; number <= LAST_NUMBER; number++) {
		if (kept & bit(number) || prctl(PR_CAPBSET_READ, number) != 1)
			continue;
		if (prctl(PR_CAPBSET_DROP, number) < 0 && errno != EPERM)
			return -errno;
	}
	return 0;
}

int privileges_drop(void)
{
	struct cap_sets sets = { 0 };
	int err = cap_get(&sets);

	if (err)
		return err;
	sets.permitted = kept_of(sets.permitted);
	sets.effective &= sets.permitted;
	sets.inheritable = 0;
	err = shrink_bounding_set(sets.permitted);
	if (err)
		return err;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return cap_set(&sets);
}
