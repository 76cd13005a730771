/* SPDX-License-Identifier: Apache-2.0 */
/* See dead_letter.h. */
#include "agent/export/dead_letter.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/store/durable.h"
#include "proto/compress.h"
#include "proto/merge.h"

enum { MAX_LETTERS = 64 };
static const uint64_t MAX_BYTES = 64 << 20;

static int is_letter(const struct dirent *entry)
{
	return strstr(entry->d_name, ".pb.gz") != NULL && entry->d_name[0] != '.';
}

/* Names begin with the window's number, so their order is that of age. */
static void drop_oldest(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), kept = 0, count = -1;
	struct dirent **found;
	uint64_t bytes = 0;

	if (fd >= 0)
		count = scandir(dir, &found, is_letter, alphasort);

	for (int i = count - 1; i >= 0; i--) {
		struct stat st;

		if (fstatat(fd, found[i]->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			bytes += (uint64_t)st.st_size;
			if (++kept > MAX_LETTERS || (kept > 1 && bytes > MAX_BYTES))
				unlinkat(fd, found[i]->d_name, 0);
		}
		free(found[i]);
	}
	if (count >= 0)
		free(found);
	if (fd >= 0)
		close(fd);
}

static int write_letter(const char *dir, const char *name, const struct export_batch *batch,
			const char *sink, const char *why)
{
	struct profile *p;
	struct buf bytes;
	int err = profile_extract(batch->p, batch->series->order + batch->first,
				  batch->end - batch->first, PROFILE_ALL_LABELS, SIZE_MAX / 4, &p);

	if (err)
		return err;
	buf_init(&bytes, MAX_BYTES);
	err = profile_add_comment(p, "refused by %s: %s", sink, why);
	if (!err)
		err = pprof_put_compressed(p, COMPRESS_GZIP, &bytes);
	if (!err)
		err = durable_write(dir, name, bytes.data, bytes.len);
	buf_fini(&bytes);
	profile_free(p);
	return err;
}

int dead_letter_write(const char *dir, const struct export_batch *batch, uint64_t window,
		      const char *sink, const char *why)
{
	char path[PATH_MAX], name[NAME_MAX];
	int err;

	snprintf(path, sizeof(path), "%s/dead", dir);
	snprintf(name, sizeof(name), "%012" PRIu64 "-%08zu-%s.pb.gz", window, batch->first, sink);
	err = durable_mkdir(path);
	if (!err)
		err = write_letter(path, name, batch, sink, why);
	if (!err)
		drop_oldest(path);
	return err;
}
