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

/* The type that the profile says to be looked at first. */
static size_t first_type(const struct profile *p)
{
	for (size_t i = 0; p->default_type && i < p->type_count; i++) {
		if (p->types[i].type == p->default_type)
			return i;
	}
	return 0;
}

static int write_format(const struct profile *p, const struct format *format,
			struct byte_sink sink)
{
	if (format->folded)
		return folded_write(p, first_type(p), sink);
	return pprof_write_compressed(p, format->compression, sink);
}

/* A device, pipe or socket: must be written to, never replaced by a file. */
static bool is_special(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

int output_open(const char *path, struct output *ret_output)
{
	struct output o = { .path = path };

	if (!format_of(path))
		return -EINVAL;
	if (strcmp(path, "-") == 0) {
		o.fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	} else if (is_special(path)) {
		o.fd = open(path, O_WRONLY | O_CLOEXEC);
	} else {
		if ((size_t)snprintf(o.temporary, sizeof(o.temporary), "%s.tmp", path) >=
		    sizeof(o.temporary))
			return -ENAMETOOLONG;
		unlink(o.temporary); /* a left-over has another's owner or mode */
		o.fd = open(o.temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	}
	if (o.fd < 0)
		return -errno;
	*ret_output = o;
	return 0;
}

int output_write(struct output *o, const struct profile *p, uint64_t *ret_bytes)
{
	struct counted_fd out = { .fd = o->fd };
	int err = write_format(p, format_of(o->path), (struct byte_sink){ write_counted, &out });

	if (close(o->fd) < 0 && !err)
		err = -errno;
	o->fd = -1;
	if (!err && o->temporary[0] && rename(o->temporary, o->path) < 0)
		err = -errno;
	if (err)
		return err;
	o->temporary[0] = 0;
	*ret_bytes = out.bytes;
	return 0;
}

void output_close(struct output *o)
{
	if (o->fd >= 0)
		close(o->fd);
	if (o->temporary[0])
		unlink(o->temporary);
	o->fd = -1;
	o->temporary[0] = 0;
}
