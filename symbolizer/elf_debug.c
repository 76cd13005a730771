/* SPDX-License-Identifier: Apache-2.0 */
/* Separate debug files; see elf_debug.h. */
#include "symbolizer/elf_debug.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "symbolizer/build_id.h"

static int open_file(const char *debug_dir, const char *build_id)
{
	char path[4096];
	int len;

	if (strlen(build_id) < 4)
		return -ENOENT;
	len = snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", debug_dir, build_id,
		       build_id + 2);
	if (len < 0 || (size_t)len >= sizeof(path))
		return -ENAMETOOLONG;
	len = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return len < 0 ? -errno : len;
}

int elf_debug_open(const char *debug_dir, const char *build_id, struct elf_file *ret_elf,
		   int *ret_fd)
{
	char found[BUILD_ID_HEX_SIZE];
	struct elf_file elf = { 0 };
	struct elf_source source;
	int fd = open_file(debug_dir, build_id), err;

	if (fd < 0)
		return -ENOENT;
	err = elf_source_fd(fd, &source);
	if (!err)
		err = elf_file_open(&source, &elf);
	if (!err && (!build_id_gnu(&elf, found) || strcmp(found, build_id) != 0))
		err = -ENOENT;
	if (err) {
		elf_file_close(&elf);
		close(fd);
		return err;
	}
	*ret_elf = elf;
	*ret_fd = fd;
	return 0;
}
