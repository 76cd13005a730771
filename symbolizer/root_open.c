/* SPDX-License-Identifier: Apache-2.0 */
/* openat2 within a root; see root_open.h. */
#include "symbolizer/root_open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

/* First as a mere place: opening a FIFO or a device can have effects. */
static int open_place(const char *root, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	if (root_fd < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (fd < 0)
		fd = -errno;
	close(root_fd);
	return fd;
}

int root_open(const char *root, const char *path)
{
	int place = open_place(root, path), fd;

	if (place < 0)
		return place;
	fd = file_open_place(place);
	close(place);
	return fd;
}
