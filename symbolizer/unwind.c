/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds unwind tables; see unwind.h.
 *
 * In two passes, so that neither the section nor unsorted rows are ever in memory: first each
 * FDE's place is noted (16 bytes) and sorted, then the programs are run in the order of the code,
 * and rows come out sorted and merged.
 *
 * Which FDE counts where several claim the same code: one of .eh_frame before one of
 * .debug_frame; of one section the one that begins last, as the search of the C++ runtime finds
 * it; of two that begin together the first in the section. Where that one ends nothing
 * is known, though a longer one may go on.
 *
 * A file with code that finds its CFA by rbx is run through twice: what became of rbx is in the rules
 * the second time.
 */
#include "symbolizer/unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "symbolizer/build_id.h"
#include "symbolizer/elf_debug.h"
#include "symbolizer/unwind_bare.h"
#include "symbolizer/unwind_go.h"
#include "symbolizer/unwind_restorer.h"
#include "symbolizer/unwind_rows.h"
#include "symbolizer/unwind_source.h"

enum { MAX_ROWS = 4 * 1000 * 1000, MAX_RULES = 60 * 1000 };

/* A section, its FDEs and how far they are used up. */
struct feed {
	struct unwind_section section;
	struct unwind_index index;
	size_t next;
};

struct build {
	struct unwind_code code;
	struct feed eh;
	struct feed debug;
	struct elf_file debug_elf; /* the separate debug file, if it is in use */
	int debug_fd;
	bool is_go; /* .debug_frame is Go's: see unwind_go_rule */
	struct unwind_go go;
	struct unwind_restorers restorers;
	struct unwind_bare bare;
	struct unwind_rows rows;
	struct cfa_machine machine;
	uint32_t bad_programs;
	bool keep_bx;  /* rules tell of rbx */
	bool needs_bx; /* some code finds its CFA by it */
};

static const struct unwind_rule no_rule, unsupported = { .cfa = UNWIND_UNSUPPORTED };

/* --- rows ------------------------------------------------------------------------------------ */

static int put(struct build *b, uint64_t off, const struct unwind_rule *rule)
{
	return unwind_go_put(&b->go, &b->rows, off, rule);
}

/* Rows of one function whose program lies in the machine, for file offsets [from, to). */
static int put_states(struct build *b, const struct unwind_fde *fde, bool is_go, uint64_t off,
		      uint64_t from, uint64_t to)
{
	struct cfa_machine *m = &b->machine;
	uint64_t at = from;
	enum cfa_step step;

	cfa_start(m, &fde->cie->common, fde->program, fde->program_vaddr, fde->start);
	do {
		struct unwind_rule rule;
		uint64_t end;
		int err;

		step = cfa_run(m);
		end = step == CFA_ADVANCED && m->next - fde->start < to - off
			      ? off + (m->next - fde->start)
			      : to;
		if (step != CFA_BAD && end <= at)
			continue;
		b->bad_programs += step == CFA_BAD;
		rule = step == CFA_BAD
			       ? unsupported
			       : cfa_rule(&m->state, fde->cie->common.is_signal, b->keep_bx);
		if (is_go)
			rule = unwind_go_rule(rule);
		b->needs_bx = b->needs_bx || (rule.cfa == UNWIND_REG && rule.cfa_reg == DWARF_RBX);
		err = put(b, at, &rule);
		if (err)
			return err;
		if (rule.cfa == UNWIND_NONE)
			b->rows.code_gap = at;
		at = end;
	} while (step == CFA_ADVANCED && at < to);
	return 0;
}

/* Rows of one FDE, for the part [from, to) of its code, and none behind it. */
static int put_fde(struct build *b, struct feed *feed, const struct unwind_ref *ref, uint64_t from,
		   uint64_t to)
{
	struct unwind_entry entry;
	struct unwind_fde fde;
	int err;

	err = unwind_entry_read(&feed->section, ref->pos, &entry);
	if (!err)
		err = unwind_fde_read(&feed->section, &entry, true, &fde);
	if (!err) {
		err = put_states(b, &fde, b->is_go && feed == &b->debug, ref->off, from, to);
	} else if (err == -EBADMSG || err == -EFBIG) {
		b->bad_programs++;
		err = put(b, from, &unsupported);
	}
	return err ? err : put(b, to, &no_rule);
}

/* The end of the code that is left to ref i when later ones are served. */
static uint64_t end_of(const struct unwind_index *index, size_t i)
{
	uint64_t end = index->refs[i].off + index->refs[i].size;

	if (i + 1 < index->count && index->refs[i + 1].off < end)
		end = index->refs[i + 1].off;
	return end;
}

/* Code that nothing is known of. Go's has frame pointers, which it sets up in ways of its own. */
static int put_bare(struct build *b, uint64_t from, uint64_t to)
{
	static const struct unwind_rule bare = { .cfa = UNWIND_BARE };
	int err;

	if (b->is_go || from >= to || !unwind_bare_is(&b->bare, from, to))
		return 0;
	err = put(b, from, &bare);
	return err ? err : put(b, to, &no_rule);
}

/* Code that .eh_frame says nothing about, and that is no restorer: by .debug_frame. */
static int put_uncovered(struct build *b, uint64_t from, uint64_t to)
{
	struct feed *f = &b->debug;
	uint64_t known = from; /* up to there all is said */

	while (f->next < f->index.count) {
		const struct unwind_ref *ref = &f->index.refs[f->next];
		uint64_t begin = ref->off, end = end_of(&f->index, f->next);
		int err;

		if (begin >= to)
			break;
		begin = begin > from ? begin : from;
		if (begin < end && begin < to) {
			err = put_bare(b, known, begin);
			known = end < to ? end : to;
			if (!err)
				err = put_fde(b, f, ref, begin, known);
			if (err)
				return err;
		}
		/* What goes on behind the gap may be needed in the next one. */
		if (end > to)
			break;
		f->next++;
	}
	return put_bare(b, known, to);
}

static int put_gap(struct build *b, uint64_t from, uint64_t to)
{
	static const struct unwind_rule restorer = { .cfa = UNWIND_SIGNAL };
	uint64_t begin, end;
	int err = 0;

	while (from < to && !err) {
		if (!unwind_restorer_find(&b->restorers, from, to, &begin, &end))
			return put_uncovered(b, from, to);
		err = put_uncovered(b, from, begin);
		if (!err)
			err = put(b, begin, &restorer);
		if (!err)
			err = put(b, end, &no_rule);
		from = end;
	}
	return err;
}

/* All rows of one executable segment; *covered is the offset up to which all is said. */
static int put_segment(struct build *b, uint64_t off, uint64_t size, uint64_t *covered)
{
	struct feed *f = &b->eh;
	int err = 0;

	*covered = off > *covered ? off : *covered;
	for (; f->next < f->index.count && !err; f->next++) {
		const struct unwind_ref *ref = &f->index.refs[f->next];
		uint64_t end = end_of(&f->index, f->next);

		if (ref->off >= off + size)
			break;
		if (end <= *covered)
			continue;
		if (ref->off > *covered) {
			err = put_gap(b, *covered, ref->off);
			*covered = ref->off;
		}
		if (!err)
			err = put_fde(b, f, ref, *covered, end);
		*covered = end;
	}
	if (!err && *covered < off + size) {
		err = put_gap(b, *covered, off + size);
		*covered = off + size;
	}
	return err;
}

/* --- sources --------------------------------------------------------------------------------- */

/* Errors that are faults of the file or too much for us, not of this machine. */
static bool is_ordinary(int err)
{
	return err == -ENOENT || err == -ENOEXEC || err == -EBADMSG || err == -EFBIG;
}

static int open_debug_frame(struct build *b, const struct elf_file *elf, const char *debug_dir)
{
	char build_id[BUILD_ID_HEX_SIZE];
	int err;

	b->is_go = unwind_go_is_go(elf);
	err = unwind_source_debug_frame(elf, &b->debug.section);
	if (err != -ENOENT || !debug_dir || !build_id_gnu(elf, build_id))
		return err;
	err = elf_debug_open(debug_dir, build_id, &b->debug_elf, &b->debug_fd);
	return err ? err : unwind_source_debug_frame(&b->debug_elf, &b->debug.section);
}

static int read_sources(struct build *b, const struct elf_file *elf, const char *debug_dir,
			size_t max_fdes)
{
	int eh, debug, err = 0;

	eh = unwind_source_eh_frame(elf, &b->eh.section);
	if (eh && !is_ordinary(eh))
		return eh;
	if (!eh)
		err = unwind_index_read(&b->eh.index, &b->eh.section, &b->code, max_fdes);
	if (err)
		return err;
	debug = open_debug_frame(b, elf, debug_dir);
	if (debug && !is_ordinary(debug))
		return debug;
	if (!debug)
		err = unwind_index_read(&b->debug.index, &b->debug.section, &b->code, max_fdes);
	if (err)
		return err;
	/* Nothing usable where there is something. */
	if (b->eh.index.count + b->debug.index.count > 0)
		return 0;
	if (eh && eh != -ENOENT)
		return eh;
	return b->eh.index.bad_fdes || debug == -EBADMSG || debug == -EFBIG ? -EBADMSG : 0;
}

static int put_all(struct build *b, const struct elf_file *elf, size_t max_rows, size_t max_rules)
{
	uint64_t covered = 0;
	int err;

	b->eh.next = b->debug.next = 0;
	b->bad_programs = 0;
	unwind_restorers_init(&b->restorers, &elf->source, &b->eh.index);
	unwind_bare_init(&b->bare, &elf->source);
	unwind_go_begin(&b->go);
	err = unwind_rows_init(&b->rows, max_rows, max_rules);
	for (size_t i = 0; i < b->code.count && !err; i++)
		err = put_segment(b, b->code.segments[i].off, b->code.segments[i].size, &covered);
	if (!err)
		err = unwind_go_end(&b->go, &b->rows);
	return err == -EDQUOT ? -EFBIG : err;
}

static void build_fini(struct build *b)
{
	unwind_index_fini(&b->eh.index);
	unwind_index_fini(&b->debug.index);
	unwind_section_fini(&b->eh.section);
	unwind_section_fini(&b->debug.section);
	unwind_restorers_fini(&b->restorers);
	unwind_bare_fini(&b->bare);
	unwind_rows_fini(&b->rows);
	elf_file_close(&b->debug_elf);
	if (b->debug_fd >= 0)
		close(b->debug_fd);
	free(b);
}

static int build_table(const struct elf_file *elf, const struct unwind_options *options,
		       struct unwind_table **ret_table)
{
	size_t max_rows = options->max_rows ? options->max_rows : MAX_ROWS;
	size_t max_rules = options->max_rules ? options->max_rules : MAX_RULES;
	struct build *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	b->debug_fd = -1;
	unwind_code_find(elf, &b->code);
	err = read_sources(b, elf, options->debug_dir, max_rows);
	if (!err && b->is_go)
		err = unwind_go_find(elf, &b->go);
	if (err)
		goto out;
	err = put_all(b, elf, max_rows, max_rules);
	if (!err && b->needs_bx) {
		b->keep_bx = true;
		unwind_restorers_fini(&b->restorers);
		unwind_bare_fini(&b->bare);
		unwind_rows_fini(&b->rows);
		err = put_all(b, elf, max_rows, max_rules);
	}
	if (err)
		goto out;
	b->rows.table->fdes = b->eh.index.fdes + b->debug.index.fdes;
	b->rows.table->bad_fdes = b->eh.index.bad_fdes + b->debug.index.bad_fdes + b->bad_programs;
	*ret_table = unwind_rows_finish(&b->rows);
out:
	build_fini(b);
	return err;
}

static int build_from(const struct elf_source *source, const struct unwind_options *options,
		      struct unwind_table **ret_table)
{
	static const struct unwind_options defaults;
	struct elf_file elf;
	int err;

	err = elf_file_open(source, &elf);
	if (err)
		return err;
	err = elf.ehdr.e_machine != EM_X86_64
		      ? -ENOTSUP
		      : build_table(&elf, options ? options : &defaults, ret_table);
	elf_file_close(&elf);
	return err;
}

int unwind_table_build(int fd, const struct unwind_options *options,
		       struct unwind_table **ret_table)
{
	struct elf_source source;
	int err = elf_source_fd(fd, &source);

	return err ? err : build_from(&source, options, ret_table);
}

int unwind_table_build_image(const void *image, size_t size, const struct unwind_options *options,
			     struct unwind_table **ret_table)
{
	struct elf_source source = elf_source_image(image, size);

	return build_from(&source, options, ret_table);
}

int unwind_table_build_vdso(struct unwind_table **ret_table)
{
	struct elf_source source;
	int err = elf_source_vdso(&source);

	return err ? err : build_from(&source, NULL, ret_table);
}
