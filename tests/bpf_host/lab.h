/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the whole sampling program: a process with some code and a stack, and samples
 * of it. Includes the BPF programs, so at most one file of a test may include this.
 */
#ifndef TESTS_BPF_HOST_LAB_H
#define TESTS_BPF_HOST_LAB_H

#include "world.h"

#include "bpf/oncpu.bpf.c"
#include "bpf/lifecycle.bpf.c"

#include "host_private.h"

enum {
	LAB_DEV = 254 << 20 | 1,
	LAB_CODE_OFFSET = 0x4000, /* in the file, of the code's mapping */
	LAB_CODE_BYTES = 0x100000,
	LAB_STACK_BYTES = 0x10000,
	LAB_USER_CS = 0x33,
	LAB_KERNEL_CS = 0x10,
	LAB_PERIOD = 1000,
};

#define LAB_CODE      0x555555554000ULL
#define LAB_LIB       0x7f0000000000ULL
#define LAB_JIT       0x7f1000000000ULL
#define LAB_DATA      0x7f2000000000ULL
#define LAB_STACK     0x7ffd00000000ULL
#define LAB_VDSO      0x7ffe00000000ULL

struct lab_process {
	struct task_struct *task;
	struct file *exe, *lib;
	__u64 base;  /* added to all addresses */
	__u64 *stack; /* the bytes at base + LAB_STACK */
	struct bpf_perf_event_data ctx;
	__u64 at; /* next free word of the stack */
};

static struct world_vmas lab_vmas;

/* A process whose mappings all lie `base` higher; its files are made unless given. */
static inline void lab_process(struct lab_process *p, int tgid, __u64 base, struct file *exe,
			       struct file *lib)
{
	struct world_vmas *v = &lab_vmas;
	struct mm_struct *mm;

	memset(p, 0, sizeof(*p));
	p->task = world_process(tgid, "proc", 1000000000ULL * (__u64)tgid);
	p->base = base;
	p->exe = exe ? exe : world_file(LAB_DEV, 1000, "/usr/bin/proc");
	p->lib = lib ? lib : world_file(LAB_DEV, 2000, "/usr/lib/libc.so.6");
	v->count = 0;
	world_vma(v, p->task, base + LAB_CODE - 0x1000, base + LAB_CODE, WORLD_VM_READ, p->exe, 0);
	world_vma(v, p->task, base + LAB_CODE, base + LAB_CODE + LAB_CODE_BYTES, WORLD_VM_EXEC,
		  p->exe, LAB_CODE_OFFSET >> 12);
	world_vma(v, p->task, base + LAB_LIB, base + LAB_LIB + LAB_CODE_BYTES, WORLD_VM_EXEC, p->lib,
		  LAB_CODE_OFFSET >> 12);
	world_vma(v, p->task, base + LAB_JIT, base + LAB_JIT + LAB_CODE_BYTES, WORLD_VM_EXEC, NULL,
		  0);
	world_vma(v, p->task, base + LAB_DATA, base + LAB_DATA + LAB_CODE_BYTES, WORLD_VM_READ,
		  NULL, 0);
	world_vma(v, p->task, base + LAB_STACK, base + LAB_STACK + LAB_STACK_BYTES, WORLD_VM_READ,
		  NULL, 0);
	world_vma(v, p->task, base + LAB_VDSO, base + LAB_VDSO + 0x2000, WORLD_VM_EXEC, NULL, 0);
	world_map(p->task, v);
	mm = host_ptr((__u64)p->task->mm);
	mm->context.vdso = (void *)(base + LAB_VDSO);
	world_set_exe(p->task, p->exe);
	p->stack = user_map(base + LAB_STACK, LAB_STACK_BYTES);
	p->ctx.sample_period = LAB_PERIOD;
}

/* What user space does about a file that a mapping at `addr` (with the base) has announced. */
static inline void lab_answer(struct lab_process *p, __u64 addr, struct file *file, __u8 state)
{
	struct walk_state *s = walk_state(SONDE_CONTEXT_PERF);
	__u64 id;

	s->mm = (__u64)p->task->mm;
	s->addr = addr;
	assert_int_equal(vma_find(SONDE_CONTEXT_PERF), VMA_FOUND);
	id = s->vma.file;
	file_state(s, kernel_ptr(file), id, s->vma.start, s->vma.end);
	assert_int_equal(bpf_map_update_elem(&files, &id, &state, BPF_ANY), 0);
}

/* The process's files have no unwind tables: its stacks are walked by frame pointers. */
static inline void lab_without_tables(struct lab_process *p)
{
	lab_answer(p, p->base + LAB_CODE, p->exe, SONDE_FILE_NO_TABLE);
	lab_answer(p, p->base + LAB_LIB, p->lib, SONDE_FILE_NO_TABLE);
}

/* Interrupted at `pc` (without the base), with an empty stack. */
static inline void lab_begin(struct lab_process *p, __u64 pc)
{
	p->at = 8;
	p->ctx.regs = (struct arch_regs){ .cs = LAB_USER_CS };
	p->ctx.regs.ip = p->base + pc;
	p->ctx.regs.sp = p->base + LAB_STACK;
	p->ctx.regs.bp = p->base + LAB_STACK + p->at * 8;
}

/* A frame whose saved registers lie at the frame pointer: the caller, who returns to `ret`. */
static inline void lab_call(struct lab_process *p, __u64 ret)
{
	p->stack[p->at] = p->base + LAB_STACK + (p->at + 4) * 8;
	p->stack[p->at + 1] = p->base + ret;
	p->at += 4;
}

/* The outermost frame: its frame pointer is 0. */
static inline void lab_end(struct lab_process *p, __u64 ret)
{
	p->stack[p->at] = 0;
	p->stack[p->at + 1] = p->base + ret;
	p->at += 4;
}

static inline void lab_sample(struct lab_process *p)
{
	host.current = p->task;
	assert_int_equal(sonde_on_cpu(&p->ctx), 0);
}

/* In the kernel, with the user registers at the place where kernels keep them. */
static inline void lab_sample_kernel(struct lab_process *p)
{
	struct bpf_perf_event_data ctx = { .regs.cs = LAB_KERNEL_CS, .sample_period = LAB_PERIOD };
	__u64 at = host.pt_regs_helper ? HOST_PT_REGS_OFFSET
				       : HOST_KERNEL_STACK_BYTES - sizeof(struct arch_regs);

	memcpy((__u8 *)host_ptr((__u64)p->task->stack) + at, &p->ctx.regs, sizeof(p->ctx.regs));
	host.current = p->task;
	assert_int_equal(sonde_on_cpu(&ctx), 0);
}

/* The only entry of a map of counts. */
static inline const struct sonde_count_key *lab_key(const struct sonde_count **ret_count)
{
	void *map = map_count_entries(&counts_0) ? (void *)&counts_0 : (void *)&counts_1;
	const void *key;
	void *value;

	assert_int_equal(map_count_entries(map), 1);
	map_entry(map, 0, &key, &value);
	if (ret_count)
		*ret_count = value;
	return key;
}

/* The user stack that the last sample sent. */
static inline const struct sonde_user_stack *lab_last_stack(void)
{
	size_t n = ring_count(SONDE_RECORD_USER_STACK);

	assert_true(n > 0);
	return ring_record(SONDE_RECORD_USER_STACK, n - 1);
}

/* The books must balance whatever happens. */
static inline void lab_check_books(void)
{
	assert_int_equal(counter(SONDE_COUNT_RECEIVED),
			 counter(SONDE_COUNT_KEPT) + counter(SONDE_COUNT_IDLE) +
				 counter(SONDE_COUNT_FILTERED) + counter(SONDE_COUNT_LATE) +
				 counter(SONDE_COUNT_OVERFLOW_CGROUP) +
				 counter(SONDE_COUNT_OVERFLOW_TOTAL) + counter(SONDE_COUNT_NO_STATE));
}

/* A sample of a small stack. */
static inline void lab_take(struct lab_process *process)
{
	lab_begin(process, LAB_CODE + 0x100);
	lab_end(process, LAB_LIB + 0x200);
	lab_sample(process);
	lab_check_books();
}

static inline const struct sonde_file *file_record(__u64 ino)
{
	const struct sonde_file *record;

	for (size_t i = 0; (record = ring_record(SONDE_RECORD_FILE, i)); i++) {
		if (record->ino == ino)
			return record;
	}
	return NULL;
}

static inline void check_names(const char *names, __u32 size, __u32 count, const char *want, size_t len)
{
	__u32 nuls = 0;

	assert_int_equal(size, len);
	assert_memory_equal(names, want, len);
	for (__u32 i = 0; i < size; i++)
		nuls += names[i] == 0;
	assert_int_equal(nuls, count);
}

#define CHECK_NAMES(record, want) \
	check_names((record)->names, (record)->names_size, (record)->name_count, want, sizeof(want) - 1)

static inline __u64 file_id(__u64 ino)
{
	const struct sonde_file *record = file_record(ino);

	assert_non_null(record);
	return record->head.id;
}

static inline void check_frame(const struct sonde_user_stack *stack, __u32 i, __u64 file, __u64 off)
{
	assert_true(i < stack->count);
	assert_int_equal(stack->frames[i].file, file);
	assert_int_equal(stack->frames[i].off, off);
}

#endif
