/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The identity of a mapped file, and the miss protocol.
 *
 * Identity is (device, inode, generation, mtime): a rewrite in place keeps the first three
 * (ctime is no help, multigrain timestamps put flags into it). The key is opaque to user space,
 * since overlayfs shows another device to stat().
 *
 * The first sample that meets a file sends one record with all that user space needs to open
 * it, now by /proc, or later by path when the process has gone; the file's id in `files` says
 * "asked". User space deletes the entry when it could not open the file, so that the next
 * sample asks again. The entry is made only after the record was accepted.
 */
#ifndef BPF_FILE_BPF_H
#define BPF_FILE_BPF_H

#include <bpf/bpf_core_read.h>

#include "bpf/state.bpf.h"

static __always_inline int file_identity_read(struct walk_state *s, struct file *file)
{
	struct file_identity *id = &s->identity;
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct inode___sec *sec = (void *)inode;
	struct inode___private *private = (void *)inode;
	struct inode___plain *plain = (void *)inode;

	if (!inode)
		return -1;
	id->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	id->ino = BPF_CORE_READ(inode, i_ino);
	id->generation = BPF_CORE_READ(inode, i_generation);
	if (bpf_core_field_exists(sec->i_mtime_sec)) {
		id->mtime_sec = BPF_CORE_READ(sec, i_mtime_sec);
		id->mtime_nsec = BPF_CORE_READ(sec, i_mtime_nsec);
	} else if (bpf_core_field_exists(private->__i_mtime)) {
		id->mtime_sec = BPF_CORE_READ(private, __i_mtime.tv_sec);
		id->mtime_nsec = BPF_CORE_READ(private, __i_mtime.tv_nsec);
	} else {
		id->mtime_sec = BPF_CORE_READ(plain, i_mtime.tv_sec);
		id->mtime_nsec = BPF_CORE_READ(plain, i_mtime.tv_nsec);
	}
	return 0;
}

static __always_inline __u64 file_identity_hash(struct walk_state *s)
{
	struct file_identity *id = &s->identity;
	__u64 h = settings.seed;

	h = hash_step(h, id->ino);
	h = hash_step(h, id->dev << 32 | (__u32)id->generation);
	h = hash_step(h, id->mtime_sec);
	h = hash_step(h, id->mtime_nsec);
	return h | SONDE_FILE_ID_BIT;
}

/*
 * Packs names[] of a record: one component, NUL-ended, at *size. False when there is no room
 * or the name cannot be read.
 */
static __always_inline bool path_append(char *names, __u32 *size, const void *name)
{
	__u32 at = *size;
	long len;

	if (at > SONDE_MAX_PATH_BYTES - 1)
		return false;
	barrier_var(at); /* the mask below is for the verifier: see path_record_size */
	len = bpf_probe_read_kernel_str(names + (at & (SONDE_MAX_PATH_BYTES - 1)), SONDE_MAX_NAME,
					name);
	if (len <= 0)
		return false;
	*size = at + len;
	return true;
}

/* The dentry names of `file`, from itself up to the root of its file system. */
static __always_inline void file_names(struct sonde_file *record, struct file *file)
{
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	__u32 size = 0, count = 0;

	for (int i = 0; i < SONDE_MAX_PATH_NAMES; i++) {
		struct dentry *parent = BPF_CORE_READ(dentry, d_parent);

		/* The root has no name, but a memfd's only dentry is a root with one. */
		if (!parent || (parent == dentry && i > 0))
			break;
		if (!path_append(record->names, &size, BPF_CORE_READ(dentry, d_name.name)))
			break;
		count++;
		if (parent == dentry)
			break;
		dentry = parent;
	}
	record->names_size = size;
	record->name_count = count;
}

/* Sends the record of the file whose identity is in s->identity; 0 if it was accepted. */
static __always_inline long file_announce(struct walk_state *s, struct file *file, __u64 id,
					  __u64 vm_start, __u64 vm_end)
{
	struct sonde_file *record = &s->file_record;
	__u64 size;

	record->head.type = SONDE_RECORD_FILE;
	record->head.id = id;
	record->dev = s->identity.dev;
	record->ino = s->identity.ino;
	record->generation = s->identity.generation;
	record->mtime_sec = s->identity.mtime_sec;
	record->mtime_nsec = s->identity.mtime_nsec;
	record->vm_start = vm_start;
	record->vm_end = vm_end;
	record->tgid = s->tgid;
	record->tid = s->tid;
	file_names(record, file);
	size = path_record_size(__builtin_offsetof(struct sonde_file, names) + record->names_size);
	record->head.size = size;
	/* Wakes user space: the process may be gone in a millisecond. */
	return bpf_ringbuf_output(&ring, record, size, BPF_RB_FORCE_WAKEUP);
}

#endif
