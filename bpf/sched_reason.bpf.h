/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why a thread is blocked, without a stack walk: its state, in_iowait, and the system call in
 * its saved registers; for read() and its kin what kind of file the first argument is. Called for
 * the thread that leaves the CPU, or for any thread by the seeding.
 *
 * Typed pointers are followed directly (the kernel guards such loads); what is behind a pointer
 * to a pointer needs checked reads.
 */
#ifndef BPF_SCHED_REASON_BPF_H
#define BPF_SCHED_REASON_BPF_H

#include <bpf/bpf_core_read.h>

#include "bpf/sched_state.bpf.h"

/* Bits of a task's state (include/linux/sched.h): the same from 5.10 on. */
#define TASK_UNINTERRUPTIBLE 0x0002
#define TASK_STOPPED_TRACED 0x000c
#define TASK_DEAD 0x0080
#define TASK_NOLOAD 0x0400
#define TASK_FROZEN 0x8000 /* since 6.1; unused before */

#ifndef PF_IO_WORKER
#define PF_IO_WORKER 0x00000010
#endif

#define S_IFMT 0170000
#define S_IFIFO 0010000
#define S_IFSOCK 0140000

/* By number of system call; filled by user space, which knows the architecture's. */
extern const volatile __u8 syscall_reasons[SONDE_SCHED_SYSCALLS];

/* The saved registers that tell why: at the same place for the helper's result and for ours. */
struct entry_regs {
	__u64 first;   /* argument */
	__s32 syscall; /* -1: an exception, which blocks only for a page */
	bool none;     /* never was in user space */
};

/* Where in user space a thread entered the kernel. */
struct entry_place {
	__u64 ip, sp;
};

#if defined(__TARGET_ARCH_x86)

#define REGS_SIZE sizeof(struct arch_regs)

struct saved_regs {
	unsigned long di, orig_ax, ip; /* neighbours in struct pt_regs */
};
#define SAVED_REGS_OFFSET __builtin_offsetof(struct arch_regs, di)

struct saved_place {
	unsigned long ip, cs, flags, sp;
};
#define SAVED_PLACE_OFFSET __builtin_offsetof(struct arch_regs, ip)

static __always_inline void entry_regs_from(struct entry_regs *to, const struct saved_regs *from)
{
	to->first = from->di;
	to->syscall = (__s32)from->orig_ax;
	to->none = from->ip == 0;
}

static __always_inline void entry_place_from(struct entry_place *to,
					     const struct saved_place *from)
{
	to->ip = from->ip;
	to->sp = from->sp;
}

#elif defined(__TARGET_ARCH_arm64)

#define REGS_SIZE 336

struct saved_regs {
	unsigned long pc, pstate, orig_x0;
	__s32 syscallno;
	__u32 unused;
};
#define SAVED_REGS_OFFSET __builtin_offsetof(struct arch_regs, pc)

struct saved_place {
	unsigned long sp, pc;
};
#define SAVED_PLACE_OFFSET __builtin_offsetof(struct arch_regs, sp)

static __always_inline void entry_regs_from(struct entry_regs *to, const struct saved_regs *from)
{
	to->first = from->orig_x0;
	to->syscall = from->syscallno;
	to->none = from->pc == 0;
}

static __always_inline void entry_place_from(struct entry_place *to,
					     const struct saved_place *from)
{
	to->ip = from->pc;
	to->sp = from->sp;
}

#else
#error "unknown architecture"
#endif

#define KERNEL_STACK_BYTES 16384

static __always_inline void entry_regs_read(struct entry_regs *to, struct task_struct *task)
{
	struct saved_regs saved = {};

	/*
	 * The helper came in 5.15; with FRED the registers are not at the end of the stack. What it
	 * returns is followed directly, which costs less than a helper that copies.
	 */
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) {
		entry_regs_from(to, (void *)bpf_task_pt_regs(task) + SAVED_REGS_OFFSET);
		return;
	}
	bpf_probe_read_kernel(&saved, sizeof(saved), task->stack + KERNEL_STACK_BYTES - REGS_SIZE +
							     SAVED_REGS_OFFSET);
	entry_regs_from(to, &saved);
}

/* `room` is used where the registers have to be copied. */
static __always_inline void entry_place_read(struct entry_place *to, struct task_struct *task,
					     struct saved_place *room)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) {
		entry_place_from(to, (void *)bpf_task_pt_regs(task) + SAVED_PLACE_OFFSET);
		return;
	}
	bpf_probe_read_kernel(room, sizeof(*room), task->stack + KERNEL_STACK_BYTES - REGS_SIZE +
							   SAVED_PLACE_OFFSET);
	entry_place_from(to, room);
}

/* Pipe, socket, or anything else. */
static __always_inline __u32 reason_of_file(struct task_struct *task, __u64 fd)
{
	struct files_struct *files = task->files;
	struct fdtable *fdt;
	struct file *file = NULL;
	struct inode *inode;
	__u16 type;

	if (!files)
		return SONDE_SCHED_OTHER;
	fdt = files->fdt;
	if (!fdt || fd >= fdt->max_fds)
		return SONDE_SCHED_OTHER;
	bpf_probe_read_kernel(&file, sizeof(file), (void *)fdt->fd + fd * sizeof(file));
	inode = BPF_CORE_READ(file, f_inode);
	type = BPF_CORE_READ(inode, i_mode) & S_IFMT;
	if (type == S_IFIFO)
		return SONDE_SCHED_PIPE;
	return type == S_IFSOCK ? SONDE_SCHED_SOCKET : SONDE_SCHED_OTHER;
}

/* A wait that may be interrupted, by what the thread asked for. */
static __always_inline __u32 reason_of_call(struct task_struct *task, const struct entry_regs *regs,
					    __u32 last)
{
	__u32 nr = (__u32)regs->syscall, reason;

	if (nr >= SONDE_SCHED_SYSCALLS)
		return SONDE_SCHED_OTHER;
	barrier_var(nr); /* the mask below is for verifiers that forget what they were told */
	reason = syscall_reasons[nr & (SONDE_SCHED_SYSCALLS - 1)];
	if (reason == SONDE_SCHED_RESTART)
		return last;
	if (reason == SONDE_SCHED_BY_FILE)
		return reason_of_file(task, regs->first);
	return reason;
}

static __always_inline __u32 reason_of_block(struct task_struct *task, __u32 state, __u32 last)
{
	struct entry_regs regs = { .none = true };
	bool uninterruptible = (state & TASK_UNINTERRUPTIBLE) && !(state & TASK_NOLOAD);
	__u32 reason;

	if (state & (TASK_STOPPED_TRACED | TASK_FROZEN))
		return SONDE_SCHED_STOPPED;
	if (!(task->flags & (PF_KTHREAD | PF_IO_WORKER)))
		entry_regs_read(&regs, task);
	if (!regs.none && regs.syscall == -1)
		return SONDE_SCHED_FAULT;
	if (uninterruptible) {
		if (BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait))
			return SONDE_SCHED_DISK;
		reason = regs.none ? SONDE_SCHED_OTHER : reason_of_call(task, &regs, last);
		/* vfork() waits uninterruptibly for the child. */
		return reason == SONDE_SCHED_CHILD ? reason : SONDE_SCHED_UNINTERRUPTIBLE;
	}
	return regs.none ? SONDE_SCHED_OTHER : reason_of_call(task, &regs, last);
}

#endif
