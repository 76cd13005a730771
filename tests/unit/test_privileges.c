/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/privileges: the capabilities that stay. */
#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "agent/privileges.h"
#include "privileges_lab.h"

static uint64_t six(void)
{
	uint64_t bits = 0;

	for (int i = 0; i < PRIVILEGE_COUNT; i++)
		bits |= 1ULL << privilege_number((enum privilege)i);
	return bits;
}

static void test_names(void **state)
{
	assert_string_equal(privilege_name(PRIVILEGE_BPF), "CAP_BPF");
	assert_string_equal(privilege_name(PRIVILEGE_SYSLOG), "CAP_SYSLOG");
	assert_int_equal(privilege_number(PRIVILEGE_BPF), 39);
	assert_int_equal(privilege_number(PRIVILEGE_CHECKPOINT_RESTORE), 40);
}

static void drop_as_root(void)
{
	uint64_t before = caps_of("CapEff");

	CHECK(privileges_drop() == 0);
	CHECK(caps_of("CapEff") == (before & six()));
	CHECK(caps_of("CapPrm") == (before & six()));
	CHECK((caps_of("CapBnd") & ~six()) == 0);
	CHECK(caps_of("CapInh") == 0 && caps_of("CapAmb") == 0);
	CHECK(caps_of("NoNewPrivs") == 1);
	CHECK(prctl(PR_CAPBSET_READ, CAP_CHOWN) == 0);
	/* And what they allowed is refused. */
	REFUSED(mount("none", "/mnt", "tmpfs", 0, NULL));
	REFUSED(chown("/dev/null", 1, 1));
	REFUSED(setuid(1));
	CHECK(privileges_drop() == 0);
	CHECK(caps_of("CapEff") == (before & six()));
}

static void test_drop(void **state)
{
	need_root();
	in_child(drop_as_root);
}

/* A kernel before 5.8, or a container with CAP_SYS_ADMIN alone. */
static void admin_stands_in(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	uint64_t have = 1ULL << CAP_SYS_ADMIN | 1ULL << CAP_SYSLOG | 1ULL << CAP_CHOWN;
	struct __user_cap_data_struct half[2] = { { (uint32_t)have, (uint32_t)have, 0 },
						  { (uint32_t)(have >> 32), (uint32_t)(have >> 32),
						    0 } };

	CHECK(syscall(SYS_capset, &head, half) == 0);
	CHECK(privileges_drop() == 0);
	CHECK(caps_of("CapPrm") == (1ULL << CAP_SYS_ADMIN | 1ULL << CAP_SYSLOG));
}

static void test_admin_stands_in(void **state)
{
	need_root();
	in_child(admin_stands_in);
}

/* Nothing to give up, and no CAP_SETPCAP, as under a unit with its own bounding set. */
static void drop_unprivileged(void)
{
	CHECK(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
	CHECK(caps_of("CapEff") == 0);
	CHECK(privileges_drop() == 0);
	CHECK(privileges_drop() == 0);
	CHECK(caps_of("NoNewPrivs") == 1 && caps_of("CapEff") == 0);
}

static void test_drop_unprivileged(void **state)
{
	in_child(drop_unprivileged);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_drop),
		cmocka_unit_test(test_admin_stands_in),
		cmocka_unit_test(test_drop_unprivileged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
