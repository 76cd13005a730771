/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Per-CPU working memory of one program run: the BPF stack holds 512 bytes over the whole call
 * chain, so everything larger lives here. One slot for each context that may interrupt another.
 */
#ifndef BPF_STATE_BPF_H
#define BPF_STATE_BPF_H

#include "bpf/maps.bpf.h"

#define VMA_CACHE_SIZE 4
#define PATH_RECORD_MASK 8191
#define STRETCH_WORDS 32

/* What the look-up says of the mapping that holds an address. */
enum vma_result {
	VMA_FOUND = 0,
	VMA_NONE = 1,   /* no mapping there */
	VMA_BUSY = 2,   /* the mappings changed under the look-up, three times */
	VMA_NO_TREE = 3 /* not this kernel's kind of tree */
};

struct vma {
	__u64 start;
	__u64 end;
	__u64 file;    /* file id, SONDE_FRAME_ANON or SONDE_FRAME_VDSO */
	__u64 delta;   /* address + delta = offset in the file (or in the vDSO) */
	__u64 is_code; /* mapped executable */
	__u64 state;   /* enum sonde_file_state of the file, 0 if there is none */
};

/* DWARF register numbers: how unwind rules name registers. */
#define DWARF_REGISTERS 16
#define DWARF_RBX 3
#define BX_UNKNOWN 1 /* no address of a saved register */

struct file_identity {
	__u64 dev;
	__u64 ino;
	__u64 generation;
	__s64 mtime_sec;
	__u64 mtime_nsec;
};

struct walk_state {
	/* The run. */
	__u64 mm;
	__u64 process; /* id */
	__u64 vdso;
	__u32 tgid;
	__u32 tid;
	__u64 started; /* clock, if this run is timed */
	__u32 half; /* of the double buffer, read once */
	__u32 context;
	__u32 slot;    /* of the counters */
	__u32 in_user; /* the sample interrupted user code */

	/* The walk: registers of the frame to push next. */
	__u64 pc; /* the address to look up */
	__u64 sp;
	__u64 fp;
	__u64 regs_known; /* gprs[] hold this frame's registers: only so after an interrupt */
	__u64 fp_known;
	__u64 bx_slot; /* where this frame's rbx is saved; 0: in gprs[], BX_UNKNOWN */
	__u64 fp_chained; /* fp was read from a chain of frame pointers: 0 ends the chain */
	__u32 entered; /* the frame of this number (from 1) has no frame of its own yet; see rule_go_stack */
	__u64 gprs[DWARF_REGISTERS];
	struct sonde_rule rule; /* of the frame at hand */
	struct sonde_page_key page_key; /* of the page looked up last, */
	struct sonde_page page;         /* which the next frame often shares */
	__u64 by_table, by_pointer;     /* frames of this walk */
	__u64 hash;
	__u64 bound_to_process; /* some frame means something in this process only */

	struct arch_regs regs; /* user registers of a kernel-mode sample */
	struct sonde_count_key key;

	/* Look-up in, look-up out. */
	__u64 addr;
	struct vma vma;
	struct vma cache[VMA_CACHE_SIZE];
	__u64 cache_next;
	struct file_identity identity;
	__u64 node[32]; /* one maple node, or its beginning */

	/* What was read of the user stack at once. */
	__u64 stretch_start, stretch_size;
	__u64 stretch[STRETCH_WORDS];

	struct sonde_user_stack stack;
	struct sonde_kernel_stack kernel_stack;
	struct sonde_process process_record;
	struct sonde_thread_name thread_record;
	/* Last, with room for any record size that PATH_RECORD_MASK lets through. */
	union {
		struct sonde_file file_record;
		struct sonde_cgroup cgroup_record;
		char room[PATH_RECORD_MASK + 1];
	};
};

/*
 * Bounds the size of a record for the verifier. A mask, since kernels before 5.13 forget what a
 * comparison told when the value is kept on the stack; the barrier keeps the compiler from
 * seeing that it does nothing.
 */
static __always_inline __u64 path_record_size(__u64 size)
{
	barrier_var(size);
	return size & PATH_RECORD_MASK;
}

struct walk_states_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SONDE_CONTEXT_COUNT);
	__type(key, __u32);
	__type(value, struct walk_state);
};

extern struct walk_states_map walk_states SEC(".maps");

static __always_inline struct walk_state *walk_state(__u32 context)
{
	return bpf_map_lookup_elem(&walk_states, &context);
}

#define HASH_MULTIPLIER 0x9fb21c651e98df25ULL

/* One step of the id hash: a multiply and a fold. Good for ids drawn with a secret seed. */
static __always_inline __u64 hash_step(__u64 h, __u64 word)
{
	h = (h ^ word) * HASH_MULTIPLIER;
	return h ^ (h >> 29);
}

#endif
