/* SPDX-License-Identifier: Apache-2.0 */
/* From the chunks of a closed window to its profile; see journal.h. */
#include "agent/store/journal.h"

#include <errno.h>

#include "agent/store/chunk.h"
#include "agent/store/journal_private.h"
#include "proto/merge.h"

enum { MAX_PROFILE = 256 << 20 }; /* memory of a window's profile */

static int load(const struct journal *j, const struct journal_file *file,
		struct profile **ret_profile)
{
	struct buf bytes;
	int err;

	buf_init(&bytes, JOURNAL_MAX_CHUNK);
	err = journal_file_read(j->dir, file, &bytes);
	if (!err)
		err = chunk_decode(bytes.data, bytes.len, JOURNAL_MAX_CHUNK, ret_profile);
	buf_fini(&bytes);
	return err;
}

/* One more chunk into `into`: 0, -EINVAL (another measurement), -EFBIG (over the bound). */
static int add_chunk(const struct journal *j, const struct journal_file *file, struct profile *into,
		     bool *ret_damaged)
{
	struct profile *part = NULL;
	int err = load(j, file, &part);

	*ret_damaged = journal_is_damage(err);
	if (err)
		return err;
	err = profile_merge(into, part);
	profile_free(part);
	return err == -ENOMEM && into->full ? -EFBIG : err;
}

/*
 * Merges the window's first chunks, up to max_chunks: until one measures something else (the
 * event may differ after a restart) or does not fit. *ret_count is how many went in; with -EFBIG
 * that many would fit.
 */
static int merge_first(struct journal *j, uint64_t window, size_t max_chunks, struct profile *into,
		       size_t *ret_count)
{
	size_t first = journal_first_of(j, window), count = 0;
	int err = 0;

	while (count < max_chunks && first + count < j->chunks.count &&
	       j->chunks.files[first + count].window == window) {
		bool damaged;

		err = add_chunk(j, &j->chunks.files[first + count], into, &damaged);
		if (damaged)
			journal_set_aside(j, first + count);
		else if (err)
			break;
		else
			count++;
		err = 0;
	}
	*ret_count = count;
	return err == -EINVAL ? 0 : err;
}

/* Into an empty one, so that only strings in use are in the window's file. */
static int tidy(const struct profile *merged, struct profile **ret_profile)
{
	struct profile *p;
	int err = profile_new(MAX_PROFILE, &p);

	if (err)
		return err;
	err = profile_merge(p, merged);
	if (err)
		profile_free(p);
	else
		*ret_profile = p;
	return err;
}

/* As merge_first, into a new profile: -ENOENT if no chunk of the window is any good. */
static int read_chunks(struct journal *j, uint64_t window, size_t max_chunks, size_t *ret_count,
		       struct profile **ret_profile)
{
	struct profile *merged;
	int err = profile_new(MAX_PROFILE, &merged);

	if (err)
		return err;
	err = merge_first(j, window, max_chunks, merged, ret_count);
	if (!err && *ret_count == 0)
		err = -ENOENT;
	if (!err)
		err = tidy(merged, ret_profile);
	profile_free(merged);
	return err;
}

static int read_window(struct journal *j, uint64_t window, struct profile **ret_profile)
{
	size_t count, first;
	int err = read_chunks(j, window, SIZE_MAX, &count, ret_profile);

	if (err == -EFBIG && count > 0)
		err = read_chunks(j, window, count, &count, ret_profile);
	if (err == -EFBIG) {
		/* Too large even alone: out of the way of all others. */
		journal_set_aside(j, journal_first_of(j, window));
		return -ENOENT;
	}
	if (err)
		return err;
	first = journal_first_of(j, window);
	j->taken_window = window;
	j->taken_sequence = j->chunks.files[first + count - 1].sequence;
	j->has_taken = true;
	j->totals.read += count;
	return 0;
}

/*
 * A window after the one that is being written now is from before the clock was set back, so
 * it is as closed as the older ones.
 */
static bool find_closed(const struct journal *j, uint64_t before, uint64_t *ret_window)
{
	for (size_t i = 0; i < j->chunks.count; i++) {
		uint64_t window = j->chunks.files[i].window;

		if (window < before || (j->has_current && window > j->current_window)) {
			*ret_window = window;
			return true;
		}
	}
	return false;
}

int journal_read_oldest(struct journal *j, uint64_t before, uint64_t *ret_window,
			struct profile **ret_profile)
{
	uint64_t window;
	int err = -ENOENT;

	while (err == -ENOENT && find_closed(j, before, &window))
		err = read_window(j, window, ret_profile);
	if (!err)
		*ret_window = window;
	return err;
}
