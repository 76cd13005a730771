/* SPDX-License-Identifier: Apache-2.0 */
/* See durable.h. */
#include "agent/store/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static int join(char path[PATH_MAX], const char *dir, const char *name, const char *ending)
{
	int len = snprintf(path, PATH_MAX, "%s/%s%s", dir, name, ending);

	return len < 0 || len >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int durable_sync_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	/* Some file systems cannot sync a directory, and say so: they do it by themselves. */
	if (fsync(fd) < 0 && errno != EINVAL && errno != EROFS)
		err = -errno;
	close(fd);
	return err;
}

static int write_and_sync(const char *path, const void *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int err;

	if (fd < 0)
		return -errno;
	err = file_write_all(fd, bytes, len);
	if (!err && fdatasync(fd) < 0)
		err = -errno;
	if (close(fd) < 0 && !err)
		err = -errno;
	return err;
}

/*
 * When only the last step, the sync of the directory, fails, the file is whole and has its name:
 * it stays, since removing it could take away the good one that it replaced.
 */
int durable_write(const char *dir, const char *name, const void *bytes, size_t len)
{
	char temporary[PATH_MAX], path[PATH_MAX];
	int err = join(temporary, dir, name, DURABLE_TEMPORARY);

	if (!err)
		err = join(path, dir, name, "");
	if (err)
		return err;
	err = write_and_sync(temporary, bytes, len);
	if (!err && rename(temporary, path) < 0)
		err = -errno;
	if (err) {
		unlink(temporary);
		return err;
	}
	return durable_sync_dir(dir);
}

int durable_rename(const char *dir, const char *from, const char *to)
{
	char old_path[PATH_MAX], new_path[PATH_MAX];
	int err = join(old_path, dir, from, "");

	if (!err)
		err = join(new_path, dir, to, "");
	if (!err && rename(old_path, new_path) < 0)
		err = -errno;
	return err ? err : durable_sync_dir(dir);
}

int durable_mkdir(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	if (stat(path, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

bool durable_is_left_over(const char *name)
{
	size_t len = strlen(name), ending = strlen(DURABLE_TEMPORARY);

	return len > ending && strcmp(name + len - ending, DURABLE_TEMPORARY) == 0;
}
