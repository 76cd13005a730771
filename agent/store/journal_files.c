/* SPDX-License-Identifier: Apache-2.0 */
/* See journal_files.h. */
#include "agent/store/journal_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/store/durable.h"
#include "base/file.h"
#include "base/parse.h"

static const char *const endings[JOURNAL_KIND_COUNT] = {
	[JOURNAL_CHUNK] = "chunk",
	[JOURNAL_DONE] = "done",
	[JOURNAL_BAD] = "bad",
};

void journal_name(const struct journal_file *file, enum journal_kind kind,
		  char ret_name[JOURNAL_NAME_MAX])
{
	snprintf(ret_name, JOURNAL_NAME_MAX, "%020" PRIu64 "-%020" PRIu64 ".%s", file->window,
		 file->sequence, endings[kind]);
}

/* Only names that journal_name makes, to the letter. */
static bool parse_name(const char *name, struct journal_file *ret_file, enum journal_kind *ret_kind)
{
	const char *end = name + strlen(name), *p;
	struct journal_file file = { 0 };
	char again[JOURNAL_NAME_MAX];

	p = parse_digits(name, end, 10, &file.window);
	if (!p || *p != '-')
		return false;
	p = parse_digits(p + 1, end, 10, &file.sequence);
	if (!p)
		return false;
	for (enum journal_kind kind = 0; kind < JOURNAL_KIND_COUNT; kind++) {
		journal_name(&file, kind, again);
		if (strcmp(again, name) == 0) {
			*ret_file = file;
			*ret_kind = kind;
			return true;
		}
	}
	return false;
}

static bool is_before(const struct journal_file *a, const struct journal_file *b)
{
	return a->window != b->window ? a->window < b->window : a->sequence < b->sequence;
}

int journal_files_add(struct journal_files *list, const struct journal_file *file)
{
	size_t at = list->count;

	if (list->count == list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 64;
		void *bigger = reallocarray(list->files, cap, sizeof(*list->files));

		if (!bigger)
			return -ENOMEM;
		list->files = bigger;
		list->cap = cap;
	}
	/* Nearly always at the end. */
	while (at > 0 && is_before(file, &list->files[at - 1]))
		at--;
	memmove(&list->files[at + 1], &list->files[at], (list->count - at) * sizeof(*list->files));
	list->files[at] = *file;
	list->count++;
	return 0;
}

void journal_files_remove(struct journal_files *list, size_t first, size_t count)
{
	struct journal_file *at = &list->files[first];

	memmove(at, at + count, (list->count - first - count) * sizeof(*at));
	list->count -= count;
}

void journal_files_fini(struct journal_files *list)
{
	free(list->files);
	*list = (struct journal_files){ 0 };
}

static int add_name(int dir_fd, const char *name, struct journal_files lists[JOURNAL_KIND_COUNT])
{
	struct journal_file file;
	enum journal_kind kind;
	struct stat st;

	if (durable_is_left_over(name)) {
		unlinkat(dir_fd, name, 0);
		return 0;
	}
	if (!parse_name(name, &file, &kind) || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	file.bytes = (uint64_t)st.st_size;
	return journal_files_add(&lists[kind], &file);
}

int journal_files_scan(const char *dir, struct journal_files lists[JOURNAL_KIND_COUNT])
{
	DIR *d = opendir(dir);
	int err = 0;

	if (!d)
		return -errno;
	while (!err) {
		const struct dirent *entry;

		errno = 0;
		entry = readdir(d);
		if (!entry) {
			err = -errno;
			break;
		}
		err = add_name(dirfd(d), entry->d_name, lists);
	}
	closedir(d);
	return err;
}

static int path_of(const char *dir, const struct journal_file *file, enum journal_kind kind,
		   char path[PATH_MAX])
{
	char name[JOURNAL_NAME_MAX];
	int len;

	journal_name(file, kind, name);
	len = snprintf(path, PATH_MAX, "%s/%s", dir, name);
	return len < 0 || len >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int make_both(const char *base, const char *dir)
{
	int err = durable_mkdir(base);

	if (!err)
		err = durable_mkdir(dir);
	return err ? err : durable_sync_dir(base);
}

int journal_folder_make(const char *dir)
{
	size_t len = strrchr(dir, '/') - dir;
	char *base = strndup(dir, len ? len : 1);
	int err = base ? make_both(base, dir) : -ENOMEM;

	free(base);
	return err;
}

int journal_file_write(const char *dir, const struct journal_file *file, const struct buf *bytes)
{
	char name[JOURNAL_NAME_MAX];
	int err;

	journal_name(file, JOURNAL_CHUNK, name);
	err = durable_write(dir, name, bytes->data, bytes->len);
	if (err == -ENOENT) {
		/* The directory was taken away under us; its place may be there again. */
		err = journal_folder_make(dir);
		if (!err)
			err = durable_write(dir, name, bytes->data, bytes->len);
	}
	if (err)
		journal_file_delete(dir, file, JOURNAL_CHUNK);
	return err;
}

int journal_file_delete(const char *dir, const struct journal_file *file, enum journal_kind kind)
{
	char path[PATH_MAX];
	int err = path_of(dir, file, kind, path);

	if (!err && unlink(path) < 0 && errno != ENOENT && errno != ENOTDIR)
		err = -errno;
	return err;
}

int journal_file_read(const char *dir, const struct journal_file *file, struct buf *out)
{
	char path[PATH_MAX];
	int err = path_of(dir, file, JOURNAL_CHUNK, path);

	return err ? err : file_read_path(path, out);
}
