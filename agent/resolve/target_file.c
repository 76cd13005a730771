/* SPDX-License-Identifier: Apache-2.0 */
/* Opening files of sampled processes; see target_file.h. */
#include "agent/resolve/target_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/resolve/mounts.h"
#include "base/file.h"

enum { PROC_PATH_BYTES = 256, DEV_MINOR_BITS = 20 };

static const char DELETED[] = " (deleted)";

int target_file_verify(int fd, const struct target_identity *identity)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	/* Not the device: overlayfs shows another one. */
	if (st.st_ino != identity->ino || st.st_mtim.tv_sec != identity->mtime_sec ||
	    (uint64_t)st.st_mtim.tv_nsec != identity->mtime_nsec)
		return -ESTALE;
	return 0;
}

/* Leaves a FIFO or a device in the way alone; links are followed (map_files is one). */
static int open_verified(const char *path, const struct target_identity *identity, int *ret_fd)
{
	int fd = file_open_regular(path);
	int err;

	if (fd < 0)
		return fd;
	err = target_file_verify(fd, identity);
	if (err) {
		close(fd);
		return err;
	}
	*ret_fd = fd;
	return 0;
}

/* The link's text, without the kernel's mark for a deleted file; the dentry name decides. */
static void note_link(const char *link, const struct path_names *names, char *path)
{
	char text[PATH_MAX];
	ssize_t len = readlink(link, text, sizeof(text) - 1);
	const char *base;

	if (len <= 0 || text[0] != '/')
		return;
	text[len] = 0;
	base = strrchr(text, '/') + 1;
	if (names->count && strcmp(base, names->names) != 0 &&
	    (size_t)len > sizeof(DELETED) - 1 &&
	    strcmp(text + len - (sizeof(DELETED) - 1), DELETED) == 0)
		text[len - (ssize_t)(sizeof(DELETED) - 1)] = 0;
	memcpy(path, text, strlen(text) + 1);
}

/* Any live thread will do: /proc/<tid> works also once the group leader has exited. */
static int open_by_process(const char *proc_root, const struct sonde_file *record, uint32_t tid,
			   const struct path_names *names, struct target_file *file)
{
	char link[PROC_PATH_BYTES];
	int err;

	if (record->vm_end)
		snprintf(link, sizeof(link), "%s/%u/map_files/%" PRIx64 "-%" PRIx64, proc_root,
			 tid, (uint64_t)record->vm_start, (uint64_t)record->vm_end);
	else
		snprintf(link, sizeof(link), "%s/%u/exe", proc_root, tid);
	err = open_verified(link, &file->identity, &file->fd);
	if (!err)
		note_link(link, names, file->path);
	return err;
}

/*
 * The path as it is in its file system, through every mount of that device that process `who` sees,
 * below `root`.
 */
static int open_by_mounts(const char *proc_root, const char *who, const char *root,
			  const struct sonde_file *record, struct target_file *file)
{
	char mountinfo[PROC_PATH_BYTES], inside[PATH_MAX], full[PATH_MAX + PROC_PATH_BYTES];
	struct mounts mounts;
	int err, result = -ENOENT;

	snprintf(mountinfo, sizeof(mountinfo), "%s/%s/mountinfo", proc_root, who);
	err = mounts_load(mountinfo, &mounts);
	if (err)
		return err;
	for (size_t i = 0; i < mounts.count && result; i++) {
		const struct mount *m = &mounts.list[i];

		if (m->major != record->dev >> DEV_MINOR_BITS ||
		    m->minor != (record->dev & ((1U << DEV_MINOR_BITS) - 1)) ||
		    !mount_translate(m, file->path, inside, sizeof(inside)))
			continue;
		snprintf(full, sizeof(full), "%s%s", root, inside);
		err = open_verified(full, &file->identity, &file->fd);
		if (!err || err == -ESTALE || result == -ENOENT)
			result = err;
	}
	mounts_fini(&mounts);
	return result;
}

/* What is seen from here; then what process 1 sees, for an agent in a container or behind mounts. */
static int open_by_path(const char *proc_root, const struct sonde_file *record,
			struct target_file *file)
{
	char init_root[PROC_PATH_BYTES];
	int err = open_by_mounts(proc_root, "self", "", record, file), by_init;

	if (!err)
		return 0;
	snprintf(init_root, sizeof(init_root), "%s/1/root", proc_root);
	by_init = open_by_mounts(proc_root, "1", init_root, record, file);
	return by_init == 0 || by_init == -ESTALE ? by_init : err;
}

const char *target_file_path(int fd, char path[PATH_MAX])
{
	const size_t deleted_len = sizeof(DELETED) - 1;
	char link[64];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, PATH_MAX - 1);
	if (len <= 0)
		return NULL;
	path[len] = 0;
	if ((size_t)len > deleted_len && strcmp(path + len - deleted_len, DELETED) == 0)
		path[len - (ssize_t)deleted_len] = 0;
	return path;
}

int target_file_open(const char *proc_root, const struct sonde_file *record,
		     const struct path_names *names, struct target_file *ret_file)
{
	int err, by_path;

	snprintf(ret_file->root, sizeof(ret_file->root), "%s/%u/root", proc_root, record->tid);
	ret_file->fd = -1;
	ret_file->identity = (struct target_identity){ record->ino, record->mtime_sec,
						       record->mtime_nsec };
	path_names_join(names, ret_file->path, sizeof(ret_file->path));
	err = open_by_process(proc_root, record, record->tid, names, ret_file);
	if (err && record->tid != record->tgid)
		err = open_by_process(proc_root, record, record->tgid, names, ret_file);
	if (!err)
		return 0;
	by_path = open_by_path(proc_root, record, ret_file);
	if (!by_path)
		return 0;
	return by_path == -ESTALE ? -ESTALE : err;
}
