/* SPDX-License-Identifier: Apache-2.0 */
/* Names of JIT code over time; see jit_layers.h. */
#include "symbolizer/jit_layers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/jit_clash.h"
#include "symbolizer/sym_table.h"

/* Old layers are merged past this many even if that costs more than it gains. */
enum { MAX_OLD = 12 };

struct jit_layer {
	struct sym_table symbols;
	struct jit_clashes clashes; /* within the layer */
	uint64_t until_ns;
	bool is_reset;
};

void jit_layers_init(struct jit_layers *l, size_t max_bytes)
{
	*l = (struct jit_layers){ .max_bytes = max_bytes };
}

static void layer_fini(struct jit_layer *layer)
{
	sym_table_fini(&layer->symbols);
	jit_clashes_fini(&layer->clashes);
}

void jit_layers_fini(struct jit_layers *l)
{
	for (size_t i = 0; i < l->count; i++)
		layer_fini(&l->layers[i]);
	free(l->layers);
	l->layers = NULL;
	l->count = l->cap = 0;
}

static size_t layer_bytes(const struct jit_layer *layer)
{
	return sizeof(*layer) + sym_table_bytes(&layer->symbols) +
	       layer->clashes.count * sizeof(*layer->clashes.ranges);
}

size_t jit_layers_bytes(const struct jit_layers *l)
{
	size_t bytes = 0;

	for (size_t i = 0; i < l->count; i++)
		bytes += layer_bytes(&l->layers[i]);
	return bytes;
}

/* Drops the `n` oldest. */
static void drop_oldest(struct jit_layers *l, size_t n)
{
	for (size_t i = 0; i < n; i++)
		layer_fini(&l->layers[i]);
	l->count -= n;
	memmove(l->layers, l->layers + n, l->count * sizeof(*l->layers));
}

static int copy_symbols(const struct sym_table *from, struct sym_builder *to)
{
	int err = 0;

	for (size_t i = 0; i < from->count && !err; i++) {
		const struct sym_range *range = &from->ranges[i];
		const char *name = from->names + (range->name & ~SYM_RESUMED);
		struct sym_candidate c = { .addr = range->addr,
					   .size = range->size,
					   .rank = SYM_RANK_SIZED };

		err = sym_builder_add_name(to, name, strlen(name), NULL, &c.name);
		if (!err)
			err = sym_builder_add(to, &c);
	}
	return err;
}

/* Makes one layer of number `i` and the next; over the bound the older one goes. */
static int merge_at(struct jit_layers *l, size_t i)
{
	struct jit_layer *older = &l->layers[i], *newer = older + 1;
	struct sym_table merged = { 0 };
	struct sym_builder b;
	int err;

	sym_builder_init(&b, SYM_NEWEST_WINS, l->max_bytes);
	err = copy_symbols(&older->symbols, &b);
	if (!err)
		err = copy_symbols(&newer->symbols, &b);
	if (!err)
		err = sym_builder_finish(&b, false, &merged);
	sym_builder_fini(&b);
	if (err == -EFBIG) {
		l->is_cut = true;
		drop_oldest(l, i + 1);
		return 0;
	}
	if (err)
		return err;
	sym_table_fini(&newer->symbols);
	newer->symbols = merged;
	newer->is_reset = older->is_reset;
	jit_clashes_fini(&newer->clashes);
	layer_fini(older);
	memmove(older, newer, (l->count - i - 1) * sizeof(*older));
	l->count--;
	return 0;
}

/* How many of the oldest layers no question tells apart any more. */
static size_t count_old(const struct jit_layers *l, uint64_t from_ns)
{
	size_t n = 0;

	while (n < l->count && l->layers[n].until_ns < from_ns)
		n++;
	return n;
}

static int merge_old(struct jit_layers *l, uint64_t from_ns)
{
	size_t old = count_old(l, from_ns), reset = old;

	while (reset > 0 && !l->layers[reset - 1].is_reset)
		reset--;
	if (reset > 1) {
		drop_oldest(l, reset - 1);
		old -= reset - 1;
	}
	while (old > 1) {
		size_t a = l->layers[old - 2].symbols.count, b = l->layers[old - 1].symbols.count;
		size_t before = l->count;
		int err;

		if (b < a / 2 && old <= MAX_OLD)
			return 0;
		err = merge_at(l, old - 2);
		if (err)
			return err;
		old -= before - l->count;
	}
	return 0;
}

static int push(struct jit_layers *l, struct jit_layer *layer)
{
	if (l->count == l->cap) {
		size_t want = l->cap ? 2 * l->cap : 4;
		struct jit_layer *bigger = reallocarray(l->layers, want, sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		l->layers = bigger;
		l->cap = want;
	}
	l->layers[l->count++] = *layer;
	*layer = (struct jit_layer){ 0 };
	return 0;
}

int jit_layers_add(struct jit_layers *l, struct sym_builder *b, uint64_t until_ns, bool is_reset,
		   uint64_t from_ns)
{
	struct jit_layer layer = { .until_ns = until_ns, .is_reset = is_reset };
	int err = 0;

	if (until_ns >= from_ns)
		err = jit_clashes_find(b, &layer.clashes);
	if (!err && (b->count || is_reset))
		err = sym_builder_finish(b, false, &layer.symbols);
	if (!err && (layer.symbols.count || is_reset))
		err = push(l, &layer);
	layer_fini(&layer);
	sym_builder_fini(b);
	if (!err)
		err = merge_old(l, from_ns);
	while (l->count > 1 && jit_layers_bytes(l) > l->max_bytes) {
		l->is_cut = true;
		drop_oldest(l, 1);
	}
	return err;
}

bool jit_layers_are_moving(const struct jit_layers *l, uint64_t from_ns)
{
	return count_old(l, from_ns) < l->count;
}

enum sym_reason jit_layers_find(const struct jit_layers *l, uint64_t addr, uint64_t from_ns,
				struct sym_found *ret_found)
{
	bool have = false, is_gone = false;

	for (size_t i = l->count; i-- > 0;) {
		const struct jit_layer *layer = &l->layers[i];
		bool is_recent = layer->until_ns >= from_ns;
		struct sym_found found;
		bool covers = sym_table_find(&layer->symbols, addr, &found);

		if (is_recent && jit_clashes_at(&layer->clashes, addr))
			return SYM_JIT_CHANGED;
		if (covers && found.name[0]) {
			if (is_gone || (have && strcmp(found.name, ret_found->name) != 0))
				return SYM_JIT_CHANGED;
			if (!have)
				*ret_found = found;
			have = true;
		}
		if (!is_recent && (covers || layer->is_reset))
			break;
		/* A new map that leaves the address out: it was told apart from what ran there. */
		if (layer->is_reset && !covers && !have)
			is_gone = true;
	}
	return have ? SYM_OK : SYM_NOT_COVERED;
}
