/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening files below a foreign root; see jit_open.h.
 *
 * The file is first opened as a mere place (O_PATH), looked at, and only then opened for
 * reading by way of that place: opening a device or a FIFO can have effects, and a tenant may
 * be able to put one there. Paths are resolved with the target's root as the root, so that no
 * link or ".." leads to the files of the host.
 */
#include "symbolizer/jit_open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/map.h"

enum {
	PLACE_FLAGS = O_PATH | O_NOFOLLOW | O_CLOEXEC,
	GUARD_BYTES = 4096,
	MTIME_SLACK_NS = 20 * 1000 * 1000, /* more than a tick of any kernel */
};

/* Without openat2 (a seccomp filter may deny it): component by component, no link is followed. */
static int place_in_plain(int root_fd, const char *path)
{
	char part[256];
	int dir, fd;

	if (strstr(path, ".."))
		return -EPERM;
	fd = dir = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
	if (dir < 0)
		return -errno;
	while (fd >= 0 && *path) {
		size_t len = strcspn(path, "/");

		fd = -ENAMETOOLONG;
		if (len < sizeof(part)) {
			memcpy(part, path, len);
			part[len] = 0;
			fd = openat(dir, len ? part : ".", PLACE_FLAGS);
			fd = fd < 0 ? -errno : fd;
		}
		close(dir);
		dir = fd;
		path += len + (path[len] == '/');
	}
	return fd;
}

static int place_in(int root_fd, const char *path)
{
	struct open_how how = {
		.flags = PLACE_FLAGS,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		return place_in_plain(root_fd, path);
	return fd < 0 ? -errno : fd;
}

/* An O_PATH fd, or -errno. */
static int open_place(int proc_fd, const char *path)
{
	int root_fd = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	if (root_fd < 0)
		return -errno;
	fd = place_in(root_fd, path);
	close(root_fd);
	return fd == -ELOOP ? -EPERM : fd;
}

static int open_for_reading(int place_fd)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", place_fd);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Takes over `place`. */
static int open_trusted(int place, uid_t uid, struct jit_file_state *ret_state)
{
	struct stat st;
	int fd, err;

	if (place < 0)
		return place;
	if (fstat(place, &st) < 0)
		fd = -errno;
	else if (!S_ISREG(st.st_mode) || (st.st_uid != uid && st.st_uid != 0))
		fd = -EPERM;
	else
		fd = open_for_reading(place);
	close(place);
	if (fd < 0)
		return fd;
	err = jit_state_of(fd, ret_state);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

int jit_open(int proc_fd, const char *path, uid_t uid, struct jit_file_state *ret_state)
{
	return open_trusted(open_place(proc_fd, path), uid, ret_state);
}

int jit_open_mapped(int proc_fd, const char *range, uid_t uid, struct jit_file_state *ret_state)
{
	char path[64];
	int place;

	if (snprintf(path, sizeof(path), "map_files/%s", range) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	place = openat(proc_fd, path, O_PATH | O_CLOEXEC);
	return open_trusted(place < 0 ? -errno : place, uid, ret_state);
}

int jit_state_of(int fd, struct jit_file_state *ret_state)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_state = (struct jit_file_state){
		.dev = st.st_dev, .ino = st.st_ino, .size = st.st_size, .mtime = st.st_mtim
	};
	return 0;
}

int jit_look(int proc_fd, const char *path, struct jit_file_state *ret_state)
{
	int place = open_place(proc_fd, path), err;

	if (place < 0)
		return place;
	err = jit_state_of(place, ret_state);
	close(place);
	return err;
}

bool jit_same_file(const struct jit_file_state *a, const struct jit_file_state *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

bool jit_same_state(const struct jit_file_state *a, const struct jit_file_state *b)
{
	return jit_same_file(a, b) && a->size == b->size && a->mtime.tv_sec == b->mtime.tv_sec &&
	       a->mtime.tv_nsec == b->mtime.tv_nsec;
}

uint64_t jit_changed_ns(const struct jit_file_state *state)
{
	int64_t now = (int64_t)clock_realtime(), mono = (int64_t)clock_monotonic(), age;

	if (state->mtime.tv_sec < 0 || state->mtime.tv_sec > now / (int64_t)NSEC_PER_SEC)
		return (uint64_t)mono;
	age = now - state->mtime.tv_sec * (int64_t)NSEC_PER_SEC - state->mtime.tv_nsec -
	      MTIME_SLACK_NS;
	if (age <= 0)
		return (uint64_t)mono;
	return age < mono ? (uint64_t)(mono - age) : 0;
}

static int hash_before(int fd, uint64_t off, uint64_t len, uint64_t *ret_hash)
{
	uint8_t bytes[GUARD_BYTES];
	int err = file_read_at(fd, bytes, (size_t)len, (off_t)(off - len));

	if (!err)
		*ret_hash = hash_bytes(bytes, (size_t)len);
	return err;
}

int jit_guard_take(int fd, uint64_t off, struct jit_guard *ret_guard)
{
	struct jit_guard guard = { .off = off };
	uint64_t len = off < GUARD_BYTES ? off : GUARD_BYTES;
	int err = hash_before(fd, len, len, &guard.head);

	if (!err)
		err = hash_before(fd, off, len, &guard.tail);
	if (!err)
		*ret_guard = guard;
	return err;
}

bool jit_guard_holds(int fd, const struct jit_guard *guard)
{
	struct jit_guard now;

	return jit_guard_take(fd, guard->off, &now) == 0 && now.head == guard->head &&
	       now.tail == guard->tail;
}
