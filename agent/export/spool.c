/* SPDX-License-Identifier: Apache-2.0 */
/* See spool.h. Files are named by the journal's rules: the window's number, then its start. */
#include "agent/export/spool.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/chunk.h"
#include "agent/store/durable.h"
#include "agent/store/journal_files.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"

enum { MAX_CHUNK = 64 << 20, MAX_BAD = 16, MAX_CHUNKS = 100000, CURSOR_BYTES = 32 };

static const size_t MAX_PROFILE = 256 << 20; /* memory of a window being sent */

/* Samples and the scheduler's accounts come in turn. */
enum { LAST_STARTS = 2 };

struct spool {
	char *dir;
	uint64_t max_bytes, next_number;
	int64_t last_starts_ns[LAST_STARTS]; /* of windows added last, by number */
	struct journal_files chunks, bad;
	struct spool_totals totals;
};

static void forget(struct spool *s, size_t i)
{
	s->totals.bytes -= s->chunks.files[i].bytes;
	journal_files_remove(&s->chunks, i, 1);
}

static void prune_bad(struct spool *s)
{
	while (s->bad.count > MAX_BAD) {
		journal_file_delete(s->dir, &s->bad.files[0], JOURNAL_BAD);
		journal_files_remove(&s->bad, 0, 1);
	}
}

/* Of a chunk the number is the journal's window, and the start its sequence. */
static int scan(struct spool *s)
{
	struct journal_files lists[JOURNAL_KIND_COUNT] = { 0 };
	int err = journal_files_scan(s->dir, lists);

	s->chunks = lists[JOURNAL_CHUNK];
	s->bad = lists[JOURNAL_BAD];
	journal_files_fini(&lists[JOURNAL_DONE]);
	for (size_t i = 0; i < s->chunks.count; i++) {
		s->totals.bytes += s->chunks.files[i].bytes;
		s->next_number = s->chunks.files[i].window + 1;
	}
	if (s->bad.count && s->bad.files[s->bad.count - 1].window >= s->next_number)
		s->next_number = s->bad.files[s->bad.count - 1].window + 1;
	prune_bad(s);
	return err;
}

int spool_open(const char *dir, uint64_t max_bytes, struct spool **ret_spool)
{
	struct spool *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->max_bytes = max_bytes;
	if (asprintf(&s->dir, "%s/spool", dir) < 0) {
		s->dir = NULL;
		err = -ENOMEM;
		goto out;
	}
	err = journal_folder_make(s->dir);
	if (!err)
		err = scan(s);
	if (s->next_number == 0)
		s->next_number = 1;
out:
	if (err)
		spool_close(s);
	else
		*ret_spool = s;
	return err;
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	journal_files_fini(&s->chunks);
	journal_files_fini(&s->bad);
	free(s->dir);
	free(s);
}

const char *spool_dir(const struct spool *s)
{
	return s->dir;
}

/* ---- adding ---- */

static void drop_over_cap(struct spool *s)
{
	while (s->chunks.count > 1 &&
	       (s->totals.bytes > s->max_bytes || s->chunks.count > MAX_CHUNKS)) {
		if (journal_file_delete(s->dir, &s->chunks.files[0], JOURNAL_CHUNK))
			return;
		s->totals.dropped++;
		forget(s, 0);
	}
}

static bool is_known(const struct spool *s, const struct profile *p)
{
	bool known = false;

	for (size_t i = 0; p->time_ns && i < LAST_STARTS; i++)
		known |= s->last_starts_ns[i] == p->time_ns;
	return known;
}

int spool_add(struct spool *s, const struct profile *p)
{
	struct journal_file file = {
		.window = s->next_number,
		.sequence = p->time_ns > 0 ? (uint64_t)p->time_ns / NSEC_PER_SEC : 0,
	};
	struct buf bytes;
	int err;

	if (is_known(s, p))
		return 0;
	buf_init(&bytes, MAX_CHUNK);
	err = chunk_encode(p, &bytes);
	if (err == -ENOSPC)
		err = -EFBIG; /* our own bound, not the disk's */
	if (!err)
		err = journal_file_write(s->dir, &file, &bytes);
	file.bytes = bytes.len;
	buf_fini(&bytes);
	if (!err)
		err = journal_files_add(&s->chunks, &file);
	if (err)
		return err;
	s->last_starts_ns[s->next_number++ % LAST_STARTS] = p->time_ns;
	s->totals.bytes += file.bytes;
	s->totals.written++;
	drop_over_cap(s);
	return 0;
}

/* ---- taking out ---- */

static size_t first_from(const struct spool *s, uint64_t from)
{
	size_t i = 0;

	while (i < s->chunks.count && s->chunks.files[i].window < from)
		i++;
	return i;
}

bool spool_next(const struct spool *s, uint64_t from, struct spool_chunk *ret_chunk)
{
	size_t i = first_from(s, from);

	if (i == s->chunks.count)
		return false;
	ret_chunk->number = s->chunks.files[i].window;
	ret_chunk->start_s = s->chunks.files[i].sequence;
	ret_chunk->bytes = s->chunks.files[i].bytes;
	return true;
}

uint64_t spool_count(const struct spool *s, uint64_t from)
{
	return s->chunks.count - first_from(s, from);
}

uint64_t spool_bytes(const struct spool *s, uint64_t from)
{
	uint64_t bytes = 0;

	for (size_t i = first_from(s, from); i < s->chunks.count; i++)
		bytes += s->chunks.files[i].bytes;
	return bytes;
}

uint64_t spool_end(const struct spool *s)
{
	return s->next_number;
}

void spool_begin_at(struct spool *s, uint64_t number)
{
	if (number > s->next_number)
		s->next_number = number;
}

static struct journal_file file_of(const struct spool_chunk *chunk)
{
	return (struct journal_file){ .window = chunk->number, .sequence = chunk->start_s };
}

int spool_load(const char *dir, const struct spool_chunk *chunk, struct profile **ret_profile)
{
	struct journal_file file = file_of(chunk);
	struct buf bytes;
	int err;

	buf_init(&bytes, MAX_CHUNK);
	err = journal_file_read(dir, &file, &bytes);
	if (!err)
		err = chunk_decode(bytes.data, bytes.len, MAX_PROFILE, ret_profile);
	buf_fini(&bytes);
	return err;
}

void spool_remove_below(struct spool *s, uint64_t number)
{
	/* What cannot be deleted now is found again at the next open, and was sent. */
	while (s->chunks.count && s->chunks.files[0].window < number) {
		journal_file_delete(s->dir, &s->chunks.files[0], JOURNAL_CHUNK);
		forget(s, 0);
	}
}

void spool_set_aside(struct spool *s, const struct spool_chunk *chunk)
{
	struct journal_file file = file_of(chunk);
	char from[JOURNAL_NAME_MAX], to[JOURNAL_NAME_MAX];
	size_t i = first_from(s, chunk->number);

	journal_name(&file, JOURNAL_CHUNK, from);
	journal_name(&file, JOURNAL_BAD, to);
	if (!durable_rename(s->dir, from, to))
		journal_files_add(&s->bad, &file);
	s->totals.damaged++;
	if (i < s->chunks.count && s->chunks.files[i].window == chunk->number)
		forget(s, i);
	prune_bad(s);
}

void spool_totals(const struct spool *s, struct spool_totals *ret_totals)
{
	*ret_totals = s->totals;
	ret_totals->chunks = s->chunks.count;
}

/* ---- cursors ---- */

uint64_t spool_read_cursor(const char *dir, const char *sink)
{
	char path[PATH_MAX];
	uint64_t number = 0;
	struct buf text;
	const char *line;

	snprintf(path, sizeof(path), "%s/%s.cursor", dir, sink);
	buf_init(&text, CURSOR_BYTES);
	if (!file_read_path(path, &text) && text.len && text.data[text.len - 1] == '\n') {
		text.len--;
		line = buf_cstr(&text);
		/* What is damaged says nothing: windows are sent again. */
		if (!line || parse_u64(line, 10, &number))
			number = 0;
	}
	buf_fini(&text);
	return number;
}

int spool_write_cursor(const char *dir, const char *sink, uint64_t number)
{
	char name[NAME_MAX], text[CURSOR_BYTES];
	int len = snprintf(text, sizeof(text), "%" PRIu64 "\n", number);

	snprintf(name, sizeof(name), "%s.cursor", sink);
	return durable_write(dir, name, text, (size_t)len);
}
