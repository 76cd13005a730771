/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts that wait for names.
 *
 * A count whose stack meets a file that the reader has not finished with is put aside, as it came:
 * stacks and processes by id. It is resolved as soon as all files are read, at the latest at the
 * next drain after its own files are; so it mostly reaches the profile that it was counted for. If
 * that profile is closed first the count goes into the next one, and both say so
 * (carried_out, carried_in): a name comes a little late rather than never, and no drain waits.
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

/* A process may be gone once the files are read: the names of its JIT code are read now. */
static void secure_jit(struct resolver *r, const struct user_stack *stack, uint64_t id,
		       struct known_process *process)
{
	if (r->options.no_symbols)
		return;
	for (uint32_t i = 0; process && i < stack->count; i++) {
		if (stack->frames[i].file == SONDE_FRAME_ANON) {
			process_jit(&r->tasks, id, process, r->now, r->drain_from_ns);
			return;
		}
	}
}

bool waiting_take(struct resolver *r, const struct sonde_count_key *key,
		  const struct sonde_count *count, const struct user_stack *stack,
		  struct known_process *process)
{
	struct sonde_count *sum;

	if (!r->files.symbols_due || r->no_waiting || !meets_reading(r, stack) ||
	    map_add(&r->waiting, key, &sum) < 0)
		return false;
	sum->samples += count->samples;
	sum->weight += count->weight;
	secure_jit(r, stack, key->process, process);
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
	while (map_next(&before, &cursor, &key, &count))
		resolver_count(r, key, count);
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

void resolver_drain(struct resolver *r)
{
	/* Those that wait are of earlier drains. */
	if (!resolver_is_waiting(r))
		r->drain_from_ns = r->drain_began_ns;
	r->drain_began_ns = clock_monotonic();
	r->elapsed_ns = r->drain_began_ns - r->made_ns;
}
