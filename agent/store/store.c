/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a store and writing windows into it; see store.h. */
#include "agent/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/store/durable.h"
#include "agent/store/store_private.h"
#include "base/clock.h"
#include "proto/compress.h"
#include "proto/pprof.h"

enum {
	MAX_FILE = 256 << 20, /* bytes of a compressed profile */
	MAX_VARIANTS = 9,     /* windows of one type that begin in the same second */
};

/* ---- the directory and its lock ---- */

static int lock_directory(struct store *s)
{
	int fd = open(s->lock_path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int err = errno == EWOULDBLOCK ? -EBUSY : -errno;

		close(fd);
		return err;
	}
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	s->lock_fd = fd;
	return 0;
}

/* The lock comes before anything that is looked at or made inside. */
static int take_directory(struct store *s)
{
	int err = durable_mkdir(s->dir);

	if (!err && faccessat(AT_FDCWD, s->dir, W_OK | X_OK, AT_EACCESS) < 0)
		err = -errno;
	if (!err)
		err = lock_directory(s);
	if (!err)
		err = durable_mkdir(s->profiles_dir);
	if (!err)
		err = durable_sync_dir(s->dir);
	return err ? err : store_index_build(s);
}

/*
 * The lock is on the file, not on its name: when the directory was taken away and made again, what
 * we hold protects nothing, and what we know of is gone.
 */
static int keep_directory(struct store *s)
{
	struct stat held, named;

	if (fstat(s->lock_fd, &held) == 0 && stat(s->lock_path, &named) == 0 &&
	    held.st_dev == named.st_dev && held.st_ino == named.st_ino)
		return 0;
	s->catalogue_behind = true;
	return take_directory(s);
}

static int make_paths(struct store *s, const char *dir)
{
	/* Room for a day and a name behind it. */
	if (strlen(dir) + STORE_DAY_MAX + STORE_NAME_MAX + 32 > PATH_MAX)
		return -ENAMETOOLONG;
	s->dir = strdup(dir);
	if (asprintf(&s->profiles_dir, "%s/profiles", dir) < 0)
		s->profiles_dir = NULL;
	if (asprintf(&s->catalogue_path, "%s/catalogue.db", dir) < 0)
		s->catalogue_path = NULL;
	if (asprintf(&s->lock_path, "%s/lock", dir) < 0)
		s->lock_path = NULL;
	return s->dir && s->profiles_dir && s->catalogue_path && s->lock_path ? 0 : -ENOMEM;
}

static void explain(const char *dir, int err, char *reason, size_t size)
{
	static const struct {
		int err;
		const char *cure;
	} cures[] = {
		{ -EBUSY,
		  "another sonde agent writes to it; stop that one or use another directory" },
		{ -ENOENT, "the directory above it does not exist; make it first" },
		{ -EROFS, "the file system is read-only; mount it for writing" },
		{ -ENOSPC, "the file system is full; make room" },
		{ -EACCES, "no permission; run as its owner" },
		{ -ENOTDIR, "it, or something above it, is no directory" },
	};
	const char *cure = NULL;

	for (size_t i = 0; i < sizeof(cures) / sizeof(cures[0]); i++) {
		if (cures[i].err == err)
			cure = cures[i].cure;
	}
	snprintf(reason, size, "store %s: %s", dir, cure ? cure : strerror(-err));
}

int store_open(const struct store_options *options, struct store **ret_store, char *reason,
	       size_t reason_size)
{
	struct store *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (s) {
		s->lock_fd = -1;
		store_set_caps(s, options->max_bytes, options->max_age_ns);
		err = make_paths(s, options->dir);
	}
	if (!err)
		err = take_directory(s);
	if (err) {
		explain(options->dir, err, reason, reason_size);
		store_close(s);
		return err;
	}
	store_catalogue_sync(s);
	*ret_store = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	catalogue_close(s->catalogue);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	free(s->files);
	free(s->dir);
	free(s->profiles_dir);
	free(s->catalogue_path);
	free(s->lock_path);
	free(s);
}

void store_set_caps(struct store *s, uint64_t max_bytes, uint64_t max_age_ns)
{
	s->max_bytes = max_bytes;
	s->max_age_ns = max_age_ns;
}

/* ---- writing ---- */

static int encode(const struct profile *p, struct buf *out)
{
	int err = pprof_put_compressed(p, COMPRESS_GZIP, out);

	return err == -ENOSPC ? -EFBIG : err; /* our own bound, not the disk's */
}

/* Whether the file holds the window that begins at start_ns, or nothing of use. */
static bool may_replace(const struct store *s, const struct store_name *name, int64_t start_ns)
{
	struct store_facts facts;
	char path[PATH_MAX];

	store_path(s, name, path);
	return store_facts_read(path, &facts) != 0 || facts.start_ns == start_ns;
}

/*
 * An equal window is replaced, but one that only begins in the same second is another's: after
 * the clock was set back by a day, each minute of that day comes twice.
 */
static void choose_variant(const struct store *s, int64_t start_ns, struct store_name *name)
{
	while (name->variant < MAX_VARIANTS && store_index_find(s, name) &&
	       !may_replace(s, name, start_ns))
		name->variant++;
}

static int write_file(const struct store *s, const struct store_name *name, const struct buf *bytes)
{
	char day[STORE_DAY_MAX], file[STORE_NAME_MAX], day_dir[PATH_MAX];
	int err;

	store_name_format(name, day, file);
	snprintf(day_dir, sizeof(day_dir), "%s/%s", s->profiles_dir, day);
	err = durable_mkdir(s->profiles_dir);
	if (!err && access(day_dir, F_OK) < 0) {
		err = durable_mkdir(day_dir);
		if (!err)
			err = durable_sync_dir(s->profiles_dir);
	}
	return err ? err : durable_write(day_dir, file, bytes->data, bytes->len);
}

static int add(struct store *s, const struct profile *p, const char *type)
{
	struct store_facts facts;
	struct store_name name;
	struct buf bytes;
	int err = store_name_init(&name, p->time_ns, type);

	if (!err)
		err = keep_directory(s);
	if (err)
		return err;
	buf_init(&bytes, MAX_FILE);
	choose_variant(s, p->time_ns, &name);
	store_facts_of(p, &facts);
	err = encode(p, &bytes);
	if (!err)
		err = store_facts_stamp(&bytes, &facts);
	if (!err)
		err = write_file(s, &name, &bytes);
	if (!err) {
		facts.bytes = bytes.len;
		s->totals.written_bytes += bytes.len;
		err = store_index_put(s, &name, (int64_t)(clock_realtime() / NSEC_PER_SEC),
				      bytes.len);
		store_settle(s, &name, &facts);
	}
	buf_fini(&bytes);
	return err;
}

int store_add(struct store *s, const struct profile *p, const char *type)
{
	int err = add(s, p, type);

	if (err)
		s->totals.write_errors++;
	else
		s->totals.written++;
	return err;
}

void store_totals(struct store *s, struct store_totals *ret_totals)
{
	*ret_totals = s->totals;
}
