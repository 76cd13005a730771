/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where names come from; see sym_sources.h. In this order:
 *
 *  - Go's pclntab, which no stripping removes: it has every Go function;
 *  - .symtab; if it is missing that of the debug file, else that of MiniDebugInfo;
 *  - always .dynsym, which a partly stripped .symtab and MiniDebugInfo lack;
 *  - always the PLT;
 *  - if none of the whole tables was there, the extents of functions that unwind data tells.
 *
 * A source over the byte bound is left out whole, and what no other source names has the reason
 * "over the memory bound", always. Taking as much of it as fits was not done: which functions
 * keep their names would depend on the order of a table, and those without would look like
 * gaps, into which a neighbour without a size reaches with its name.
 */
#include "symbolizer/sym_sources.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "symbolizer/elf_debug.h"
#include "symbolizer/elf_minidebug.h"
#include "symbolizer/elf_plt.h"
#include "symbolizer/elf_syms.h"
#include "symbolizer/go_pclntab.h"
#include "symbolizer/sym_starts.h"

static bool is_fatal(int err)
{
	return err == -ENOMEM || err == -EIO;
}

/* Leaves out a source that was over the bound, its names too, and what was there before it. */
static void cut(struct sym_builder *b, bool *ret_cut)
{
	struct sym_wanted wanted = b->wanted;
	size_t max_bytes = b->max_bytes;

	b->wanted = (struct sym_wanted){ 0 };
	sym_builder_fini(b);
	sym_builder_init(b, SYM_INNERMOST_WINS, max_bytes);
	b->wanted = wanted;
	*ret_cut = true;
}

/* Of another file: its faults, but for our memory, are no reason to lose this one's symbols. */
static int only_memory(int err)
{
	return err == -ENOMEM || err == -EFBIG ? err : 0;
}

static int add_debug_file(const struct elf_file *elf, const char *build_id,
			  const struct sym_file_options *options, struct sym_builder *b)
{
	struct elf_file debug;
	int fd, err;

	err = elf_debug_find(options, elf, build_id, &debug, &fd);
	if (err)
		return only_memory(err);
	err = elf_syms_of_section(&debug, SHT_SYMTAB, b);
	elf_file_close(&debug);
	close(fd);
	return only_memory(err);
}

static int add_minidebug(const struct elf_file *elf, struct sym_builder *b, bool *ret_damaged)
{
	struct elf_file mini;
	uint8_t *image;
	int err;

	err = elf_minidebug_open(elf, &mini, &image);
	if (!err) {
		err = elf_syms_of_section(&mini, SHT_SYMTAB, b);
		elf_file_close(&mini);
		free(image);
	}
	*ret_damaged = err == -EBADMSG;
	return only_memory(err);
}

static int add_dynamic(const struct elf_file *elf, struct sym_builder *b)
{
	int err = elf_syms_of_section(elf, SHT_DYNSYM, b);

	return err && err != -EFBIG && !is_fatal(err) ? elf_syms_of_dynamic(elf, b) : err;
}

/* The whole tables: .symtab here or elsewhere. */
static int add_whole(const struct elf_file *elf, const char *build_id,
		     const struct sym_file_options *options, struct sym_builder *b,
		     bool *ret_damaged)
{
	size_t before = b->found;
	bool mini_damaged = false;
	int err = elf_syms_of_section(elf, SHT_SYMTAB, b);

	/* The debug file of one that is over the bound is no smaller. */
	if (is_fatal(err) || err == -EFBIG)
		return err;
	*ret_damaged = err == -EBADMSG;
	err = 0;
	if (b->found == before)
		err = add_debug_file(elf, build_id, options, b);
	if (!err && b->found == before)
		err = add_minidebug(elf, b, &mini_damaged);
	*ret_damaged |= mini_damaged;
	return err;
}

/* The first two of the sources. */
static int add_tables(const struct elf_file *elf, const char *build_id,
		      const struct sym_file_options *options, struct sym_builder *b,
		      bool *ret_damaged, bool *ret_whole)
{
	size_t before;
	int err = go_pclntab_add(elf, b);

	if (is_fatal(err) || err == -EFBIG)
		return err;
	before = b->found;
	err = add_whole(elf, build_id, options, b, ret_damaged);
	*ret_whole = !err && b->found > before;
	return err;
}

/* What there is beside the tables. */
static int add_rest(const struct elf_file *elf, bool with_starts, struct sym_builder *b)
{
	int err = elf_plt_add(elf, b);

	return err || !with_starts ? err : sym_starts_add(elf, b);
}

int sym_sources_add(const struct elf_file *elf, const char *build_id,
		    const struct sym_file_options *options, struct sym_builder *b, bool *ret_cut,
		    enum sym_reason *ret_without)
{
	bool is_damaged = false, is_whole = false, is_cut = false, is_early;
	int err;

	err = add_tables(elf, build_id, options, b, &is_damaged, &is_whole);
	if (is_fatal(err))
		return err;
	if (err == -EFBIG)
		cut(b, &is_cut);
	/* A wanted address needs the symbol of its function's start too, so that one comes first. */
	is_early = b->wanted.count && !is_whole && !is_cut;
	err = is_early ? sym_starts_add(elf, b) : 0;
	if (is_fatal(err))
		return err;
	is_cut |= err == -EFBIG;
	err = add_dynamic(elf, b);
	if (is_fatal(err))
		return err;
	is_cut |= err == -EFBIG;
	is_damaged |= err == -EBADMSG;
	err = add_rest(elf, !is_early && !is_whole && !is_cut, b);
	if (is_fatal(err))
		return err;
	is_cut |= err == -EFBIG;
	*ret_cut = is_cut;
	*ret_without = is_cut ? SYM_NO_MEMORY : is_damaged ? SYM_BAD_ELF : SYM_NO_SYMBOLS;
	return 0;
}
