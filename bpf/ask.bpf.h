/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What user space has done about a file that a sample meets; the first one asks. */
#ifndef BPF_ASK_BPF_H
#define BPF_ASK_BPF_H

#include "bpf/file.bpf.h"

/*
 * Rarely called, so a function of its own: see facts.bpf.h. Programs of tracepoints may not write
 * `files` (see maps.bpf.h) and note what they have asked for beside it.
 */
__noinline int file_ask(__u32 context, __u64 file, __u64 id, __u64 vm_start, __u64 vm_end)
{
	struct walk_state *s = walk_state(context);
	__u8 asked = SONDE_FILE_ASKED;
	long err;

	if (!s || (context == SONDE_CONTEXT_TRACEPOINT && bpf_map_lookup_elem(&exec_files, &id)))
		return 0;
	err = file_announce(s, (struct file *)file, id, vm_start, vm_end);
	if (!err && context == SONDE_CONTEXT_TRACEPOINT)
		err = bpf_map_update_elem(&exec_files, &id, &asked, BPF_ANY);
	else if (!err)
		err = bpf_map_update_elem(&files, &id, &asked, BPF_ANY);
	if (err)
		count_one(s->slot, SONDE_COUNT_FILE_RETRY);
	return 0;
}

/* The enum sonde_file_state of a file. */
static __always_inline __u64 file_state(struct walk_state *s, struct file *file, __u64 id,
					__u64 vm_start, __u64 vm_end)
{
	__u8 *state = bpf_map_lookup_elem(&files, &id);

	if (state)
		return *state;
	file_ask(s->context, (__u64)file, id, vm_start, vm_end);
	return SONDE_FILE_ASKED;
}

#endif
