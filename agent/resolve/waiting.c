/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts that wait for names.
 *
 * A count whose stack meets a file that the reader has not finished with, or JIT code whose names
 * it is reading, is put aside, as it came: stacks and processes by id. It is resolved as soon as all
 * is read, at the latest at the next drain after its own files are; so it mostly reaches the
 * profile that it was counted for. If that one is closed first the count goes into the next, and
 * both say so (carried_out, carried_in): a name comes a little late rather than never, and no
 * drain waits.
 *
 * Each drain goes through all that wait, which also keeps what they refer to from being
 * forgotten. Bounded in number; past the bound, after half a minute, and at the end of a
 * recording a count is resolved with what is there: the frames have the reason SYM_READING.
 */
#include <errno.h>

#include "agent/resolve/resolve_private.h"
#include "base/clock.h"

enum { MAX_WAITING = 65536 };

void waiting_init(struct resolver *r)
{
	map_init(&r->waiting, sizeof(struct sonde_count_key), sizeof(struct sonde_count),
		 MAX_WAITING);
}

/* Whether a file of the stack is being read. */
static bool meets_reading(struct resolver *r, const struct user_stack *stack)
{
	bool found = false;

	/* All files of the stack are in use, also behind the first that is being read. */
	for (uint32_t i = 0; i < stack->count; i++) {
		const struct known_file *file;

		if (!(stack->frames[i].file & SONDE_FILE_ID_BIT))
			continue;
		file = file_table_find(&r->files, stack->frames[i].file, r->now);
		found |= file && file_table_is_reading(&r->files, file);
	}
	return found;
}

static bool meets_jit(const struct user_stack *stack)
{
	for (uint32_t i = 0; i < stack->count; i++) {
		if (stack->frames[i].file == SONDE_FRAME_ANON)
			return true;
	}
	return false;
}

/*
 * Whether the names of JIT code that the stack needs are being read. They are asked for here, once
 * the samples are there and while the process may still be: a count that has waited is not
 * asked for again, unless the first time found no room.
 */
static bool meets_unread_jit(struct resolver *r, const struct user_stack *stack, uint64_t id,
			     struct known_process *process)
{
	if (!process || r->options.no_symbols || !meets_jit(stack))
		return false;
	if (!r->is_retrying || process->jit_wants_look)
		process_look_at_jit(&r->tasks, id, process, r->now, r->drain_from_ns);
	return process_jit_is_read(process);
}

bool waiting_take(struct resolver *r, const struct sonde_count_key *key,
		  const struct sonde_count *count, const struct user_stack *stack,
		  struct known_process *process)
{
	struct sonde_count *sum;
	bool waits;

	if (r->no_waiting)
		return false;
	waits = meets_unread_jit(r, stack, key->process, process);
	waits |= r->files.symbols_due && meets_reading(r, stack);
	if (!waits || map_add(&r->waiting, key, &sum) < 0)
		return false;
	sum->samples += count->samples;
	if (key->kind != SONDE_KIND_OFF_MAX)
		sum->weight += count->weight;
	else if (sum->weight < count->weight)
		sum->weight = count->weight;
	known_get(&r->tasks.cgroups, key->cgroup, r->now);
	known_get(&r->tasks.threads, key->thread, r->now);
	return true;
}

void waiting_retry(struct resolver *r)
{
	struct map before = r->waiting;
	const struct sonde_count_key *key;
	const struct sonde_count *count;
	size_t cursor = 0;

	if (!before.count)
		return;
	waiting_init(r);
	r->is_retrying = true;
	while (map_next(&before, &cursor, &key, &count))
		resolver_count(r, key, count);
	r->is_retrying = false;
	map_fini(&before);
}

uint64_t waiting_samples(const struct resolver *r)
{
	const struct sonde_count *count;
	size_t cursor = 0;
	uint64_t samples = 0;

	while (map_next(&r->waiting, &cursor, NULL, &count))
		samples += count->samples;
	return samples;
}

bool resolver_is_waiting(const struct resolver *r)
{
	return r->waiting.count > 0;
}

void resolver_stop_waiting(struct resolver *r)
{
	r->no_waiting = true;
	waiting_retry(r);
	r->no_waiting = false;
}

void resolver_discard_waiting(struct resolver *r)
{
	map_clear(&r->waiting);
}

void resolver_drain(struct resolver *r)
{
	/* Those that wait are of earlier drains. */
	if (!resolver_is_waiting(r))
		r->drain_from_ns = r->drain_began_ns;
	r->drain_began_ns = clock_monotonic();
	r->elapsed_ns = r->drain_began_ns - r->made_ns;
}
