/* SPDX-License-Identifier: Apache-2.0 */
/* Counting: the weight of every sample is somewhere, whatever is full or refused. */
#include "lab.h"

enum { PROCESSES = 6 };

static struct lab_process p;

static int setup(void **state)
{
	host_reset();
	active_half = 0;
	lab_process(&p, 100, 0, NULL, NULL);
	return 0;
}

static void sample_at(struct lab_process *process, __u64 pc)
{
	lab_begin(process, pc);
	lab_end(process, LAB_LIB + 0x200);
	lab_sample(process);
	lab_check_books();
}

static struct sonde_count sum_of(void *map)
{
	struct sonde_count sum = { 0 };

	for (size_t i = 0; i < map_count_entries(map); i++) {
		const void *key;
		void *value;

		map_entry(map, i, &key, &value);
		sum.samples += ((struct sonde_count *)value)->samples;
		sum.weight += ((struct sonde_count *)value)->weight;
	}
	return sum;
}

/* Of both halves. */
static const struct sonde_totals *all_totals(void)
{
	static struct sonde_totals sum;

	sum = (struct sonde_totals){ 0 };
	for (__u32 half = 0; half < 2; half++) {
		const struct sonde_totals *t = bpf_map_lookup_elem(&totals, &half);

		sum.received_weight += t->received_weight;
		sum.overflow_weight += t->overflow_weight;
		sum.idle_weight += t->idle_weight;
		sum.filtered_weight += t->filtered_weight;
	}
	return &sum;
}

/* Every sample and every nanosecond is in exactly one place. */
static void check_weights(void)
{
	struct sonde_count c0 = sum_of(&counts_0), c1 = sum_of(&counts_1);
	struct sonde_count o0 = sum_of(&overflow_0), o1 = sum_of(&overflow_1);
	const struct sonde_totals *t = all_totals();

	lab_check_books();
	assert_int_equal(c0.samples + c1.samples, counter(SONDE_COUNT_KEPT));
	assert_int_equal(o0.samples + o1.samples, counter(SONDE_COUNT_OVERFLOW_CGROUP));
	assert_int_equal(t->received_weight, c0.weight + c1.weight + o0.weight + o1.weight +
						     t->overflow_weight + t->idle_weight +
						     t->filtered_weight);
}

static void test_equal_samples_add_up(void **state)
{
	const struct sonde_count *count;

	sample_at(&p, LAB_CODE);
	p.ctx.sample_period = 5;
	sample_at(&p, LAB_CODE);
	assert_int_equal(lab_key(&count)->kind, SONDE_KIND_ON_CPU);
	assert_int_equal(count->samples, 2);
	assert_int_equal(count->weight, LAB_PERIOD + 5);
	check_weights();
}

static void test_halves(void **state)
{
	sample_at(&p, LAB_CODE);
	active_half = 1;
	sample_at(&p, LAB_CODE);
	sample_at(&p, LAB_CODE);
	assert_int_equal(sum_of(&counts_0).samples, 1);
	assert_int_equal(sum_of(&counts_1).samples, 2);
	assert_int_equal(ring_count(SONDE_RECORD_USER_STACK), 1);
	map_limit(&counts_1, 1);
	sample_at(&p, LAB_CODE + 1);
	assert_int_equal(sum_of(&overflow_1).samples, 1);
	assert_int_equal(map_count_entries(&overflow_0), 0);
	check_weights();
}

static void test_idle(void **state)
{
	p.task = world_kthread(0, "swapper/0");
	lab_begin(&p, LAB_CODE);
	lab_sample_kernel(&p);
	assert_int_equal(counter(SONDE_COUNT_IDLE), 1);
	assert_int_equal(all_totals()->idle_weight, LAB_PERIOD);
	assert_int_equal(ring_count(SONDE_RECORD_PROCESS), 0);
	check_weights();
	host_settings()->keep_idle = 1;
	lab_sample_kernel(&p);
	assert_int_equal(counter(SONDE_COUNT_KEPT), 1);
	assert_int_equal(all_totals()->idle_weight, 2 * LAB_PERIOD);
	lab_check_books();
}

static void test_late(void **state)
{
	sample_at(&p, LAB_CODE);
	end_ns = 1; /* long ago */
	sample_at(&p, LAB_CODE);
	end_ns = (__u64)-1;
	sample_at(&p, LAB_CODE);
	end_ns = 0;
	assert_int_equal(counter(SONDE_COUNT_LATE), 1);
	assert_int_equal(counter(SONDE_COUNT_KEPT), 2);
	check_weights();
}

static void test_full_counts_go_to_the_cgroup(void **state)
{
	const struct sonde_overflow_key *key;
	const void *k;
	void *value;

	map_limit(&counts_0, 1);
	sample_at(&p, LAB_CODE);
	sample_at(&p, LAB_CODE + 1);
	sample_at(&p, LAB_CODE + 2);
	sample_at(&p, LAB_CODE); /* known: still counted */
	assert_int_equal(counter(SONDE_COUNT_KEPT), 2);
	assert_int_equal(counter(SONDE_COUNT_COUNTS_FULL), 2);
	assert_int_equal(counter(SONDE_COUNT_OVERFLOW_CGROUP), 2);
	map_entry(&overflow_0, 0, &k, &value);
	key = k;
	assert_int_equal(key->cgroup, lab_key(NULL)->cgroup);
	assert_int_equal(key->kind, SONDE_KIND_ON_CPU);
	assert_int_equal(((struct sonde_count *)value)->samples, 2);
	assert_int_equal(((struct sonde_count *)value)->weight, 2 * LAB_PERIOD);
	check_weights();
}

static void test_full_overflow_goes_to_the_total(void **state)
{
	map_limit(&counts_0, 0);
	map_limit(&overflow_0, 0);
	sample_at(&p, LAB_CODE);
	assert_int_equal(counter(SONDE_COUNT_OVERFLOW_TOTAL), 1);
	assert_int_equal(all_totals()->overflow_weight, LAB_PERIOD);
	check_weights();
}

/* A bucket that is locked (by what we interrupted) is like a full map. */
static void test_busy_maps(void **state)
{
	map_refuse(&counts_0, true);
	map_refuse(&seen_stacks, true);
	sample_at(&p, LAB_CODE);
	assert_int_equal(counter(SONDE_COUNT_OVERFLOW_CGROUP), 1);
	assert_int_equal(counter(SONDE_COUNT_SEEN_FULL), 1);
	map_refuse(&counts_0, false);
	sample_at(&p, LAB_CODE);
	/* A stack that is not remembered is sent again, and counted all the same. */
	assert_int_equal(ring_count(SONDE_RECORD_USER_STACK), 2);
	assert_int_equal(counter(SONDE_COUNT_KEPT), 1);
	check_weights();
}

/* User space has nothing of a stack that the ring refused: it must not be counted by its id. */
static void test_refused_stack(void **state)
{
	sample_at(&p, LAB_CODE); /* all facts are known now */
	host.ring_refusals = 1;
	sample_at(&p, LAB_CODE + 1);
	assert_int_equal(counter(SONDE_COUNT_RING_FULL), 1);
	assert_int_equal(counter(SONDE_COUNT_OVERFLOW_CGROUP), 1);
	assert_int_equal(map_count_entries(&counts_0), 1);
	sample_at(&p, LAB_CODE + 1);
	assert_int_equal(map_count_entries(&counts_0), 2);
	assert_int_equal(counter(SONDE_COUNT_RING_FULL), 1);
	check_weights();
}

static void test_refused_kernel_stack(void **state)
{
	sample_at(&p, LAB_CODE);
	host.kernel_stack_count = 1;
	host.kernel_stack[0] = HOST_KERNEL_BIT;
	host.ring_refusals = 1;
	lab_sample_kernel(&p);
	assert_int_equal(counter(SONDE_COUNT_RING_FULL), 1);
	assert_int_equal(counter(SONDE_COUNT_OVERFLOW_CGROUP), 1);
	check_weights();
}

/* Between look-up and insertion another CPU counts the same stack. */
static void other_cpu(void *map, const void *key)
{
	const struct sonde_count one = { 1, LAB_PERIOD };

	if (map != &counts_0)
		return;
	host.on_update = NULL;
	bpf_map_update_elem(map, key, &one, BPF_NOEXIST);
}

static void test_another_cpu_is_first(void **state)
{
	const struct sonde_count *count;

	host.on_update = other_cpu;
	sample_at(&p, LAB_CODE);
	lab_key(&count);
	assert_int_equal(count->samples, 2);
	assert_int_equal(count->weight, 2 * LAB_PERIOD);
	assert_int_equal(counter(SONDE_COUNT_KEPT), 1);
}

/* Everything that can be full, busy or refused is so now and then. */
static void random_trouble(void)
{
	void *const limited[] = { &counts_0, &counts_1, &overflow_0, &overflow_1, &seen_stacks,
				  &seen_facts, &files };

	for (size_t i = 0; i < ARRAY_SIZE(limited); i++)
		map_refuse(limited[i], world_random() % 16 == 0);
	host.ring_refusals = world_random() % 8 == 0 ? (int)(world_random() % 4) : 0;
	active_half = (__u32)(world_random() & 1);
	host.kernel_stack_count = (long)(world_random() % 6) - 1;
	for (size_t i = 0; i < 5; i++)
		host.kernel_stack[i] = HOST_KERNEL_BIT | world_random() % 3;
}

static void check_counted_stacks_are_known(void *map)
{
	for (size_t i = 0; i < map_count_entries(map); i++) {
		const struct sonde_count_key *key;
		const void *k;
		void *value;

		map_entry(map, i, &k, &value);
		key = k;
		if (key->user_stack)
			assert_non_null(ring_find(SONDE_RECORD_USER_STACK, key->user_stack));
		if (key->kernel_stack)
			assert_non_null(ring_find(SONDE_RECORD_KERNEL_STACK, key->kernel_stack));
	}
}

static void test_books_under_random_trouble(void **state)
{
	struct lab_process many[PROCESSES];
	struct task_struct *idle = world_kthread(0, "swapper/0");
	struct cgroup *root = world_cgroup(NULL, 0, 1, "");

	for (int i = 0; i < PROCESSES; i++) {
		lab_process(&many[i], 200 + i, (__u64)i << 24, i % 2 ? p.exe : NULL, p.lib);
		world_set_cgroups(many[i].task, world_cgroup(root, 0, 10 + (__u64)i, "group"), NULL,
				  NULL);
	}
	map_limit(&counts_0, 200);
	map_limit(&counts_1, 100);
	map_limit(&overflow_0, 4);
	map_limit(&seen_stacks, 300);
	host_settings()->thread_names = 1;
	for (int round = 0; round < 5000; round++) {
		struct lab_process *one = &many[world_random() % PROCESSES];
		struct task_struct *task = one->task;

		random_trouble();
		one->ctx.sample_period = world_random() % 100000;
		lab_begin(one, (world_random() & 1 ? LAB_CODE : LAB_JIT) + world_random() % 64);
		lab_end(one, LAB_LIB + world_random() % 4);
		one->task = world_random() % 10 == 0 ? idle : task;
		if (world_random() & 1)
			lab_sample(one);
		else
			lab_sample_kernel(one);
		one->task = task;
	}
	assert_int_equal(counter(SONDE_COUNT_RECEIVED), 5000);
	for (int i = SONDE_COUNT_KEPT; i <= SONDE_COUNT_OVERFLOW_TOTAL; i++) {
		if (i != SONDE_COUNT_FILTERED && i != SONDE_COUNT_LATE)
			assert_true(counter((enum sonde_counter)i) > 0);
	}
	check_weights();
	check_counted_stacks_are_known(&counts_0);
	check_counted_stacks_are_known(&counts_1);
}

static void test_no_state(void **state)
{
	map_limit(&walk_states, 0);
	sample_at(&p, LAB_CODE);
	assert_int_equal(counter(SONDE_COUNT_NO_STATE), 1);
	lab_check_books();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_equal_samples_add_up, setup),
		cmocka_unit_test_setup(test_halves, setup),
		cmocka_unit_test_setup(test_idle, setup),
		cmocka_unit_test_setup(test_late, setup),
		cmocka_unit_test_setup(test_full_counts_go_to_the_cgroup, setup),
		cmocka_unit_test_setup(test_full_overflow_goes_to_the_total, setup),
		cmocka_unit_test_setup(test_busy_maps, setup),
		cmocka_unit_test_setup(test_refused_stack, setup),
		cmocka_unit_test_setup(test_refused_kernel_stack, setup),
		cmocka_unit_test_setup(test_another_cpu_is_first, setup),
		cmocka_unit_test_setup(test_books_under_random_trouble, setup),
		cmocka_unit_test_setup(test_no_state, setup),
	};

	world_random_seed(11);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
