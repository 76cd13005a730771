/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded file reads; see file.h. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_STEP = 64 * 1024 };

int file_read_at(int fd, void *to, size_t len, off_t off)
{
	uint8_t *p = to;

	while (len > 0) {
		ssize_t n = pread(fd, p, len, off);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (n == 0)
			return -ENODATA;
		p += n;
		len -= (size_t)n;
		off += n;
	}
	return 0;
}

int file_read_all(int fd, struct buf *out)
{
	for (;;) {
		size_t room = out->max - out->len;
		size_t step = room < READ_STEP ? room + 1 : READ_STEP;
		uint8_t extra, *to;
		ssize_t n;

		/* At the bound, one more byte tells "exactly full" from "too large". */
		to = room == 0 ? &extra : buf_reserve(out, step > room ? room : step);
		if (!to)
			return buf_error(out);
		n = read(fd, to, room == 0 ? 1 : step > room ? room : step);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (n == 0)
			return 0;
		if (room == 0)
			return -ENOSPC;
		out->len += (size_t)n;
	}
}

int file_read_path(const char *path, struct buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int err;

	if (fd < 0)
		return -errno;
	err = file_read_all(fd, out);
	close(fd);
	return err;
}

int file_open_place(int place_fd)
{
	char link[64];
	struct stat st;
	int fd;

	if (fstat(place_fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EPERM;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", place_fd);
	fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int file_open_regular(const char *path)
{
	int place = open(path, O_PATH | O_CLOEXEC), fd;

	if (place < 0)
		return -errno;
	fd = file_open_place(place);
	close(place);
	return fd;
}

int file_write_all(int fd, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		p += n;
		len -= (size_t)n;
	}
	return 0;
}
