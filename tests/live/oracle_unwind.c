/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares unwind tables with libdw's reading of the same files: CFA, rbp and return address.
 *
 * usage: oracle_unwind [-v] [-d DEBUG_DIR] FILE...      (- reads file names from stdin)
 *
 * Every row of ours is followed through all the ranges that libdw has within it, so all code with
 * an FDE is compared; code without is probed at its ends and at points between. Prints a line
 * for each kind of result, and with -v for each file; fails if there is a difference that is not
 * one of the known gaps (see `kinds`).
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "symbolizer/unwind.h"
#include "tests/live/oracle_libdw.h"

static const struct {
	const char *name;
	const char *meaning;
} kinds[KIND_COUNT] = {
	[EQUAL] = { "equal", "the same rules" },
	[FP_LOST] = { "fp-lost", "the same, but rbp by a rule that we do not take: marked lost" },
	[NO_FDE] = { "no-fde", "neither has anything" },
	[PADDING] = { "padding", "merged gap before an aligned function" },
	[RESTORER] = { "restorer", "rt_sigreturn without FDE, known by its code" },
	[BEYOND] = { "beyond", "a rule that we do not take: marked unsupported" },
	[LIBDW_REFUSES] = { "refused", "libdw finds the FDE but will not evaluate it" },
	[GO] = { "go", "a stack's switch or begin, known by name; or left to frame pointers" },
	[DIFFERENT] = { "DIFFERENT", "a fault of one of the two" },
};

struct totals {
	uint64_t points[KIND_COUNT];
	uint64_t bytes[KIND_COUNT];
	uint64_t files, without, refused, fdes, bad_fdes, rows, unsupported;
	nsec_t time;
	struct map rules;
};

struct file {
	const char *path;
	struct unwind_table *table;
	Dwarf_CFI *eh;
	Dwarf_CFI *debug;
	uint64_t bias; /* virtual address minus file offset, of the segment in hand */
	struct totals *totals;
	uint64_t different;
	bool is_go; /* symbolizer/unwind_go.h says what is different then */
};

static int verbose;

static void count(struct file *f, enum kind kind, uint64_t bytes)
{
	f->totals->points[kind]++;
	f->totals->bytes[kind] += bytes;
	f->different += kind == DIFFERENT;
}

static Dwarf_Frame *frame_at(const struct file *f, uint64_t vaddr)
{
	Dwarf_Frame *frame = NULL;

	if (f->eh && dwarf_cfi_addrframe(f->eh, vaddr, &frame) == 0)
		return frame;
	if (f->debug && dwarf_cfi_addrframe(f->debug, vaddr, &frame) == 0)
		return frame;
	return NULL;
}

static void tell(const struct file *f, uint64_t off, const struct unwind_rule *r, const char *what)
{
	if (verbose || f->different <= 5)
		printf("%s: +%" PRIx64 " (%" PRIx64 "): cfa %d r%d %d %d fp %d %d: %s\n", f->path,
		       off, off + f->bias, r->cfa, r->cfa_reg, r->cfa_off, r->cfa_add, r->fp,
		       r->fp_off, what);
}

/* Of what unwind data does not tell. */
static bool is_of_go(const struct file *f, const struct unwind_rule *r)
{
	return f->is_go && (r->cfa == UNWIND_END || r->cfa == UNWIND_FP_SWITCH ||
			    r->cfa == UNWIND_GO_STACK || r->cfa == UNWIND_UNSUPPORTED);
}

/* What is left to frame pointers, although the unwind data could have been used. */
static bool is_left_out(const struct file *f, Dwarf_Frame *frame)
{
	static const struct unwind_rule no_frame = { .cfa = UNWIND_SP,
						     .cfa_off = 8,
						     .fp = UNWIND_FP_SAME };

	return !f->is_go || compare_rule(&no_frame, frame, false) == EQUAL;
}

/* Compares at `off`, in a row that ends at `end`; returns how many bytes the answer holds for. */
static uint64_t compare_at(struct file *f, uint64_t off, uint64_t end, const struct unwind_rule *r)
{
	uint64_t vaddr = off + f->bias;
	Dwarf_Frame *frame = frame_at(f, vaddr), *behind;
	Dwarf_Addr first, last;
	uint64_t bytes = 1;
	enum kind kind;
	bool is_signal;

	if (!frame) {
		bool is_restorer = r->cfa == UNWIND_SIGNAL && r->cfa_off == 0;

		behind = frame_at(f, (vaddr | 15) + 1);
		if (is_restorer)
			count(f, RESTORER, 1);
		else if (is_of_go(f, r))
			count(f, GO, 1);
		else if (behind)
			count(f, PADDING, 1);
		else if (r->cfa == UNWIND_UNSUPPORTED)
			count(f, LIBDW_REFUSES, 1);
		else {
			count(f, DIFFERENT, 1);
			tell(f, off, r, dwarf_errmsg(-1));
		}
		free(behind);
		return 1;
	}
	dwarf_frame_info(frame, &first, &last, &is_signal);
	if (last > vaddr)
		bytes = last - vaddr < end - off ? last - vaddr : end - off;
	kind = r->cfa == UNWIND_UNSUPPORTED ? BEYOND : compare_rule(r, frame, is_signal);
	if (kind != EQUAL && is_of_go(f, r))
		kind = GO;
	count(f, kind, bytes);
	if (kind == DIFFERENT)
		tell(f, off, r, "libdw says otherwise");
	free(frame);
	return bytes;
}

/* Code that we have no rule for: libdw must have none either. */
static void probe_gap(struct file *f, uint64_t from, uint64_t to, const struct unwind_rule *r)
{
	uint64_t step = (to - from) / 16 + 1;

	for (uint64_t off = from; off < to;
	     off = off + step < to || off == to - 1 ? off + step : to - 1) {
		Dwarf_Frame *frame = frame_at(f, off + f->bias);

		bool bad = frame && is_left_out(f, frame);

		count(f, bad ? DIFFERENT : frame ? GO : NO_FDE, 1);
		if (bad)
			tell(f, off, r, "libdw has an FDE");
		free(frame);
	}
}

static void compare_segment(struct file *f, uint64_t from, uint64_t to)
{
	const struct unwind_table *t = f->table;
	uint64_t covered = from;

	for (size_t i = 0; i < t->row_count; i++) {
		const struct unwind_rule *r = &t->rules[t->rows[i].rule];
		uint64_t off = t->rows[i].off, end = i + 1 < t->row_count ? t->rows[i + 1].off : to;

		if (off < from || off >= to)
			continue;
		end = end < to ? end : to;
		if (off > covered)
			probe_gap(f, covered, off, &t->rules[0]);
		if (r->cfa == UNWIND_NONE || r->cfa == UNWIND_BARE)
			probe_gap(f, off, end, r);
		else
			while (off < end)
				off += compare_at(f, off, end, r);
		covered = end;
	}
	if (covered < to)
		probe_gap(f, covered, to, &t->rules[0]);
}

static void add_figures(struct file *f)
{
	struct totals *all = f->totals;

	all->files++;
	all->without += f->table->row_count == 0;
	all->fdes += f->table->fdes;
	all->bad_fdes += f->table->bad_fdes;
	all->rows += f->table->row_count;
	all->unsupported += f->table->unsupported;
	for (size_t i = 0; i < f->table->rule_count; i++)
		map_add(&all->rules, &f->table->rules[i], NULL);
}

static bool is_go(Elf *elf)
{
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return false;
	for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s));) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(s, &header))
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (name && (!strcmp(name, ".gopclntab") || !strcmp(name, ".go.buildinfo")))
			return true;
	}
	return false;
}

static void compare_file(struct file *f, Elf *elf, Dwarf *dwarf)
{
	size_t segments = 0;
	uint64_t code = 0;

	f->eh = dwarf_getcfi_elf(elf);
	f->is_go = is_go(elf);
	f->debug = dwarf ? dwarf_getcfi(dwarf) : NULL;
	elf_getphdrnum(elf, &segments);
	for (size_t i = 0; i < segments; i++) {
		GElf_Phdr p;

		if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD || !(p.p_flags & PF_X))
			continue;
		f->bias = p.p_vaddr - p.p_offset;
		code += p.p_filesz;
		compare_segment(f, p.p_offset, p.p_offset + p.p_filesz);
	}
	if (verbose)
		printf("%s: %u FDEs (%u bad), %zu rows, %zu rules, %" PRIu64
		       " bytes of code, %.3f %% unsupported, %" PRIu64 " different\n",
		       f->path, f->table->fdes, f->table->bad_fdes, f->table->row_count,
		       f->table->rule_count, code,
		       code ? 100.0 * (double)f->table->unsupported / (double)code : 0,
		       f->different);
	if (f->eh)
		dwarf_cfi_end(f->eh);
}

static void take_file(struct totals *totals, const char *path, const char *debug_dir)
{
	struct unwind_options options = { .debug_dir = debug_dir };
	struct file f = { .path = path, .totals = totals };
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	nsec_t begin = clock_monotonic();
	Dwarf *dwarf;
	Elf *elf;

	if (fd < 0)
		return;
	err = unwind_table_build(fd, &options, &f.table);
	if (err) {
		if (err != -ENOEXEC && err != -ENOTSUP) {
			totals->refused++;
			printf("%s: refused: %s\n", path, strerror(-err));
		}
		close(fd);
		return;
	}
	totals->time += clock_monotonic() - begin;
	add_figures(&f);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	if (elf)
		compare_file(&f, elf, dwarf);
	dwarf_end(dwarf);
	elf_end(elf);
	unwind_table_free(f.table);
	close(fd);
}

static int report(const struct totals *t)
{
	printf("%" PRIu64 " files (%" PRIu64 " without rows, %" PRIu64 " refused), %" PRIu64
	       " FDEs (%" PRIu64 " bad), %" PRIu64 " rows, %zu rules, %" PRIu64
	       " bytes unsupported, %.2f s, %.0f ns a row\n",
	       t->files, t->without, t->refused, t->fdes, t->bad_fdes, t->rows, t->rules.count,
	       t->unsupported, (double)t->time / 1e9,
	       t->rows ? (double)t->time / (double)t->rows : 0);
	for (int k = 0; k < KIND_COUNT; k++)
		printf("%-10s %12" PRIu64 " points %14" PRIu64 " bytes  %s\n", kinds[k].name,
		       t->points[k], t->bytes[k], kinds[k].meaning);
	return t->points[DIFFERENT] ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct totals totals = { 0 };
	const char *debug_dir = NULL;
	char line[4096];
	int c;

	while ((c = getopt(argc, argv, "vd:")) != -1) {
		if (c == 'v')
			verbose = 1;
		else if (c == 'd')
			debug_dir = optarg;
		else
			return 2;
	}
	elf_version(EV_CURRENT);
	map_init(&totals.rules, sizeof(struct unwind_rule), 0, 1 << 20);
	for (int i = optind; i < argc; i++) {
		if (strcmp(argv[i], "-") != 0) {
			take_file(&totals, argv[i], debug_dir);
			continue;
		}
		while (fgets(line, sizeof(line), stdin)) {
			line[strcspn(line, "\n")] = '\0';
			take_file(&totals, line, debug_dir);
		}
	}
	c = report(&totals);
	map_fini(&totals.rules);
	return c;
}
