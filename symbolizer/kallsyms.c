/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel symbols from lines like "ffffffffc0a01000 t nf_hook\t[nf_tables]".
 *
 * Each name is kept with its module's name right behind it; for the kernel proper that is
 * empty. There are no sizes: a symbol reaches to the next one of its module. The last one
 * before another module gets the rest of its page and one more, as in perf.
 */
#include "symbolizer/kallsyms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/parse.h"
#include "symbolizer/demangle.h"
#include "symbolizer/kallsyms_copy.h"
#include "symbolizer/line_reader.h"
#include "symbolizer/sym_builder.h"
#include "symbolizer/sym_table.h"

enum {
	TEXT_SEARCH_MAX = 1024 * 1024,
	FILE_MAX = 128 * 1024 * 1024,
	KEPT_MAX = 64 * 1024 * 1024,
	MODULE_NAME_MAX = 64, /* with brackets and NUL; the kernel's own limit is 56 */
	KERNEL_NAME_MAX = 1024,
	TAIL = 2 * 4096,
};

struct sym_kernel {
	struct sym_table symbols;
	struct sym_readable *readable;
	bool no_demangle;
};

struct parser {
	struct sym_builder b;
	uint64_t offset; /* added to all addresses; 0: these are no copy's */
	bool no_demangle;
	uint64_t hidden; /* text symbols with address 0 */
	bool found;      /* others */

	/* With wanted addresses: the lines that came last, all of one address. */
	uint64_t group;
	struct buf held;
	size_t next_wanted; /* number of the first wanted one at or above it */
	bool is_neighbour;  /* of a wanted address, from above, or it may be */

	/* See kallsyms_copy.h. */
	struct kallsyms_copy copy;
	struct kallsyms_count count;
};

struct line {
	uint64_t addr;
	char type;
	const char *name;
	size_t name_len;
	char module[MODULE_NAME_MAX]; /* "[name]" or "" */
};

/* "\t[module]", as it stands; anything else is no module. */
static void parse_module(const char *p, const char *end, char *ret_module)
{
	size_t len;

	while (p < end && (*p == '\t' || *p == ' '))
		p++;
	len = (size_t)(end - p);
	if (len < 3 || len >= MODULE_NAME_MAX || *p != '[' || end[-1] != ']' || memchr(p, 0, len))
		len = 0;
	memcpy(ret_module, p, len);
	ret_module[len] = 0;
}

static bool ends_name(char c)
{
	return c == '\t' || c == ' ' || c == 0;
}

/* The address; returns what is behind it, " T name", or NULL. */
static const char *parse_head(const char *p, const char *end, uint64_t *ret_addr)
{
	p = parse_digits(p, end, 16, ret_addr);
	return p && end - p >= 4 && p[0] == ' ' && p[2] == ' ' && !ends_name(p[3]) ? p : NULL;
}

static bool parse_line(const char *p, size_t len, struct line *ret)
{
	const char *end = p + len;

	p = parse_head(p, end, &ret->addr);
	if (!p)
		return false;
	ret->type = p[1];
	ret->name = p += 3;
	while (p < end && !ends_name(*p))
		p++;
	ret->name_len = (size_t)(p - ret->name);
	parse_module(p, end, ret->module);
	return ret->name_len <= KERNEL_NAME_MAX;
}

static bool ends_in(const char *name, size_t len, const char *tail)
{
	size_t n = strlen(tail);

	return len >= n && memcmp(name + len - n, tail, n) == 0;
}

/*
 * The linker script's names for the borders of sections: a function that begins there has a
 * better one. perf shows __do_softirq as __softirqentry_text_start.
 */
static bool is_border(const char *name, size_t len)
{
	static const char *const tails[] = { "_text_start", "_text_end", "_init_begin", "_init_end" };
	static const char *const names[] = { "_text", "_stext", "_etext", "_sinittext", "_einittext" };

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		if (ends_in(name, len, tails[i]))
			return true;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strlen(names[i]) == len && memcmp(name, names[i], len) == 0)
			return true;
	}
	return false;
}

static uint8_t rank_of(const struct line *line)
{
	char type = line->type;
	bool is_weak = type == 'W' || type == 'w';

	if (line->name[0] == '_' && is_border(line->name, line->name_len))
		return 0;
	return SYM_RANK_TYPED | (is_weak ? 0 : SYM_RANK_STRONG) |
	       (type == 'T' ? SYM_RANK_GLOBAL : 0);
}

/* A number that stands for the module, to tell it from its neighbours. */
static uint16_t module_number(const char *module)
{
	return module[0] ? (uint16_t)hash_bytes(module, strlen(module)) | 1 : 0;
}

static int add_symbol(struct parser *p, const char *text, size_t len)
{
	struct sym_candidate c = { 0 };
	struct line line;
	int err;

	if (!parse_line(text, len, &line))
		return 0;
	c.addr = line.addr + p->offset;
	c.section = module_number(line.module);
	c.rank = rank_of(&line);
	err = sym_builder_add_name(&p->b, line.name, line.name_len, line.module, &c.name);
	return err ? err : sym_builder_add(&p->b, &c);
}

static int add_held(struct parser *p)
{
	int err = buf_error(&p->held);

	for (size_t at = 0; at < p->held.len && !err;) {
		const char *line = (const char *)p->held.data + at;
		const char *newline = memchr(line, '\n', p->held.len - at);

		err = add_symbol(p, line, (size_t)(newline - line));
		at += (size_t)(newline - line) + 1;
	}
	buf_reset(&p->held);
	return err;
}

/*
 * Adds the last group if some wanted address needs it (sym_wanted.h). The kernel's symbols come in
 * order, those of a module mostly not, so without the next higher one at hand it is added.
 */
static int end_group(struct parser *p, uint64_t next)
{
	const struct sym_wanted *w = &p->b.wanted;
	bool is_wanted = p->next_wanted < w->count &&
			 (next < p->group || w->addrs[p->next_wanted] < next);
	int err = 0;

	if (is_wanted || p->is_neighbour)
		err = add_held(p);
	buf_reset(&p->held);
	p->is_neighbour = is_wanted || next < p->group;
	if (next < p->group || (p->next_wanted < w->count && w->addrs[p->next_wanted] < next))
		p->next_wanted = sym_wanted_first(w, next);
	p->group = next;
	return err;
}

static int hold(struct parser *p, uint64_t addr, const char *text, size_t len)
{
	int err = addr != p->group ? end_group(p, addr) : 0;

	buf_put(&p->held, text, len);
	buf_put_byte(&p->held, '\n');
	return err ? err : buf_error(&p->held);
}

static int take_line(void *parser_ptr, const char *text, size_t len)
{
	struct parser *p = parser_ptr;
	const char *rest;
	struct line line;
	uint64_t addr;

	rest = parse_head(text, text + len, &addr);
	if (!rest)
		kallsyms_count_other(&p->count, text, len);
	if (!rest || !strchr("tTwW", rest[1]))
		return 0;
	if (len > KERNEL_NAME_MAX && !parse_line(text, len, &line))
		return 0; /* its address ends no other symbol */
	addr += p->offset;
	if (addr == 0) {
		p->hidden++;
		return 0;
	}
	p->found = true;
	kallsyms_count_line(&p->count);
	if (p->copy.to)
		kallsyms_copy_line(&p->copy, addr, rest, (size_t)(text + len - rest));
	return p->b.wanted.count ? hold(p, addr, text, len) : add_symbol(p, text, len);
}

/* `err` is what the reading of lines gave. */
static int finish(struct parser *p, int err, struct sym_kernel **ret_kernel)
{
	struct sym_kernel *kernel = NULL;

	if (!err)
		err = add_held(p); /* nothing followed it */
	if (!err && !p->found)
		err = p->hidden ? -EPERM : -ENODATA;
	if (err)
		goto out;
	if (p->copy.to)
		kallsyms_copy_end(&p->copy);
	err = -ENOMEM;
	kernel = calloc(1, sizeof(*kernel));
	if (!kernel)
		goto out;
	kernel->no_demangle = p->no_demangle;
	kernel->readable = calloc(1, sizeof(*kernel->readable));
	if (!kernel->readable)
		goto out;
	err = sym_builder_finish(&p->b, true, &kernel->symbols);
	if (err)
		goto out;
	*ret_kernel = kernel;
	kernel = NULL;
out:
	buf_fini(&p->held);
	sym_builder_fini(&p->b);
	sym_kernel_free(kernel);
	return err;
}

static int start(struct parser *p, uint64_t offset, const struct sym_kernel_options *options)
{
	*p = (struct parser){ .offset = offset,
			     .no_demangle = options->no_demangle,
			     .copy = { .to = options->copy, .from = options->text } };
	buf_init(&p->held, KEPT_MAX);
	sym_builder_init(&p->b, SYM_INNERMOST_WINS, KEPT_MAX);
	p->b.tail = TAIL;
	return sym_wanted_add(&p->b.wanted, options->wanted, options->wanted_count);
}

/* What the reading of lines gave, and whether a copy was whole. */
static int end(struct parser *p, int err, struct sym_kernel **ret_kernel)
{
	if (!err && p->offset && !kallsyms_count_agrees(&p->count))
		err = -EBADMSG;
	return finish(p, err, ret_kernel);
}

static int load(int fd, uint64_t offset, const struct sym_kernel_options *options,
		struct sym_kernel **ret_kernel)
{
	struct line_cursor cursor = { 0 };
	struct parser p;
	int err = start(&p, offset, options);

	if (!err)
		err = lines_from(fd, &cursor, FILE_MAX, take_line, &p);
	return end(&p, err, ret_kernel);
}

int sym_kernel_load(const char *path, const struct sym_kernel_options *options,
		    struct sym_kernel **ret_kernel)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;

	if (fd < 0)
		return -errno;
	err = load(fd, 0, options, ret_kernel);
	close(fd);
	return err;
}

int sym_kernel_load_copy(int fd, uint64_t text, const struct sym_kernel_options *options,
			 struct sym_kernel **ret_kernel)
{
	return text ? load(fd, text, options, ret_kernel) : -EINVAL;
}

/* The address of `_text`, which is among the first lines. Stops the reading. */
static int take_text(void *addr_ptr, const char *text, size_t len)
{
	uint64_t *addr = addr_ptr;
	struct line line;

	if (!parse_line(text, len, &line) || line.name_len != strlen("_text") ||
	    memcmp(line.name, "_text", line.name_len) != 0)
		return 0;
	*addr = line.addr;
	return 1;
}

int sym_kernel_text(const char *path, uint64_t *ret_addr)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;
	struct line_cursor cursor = { 0 };
	uint64_t addr;

	if (fd < 0)
		return -errno;
	err = lines_from(fd, &cursor, TEXT_SEARCH_MAX, take_text, &addr);
	close(fd);
	if (err != 1)
		return err ? err : -ENODATA;
	if (addr == 0)
		return -EPERM;
	*ret_addr = addr;
	return 0;
}

int sym_kernel_parse(const char *text, size_t len, uint64_t offset,
		     const struct sym_kernel_options *options, struct sym_kernel **ret_kernel)
{
	uint64_t too_long;
	struct parser p;
	int err = start(&p, offset, options);

	if (!err)
		err = lines_of_text(text, len, take_line, &p, &too_long);
	return end(&p, err, ret_kernel);
}

void sym_kernel_free(struct sym_kernel *kernel)
{
	if (!kernel)
		return;
	sym_table_fini(&kernel->symbols);
	if (kernel->readable)
		sym_readable_fini(kernel->readable);
	free(kernel->readable);
	free(kernel);
}

size_t sym_kernel_bytes(const struct sym_kernel *kernel)
{
	return sizeof(*kernel) + sizeof(*kernel->readable) + kernel->readable->cap +
	       sym_table_bytes(&kernel->symbols);
}

enum sym_reason sym_kernel_find(const struct sym_kernel *kernel, uint64_t addr,
				struct sym_hit *ret_hit)
{
	struct sym_found found;
	const char *module;

	if (!sym_table_find(&kernel->symbols, addr, &found))
		return SYM_NOT_COVERED;
	module = found.name + strlen(found.name) + 1;
	*ret_hit = (struct sym_hit){
		.name = sym_readable_name(kernel->readable, found.name, kernel->no_demangle),
		.raw_name = found.name,
		.module = *module ? module : "[kernel.kallsyms]",
		.start = found.start,
	};
	return SYM_OK;
}
