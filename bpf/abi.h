/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The one contract between the BPF programs and user space: the records that travel through
 * the ring buffer, the keys and values of the maps, the settings, and the list of all ways to
 * lose or shorten something. Both sides include it; it needs __u32/__u64 to be defined
 * (linux/types.h or vmlinux.h). Explicit padding, always zeroed; variable parts come last.
 */
#ifndef BPF_ABI_H
#define BPF_ABI_H

#define SONDE_COMM_LEN 16
#define SONDE_MAX_FRAMES 256        /* user frames of one stack, the end marker included */
#define SONDE_MAX_KERNEL_FRAMES 127 /* the kernel's own limit (perf_event_max_stack) */
#define SONDE_MAX_PATH_NAMES 40     /* components of a file's or a cgroup's path */
#define SONDE_MAX_NAME 256          /* bytes of one component with its NUL (NAME_MAX is 255) */
#define SONDE_MAX_PATH_BYTES 4096   /* all components with their NULs */

/*
 * Counters: every way a sample is lost, shortened or set aside has one. id, name in the
 * summary and in the profile's comments, what happened.
 * Kept per CPU in slots (enum sonde_slot); only ever grow.
 */
#define SONDE_COUNTERS(X) \
	/* What became of each run of the sampling program: these sum to RECEIVED. */ \
	X(RECEIVED, "received", "samples that reached the program") \
	X(KEPT, "kept", "samples counted with their stacks") \
	X(IDLE, "idle", "samples of the idle task, not kept") \
	X(FILTERED, "filtered", "samples of processes that are not a target") \
	X(LATE, "late", "samples after the end of the recording, not kept") \
	X(OVERFLOW_CGROUP, "overflow_cgroup", "samples kept as weight of their cgroup only") \
	X(OVERFLOW_TOTAL, "overflow_total", "samples kept as weight of the machine only") \
	X(NO_STATE, "no_state", "samples lost: per-CPU state missing") \
	/* Why a sample went to the overflow maps. */ \
	X(COUNTS_FULL, "counts_full", "map of counts full or busy") \
	X(RING_FULL, "ring_full", "ring buffer refused a stack") \
	X(SEEN_FULL, "seen_full", "map of known stacks full or busy") \
	/* How user stacks ended, other than at the thread's start. */ \
	X(TRUNCATED_DEPTH, "truncated_depth", "user stack deeper than the limit") \
	X(TRUNCATED_READ, "truncated_read", "user stack memory not readable") \
	X(TRUNCATED_FRAME, "truncated_frame", "frame pointer does not lead up the stack") \
	X(TRUNCATED_CODE, "truncated_code", "return address outside executable mappings") \
	X(TRUNCATED_RULE, "truncated_rule", "unwind rule that is not supported") \
	X(TRUNCATED_REGISTER, "truncated_register", "unwind rule needs a register that is lost") \
	X(TRUNCATED_STUCK, "truncated_stuck", "unwind rule does not lead up the stack") \
	X(TRUNCATED_BARE, "truncated_bare", "code without unwind data or frame pointers") \
	X(TRUNCATED_TABLE, "truncated_table", "unwind table was not loaded yet") \
	X(NO_USER_STACK, "no_user_stack", "kernel-mode sample without mapped user code") \
	X(NO_MAPPING, "no_mapping", "user-mode sample with its pc in no mapping") \
	X(VMA_BUSY, "vma_busy", "mappings changed during the look-up") \
	X(KERNEL_STACK_ERROR, "kernel_stack_error", "kernel stack not readable") \
	/* How frames were unwound: these count frames, not samples. */ \
	X(FRAMES_BY_TABLE, "frames_by_table", "frames unwound by an unwind table") \
	X(FRAMES_BY_POINTER, "frames_by_pointer", "frames unwound by the frame pointer") \
	/* Facts that could not be sent now; the next sample tries again. */ \
	X(FACT_RETRY, "fact_retry", "process, thread or cgroup record refused") \
	X(FILE_RETRY, "file_retry", "file record refused") \
	X(TARGETS_FULL, "targets_full", "child process not followed: map of targets full")

enum sonde_counter {
#define X(id, name, text) SONDE_COUNT_##id,
	SONDE_COUNTERS(X)
#undef X
	SONDE_COUNTER_COUNT
};

struct sonde_counters {
	__u64 n[SONDE_COUNTER_COUNT];
};

/*
 * Slots of counters and weights. Those of samples are double buffered with the counts, so that the
 * books of an interval are exact; tracepoint programs have one of their own, since an NMI may
 * interrupt them in mid-increment.
 */
enum sonde_slot {
	SONDE_SLOT_HALF_0,
	SONDE_SLOT_HALF_1,
	SONDE_SLOT_TRACEPOINT,
	SONDE_SLOT_COUNT
};

/* Slots of per-CPU state: who may interrupt whom has its own. */
enum sonde_context {
	SONDE_CONTEXT_PERF,
	SONDE_CONTEXT_TRACEPOINT,
	SONDE_CONTEXT_COUNT
};

/*
 * A normalised frame: what does not depend on the process. `file` is a file id (top bit set)
 * and `off` the offset in that file; or `file` is one of these tags.
 * Addresses are those to look up: the interrupted pc as it is, return addresses minus one.
 */
enum sonde_frame_tag {
	SONDE_FRAME_MARKER = 1, /* off: enum sonde_marker */
	SONDE_FRAME_ANON = 2,   /* off: absolute address in anonymous memory (JIT code) */
	SONDE_FRAME_VDSO = 3,   /* off: offset in the vDSO image */
};

#define SONDE_FILE_ID_BIT (1ULL << 63)

/* How a user stack ended early. id, frame's text. */
#define SONDE_MARKERS(X) \
	X(NONE, "") \
	X(TRUNCATED_DEPTH, "[truncated: too deep]") \
	X(TRUNCATED_READ, "[truncated: stack not readable]") \
	X(TRUNCATED_FRAME, "[truncated: broken frame]") \
	X(TRUNCATED_CODE, "[truncated: not code]") \
	X(TRUNCATED_RULE, "[truncated: unwind rule]") \
	X(TRUNCATED_REGISTER, "[truncated: register lost]") \
	X(TRUNCATED_STUCK, "[truncated: stack does not move]") \
	X(TRUNCATED_BARE, "[truncated: no unwind data]") \
	X(TRUNCATED_TABLE, "[truncated: unwind table not loaded yet]") \
	X(NO_USER_STACK, "[no user stack]") \
	X(NO_MAPPING, "[no mapping]") \
	X(VMA_BUSY, "[vma busy]")

enum sonde_marker {
#define X(id, text) SONDE_MARKER_##id,
	SONDE_MARKERS(X)
#undef X
	SONDE_MARKER_COUNT
};

struct sonde_frame {
	__u64 file;
	__u64 off;
};

/* ---- records of the ring buffer ---- */

enum sonde_record_type {
	SONDE_RECORD_USER_STACK = 1,
	SONDE_RECORD_KERNEL_STACK,
	SONDE_RECORD_PROCESS,
	SONDE_RECORD_THREAD_NAME,
	SONDE_RECORD_CGROUP,
	SONDE_RECORD_FILE,
};

/* First in each record. `size` is that of the whole record in bytes. */
struct sonde_record {
	__u32 type;
	__u32 size;
	__u64 id; /* the number under which counts and frames refer to the thing */
};

/* Leaf first. Frames of files and of the vDSO only: shared; else bound to one process. */
struct sonde_user_stack {
	struct sonde_record head;
	__u32 count;
	__u32 pad;
	struct sonde_frame frames[SONDE_MAX_FRAMES]; /* `count` of them are sent */
};

/* Leaf first, as the kernel gives them: all but the first are return addresses. */
struct sonde_kernel_stack {
	struct sonde_record head;
	__u32 count;
	__u32 pad;
	__u64 addrs[SONDE_MAX_KERNEL_FRAMES + 1]; /* `count` of them are sent */
};

/* A process between two execs. PIDs are those of the initial namespace. */
struct sonde_process {
	struct sonde_record head;
	__u32 tgid;
	__u32 exec_id;
	__u64 start_ns; /* CLOCK_BOOTTIME */
	__u64 exe_file; /* file id of the executable, or 0 */
	__u32 ns_tgid;  /* in the innermost namespace */
	__u32 euid;
	__u32 tid; /* a thread that was alive, for /proc/<tid> once the leader has exited */
	__u32 pad;
	char comm[SONDE_COMM_LEN]; /* of the group leader; any bytes, NUL-ended */
};

struct sonde_thread_name {
	struct sonde_record head;
	char comm[SONDE_COMM_LEN];
};

/*
 * Where a task is: under v2, and under the v1 hierarchy that container runtimes use if there is one,
 * since only one of them may know of the container. Names from the cgroup up to the
 * hierarchy's root, each NUL-ended; the root's is "".
 */
struct sonde_cgroup {
	struct sonde_record head;
	__u32 v2_count;
	__u32 v1_count; /* behind those of v2; 0: no v1, or the task is in its root */
	__u32 names_size;
	__u32 pad;
	char names[SONDE_MAX_PATH_BYTES + SONDE_MAX_NAME]; /* `names_size` of them are sent */
};

/*
 * A file seen for the first time. The identity is opaque: never compare dev with stat(),
 * overlayfs differs; inode and mtime do agree.
 */
struct sonde_file {
	struct sonde_record head;
	__u64 dev; /* kernel encoding: major << 20 | minor */
	__u64 ino;
	__u64 generation;
	__s64 mtime_sec;
	__u64 mtime_nsec;
	__u64 vm_start; /* the mapping, for /proc/<tid>/map_files; 0/0: seen as /proc/<tid>/exe */
	__u64 vm_end;
	__u32 tgid;
	__u32 tid;
	__u32 name_count;
	__u32 names_size;
	char names[SONDE_MAX_PATH_BYTES + SONDE_MAX_NAME]; /* dentry names, file first */
};

/* ---- unwind tables ---- */

/* How the canonical frame address (CFA: the caller's stack pointer) is found. */
enum sonde_cfa {
	SONDE_CFA_NONE,        /* no unwind data covers this code: the frame pointer is tried */
	SONDE_CFA_UNSUPPORTED, /* there is some, but beyond what is handled */
	SONDE_CFA_END,         /* the outermost frame */
	SONDE_CFA_SP,          /* sp + off */
	SONDE_CFA_FP,          /* fp + off */
	SONDE_CFA_SP_DEREF,    /* *(sp + off) + add */
	SONDE_CFA_FP_DEREF,    /* *(fp + off) + add */
	SONDE_CFA_REG,         /* DWARF register `reg` + off */
	SONDE_CFA_PLT,         /* sp + off + ((pc & 15) >= add ? 8 : 0) */
	SONDE_CFA_SIGNAL,      /* registers in the ucontext at sp + off */
	SONDE_CFA_FP_SWITCH,   /* fp + off, on another stack */
	/*
	 * The goroutine that Go's runtime has a record of: g at the thread's base + off, m in g at the low, the
	 * goroutine in m at the high half of add, its sp, pc and so on at fp_off, fp `reg` bytes behind.
	 */
	SONDE_CFA_GO_STACK,
	SONDE_CFA_BARE, /* no unwind data, and nothing near that sets up frame pointers: not tried */
};

enum sonde_fp {
	SONDE_FP_SAME,      /* unchanged */
	SONDE_FP_UNDEFINED, /* lost */
	SONDE_FP_AT_CFA,    /* at CFA + fp_off */
	SONDE_FP_AT_FP,     /* at fp + fp_off */
};

/* Where the caller's rbx is; 2 and up: saved at CFA - 8 * that. */
enum sonde_bx {
	SONDE_BX_LOST,
	SONDE_BX_SAME,
};

/* The return address is at CFA - 8 wherever there is a CFA. */
struct sonde_rule {
	__u8 cfa;
	__u8 fp;
	__u8 reg;
	__u8 bx;
	__s32 off;
	__s32 add;
	__s32 fp_off;
};

/*
 * Rows: low 16 bits of the file offset, and the number of a rule; ascending within a page of 64
 * KiB of the file, whose first row is at 0. `unwind_rows` are elements of
 * SONDE_ROWS_PER_ELEMENT (1 MiB), made on demand; the rows of a page lie together in one element.
 *
 * Before its rows each page has an index, a __u16 for each block of 512 bytes: the number of the
 * row that holds at the block's start. A search touches two or three cache lines so, and not one
 * for each of its first steps, all of them cold when a sample comes.
 */
#define SONDE_PAGE_SHIFT 16
#define SONDE_BLOCK_SHIFT 9
#define SONDE_BLOCKS (1u << (SONDE_PAGE_SHIFT - SONDE_BLOCK_SHIFT))
#define SONDE_INDEX_ROWS (SONDE_BLOCKS / 2) /* what the index occupies */
#define SONDE_ROWS_PER_ELEMENT (1u << 18)
#define SONDE_SEARCH_STEPS 10 /* a block's search has at most 513 rows to choose from */
#define SONDE_MAX_RULES 65536

struct sonde_row {
	__u16 pc_low;
	__u16 rule;
};

struct sonde_page_key {
	__u64 file; /* file id, or SONDE_FRAME_VDSO */
	__u64 page; /* file offset >> SONDE_PAGE_SHIFT */
};

struct sonde_page {
	__u32 first; /* row number of the index; the page's rows follow */
	__u32 count; /* rows without the index */
};

/* A rule that was found for a place in a file. */
struct sonde_rule_memo {
	__u64 file;
	__u64 off;
	struct sonde_rule rule;
};
#define SONDE_RULE_MEMOS 512u /* for each CPU */

/* `files`: what user space has done about a file. */
enum sonde_file_state {
	SONDE_FILE_ASKED = 1, /* no answer yet */
	SONDE_FILE_NO_TABLE,  /* it has no unwind data: frame pointers */
	SONDE_FILE_TABLE,     /* its pages are there */
};

/* ---- maps ---- */

enum sonde_kind {
	SONDE_KIND_ON_CPU = 1,
	SONDE_KIND_OFF_CPU, /* this one and the next: off_abi.h */
	SONDE_KIND_OFF_MAX,
};

/* `counts`: one for each distinct stack of a process, cgroup and thread name. */
struct sonde_count_key {
	__u64 process;      /* id of a process record */
	__u64 cgroup;       /* id of a cgroup record */
	__u64 thread;       /* id of a thread name record, or 0 */
	__u64 user_stack;   /* id of a stack record, or 0: none */
	__u64 kernel_stack; /* the same */
	__u32 kind;
	__u32 detail;       /* off the CPU: enum sonde_sched_state, and SONDE_OFF_LONG */
};

/* `overflow`: what found no room in `counts`. */
struct sonde_overflow_key {
	__u64 cgroup;
	__u32 kind;
	__u32 pad;
};

/* weight: nanoseconds for cpu-clock, event counts for hardware events. */
struct sonde_count {
	__u64 samples;
	__u64 weight;
};

/* Weights of all samples and of those that are in no map; per CPU, one for each half. */
struct sonde_totals {
	__u64 received_weight;
	__u64 overflow_weight; /* of OVERFLOW_TOTAL */
	__u64 idle_weight;     /* of the idle task, kept or not */
	__u64 filtered_weight; /* of LATE too */
	__u64 timed_runs; /* one run in SONDE_TIMED_RUNS measures itself: the kernel's own */
	__u64 timed_ns;   /* statistics of BPF run time cost more than the answer is worth */
};

#define SONDE_TIMED_RUNS 64

/* `targets`: processes to sample when only some are; value: start in USER_HZ ticks. */
#define SONDE_NS_PER_TICK 10000000ULL

enum sonde_target_mode {
	SONDE_TARGET_ALL,
	SONDE_TARGET_PROCESSES,
	SONDE_TARGET_CGROUP,
	SONDE_TARGET_CGROUPS, /* all but those that user space has refused, once it knew them */
};

/* `seen_facts`: what both sides know of a fact. */
enum sonde_fact_state {
	SONDE_FACT_SENT = 1,
	SONDE_FACT_REFUSED, /* a cgroup that is no target: set by user space */
};

/* Settings, fixed before the programs are loaded. */
struct sonde_settings {
	__u64 seed;          /* of all ids; random at each start, since tenants control mtime */
	__u64 target_cgroup; /* kernfs id, for SONDE_TARGET_CGROUP */
	__u32 target_mode;
	__u32 keep_idle;     /* also count the idle task */
	__u32 thread_names;  /* distinguish threads by name */
	__u32 user_stacks;   /* 0: kernels whose user-memory reads may hang */
	__u32 kernel_stacks;
	__u32 page_shift;
	__u32 target_v1;     /* target_cgroup is of cgroup v1 (the pids or memory controller) */
	__u32 pad;
};

_Static_assert(sizeof(struct sonde_frame) == 16, "abi");
_Static_assert(sizeof(struct sonde_record) == 16, "abi");
_Static_assert(__builtin_offsetof(struct sonde_user_stack, frames) == 24, "abi");
_Static_assert(__builtin_offsetof(struct sonde_kernel_stack, addrs) == 24, "abi");
_Static_assert(sizeof(struct sonde_process) == 72, "abi");
_Static_assert(sizeof(struct sonde_thread_name) == 32, "abi");
_Static_assert(__builtin_offsetof(struct sonde_cgroup, names) == 32, "abi");
_Static_assert(__builtin_offsetof(struct sonde_file, names) == 88, "abi");
_Static_assert(sizeof(struct sonde_count_key) == 48, "abi");
_Static_assert(sizeof(struct sonde_overflow_key) == 16, "abi");
_Static_assert(sizeof(struct sonde_rule) == 16, "abi");
_Static_assert(sizeof(struct sonde_row) == 4, "abi");
_Static_assert(sizeof(struct sonde_rule_memo) == 32, "abi");
_Static_assert(sizeof(struct sonde_page_key) == 16, "abi");
_Static_assert(sizeof(struct sonde_page) == 8, "abi");
_Static_assert(sizeof(struct sonde_settings) == 48, "abi");

#endif
