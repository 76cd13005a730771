/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses in, names out. The one header of this folder that others include.
 *
 * Knows ELF, /proc/kallsyms, perf maps and jitdumps; knows nothing of BPF, profiles or agents. All
 * input is foreign (tenants control their files): every reader is bounded, and bad input
 * gives a reason, never a wrong name. Nothing here logs or maps a file. An object is for one thread
 * at a time; there is no other state, so that threads may load files side by side.
 *
 * Objects: sym_file (one ELF file), sym_kernel (kallsyms), sym_jit (a process's
 * JIT code: sym_perfmap and jitdumps).
 */
#ifndef SYMBOLIZER_SYMBOLIZER_H
#define SYMBOLIZER_SYMBOLIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Why an address has, or has not, a name. id, text. */
#define SYM_REASONS(X) \
	X(SYM_OK, "named") \
	X(SYM_START_ONLY, "no name, only the function's start (module!sub_<start>)")               \
	X(SYM_NO_SYMBOLS, "no symbols in the file or its debug file") \
	X(SYM_NOT_COVERED, "no symbol covers the address") \
	X(SYM_NO_SEGMENT, "offset is in no executable segment") \
	X(SYM_BAD_ELF, "file is not a valid ELF file") \
	X(SYM_NO_FILE, "file could not be opened") \
	X(SYM_FILE_CHANGED, "file was changed or replaced") \
	X(SYM_NO_JIT_MAP, "no perf map for JIT code") \
	X(SYM_JIT_CHANGED, "JIT code or its map changed while it was sampled") \
	X(SYM_JIT_UNREAD, "part of the JIT's map is over the bound, not read") \
	X(SYM_NO_KALLSYMS, "kernel addresses are hidden (kptr_restrict)") \
	X(SYM_LEFT_OUT, "names are left out (--no-symbols)") \
	X(SYM_NO_MEMORY, "over the memory bound") \
	X(SYM_NO_BUDGET, "over the CPU budget: files are not read for now") \
	X(SYM_READING, "file had not been read yet")

enum sym_reason {
#define X(id, text) id,
	SYM_REASONS(X)
#undef X
	SYM_REASON_COUNT
};

const char *sym_reason_text(enum sym_reason reason);

/* A found symbol. The strings belong to the object asked and last until the next call on it. */
struct sym_hit {
	const char *name;     /* readable: demangled where it can be */
	const char *raw_name; /* as it stands in the symbol table, but for the version */
	const char *module;   /* sym_kernel only: "[kernel.kallsyms]", "[ext4]", "[bpf]" ... */
	uint64_t start;       /* first address of the symbol, in the space asked */
};

/* ---- ELF files ---- */

struct sym_file;

struct sym_file_options {
	const char *debug_dir; /* usually "/usr/lib/debug"; NULL: look for no debug file there */
	const char *path;      /* of the file, as its process sees it; NULL: unknown */
	const char *root; /* that process's root ("/proc/PID/root"), for debug files there; NULL */
	const char *symfs; /* a folder with (copies of) target's files, for names; NULL */
	size_t max_bytes;      /* bound on what is kept of it (twice that to load); 0: 64 MiB */
	bool no_demangle;
	bool lines; /* keep source lines and inlined calls, where that is cheap: Go programs */
	bool no_symbols; /* identity and addresses only: every look-up says SYM_LEFT_OUT */
	/*
	 * All the ELF virtual addresses that sym_file_find will be asked for, or NULL: any. The
	 * answers are the same; loading takes a fraction of the time. Borrowed during the load.
	 */
	const uint64_t *wanted;
	size_t wanted_count;
};

/*
 * Reads all that is needed of the ELF file behind `fd` (which is only borrowed, and read by
 * pread): build-id, program headers, functions of Go's pclntab, .symtab (if it is missing that
 * of the separate debug file, found by build-id or debug link with CRC, or of .gnu_debugdata),
 * .dynsym (by PT_DYNAMIC if there are no section headers), PLT entries as name@plt, and, of
 * stripped files, the extents of functions by .eh_frame. A file without symbols loads well, and so
 * does one whose symbols are over max_bytes: the larger table is left out, and what the other
 * does not name is SYM_NO_MEMORY. Errors: -ENOEXEC (no ELF), -EBADMSG (damaged), -ENOMEM, -EIO.
 * Cost: a few ms per 100,000 symbols.
 */
int sym_file_load(int fd, const struct sym_file_options *options, struct sym_file **ret_file);

/* The vDSO of this process, which is that of every native process of this kernel. */
int sym_file_load_vdso(const struct sym_file_options *options, struct sym_file **ret_file);

void sym_file_free(struct sym_file *file);

/*
 * GNU build-id in lower-case hex; without one (or all zeros) the Go build id's hash or a hash
 * of content and size, hex too: never empty, equal for equal files only. Lives with `file`.
 */
const char *sym_file_build_id(const struct sym_file *file);

/* Whether sym_file_build_id is the GNU build-id as it stands in the file. */
bool sym_file_has_gnu_build_id(const struct sym_file *file);

/* Bytes of memory that this object holds. */
size_t sym_file_bytes(const struct sym_file *file);

/*
 * File offset to ELF virtual address, by the executable PT_LOAD that holds the offset
 * (else any PT_LOAD). False if none does.
 */
bool sym_file_vaddr(const struct sym_file *file, uint64_t file_off, uint64_t *ret_vaddr);

/* The address where the code begins: of the first executable segment; 0 without one. */
uint64_t sym_file_code_start(const struct sym_file *file);

/*
 * The function that covers the ELF virtual address `vaddr`. Size > 0: the address must be
 * inside; size 0: up to the next symbol of the same section. Between aliases: perf's rules
 * (non-weak, global, fewer leading underscores, longer), then strcmp: always the same choice.
 * A resolver's own name is better than that of the IFUNC it serves. A function of which only the
 * extent is known is SYM_START_ONLY, with a name made of the file's and its start. 20 to 80 ns
 * plus demangling.
 */
enum sym_reason sym_file_find(struct sym_file *file, uint64_t vaddr, struct sym_hit *ret_hit);

/* One call at an address. The strings live with the file. */
struct sym_line {
	const char *function;
	const char *file; /* "": not known */
	uint32_t line;    /* 0: not known */
};

/*
 * The calls that the code at `vaddr` belongs to: those that the compiler has put in line first, the
 * innermost of them at the beginning, the function itself last. 0 if lines are not known.
 */
size_t sym_file_lines(const struct sym_file *file, uint64_t vaddr, struct sym_line *ret_lines,
		      size_t max);

/* ---- kernel ---- */

struct buf;
struct sym_kernel;

struct sym_kernel_options {
	bool no_demangle;
	const uint64_t *wanted; /* as in sym_file_options */
	size_t wanted_count;
	/* Gets what sym_kernel_load_copy reads, or nothing if that cannot be; NULL: not wanted. */
	struct buf *copy;
	uint64_t text; /* with `copy`: where the kernel's code begins (sym_kernel_text) */
};

/*
 * Reads kallsyms (path: usually "/proc/kallsyms"): text symbols of the kernel, its modules and
 * BPF programs. -EPERM if all addresses are zero (kptr_restrict). 60 to 100 ms, nearly all of it
 * in the kernel, which writes the text 4 KiB at a time whatever one asks for; 6 MB.
 */
int sym_kernel_load(const char *path, const struct sym_kernel_options *options,
		    struct sym_kernel **ret_kernel);

/*
 * The same from a copy that sym_kernel_load made of a kernel of the same build: names of the kernel
 * itself, without modules and BPF programs. text: where the code begins in the boot in question.
 * -EBADMSG if it is not whole. 5 ms for few wanted addresses.
 */
int sym_kernel_load_copy(int fd, uint64_t text, const struct sym_kernel_options *options,
			 struct sym_kernel **ret_kernel);
void sym_kernel_free(struct sym_kernel *kernel);
size_t sym_kernel_bytes(const struct sym_kernel *kernel);

/* Sizes are not known: the nearest lower text symbol, within the same module's symbols. */
enum sym_reason sym_kernel_find(const struct sym_kernel *kernel, uint64_t addr,
				struct sym_hit *ret_hit);

/* Where the kernel's own code begins: `_text` in kallsyms. 0, -EPERM if hidden, or -errno. */
int sym_kernel_text(const char *path, uint64_t *ret_addr);

/*
 * The GNU build-id in hex from notes: of the kernel usually "/sys/kernel/notes", of a module
 * "/sys/module/NAME/notes/.note.gnu.build-id"; "" if unknown.
 */
int sym_kernel_build_id(const char *notes_path, char *ret_hex, size_t size);

/* ---- JIT code ---- */

/* The files in which one process describes its JIT code: a jitdump, a perf map. */
struct sym_jit;

int sym_jit_new(uint32_t ns_pid, uid_t uid, bool no_demangle, struct sym_jit **ret_jit);
void sym_jit_free(struct sym_jit *jit);

/*
 * Looks for the files and reads what is new in them. proc_fd: the process's directory in /proc,
 * or that of any live thread of it, opened O_PATH or not; it is only borrowed. Files are those of
 * the process's own root and pid namespace. from_ns: CLOCK_MONOTONIC; all later questions are
 * about samples taken since then. Files that are gone leave what is known.
 *  - jitdump: the file mapped as jit-<ns_pid>.dump; its header must have that pid;
 *  - perf map: /tmp/perf-<ns_pid>.map.
 * Cost: a look each, and what is new; about 0.1 us a line or record.
 */
void sym_jit_refresh(struct sym_jit *jit, int proc_fd, uint64_t from_ns);

/* Changes with each refresh that may have changed an answer. */
uint32_t sym_jit_version(const struct sym_jit *jit);
size_t sym_jit_bytes(const struct sym_jit *jit);

/* What made no sense in the files, and was left out. */
struct sym_jit_bad {
	uint64_t map_lines;    /* of perf maps */
	uint64_t dump_records; /* of jitdumps; reading ends at one whose size is wrong */
};

/* Of what was read since the last call. */
struct sym_jit_bad sym_jit_take_bad(struct sym_jit *jit);

/*
 * The code at `addr` when samples since from_ns (that of the last refresh) were taken: by the
 * jitdump, else by the perf map. If it may have been other code in part of that time, the
 * reason is SYM_JIT_CHANGED.
 */
enum sym_reason sym_jit_find(struct sym_jit *jit, uint64_t addr, struct sym_hit *ret_hit);

/*
 * One perf map. Only a regular file owned by `uid` or root is read, no link is followed out of
 * the target's root. Lines are "START SIZE name" in hex with or without 0x; bad lines are
 * skipped and counted; a later line wins over an earlier one that it overlaps; a last line
 * without its end is left for the next time. Of a file over 64 MiB the last 64 MiB are read, and
 * at most 64 MiB are kept: the oldest go. -ENOENT if there is none, -EPERM if it is not to be
 * trusted, or another -errno.
 */
struct sym_perfmap;

int sym_perfmap_load(int proc_fd, uint32_t ns_pid, uid_t uid, uint64_t from_ns, bool no_demangle,
		     struct sym_perfmap **ret_map);

/* Reads on: 1 if there was something new, 0, or -errno (what is known stays). */
int sym_perfmap_refresh(struct sym_perfmap *map, int proc_fd, uint32_t ns_pid, uid_t uid,
			uint64_t from_ns);

/* The same from memory (tests, fuzzing). */
int sym_perfmap_parse(const char *text, size_t len, struct sym_perfmap **ret_map);
void sym_perfmap_free(struct sym_perfmap *map);
size_t sym_perfmap_bytes(const struct sym_perfmap *map);
uint64_t sym_perfmap_bad_lines(const struct sym_perfmap *map);

/* True if a look-up for samples from `from_ns` on may be answered otherwise later. */
bool sym_perfmap_is_moving(const struct sym_perfmap *map, uint64_t from_ns);

/* from_ns as in sym_jit_refresh; UINT64_MAX: what lies there now. */
enum sym_reason sym_perfmap_find(struct sym_perfmap *map, uint64_t addr, uint64_t from_ns,
				 struct sym_hit *ret_hit);

/* ---- names ---- */

/*
 * A readable form of a mangled C++ (_Z), Rust (legacy and v0) or D name, written into `out`
 * (cut to size). Returns false, and leaves `out` alone, if it is not mangled or too large to
 * try (input over 4 KiB, output over 16 KiB). Bounded in time and depth.
 */
bool sym_demangle(const char *raw, char *out, size_t size);

#endif
