/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetching names; see elf_names.h. The strings are never in memory as a whole, so a small file
 * that claims gigabytes costs next to nothing.
 */
#include "symbolizer/elf_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	NAME_MAX_LEN = 16 * 1024, /* longer names are cut */
	SUFFIX_MAX = 16,
	WINDOW = 256 * 1024,
	FEW = 4096, /* read where names are far apart */
};

_Static_assert(WINDOW > 2 * NAME_MAX_LEN, "each window must get further than one name");

/*
 * Labels that the assembler makes: ARM's and RISC-V's marks of code and data ($x, $d.1), and
 * local labels that a linker left in.
 */
static bool is_label_noise(const char *name, size_t len)
{
	return (len >= 2 && name[0] == '$' && strchr("adtx", name[1])) ||
	       (len >= 2 && name[0] == '.' && name[1] == 'L');
}

/* The strings around the names that are fetched now. */
struct window {
	const char *text;
	uint64_t off;
	size_t len;
	bool is_last;
};

/* Length of the name at `rel` in the window: -1 if it may go on behind it, 0 for no name. */
static ssize_t name_length(const struct window *w, size_t rel)
{
	size_t room = w->len - rel;
	size_t len = strnlen(w->text + rel, room < NAME_MAX_LEN ? room : NAME_MAX_LEN);

	if (len < room)
		return (ssize_t)len;
	return w->is_last ? 0 : -1;
}

/*
 * Length without a version, as in "memcpy@@GLIBC_2.14": files have it in .symtab, but not in
 * .dynsym, and equal code shall have equal names. A leading '@' is part of the name.
 */
static size_t unversioned_length(const char *name, size_t len)
{
	const char *at = memchr(name + 1, '@', len - 1);

	if (!at || (name + len - at == 4 && memcmp(at, "@plt", 4) == 0))
		return len;
	return (size_t)(at - name);
}

static int add_name(struct sym_builder *b, const char *name, size_t len, const char *suffix,
		    uint32_t *ret_offset)
{
	char text[NAME_MAX_LEN + SUFFIX_MAX];
	size_t suffix_len = suffix ? strlen(suffix) : 0;

	len = unversioned_length(name, len);
	if (suffix_len == 0 || suffix_len > SUFFIX_MAX)
		return sym_builder_add_name(b, name, len, NULL, ret_offset);
	memcpy(text, name, len);
	memcpy(text + len, suffix, suffix_len);
	return sym_builder_add_name(b, text, len + suffix_len, NULL, ret_offset);
}

/*
 * Gives names to the candidates from *next on that begin in the window, and moves the ones
 * with a good name down to *kept.
 */
static int name_from_window(struct sym_builder *b, const struct window *w, const char *suffix,
			    size_t *next, size_t *kept)
{
	for (; *next < b->count; (*next)++) {
		struct sym_candidate c = b->candidates[*next];
		const char *name = w->text + (c.name - w->off);
		ssize_t len;
		int err;

		if (c.name - w->off >= w->len)
			return 0;
		len = name_length(w, c.name - w->off);
		if (len < 0)
			return 0;
		if (len == 0 || (!(c.rank & SYM_RANK_TYPED) && is_label_noise(name, (size_t)len)))
			continue;
		err = add_name(b, name, (size_t)len, suffix, &c.name);
		if (err)
			return err;
		b->candidates[(*kept)++] = c;
	}
	return 0;
}

/* Whether the names lie so that reading all between them is better than one by one. */
static bool are_dense(const struct sym_builder *b, size_t first)
{
	size_t count = b->count - first;

	return count == 0 ||
	       (b->candidates[b->count - 1].name - b->candidates[first].name) / count < FEW / 4;
}

int elf_names_fetch(const struct elf_file *elf, const struct elf_strings *strings,
		    const char *suffix, size_t first, struct sym_builder *b)
{
	size_t next = first, kept = first, before = SIZE_MAX;
	bool is_dense;
	char *text;
	int err;

	err = sym_builder_sort_by_name(b, first);
	if (err)
		return err;
	text = malloc(WINDOW);
	if (!text)
		return -ENOMEM;
	is_dense = are_dense(b, first);
	while (next < b->count && b->candidates[next].name < strings->size) {
		struct window w = { .text = text, .off = b->candidates[next].name };
		/* A name that does not end in a small window needs a large one. */
		size_t most = is_dense || next == before ? WINDOW : FEW;

		before = next;
		w.len = strings->size - w.off < most ? strings->size - w.off : most;
		w.is_last = w.off + w.len == strings->size;
		err = elf_source_read(&elf->source, strings->off + w.off, text, w.len);
		if (!err)
			err = name_from_window(b, &w, suffix, &next, &kept);
		if (err)
			break;
	}
	free(text);
	b->count = kept;
	return err;
}
