/* SPDX-License-Identifier: Apache-2.0 */
/* The resolver: life, events, counts; see resolve.h. */
#include "agent/resolve/resolve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/resolve/resolve_private.h"
#include "base/clock.h"

/*
 * Bounds; the kernel side knows half as many stacks. KEEP_STACKS in drains, not in time: what goes too
 * early is sent once more, which costs something for each drain, however far apart they are.
 */
enum {
	MAX_STACKS = 65536,
	KEEP_STACKS = 10,
	MAX_FRAME_LOCATIONS = 1 << 20,
	MAX_MAPPINGS = 65536,
};

int resolver_new(const struct resolver_options *options, struct resolver **ret_resolver)
{
	const char *symfs = options->symfs && options->symfs[0] ? options->symfs : NULL;
	struct sym_file_options files = { .debug_dir = options->debug_dir,
					  .symfs = symfs,
					  .lines = !options->no_symbols,
					  .no_demangle = options->no_demangle,
					  .no_symbols = options->no_symbols };
	struct resolver *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->options = *options;
	r->now = 1;
	resolver_set_columns(r, SONDE_KIND_ON_CPU, 0, 1);
	resolver_set_columns(r, SONDE_KIND_OFF_CPU, RESOLVER_NOWHERE, RESOLVER_NOWHERE);
	resolver_set_columns(r, SONDE_KIND_OFF_MAX, RESOLVER_NOWHERE, RESOLVER_NOWHERE);
	known_init(&r->user_stacks, MAX_STACKS, KEEP_STACKS, free);
	known_init(&r->kernel_stacks, MAX_STACKS, KEEP_STACKS, free);
	err = file_table_init(&r->files, options->proc_root, options->symbol_bytes, &files);
	task_tables_init(&r->tasks, options->proc_root, options->no_demangle, r->files.reader);
	r->tasks.filter = options->filter;
	r->drain_began_ns = r->made_ns = clock_monotonic();
	map_init(&r->frame_locations, sizeof(struct frame_key), sizeof(struct frame_value),
		 MAX_FRAME_LOCATIONS);
	map_init(&r->unnamed_mappings, sizeof(uint32_t), 0, MAX_MAPPINGS);
	waiting_init(r);
	if (err) {
		resolver_free(r);
		return err;
	}
	/* Without these the addresses stay, with a reason. */
	if (sym_file_load_vdso(&files, &r->vdso))
		r->vdso = NULL;
	if (kernel_names_new(options->no_symbols ? NULL : options->proc_root, "/sys",
			     options->no_demangle, &r->kernel)) {
		resolver_free(r);
		return -ENOMEM;
	}
	*ret_resolver = r;
	return 0;
}

void resolver_free(struct resolver *r)
{
	if (!r)
		return;
	known_fini(&r->user_stacks);
	known_fini(&r->kernel_stacks);
	task_tables_fini(&r->tasks);
	file_table_fini(&r->files);
	map_fini(&r->frame_locations);
	map_fini(&r->unnamed_mappings);
	map_fini(&r->waiting);
	sym_file_free(r->vdso);
	kernel_names_free(r->kernel);
	for (size_t i = 0; i < sizeof(r->forget) / sizeof(r->forget[0]); i++)
		free(r->forget[i].ids);
	free(r);
}

void resolver_set_columns(struct resolver *r, enum sonde_kind kind, int number, int weight)
{
	r->columns[kind].number = number;
	r->columns[kind].weight = weight;
}

void resolver_begin(struct resolver *r, struct profile *profile)
{
	r->profile = profile;
	r->profile_number++;
	map_clear(&r->frame_locations);
	map_clear(&r->unnamed_mappings);
	r->totals.carried_in += r->carried;
	r->carried = 0;
}

void resolver_end(struct resolver *r)
{
	struct profile *p = r->profile;

	for (uint32_t id = 1; id <= p->mapping_count; id++)
		p->mappings[id - 1].has_functions = !map_find(&r->unnamed_mappings, &id);
	r->profile = NULL;
	r->carried = waiting_samples(r);
	r->totals.carried_out += r->carried;
}

int resolver_start(struct resolver *r)
{
	return reader_start(r->files.reader);
}

int resolver_call_in_reader(struct resolver *r, int (*fn)(void))
{
	kernel_names_settle(r->kernel);
	return reader_call(r->files.reader, fn);
}

int resolver_fd(const struct resolver *r)
{
	return reader_fd(r->files.reader);
}

void resolver_poll(struct resolver *r)
{
	struct read_result result;

	/* The rest keeps until the next turn of the loop. */
	for (int i = 0; i < READER_MAX_RESULTS && reader_next(r->files.reader, &result); i++) {
		if (result.part == READ_JIT)
			task_tables_take_jit(&r->tasks, &result, r->now);
		else
			file_table_take(&r->files, &result, r->now);
	}
	/* Not for each file that comes: that would be going through all that wait, again and again. */
	if (!r->files.symbols_due && !r->tasks.jits_away)
		waiting_retry(r);
}

size_t resolver_tables_due(const struct resolver *r)
{
	return reader_jobs(r->files.reader, READ_TABLE);
}

static void put_user_stack(struct resolver *r, const struct event *event)
{
	size_t bytes = event->user_stack.count * sizeof(struct sonde_frame);
	struct user_stack *stack = malloc(sizeof(*stack) + bytes);

	if (!stack)
		return;
	stack->count = event->user_stack.count;
	memcpy(stack->frames, event->user_stack.frames, bytes);
	known_put(&r->user_stacks, event->id, stack, r->now);
}

static void put_kernel_stack(struct resolver *r, const struct event *event)
{
	size_t bytes = event->kernel_stack.count * sizeof(__u64);
	struct kernel_stack *stack = malloc(sizeof(*stack) + bytes);

	if (!stack)
		return;
	stack->count = event->kernel_stack.count;
	memcpy(stack->addrs, event->kernel_stack.addrs, bytes);
	known_put(&r->kernel_stacks, event->id, stack, r->now);
}

void resolver_event(struct resolver *r, const struct event *event)
{
	switch (event->type) {
	case SONDE_RECORD_USER_STACK:
		r->totals.stacks++;
		put_user_stack(r, event);
		return;
	case SONDE_RECORD_KERNEL_STACK:
		r->totals.stacks++;
		put_kernel_stack(r, event);
		return;
	case SONDE_RECORD_FILE:
		if (file_table_event(&r->files, event, r->now))
			forget_list_add(&r->forget[RESOLVER_FILE], event->id);
		return;
	case SONDE_RECORD_PROCESS:
		r->totals.processes++;
		/* fall through */
	case SONDE_RECORD_THREAD_NAME:
	case SONDE_RECORD_CGROUP:
		/* What finds no room shows as unknown, and is counted at its use. */
		task_tables_event(&r->tasks, event, r->now);
		return;
	}
}

/* Anything else is a sample. */
static bool is_off_cpu(uint32_t kind)
{
	return kind == SONDE_KIND_OFF_CPU || kind == SONDE_KIND_OFF_MAX;
}

/*
 * Whether the filter leaves the samples of a cgroup out. Unknown ones too: they may be anybody's.
 * What is no sample is not among those of the kernel side that are left out.
 */
static bool is_filtered(struct resolver *r, const struct known_cgroup *cgroup, uint32_t kind,
			const struct sonde_count *count, uint64_t *total)
{
	if (!cgroup_filter_is_set(&r->tasks.filter) || (cgroup && !cgroup->refused))
		return false;
	if (is_off_cpu(kind))
		return true;
	if (!cgroup)
		r->totals.unknown_cgroups += count->samples;
	*total += count->samples;
	r->totals.filtered_weight += count->weight;
	return true;
}

void resolver_count(struct resolver *r, const struct sonde_count_key *key,
		    const struct sonde_count *count)
{
	struct known_process *process = known_get(&r->tasks.processes, key->process, r->now);
	const struct known_cgroup *cgroup = known_get(&r->tasks.cgroups, key->cgroup, r->now);
	const struct kernel_stack *kernel = NULL;
	const struct user_stack *user = NULL;
	struct sample_frames frames = { .samples = count->samples };
	struct profile_label labels[MAX_LABELS];
	size_t label_count;

	if (is_filtered(r, cgroup, key->kind, count, &r->totals.filtered))
		return;
	if (key->kernel_stack)
		kernel = known_get(&r->kernel_stacks, key->kernel_stack, r->now);
	if (key->user_stack)
		user = known_get(&r->user_stacks, key->user_stack, r->now);
	if (user && waiting_take(r, key, count, user, process))
		return;
	if (kernel)
		(is_off_cpu(key->kind) ? off_add_kernel : frames_add_kernel)(r, kernel, &frames);
	if (user)
		frames_add_user(r, user, key->process, process, &frames);
	if ((key->kernel_stack && !kernel) || (key->user_stack && !user)) {
		frames_add_text(r, "[stack lost]", &frames);
		r->totals.lost_stacks += count->samples;
	}
	if (frames.count == 0)
		frames_add_text(r, "[no stack]", &frames);
	if (!process)
		r->totals.unknown_processes += count->samples;
	if (!cgroup)
		r->totals.unknown_cgroups += count->samples;
	label_count = labels_of_count(r, key, process, cgroup, labels);
	if (is_off_cpu(key->kind))
		label_count = off_labels(r, key->detail, &frames, labels, label_count);
	samples_add(r, &frames,
		    is_off_cpu(key->kind) ? (enum sonde_kind)key->kind : SONDE_KIND_ON_CPU, count,
		    labels, label_count);
}

void resolver_overflow(struct resolver *r, const struct sonde_overflow_key *key,
		       const struct sonde_count *count)
{
	const struct known_cgroup *cgroup = known_get(&r->tasks.cgroups, key->cgroup, r->now);
	struct sample_frames frames = { .samples = count->samples };
	struct profile_label labels[MAX_LABELS];
	size_t n;

	/* Weight of the whole machine is nobody's, so it stays. */
	if (key->cgroup && is_filtered(r, cgroup, key->kind, count, &r->totals.filtered_overflow))
		return;
	frames_add_text(r, "[overflow]", &frames);
	n = labels_of_cgroup(r, cgroup, labels, 0);
	samples_add(r, &frames, SONDE_KIND_ON_CPU, count, labels, n);
}

void resolver_set_reading(struct resolver *r, bool read_files)
{
	file_table_set_reading(&r->files, read_files, &r->forget[RESOLVER_FILE]);
}

void resolver_drop_symbols(struct resolver *r)
{
	file_table_drop(&r->files, &r->forget[RESOLVER_FILE]);
}

void resolver_tick(struct resolver *r)
{
	waiting_retry(r);
	known_expire(&r->user_stacks, r->now, &r->forget[RESOLVER_STACK]);
	known_expire(&r->kernel_stacks, r->now, &r->forget[RESOLVER_STACK]);
	known_expire(&r->tasks.processes, r->now, &r->forget[RESOLVER_FACT]);
	known_expire(&r->tasks.threads, r->now, &r->forget[RESOLVER_FACT]);
	known_expire(&r->tasks.cgroups, r->now, &r->forget[RESOLVER_FACT]);
	file_table_tick(&r->files, r->now, r->elapsed_ns, &r->forget[RESOLVER_FILE]);
	r->now++;
}

bool resolver_next_forgotten(struct resolver *r, enum resolver_thing *ret_thing, uint64_t *ret_id)
{
	for (int thing = 0; thing <= RESOLVER_FILE; thing++) {
		struct forget_list *list = &r->forget[thing];

		if (!list->count)
			continue;
		*ret_thing = (enum resolver_thing)thing;
		*ret_id = list->ids[--list->count];
		return true;
	}
	return false;
}

bool resolver_next_refused(struct resolver *r, uint64_t *ret_cgroup)
{
	struct forget_list *list = &r->tasks.refused;

	if (!list->count)
		return false;
	*ret_cgroup = list->ids[--list->count];
	return true;
}

bool resolver_next_table(struct resolver *r, uint64_t *ret_file, struct unwind_table **ret_table)
{
	return file_table_next_built(&r->files, ret_file, ret_table);
}

uint32_t resolver_file_age(const struct resolver *r, uint64_t file)
{
	return known_age(&r->files.known, file, r->now);
}

void resolver_totals(const struct resolver *r, struct resolver_totals *ret_totals)
{
	*ret_totals = r->totals;
	ret_totals->files = r->files.opened;
	ret_totals->files_failed = r->files.failed;
	ret_totals->files_put_off = r->files.put_off;
	ret_totals->perf_map_bad_lines = r->tasks.jit_bad.map_lines;
	ret_totals->jitdump_bad_records = r->tasks.jit_bad.dump_records;
	ret_totals->file_bytes = file_table_bytes(&r->files);
	ret_totals->stacks_known = r->user_stacks.map.count + r->kernel_stacks.map.count;
	ret_totals->facts_known = r->tasks.processes.map.count + r->tasks.threads.map.count +
				  r->tasks.cgroups.map.count;
	ret_totals->files_known = r->files.known.map.count;
	ret_totals->files_queued = reader_jobs(r->files.reader, READ_TABLE) +
				   reader_jobs(r->files.reader, READ_SYMBOLS) +
				   reader_jobs(r->files.reader, READ_JIT);
	ret_totals->samples_waiting = waiting_samples(r);
}
