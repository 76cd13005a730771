/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what lines need into memory; see go_lines.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/go_record.h"

enum { WORK_FACTOR = 8 }; /* tables are shared; all steps together, in bytes of pclntab */

static int new_lines(const struct go_header *header, uint64_t text, struct go_lines **ret_lines)
{
	struct go_lines *g;

	if (header->size > GO_LINES_MAX)
		return -EFBIG;
	if (header->pctab >= header->size || header->files >= header->size ||
	    header->units >= header->size)
		return -EBADMSG;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->header = *header;
	g->text = text;
	g->table = malloc(header->size);
	if (!g->table) {
		free(g);
		return -ENOMEM;
	}
	*ret_lines = g;
	return 0;
}

/* How many bytes of functions' data the trees reach into. */
static int trees_extent(const struct go_lines *g, uint64_t *ret_size)
{
	uint64_t size = 0, work = 0;

	for (uint64_t i = 0; i < g->header.func_count; i++) {
		struct go_record r;
		struct go_walk w;

		if (!go_record_read(g, i, &r))
			return -EBADMSG;
		if (r.tree == GO_NO_DATA || r.inlined == 0)
			continue;
		for (w = go_walk_begin(g, r.inlined); go_walk_next(g, &w);) {
			uint64_t end = r.tree + ((uint64_t)w.value + 1) * go_call_size(g);

			if ((int32_t)w.value >= 0 && w.value <= GO_CALLS_MAX && end > size)
				size = end;
		}
		work += w.steps;
		if (work > g->header.size * WORK_FACTOR)
			return -EBADMSG;
	}
	*ret_size = size;
	return size > GO_LINES_MAX ? -EFBIG : 0;
}

/* Reads the trees of inlined calls. */
static int load_trees(const struct elf_file *elf, const struct go_place *place, struct go_lines *g)
{
	uint64_t vaddr, off, size;
	int err = trees_extent(g, &size);

	if (err || size == 0)
		return err;
	err = go_funcdata_find(elf, place, &vaddr);
	if (err)
		return err;
	if (!elf_file_offset(elf, vaddr, &off))
		return -EBADMSG;
	g->trees = malloc(size);
	if (!g->trees)
		return -ENOMEM;
	g->trees_size = size;
	return elf_source_read(&elf->source, off, g->trees, size);
}

int go_lines_load(const struct elf_file *elf, struct go_lines **ret_lines)
{
	struct go_lines *g = NULL;
	struct go_place place;
	uint64_t text = 0;
	int err = go_pclntab_find(elf, &place);

	if (!err && place.header.version >= 18)
		err = go_text_find(elf, &place, &text);
	if (!err)
		err = new_lines(&place.header, text, &g);
	if (!err)
		err = elf_source_read(&elf->source, place.off, g->table, place.header.size);
	if (!err)
		err = load_trees(elf, &place, g);
	if (err)
		go_lines_free(g);
	else
		*ret_lines = g;
	return err;
}

int go_lines_parse(const uint8_t *table, size_t size, uint64_t text, const uint8_t *trees,
		   size_t trees_size, struct go_lines **ret_lines)
{
	struct go_header header;
	struct go_lines *g;
	int err =
		go_header_parse(table, size < GO_HEADER_MAX ? size : GO_HEADER_MAX, size, &header);

	if (!err)
		err = new_lines(&header, text, &g);
	if (err)
		return err;
	memcpy(g->table, table, size);
	g->trees = malloc(trees_size ? trees_size : 1);
	if (!g->trees) {
		go_lines_free(g);
		return -ENOMEM;
	}
	memcpy(g->trees, trees, trees_size);
	g->trees_size = trees_size;
	*ret_lines = g;
	return 0;
}

void go_lines_free(struct go_lines *g)
{
	if (!g)
		return;
	free(g->table);
	free(g->trees);
	free(g);
}

size_t go_lines_bytes(const struct go_lines *g)
{
	return sizeof(*g) + g->header.size + g->trees_size;
}
