/* SPDX-License-Identifier: Apache-2.0 */
/* Profile files by their endings; see output.h. */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "proto/compress.h"
#include "proto/folded.h"
#include "proto/pprof.h"


struct format {
	const char *ending;
	enum compress_kind compression;
	bool folded;
};

static const struct format formats[] = {
	{ ".pb.gz", COMPRESS_GZIP, false },
	{ ".pb.zst", COMPRESS_ZSTD, false },
	{ ".pb", COMPRESS_NONE, false },
	{ ".folded", COMPRESS_NONE, true },
};

struct counted_fd {
	int fd;
	uint64_t bytes;
};

static int write_counted(void *context, const void *bytes, size_t len)
{
	struct counted_fd *out = context;

	out->bytes += len;
	return file_write_all(out->fd, bytes, len);
}

static const struct format *format_of(const char *path)
{
	size_t len = strlen(path);

	if (strcmp(path, "-") == 0)
		return &formats[0];
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		size_t ending = strlen(formats[i].ending);

		if (len > ending && strcmp(path + len - ending, formats[i].ending) == 0)
			return &formats[i];
	}
	return NULL;
}

bool output_knows(const char *path)
{
	return format_of(path) != NULL;
}

static int write_format(const struct profile *p, const struct format *format,
			struct byte_sink sink)
{
	struct compressor *compressor;
	int err;

	if (format->folded)
		return folded_write(p, 0, sink);
	err = compressor_open(format->compression, 0, sink, &compressor);
	if (err)
		return err;
	err = pprof_write(p, compressor_sink(compressor));
	if (!err)
		err = compressor_finish(compressor);
	compressor_close(compressor);
	return err;
}

/* A device, pipe or socket: must be written to, never replaced by a file. */
static bool is_special(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static int open_output(const char *path, char *temporary, size_t size)
{
	int fd;

	if (is_special(path)) {
		temporary[0] = 0;
		fd = open(path, O_WRONLY | O_CLOEXEC);
	} else {
		if ((size_t)snprintf(temporary, size, "%s.tmp", path) >= size)
			return -ENAMETOOLONG;
		unlink(temporary); /* a left-over has another's owner or mode */
		fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	}
	return fd < 0 ? -errno : fd;
}

int output_write(const struct profile *p, const char *path, uint64_t *ret_bytes)
{
	const struct format *format = format_of(path);
	struct counted_fd out = { .fd = STDOUT_FILENO };
	struct byte_sink sink = { write_counted, &out };
	char temporary[PATH_MAX];
	int err;

	if (!format)
		return -EINVAL;
	if (strcmp(path, "-") == 0) {
		err = write_format(p, format, sink);
		if (!err)
			*ret_bytes = out.bytes;
		return err;
	}
	out.fd = open_output(path, temporary, sizeof(temporary));
	if (out.fd < 0)
		return out.fd;
	err = write_format(p, format, sink);
	if (close(out.fd) < 0 && !err)
		err = -errno;
	if (!err && temporary[0] && rename(temporary, path) < 0)
		err = -errno;
	if (err && temporary[0])
		unlink(temporary);
	if (!err)
		*ret_bytes = out.bytes;
	return err;
}
