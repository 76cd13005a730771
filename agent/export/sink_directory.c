/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory, such as a mounted share or bucket: one gzip pprof for each series and window,
 *   <service>/<profile>/YYYY/MM/DD/HH/<node>-<start ns>-<hash of the series>-<first sample>.pb.gz
 * with its labels as comments. Names hold only letters that any store of objects takes. Writing
 * again replaces: equal windows have equal names. What is old there is for its owner to remove.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agent/export/pieces.h"
#include "agent/store/durable.h"
#include "base/clock.h"
#include "base/map.h"

enum { MAX_PART = 100 };

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

/* One part of a path: neither empty nor hidden, and no way up. */
static void put_part(struct buf *path, const char *text)
{
	size_t n = 0;

	for (; text[n] && n < MAX_PART; n++)
		buf_put_byte(path,
			     is_plain(text[n]) || (text[n] == '.' && n) ? (uint8_t)text[n] : '_');
	if (n == 0)
		buf_put_byte(path, '_');
}

static uint64_t hash_labels(const struct push_label *labels, size_t count)
{
	uint64_t words[2] = { 0 };

	for (size_t i = 0; i < count; i++) {
		words[0] = hash_bytes(words, sizeof(words));
		words[1] = hash_bytes(labels[i].text, strlen(labels[i].text));
	}
	return hash_bytes(words, sizeof(words));
}

/* Makes what is missing of `path` behind its first `from` bytes, which are there. */
static int make_directories(char *path, size_t from)
{
	for (char *slash = path + from; (slash = strchr(slash, '/')) != NULL; slash++) {
		int err;

		*slash = 0;
		err = durable_mkdir(path);
		*slash = '/';
		if (err)
			return err;
	}
	return durable_mkdir(path);
}

static int put_folder(const struct export_piece *piece, const char *dir,
		      const struct push_label *labels, struct buf *path)
{
	time_t seconds = (time_t)((uint64_t)piece->p->time_ns / NSEC_PER_SEC);
	char when[32];
	struct tm utc;

	gmtime_r(&seconds, &utc);
	strftime(when, sizeof(when), "/%Y/%m/%d/%H", &utc);
	buf_printf(path, "%s/", dir);
	put_part(path, labels[1].text);
	buf_put_byte(path, '/');
	put_part(path, labels[0].text);
	buf_put_str(path, when);
	return buf_cstr(path) ? 0 : -ENAMETOOLONG;
}

static int store_piece(void *context, const struct export_piece *piece)
{
	const char *dir = context;
	struct push_label labels[EXPORT_MAX_LABELS];
	char service[SERIES_SERVICE_BYTES];
	size_t count = export_labels(piece, service, labels);
	struct buf path, name;
	int err;

	buf_init(&path, PATH_MAX - 1);
	buf_init(&name, NAME_MAX);
	put_part(&name, piece->batch->identity->node);
	buf_printf(&name, "-%" PRId64 "-%016" PRIx64 "-%zu.pb.gz", piece->p->time_ns,
		   hash_labels(labels, count), piece->first);
	err = put_folder(piece, dir, labels, &path);
	if (!err && !buf_cstr(&name))
		err = -ENAMETOOLONG;
	if (!err)
		err = make_directories((char *)path.data, strlen(dir) + 1);
	if (!err)
		err = durable_write((const char *)path.data, (const char *)name.data, piece->pprof,
				    piece->len);
	buf_fini(&path);
	buf_fini(&name);
	return err;
}

static int store(const struct export_batch *batch, const char *dir)
{
	return export_pieces(batch, true, store_piece, (void *)dir);
}

const struct sink_type sink_directory = {
	.name = "directory",
	.store = store,
};
