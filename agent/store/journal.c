/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See journal.h. A chunk's life: <name>.tmp, .chunk, and gone, or .bad for ever (up to MAX_BAD).
 *
 * The chunks of a window must go all at once: if a crash left some, the next start would make
 * a smaller window of them, in the place of the whole one. So the last chunk is renamed to .done
 * first, one atomic step that also works on a full disk; what it stands for is removed at leisure,
 * or at the next open.
 */
#include "agent/store/journal.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/chunk.h"
#include "agent/store/durable.h"
#include "agent/store/journal_private.h"

enum {
	MAX_CHUNKS = 8640, /* a day of collections of 10 s that no store took */
	MAX_BAD = 16,      /* the newest are kept to be looked at */
};

static const uint64_t MAX_BYTES = 256 << 20; /* of all chunks */

/* ---- what is in the directory ---- */

static void forget(struct journal *j, size_t i)
{
	j->totals.bytes -= j->chunks.files[i].bytes;
	journal_files_remove(&j->chunks, i, 1);
}

static void prune_bad(struct journal *j)
{
	while (j->bad.count > MAX_BAD) {
		journal_file_delete(j->dir, &j->bad.files[0], JOURNAL_BAD);
		journal_files_remove(&j->bad, 0, 1);
	}
}

/* A file that cannot be renamed is forgotten all the same: the next open looks at it again. */
void journal_set_aside(struct journal *j, size_t i)
{
	struct journal_file file = j->chunks.files[i];
	char from[JOURNAL_NAME_MAX], to[JOURNAL_NAME_MAX];

	journal_name(&file, JOURNAL_CHUNK, from);
	journal_name(&file, JOURNAL_BAD, to);
	if (!durable_rename(j->dir, from, to))
		journal_files_add(&j->bad, &file);
	j->totals.damaged++;
	forget(j, i);
	prune_bad(j);
}

bool journal_is_damage(int err)
{
	static const int causes[] = { -EBADMSG, -ENOENT, -EIO, -EFBIG, -ENOSPC, -EISDIR, -EACCES };

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		if (err == causes[i])
			return true;
	}
	return false;
}

static int check_file(const struct journal *j, const struct journal_file *file)
{
	struct buf bytes;
	int err;

	buf_init(&bytes, JOURNAL_MAX_CHUNK);
	err = journal_file_read(j->dir, file, &bytes);
	if (!err)
		err = chunk_check(bytes.data, bytes.len);
	buf_fini(&bytes);
	return err;
}

size_t journal_first_of(const struct journal *j, uint64_t window)
{
	size_t i = 0;

	while (i < j->chunks.count && j->chunks.files[i].window < window)
		i++;
	return i;
}

/*
 * Second half of a removal: what a .done stands for, then itself. What cannot be deleted is
 * forgotten all the same, as it is in the store: the .done stays, and the next open tries again.
 */
static void finish_removal(struct journal *j, const struct journal_file *done)
{
	size_t i = journal_first_of(j, done->window);
	int err = 0;

	while (i < j->chunks.count && j->chunks.files[i].window == done->window &&
	       j->chunks.files[i].sequence <= done->sequence) {
		if (journal_file_delete(j->dir, &j->chunks.files[i], JOURNAL_CHUNK))
			err = -EIO;
		forget(j, i);
	}
	if (!err && !durable_sync_dir(j->dir))
		journal_file_delete(j->dir, done, JOURNAL_DONE);
}

static void note_sequences(struct journal *j, const struct journal_files *list)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->files[i].sequence >= j->next_sequence)
			j->next_sequence = list->files[i].sequence + 1;
	}
}

static int scan(struct journal *j)
{
	struct journal_files lists[JOURNAL_KIND_COUNT] = { 0 };
	int err = journal_files_scan(j->dir, lists);

	for (int kind = 0; kind < JOURNAL_KIND_COUNT; kind++)
		note_sequences(j, &lists[kind]);
	j->chunks = lists[JOURNAL_CHUNK];
	j->bad = lists[JOURNAL_BAD];
	for (size_t i = 0; i < j->chunks.count; i++)
		j->totals.bytes += j->chunks.files[i].bytes;
	for (size_t i = 0; i < lists[JOURNAL_DONE].count; i++)
		finish_removal(j, &lists[JOURNAL_DONE].files[i]);
	journal_files_fini(&lists[JOURNAL_DONE]);
	for (size_t i = 0; !err && i < j->chunks.count;) {
		int bad = check_file(j, &j->chunks.files[i]);

		if (journal_is_damage(bad))
			journal_set_aside(j, i);
		else if (bad)
			err = bad;
		else
			i++;
	}
	prune_bad(j);
	return err;
}

int journal_open(const char *dir, struct journal **ret_journal)
{
	struct journal *j = calloc(1, sizeof(*j));
	int err = -ENOMEM;

	if (!j)
		return -ENOMEM;
	if (asprintf(&j->dir, "%s/journal", dir) < 0) {
		j->dir = NULL;
		goto out;
	}
	err = journal_folder_make(j->dir);
	if (!err)
		err = scan(j);
out:
	if (err)
		journal_close(j);
	else
		*ret_journal = j;
	return err;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	journal_files_fini(&j->chunks);
	journal_files_fini(&j->bad);
	free(j->dir);
	free(j);
}

/* ---- writing ---- */

static size_t oldest_chunk(const struct journal *j)
{
	size_t oldest = 0;

	for (size_t i = 1; i < j->chunks.count; i++) {
		if (j->chunks.files[i].sequence < j->chunks.files[oldest].sequence)
			oldest = i;
	}
	return oldest;
}

/* By sequence, as window numbers follow a clock that may have been set. */
static void drop_over_bounds(struct journal *j)
{
	while (j->chunks.count > 1 &&
	       (j->chunks.count > MAX_CHUNKS || j->totals.bytes > MAX_BYTES)) {
		size_t i = oldest_chunk(j);

		if (journal_file_delete(j->dir, &j->chunks.files[i], JOURNAL_CHUNK))
			return;
		j->totals.dropped++;
		forget(j, i);
	}
}

static int append(struct journal *j, uint64_t window, const struct profile *p)
{
	struct journal_file file = { .window = window, .sequence = j->next_sequence };
	struct buf bytes;
	int err;

	buf_init(&bytes, JOURNAL_MAX_CHUNK);
	err = chunk_encode(p, &bytes);
	if (err == -ENOSPC)
		err = -EFBIG; /* our own bound, not the disk's */
	if (!err)
		err = journal_file_write(j->dir, &file, &bytes);
	file.bytes = bytes.len;
	buf_fini(&bytes);
	if (!err)
		err = journal_files_add(&j->chunks, &file);
	if (err)
		return err;
	j->next_sequence++;
	j->totals.bytes += file.bytes;
	return 0;
}

int journal_append(struct journal *j, uint64_t window, const struct profile *p)
{
	int err = append(j, window, p);

	if (err) {
		j->totals.write_errors++;
		return err;
	}
	j->totals.written++;
	j->current_window = window;
	j->has_current = true;
	drop_over_bounds(j);
	return 0;
}

/* ---- removing ---- */

/* Only what was read, if that is the window: chunks that came later are in no profile yet. */
static bool find_last(const struct journal *j, uint64_t window, struct journal_file *ret_last)
{
	bool found = false;

	for (size_t i = journal_first_of(j, window); i < j->chunks.count; i++) {
		const struct journal_file *file = &j->chunks.files[i];

		if (file->window != window || (j->has_taken && j->taken_window == window &&
					       file->sequence > j->taken_sequence))
			break;
		*ret_last = *file;
		found = true;
	}
	return found;
}

int journal_remove(struct journal *j, uint64_t window)
{
	char from[JOURNAL_NAME_MAX], to[JOURNAL_NAME_MAX];
	struct journal_file last;
	int err;

	if (!find_last(j, window, &last))
		return 0;
	journal_name(&last, JOURNAL_CHUNK, from);
	journal_name(&last, JOURNAL_DONE, to);
	err = durable_rename(j->dir, from, to);
	if (err && err != -ENOENT)
		return err;
	finish_removal(j, &last);
	return 0;
}

void journal_totals(const struct journal *j, struct journal_totals *ret_totals)
{
	*ret_totals = j->totals;
}
