/* SPDX-License-Identifier: Apache-2.0 */
/* See kallsyms_copy.h. */
#include "symbolizer/kallsyms_copy.h"

#include <inttypes.h>
#include <string.h>

#include "base/parse.h"

enum { OFFSET_DIGITS = 8 };

static void put_offset(struct buf *to, uint64_t offset)
{
	char text[OFFSET_DIGITS];

	for (int i = OFFSET_DIGITS; i-- > 0; offset >>= 4)
		text[i] = "0123456789abcdef"[offset & 15];
	buf_put(to, text, sizeof(text));
}

void kallsyms_copy_line(struct kallsyms_copy *c, uint64_t addr, const char *rest, size_t len)
{
	/* A module's name is behind a tab. */
	if (memchr(rest, '\t', len))
		return;
	if (addr < c->from || addr - c->from > UINT32_MAX) {
		c->is_useless = true;
		return;
	}
	put_offset(c->to, addr - c->from);
	buf_put(c->to, rest, len);
	buf_put_byte(c->to, '\n');
	c->lines++;
}

void kallsyms_copy_end(struct kallsyms_copy *c)
{
	buf_printf(c->to, "# %" PRIu64 "\n", c->lines);
	if (c->is_useless || buf_error(c->to))
		buf_reset(c->to);
}

void kallsyms_count_line(struct kallsyms_count *c)
{
	c->lines++;
	c->is_last = false;
}

void kallsyms_count_other(struct kallsyms_count *c, const char *text, size_t len)
{
	c->is_last = len > 2 && text[0] == '#' && text[1] == ' ' &&
		     parse_digits(text + 2, text + len, 10, &c->said) == text + len;
}

bool kallsyms_count_agrees(const struct kallsyms_count *c)
{
	return c->is_last && c->said == c->lines;
}
