/* SPDX-License-Identifier: Apache-2.0 */
/* See kernel_copy.h. */
#include "cli/kernel_copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "symbolizer/symbolizer.h"

#define PREFIX "kernel-"

enum { MAX_COPIES = 8, BUILD_ID_MIN = 16, BUILD_ID_MAX = 128 };

static const char kallsyms[] = "/proc/kallsyms", notes[] = "/sys/kernel/notes";

void kernel_copy_default_dir(char *ret_dir, size_t size)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int len = 0;

	if (cache && cache[0] == '/')
		len = snprintf(ret_dir, size, "%s/sonde", cache);
	else if (home && home[0] == '/')
		len = snprintf(ret_dir, size, "%s/.cache/sonde", home);
	if (len <= 0 || (size_t)len >= size)
		ret_dir[0] = 0;
}

static int path_of(const char *dir, const char *build_id, const char *ending, char path[PATH_MAX])
{
	size_t len = strlen(build_id);

	if (!dir || !dir[0] || len < BUILD_ID_MIN || len > BUILD_ID_MAX ||
	    strspn(build_id, "0123456789abcdef") != len)
		return -EINVAL;
	return snprintf(path, PATH_MAX, "%s/" PREFIX "%s%s", dir, build_id, ending) < PATH_MAX
		       ? 0
		       : -ENAMETOOLONG;
}

int kernel_copy_open(const char *dir, const char *build_id)
{
	char path[PATH_MAX];
	struct stat st;
	int fd, err = path_of(dir, build_id, "", path);

	if (err)
		return err;
	fd = file_open_regular(path);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH))) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

/* Its parent too, as ~/.cache need not be there. */
static int make_dir(const char *dir)
{
	const char *slash = strrchr(dir, '/');
	char *parent;

	if (mkdir(dir, 0700) == 0 || errno == EEXIST)
		return 0;
	if (errno != ENOENT || !slash || slash == dir)
		return -errno;
	parent = strndup(dir, (size_t)(slash - dir));
	if (!parent)
		return -ENOMEM;
	mkdir(parent, 0700);
	free(parent);
	return mkdir(dir, 0700) == 0 || errno == EEXIST ? 0 : -errno;
}

static bool is_older(const struct stat *a, const struct stat *b)
{
	return a->st_mtim.tv_sec != b->st_mtim.tv_sec ? a->st_mtim.tv_sec < b->st_mtim.tv_sec
						       : a->st_mtim.tv_nsec < b->st_mtim.tv_nsec;
}

/* Counts the copies, with what was left over of such, and takes away the oldest of too many. */
static bool drop_oldest(DIR *d)
{
	char oldest[NAME_MAX + 1] = "";
	struct stat oldest_st = { 0 }, st;
	const struct dirent *entry;
	size_t count = 0;

	rewinddir(d);
	while ((entry = readdir(d))) {
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 ||
		    fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		count++;
		if (oldest[0] && !is_older(&st, &oldest_st))
			continue;
		strcpy(oldest, entry->d_name);
		oldest_st = st;
	}
	return count > MAX_COPIES && unlinkat(dirfd(d), oldest, 0) == 0;
}

static int write_new(const char *path, const struct buf *text)
{
	int fd, err;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = file_write_all(fd, text->data, text->len);
	if (close(fd) < 0 && !err)
		err = -errno;
	return err;
}

int kernel_copy_save(const char *dir, const char *build_id, const struct buf *text)
{
	char path[PATH_MAX], new_path[PATH_MAX], ending[32];
	DIR *d;
	int err = path_of(dir, build_id, "", path);

	snprintf(ending, sizeof(ending), ".%d", (int)getpid());
	if (!err)
		err = path_of(dir, build_id, ending, new_path);
	if (!err)
		err = make_dir(dir);
	if (err)
		return err;
	err = write_new(new_path, text);
	if (!err && rename(new_path, path) < 0)
		err = -errno;
	if (err) {
		unlink(new_path);
		return err;
	}
	d = opendir(dir);
	while (d && drop_oldest(d))
		continue;
	if (d)
		closedir(d);
	return 0;
}

void kernel_copy_prepare(const char *dir)
{
	static const uint64_t nothing = 0;
	struct sym_kernel_options options = { .wanted = &nothing, .wanted_count = 1 };
	struct sym_kernel *kernel;
	char build_id[BUILD_ID_MAX + 2];
	struct buf text;
	int fd;

	if (sym_kernel_build_id(notes, build_id, sizeof(build_id)) ||
	    sym_kernel_text(kallsyms, &options.text))
		return;
	fd = kernel_copy_open(dir, build_id);
	if (fd >= 0) {
		close(fd);
		return;
	}
	buf_init(&text, KERNEL_COPY_BYTES);
	options.copy = &text;
	if (sym_kernel_load(kallsyms, &options, &kernel) == 0) {
		if (text.len)
			kernel_copy_save(dir, build_id, &text);
		sym_kernel_free(kernel);
	}
	buf_fini(&text);
}
