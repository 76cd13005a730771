/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening files below a foreign root; see perf_map_open.h.
 *
 * The file is first opened as a mere place (O_PATH), looked at, and only then opened for
 * reading by way of that place: opening a device or a FIFO can have effects, and a tenant may
 * be able to put one there. Paths are resolved with the target's root as the root, so that no
 * link or ".." leads to the files of the host.
 */
#include "symbolizer/perf_map_open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PLACE_FLAGS = O_PATH | O_NOFOLLOW | O_CLOEXEC };

/* Without openat2 (a seccomp filter may deny it): no link at all is followed. */
static int place_in_plain(int root_fd, const char *name)
{
	int dir = openat(root_fd, "tmp", PLACE_FLAGS | O_DIRECTORY);
	int fd, err;

	if (dir < 0)
		return -errno;
	fd = openat(dir, name, PLACE_FLAGS);
	err = errno;
	close(dir);
	return fd < 0 ? -err : fd;
}

static int place_in(int root_fd, uint32_t ns_pid)
{
	struct open_how how = {
		.flags = PLACE_FLAGS,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "tmp/perf-%u.map", ns_pid);
	fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		return place_in_plain(root_fd, path + sizeof("tmp/") - 1);
	return fd < 0 ? -errno : fd;
}

/* An O_PATH fd of the map, or -errno. */
static int open_place(const struct perf_map_source *source)
{
	char path[4096];
	int len, root_fd, fd;

	len = snprintf(path, sizeof(path), "%s/%u/root", source->proc_root, source->pid);
	if (len < 0 || (size_t)len >= sizeof(path))
		return -ENAMETOOLONG;
	root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	fd = place_in(root_fd, source->ns_pid);
	close(root_fd);
	return fd;
}

static int open_for_reading(int place_fd)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", place_fd);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int perf_map_open(struct perf_map_source *source, uid_t uid)
{
	struct stat st;
	int place, fd;

	place = open_place(source);
	if (place < 0)
		return place == -ELOOP ? -EPERM : place;
	if (fstat(place, &st) < 0)
		fd = -errno;
	else if (!S_ISREG(st.st_mode) || (st.st_uid != uid && st.st_uid != 0))
		fd = -EPERM;
	else
		fd = open_for_reading(place);
	close(place);
	if (fd < 0)
		return fd;
	source->dev = st.st_dev;
	source->ino = st.st_ino;
	source->size = st.st_size;
	source->mtime = st.st_mtim;
	return fd;
}

bool perf_map_has_changed(const struct perf_map_source *source)
{
	int place = open_place(source);
	struct stat st;
	bool changed;

	if (place < 0)
		return false;
	changed = fstat(place, &st) == 0 &&
		  (st.st_dev != source->dev || st.st_ino != source->ino ||
		   st.st_size != source->size || st.st_mtim.tv_sec != source->mtime.tv_sec ||
		   st.st_mtim.tv_nsec != source->mtime.tv_nsec);
	close(place);
	return changed;
}
