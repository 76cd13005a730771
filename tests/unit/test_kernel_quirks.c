/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/collect/kernel_quirks: on which kernels user memory is left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/collect/kernel_quirks.h"

#define OTHER "#1 SMP PREEMPT_DYNAMIC Tue Jun 4 10:00:00 UTC 2024"

static void test_releases(void **state)
{
	static const struct {
		const char *release;
		bool may_hang;
	} rows[] = {
		{ "5.10.0", false },  { "5.15.99-generic", false }, { "5.18.19", false },
		{ "5.19.0", true },   { "5.19.17-arch1", true },    { "6.0.0-rc3", true },
		{ "6.0.19", true },   { "6.1.0", true },            { "6.1.35", true },
		{ "6.1.36", false },  { "6.1.119-1.el9", false },   { "6.2.0-39-generic", true },
		{ "6.2.16", true },   { "6.3.9", true },            { "6.3.10", false },
		{ "6.4.0", false },   { "6.12.41", false },         { "7.2.0-rc1", false },
		{ "6.1", true },      { "6.10", false },            { "60.1.2", false },
		{ "16.1.2", false },  { "", false },                { "nonsense", false },
		{ "6", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (kernel_user_reads_may_hang(rows[i].release, OTHER) != rows[i].may_hang)
			fail_msg("wrong for %s", rows[i].release);
	}
}

/* Debian's release is that of the series' first build: the version text tells the true one. */
static void test_debian(void **state)
{
	assert_false(kernel_user_reads_may_hang(
		"6.1.0-13-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.55-1 (2023-09-29)"));
	assert_true(kernel_user_reads_may_hang(
		"6.1.0-9-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.27-1 (2023-05-08)"));
	assert_false(kernel_user_reads_may_hang(
		"5.10.0-28-amd64", "#1 SMP Debian 5.10.209-2 (2024-01-31)"));
	assert_false(kernel_user_reads_may_hang(
		"6.12.9+bpo-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.12.9-1~bpo12+1 (2025-01-19)"));
	/* A text that does not tell leaves the release. */
	assert_true(kernel_user_reads_may_hang("6.1.0-9-amd64", "#1 SMP Debian kernel"));
	assert_true(kernel_user_reads_may_hang("6.1.0", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_releases),
		cmocka_unit_test(test_debian),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
