/* SPDX-License-Identifier: Apache-2.0 */
/* Series of the scheduler accounting, and the cgroups' paths: sums, bounds, forgetting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "agent/sched/cgroups.h"
#include "agent/sched/groups.h"
#include "agent/sched/sched_profile.h"
#include "sched_lab.h"

/* The cgroup's path is the container's name. */
static void owner_by_path(const char *path, struct sched_owner *ret_owner)
{
	*ret_owner = (struct sched_owner){ 0 };
	snprintf(ret_owner->container, sizeof(ret_owner->container), "%s", path ? path + 1 : "");
}

static void tell_cgroup(struct sched_books *b, uint64_t id, const char *path)
{
	struct event event = { .type = SONDE_RECORD_CGROUP, .id = id };

	event.cgroup.v2.count = 1;
	event.cgroup.v2.names = path;
	event.cgroup.v2.size = (uint32_t)strlen(path) + 1;
	sched_books_cgroup(b, &event);
}

/* An interval in which a thread of each of the cgroups [from, to) ran for 10 ms and is gone. */
static void run_cgroups(struct sched_books *b, struct sched_groups *g, uint64_t from, uint64_t to)
{
	for (uint64_t id = from; id < to; id++) {
		struct sonde_sched_thread t = lab_thread(100 + (uint32_t)id, 100 + (uint32_t)id, 0);
		char path[32];

		snprintf(path, sizeof(path), "c%llu", (unsigned long long)id);
		tell_cgroup(b, id, path);
		t.cgroup = id;
		lab_spend(&t, 10, SONDE_SCHED_OTHER);
		t.head.id = SONDE_SCHED_ENDED;
		sched_books_thread(b, &t, 0, 0);
	}
	sched_groups_add(g, b, owner_by_path);
	sched_books_clear(b);
}

static const struct sched_group *find(const struct sched_groups *g, const char *container)
{
	const struct sched_owner *owner;
	const struct sched_group *group;
	size_t cursor = 0;

	while (sched_groups_next(g, &cursor, &owner, &group)) {
		if (strcmp(owner->container, container) == 0)
			return group;
	}
	return NULL;
}

static void sums_go_on_over_intervals(void **state)
{
	struct sched_books *b = lab_books(false, 100);
	struct sched_groups *g = NULL;

	assert_int_equal(sched_groups_new(4, &g), 0);
	run_cgroups(b, g, 1, 3);
	run_cgroups(b, g, 2, 3);
	assert_int_equal(find(g, "c1")->totals.ns[SONDE_SCHED_RUNNING], 10 * MS);
	assert_int_equal(find(g, "c2")->totals.ns[SONDE_SCHED_RUNNING], 20 * MS);
	assert_int_equal(find(g, "c2")->totals.elapsed_ns, 20 * MS);
	assert_int_equal(find(g, "c2")->stolen_ns, 0);
	sched_groups_free(g);
	sched_books_free(b);
}

static void too_many_groups_share_one(void **state)
{
	struct sched_books *b = lab_books(false, 100);
	struct sched_groups *g = NULL;
	const struct sched_owner *owner;
	const struct sched_group *group;
	size_t cursor = 0, count = 0;
	int64_t sum = 0;

	assert_int_equal(sched_groups_new(4, &g), 0);
	run_cgroups(b, g, 1, 11);
	while (sched_groups_next(g, &cursor, &owner, &group)) {
		sum += group->totals.ns[SONDE_SCHED_RUNNING];
		count++;
	}
	assert_int_equal(count, 5);
	assert_int_equal(sum, 100 * MS);
	assert_int_equal(find(g, "[other]")->totals.ns[SONDE_SCHED_RUNNING], 60 * MS);
	assert_int_equal(sched_groups_folded(g), 6);
	/* Half a minute of intervals later the places of those that are gone are free. */
	for (int i = 0; i < 30; i++)
		run_cgroups(b, g, 50, 50);
	run_cgroups(b, g, 20, 22);
	assert_non_null(find(g, "c20"));
	assert_non_null(find(g, "c21"));
	assert_non_null(find(g, "[other]"));
	sched_groups_free(g);
	sched_books_free(b);
}

static void kernel_and_overflow_are_apart(void **state)
{
	struct sched_machine machine = { .now_ns = (uint64_t)(10 * MS),
					 .untracked_threads = 2,
					 .untracked_ns = (uint64_t)(20 * MS),
					 .untracked_on_cpu_ns = (uint64_t)(5 * MS) };
	struct sonde_sched_thread t = lab_thread(2, 2, 0);
	struct sched_books *b = lab_books(false, 100);
	struct sched_groups *g = NULL;

	t.flags = SONDE_SCHED_KERNEL_THREAD;
	machine.refused_ns[SONDE_SCHED_LOCK] = (uint64_t)(3 * MS);
	assert_int_equal(sched_groups_new(1, &g), 0);
	sched_books_thread(b, &t, (uint64_t)(10 * MS), 0);
	sched_books_snapshot(b, &machine);
	sched_groups_add(g, b, owner_by_path);
	assert_int_equal(find(g, "[kernel]")->totals.elapsed_ns, 10 * MS);
	assert_int_equal(find(g, "[overflow]")->totals.ns[SONDE_SCHED_RUNNING], 5 * MS);
	assert_int_equal(find(g, "[overflow]")->off_ns, 15 * MS);
	assert_int_equal(find(g, "[overflow]")->totals.ns[SONDE_SCHED_LOCK], 3 * MS);
	assert_int_equal(find(g, "[overflow]")->totals.elapsed_ns, 23 * MS);
	sched_groups_free(g);
	sched_books_free(b);
}

/* Counters must not go down: of a bucket that is charged back nothing is taken. */
static void no_series_goes_down(void **state)
{
	struct sched_books *b = lab_books(false, 100);
	struct sonde_sched_thread t = lab_thread(10, 10, 0);
	struct sched_groups *g = NULL;

	assert_int_equal(sched_groups_new(1, &g), 0);
	lab_spend(&t, 10, SONDE_SCHED_PREEMPTED);
	sched_books_thread(b, &t, (uint64_t)(1000 * MS), 0);
	lab_snapshot(b, 1000);
	sched_groups_add(g, b, owner_by_path);
	sched_books_clear(b);
	/* All of that wait turns out to have been throttled. */
	t.ns[SONDE_SCHED_THROTTLED] = (uint64_t)(1090 * MS);
	t.since += (uint64_t)(1090 * MS);
	sched_books_thread(b, &t, (uint64_t)(1100 * MS), 0);
	lab_snapshot(b, 1100);
	sched_groups_add(g, b, owner_by_path);
	assert_int_equal(find(g, "")->totals.ns[SONDE_SCHED_PREEMPTED], 990 * MS);
	assert_int_equal(find(g, "")->totals.ns[SONDE_SCHED_THROTTLED], 100 * MS);
	assert_int_equal(find(g, "")->totals.elapsed_ns, 1100 * MS);
	sched_groups_free(g);
	sched_books_free(b);
}

/* ---- paths ---- */

static uint64_t told[16];
static size_t told_count;

static void note_forgotten(void *context, uint64_t id)
{
	told[told_count++] = id;
}

static void unused_paths_go_in_two_steps(void **state)
{
	struct sched_cgroups c;

	told_count = 0;
	sched_cgroups_init(&c);
	sched_cgroups_add(&c, 1, "/used", 5, 0);
	sched_cgroups_add(&c, 2, "/unused", 7, 0);
	sched_cgroups_add(&c, 3, "/late", 5, 0);
	for (uint64_t snapshot = 0; snapshot <= 10; snapshot++) {
		sched_cgroups_use(&c, 1, snapshot);
		sched_cgroups_sweep(&c, snapshot, note_forgotten, NULL);
	}
	assert_int_equal(told_count, 2);
	assert_non_null(sched_cgroups_path(&c, 2));
	/* A thread began there just before: its record refers to a path that is not sent again. */
	sched_cgroups_use(&c, 3, 11);
	for (uint64_t snapshot = 11; snapshot <= 12; snapshot++) {
		sched_cgroups_use(&c, 1, snapshot);
		sched_cgroups_sweep(&c, snapshot, note_forgotten, NULL);
	}
	assert_null(sched_cgroups_path(&c, 2));
	assert_string_equal(sched_cgroups_path(&c, 3), "/late");
	assert_string_equal(sched_cgroups_path(&c, 1), "/used");
	sched_cgroups_fini(&c);
}

static void foreign_bytes_become_text(void **state)
{
	struct sched_cgroups c;

	sched_cgroups_init(&c);
	sched_cgroups_add(&c, 1, "/a\xff\n", 4, 0);
	assert_string_equal(sched_cgroups_path(&c, 1), "/a\\xff\\x0a");
	sched_cgroups_add(&c, 1, "/b", 2, 0);
	assert_string_equal(sched_cgroups_path(&c, 1), "/b");
	assert_int_equal(c.bytes, 3);
	sched_cgroups_fini(&c);
}

static void paths_are_bounded(void **state)
{
	struct sched_cgroups c;
	char path[2048];

	memset(path, 'x', sizeof(path));
	sched_cgroups_init(&c);
	for (uint64_t id = 1; id <= 20000; id++)
		sched_cgroups_add(&c, id, path, id % 2 ? sizeof(path) : 3, 0);
	assert_true(c.bytes <= 4 << 20);
	assert_true(c.paths.count <= 16384);
	assert_int_equal(c.refused, 20000 - c.paths.count);
	sched_cgroups_fini(&c);
}

/* ---- the profile for stores ---- */

static void add_container(struct sched_writer *w, const char *cgroup)
{
	sched_writer_label(w, "container_id", cgroup ? cgroup + 1 : "none", 0);
}

static void wall_profile_is_lifetimes(void **state)
{
	struct sched_profile_options options = { .realtime_ns = (uint64_t)(5000 * MS),
						 .max_bytes = 1 << 20,
						 .wall_only = true,
						 .label = add_container };
	struct sonde_sched_thread t = lab_thread(10, 10, 0);
	struct sched_books *b = lab_books(false, 100);
	struct profile *p = NULL;
	int64_t sum = 0;

	tell_cgroup(b, LAB_CGROUP, "box");
	lab_snapshot(b, 0);
	sched_books_clear(b);
	lab_spend(&t, 300, SONDE_SCHED_DISK);
	sched_books_thread(b, &t, (uint64_t)(1000 * MS), 0);
	lab_snapshot(b, 1000);
	assert_int_equal(sched_profile_new(b, &options, &p), 0);
	assert_int_equal(p->type_count, 1);
	assert_string_equal(profile_text(p, p->types[0].type), "wall");
	assert_string_equal(profile_text(p, p->types[0].unit), "nanoseconds");
	assert_string_equal(profile_text(p, p->period_type.type), "wall");
	assert_int_equal(p->duration_ns, 1000 * MS);
	assert_int_equal(p->time_ns, 4000 * MS);
	assert_int_equal(p->sample_count, 2);
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *s = &p->samples[i];

		sum += s->values[0];
		assert_string_equal(profile_text(p, s->labels[s->label_count - 1].str), "box");
	}
	assert_int_equal(sum, 1000 * MS);
	profile_free(p);
	sched_books_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_go_on_over_intervals),
		cmocka_unit_test(too_many_groups_share_one),
		cmocka_unit_test(kernel_and_overflow_are_apart),
		cmocka_unit_test(no_series_goes_down),
		cmocka_unit_test(unused_paths_go_in_two_steps),
		cmocka_unit_test(foreign_bytes_become_text),
		cmocka_unit_test(paths_are_bounded),
		cmocka_unit_test(wall_profile_is_lifetimes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
