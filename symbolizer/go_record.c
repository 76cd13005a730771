/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records and tables; see go_record.h. All positions are foreign and checked at each use; loops are
 * bounded.
 */
#include "symbolizer/go_record.h"

#include <string.h>

enum {
	PCDATA_INLINE = 2,
	FUNCDATA_INLINE = 3,
	STEPS_MAX = 1 << 16, /* of one function's table */
};

static bool get(const struct go_lines *g, uint64_t at, size_t size, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (at > g->header.size || size > g->header.size - at)
		return false;
	memcpy(&value, g->table + at, size);
	*ret_value = value;
	return true;
}

bool go_get32(const struct go_lines *g, uint64_t at, uint32_t *ret_value)
{
	uint64_t value;
	bool good = get(g, at, 4, &value);

	if (good)
		*ret_value = (uint32_t)value;
	return good;
}

/* A string that ends within the table, or "". */
const char *go_text_at(const struct go_lines *g, uint64_t at)
{
	if (at >= g->header.size || !memchr(g->table + at, 0, g->header.size - at))
		return "";
	return (const char *)g->table + at;
}

/* Entry `i` of the table of functions, or the end behind the last one. */
uint64_t go_entry(const struct go_lines *g, uint64_t i)
{
	uint64_t value = 0;

	get(g, g->header.functab + 2 * i * go_pc_size(g), go_pc_size(g), &value);
	return g->text + value;
}

/* Where pcdata and funcdata begin in a record, behind its fixed part. */
static bool read_inline_data(const struct go_lines *g, uint64_t at, uint32_t npcdata,
			     struct go_record *r)
{
	size_t fixed = g->header.version == 18 ? 36 + 4 : 40 + 4;
	uint64_t counts;
	uint32_t nfuncdata;

	r->tree = GO_NO_DATA;
	if (g->header.version < 18 || npcdata <= PCDATA_INLINE || npcdata > 255 ||
	    !get(g, at + fixed - 4, 4, &counts))
		return true;
	nfuncdata = (uint32_t)(counts >> 24);
	at += fixed;
	if (nfuncdata <= FUNCDATA_INLINE)
		return true;
	return go_get32(g, at + PCDATA_INLINE * 4, &r->inlined) &&
	       go_get32(g, at + (npcdata + FUNCDATA_INLINE) * 4, &r->tree);
}

bool go_record_read(const struct go_lines *g, uint64_t number, struct go_record *r)
{
	uint64_t functab = g->header.functab, pc = go_pc_size(g), at;
	uint32_t npcdata;

	*r = (struct go_record){ .entry = go_entry(g, number) };
	r->size = go_entry(g, number + 1) - r->entry;
	if (!get(g, functab + (2 * number + 1) * pc, pc, &at))
		return false;
	at += g->header.version == 2 ? 0 : functab;
	if (at > g->header.size)
		return false;
	/* Behind the entry: name, args, deferreturn, pcsp, pcfile, pcln, npcdata, unit. */
	if (!go_get32(g, at + pc, &r->name) || !go_get32(g, at + pc + 16, &r->files) ||
	    !go_get32(g, at + pc + 20, &r->lines) || !go_get32(g, at + pc + 24, &npcdata) ||
	    !go_get32(g, at + pc + 28, &r->unit))
		return false;
	return read_inline_data(g, at, npcdata, r);
}

static bool get_varint(const struct go_lines *g, uint64_t *at, uint32_t *ret_value)
{
	uint32_t value = 0;

	for (unsigned int shift = 0; shift < 32; shift += 7) {
		if (*at >= g->header.size)
			return false;
		value |= (uint32_t)(g->table[*at] & 127) << shift;
		if (!(g->table[(*at)++] & 128)) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

struct go_walk go_walk_begin(const struct go_lines *g, uint32_t table)
{
	return (struct go_walk){ .at = g->header.pctab + table, .value = (uint32_t)-1 };
}

bool go_walk_next(const struct go_lines *g, struct go_walk *w)
{
	uint32_t delta, step;

	if (w->steps++ >= STEPS_MAX || !get_varint(g, &w->at, &delta) ||
	    (delta == 0 && w->steps > 1) || !get_varint(g, &w->at, &step))
		return false;
	w->value += delta & 1 ? ~(delta >> 1) : delta >> 1;
	w->pc += (uint64_t)step * g->header.quantum;
	return true;
}
