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
#include "base/file.h"
#include "base/map.h"
#include "base/parse.h"
#include "symbolizer/build_id.h"
#include "symbolizer/demangle.h"
#include "symbolizer/line_reader.h"
#include "symbolizer/sym_builder.h"
#include "symbolizer/sym_table.h"

enum {
	TEXT_SEARCH_MAX = 1024 * 1024,
	FILE_MAX = 128 * 1024 * 1024,
	KEPT_MAX = 64 * 1024 * 1024,
	MODULE_NAME_MAX = 64, /* with brackets and NUL; the kernel's own limit is 56 */
	KERNEL_NAME_MAX = 1024,
	NOTES_MAX = 64 * 1024,
	TAIL = 2 * 4096,
};

struct sym_kernel {
	struct sym_table symbols;
	struct sym_readable *readable;
	bool no_demangle;
};

struct parser {
	struct sym_builder b;
	uint64_t hidden; /* text symbols with address 0 */
	bool found;      /* others */

	/* The lines that came last, all of one address, and what there was before them. */
	uint64_t group;
	size_t count_before, names_before;
	bool is_neighbour; /* of a wanted address, from above, or it may be */
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

static bool parse_line(const char *p, size_t len, struct line *ret)
{
	const char *end = p + len;

	p = parse_digits(p, end, 16, &ret->addr);
	if (!p || end - p < 4 || p[0] != ' ' || p[2] != ' ')
		return false;
	ret->type = p[1];
	ret->name = p += 3;
	while (p < end && *p != '\t' && *p != ' ' && *p != 0)
		p++;
	ret->name_len = (size_t)(p - ret->name);
	parse_module(p, end, ret->module);
	return ret->name_len > 0 && ret->name_len <= KERNEL_NAME_MAX;
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

/*
 * Takes out the last group if no wanted address needs it (sym_wanted.h). The kernel's symbols come in
 * order, those of a module mostly not, so without the next higher one at hand it stays.
 */
static void end_group(struct parser *p, uint64_t next)
{
	const struct sym_wanted *w = &p->b.wanted;
	bool is_wanted = next > p->group ? sym_wanted_in(w, p->group, next)
					 : sym_wanted_first(w, p->group) < w->count;

	if (!is_wanted && !p->is_neighbour) {
		p->b.count = p->count_before;
		p->b.names_len = p->names_before;
	}
	p->is_neighbour = is_wanted || next < p->group;
	p->group = next;
	p->count_before = p->b.count;
	p->names_before = p->b.names_len;
}

static int take_line(void *parser_ptr, const char *text, size_t len)
{
	struct parser *p = parser_ptr;
	struct sym_candidate c = { 0 };
	struct line line;
	int err;

	if (!parse_line(text, len, &line) || !strchr("tTwW", line.type))
		return 0;
	if (line.addr == 0) {
		p->hidden++;
		return 0;
	}
	if (p->b.wanted.count && line.addr != p->group)
		end_group(p, line.addr);
	p->found = true;
	c.addr = line.addr;
	c.section = module_number(line.module);
	c.rank = rank_of(&line);
	err = sym_builder_add_name(&p->b, line.name, line.name_len, line.module, &c.name);
	return err ? err : sym_builder_add(&p->b, &c);
}

/* `err` is what the reading of lines gave. */
static int finish(struct parser *p, int err, struct sym_kernel **ret_kernel)
{
	struct sym_kernel *kernel = NULL;

	if (!err && !p->found)
		err = p->hidden ? -EPERM : -ENODATA;
	if (err)
		goto out;
	err = -ENOMEM;
	kernel = calloc(1, sizeof(*kernel));
	if (!kernel)
		goto out;
	kernel->readable = calloc(1, sizeof(*kernel->readable));
	if (!kernel->readable)
		goto out;
	err = sym_builder_finish(&p->b, true, &kernel->symbols);
	if (err)
		goto out;
	*ret_kernel = kernel;
	kernel = NULL;
out:
	sym_builder_fini(&p->b);
	sym_kernel_free(kernel);
	return err;
}

static int start(struct parser *p, const struct sym_kernel_options *options)
{
	*p = (struct parser){ 0 };
	sym_builder_init(&p->b, SYM_INNERMOST_WINS, KEPT_MAX);
	p->b.tail = TAIL;
	return sym_wanted_add(&p->b.wanted, options->wanted, options->wanted_count);
}

int sym_kernel_load(const char *path, const struct sym_kernel_options *options,
		    struct sym_kernel **ret_kernel)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct line_cursor cursor = { 0 };
	struct parser p;
	int err;

	if (fd < 0)
		return -errno;
	err = start(&p, options);
	if (!err)
		err = lines_from(fd, &cursor, FILE_MAX, take_line, &p);
	close(fd);
	err = finish(&p, err, ret_kernel);
	if (!err)
		(*ret_kernel)->no_demangle = options->no_demangle;
	return err;
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

int sym_kernel_parse(const char *text, size_t len, const struct sym_kernel_options *options,
		     struct sym_kernel **ret_kernel)
{
	uint64_t too_long;
	struct parser p;
	int err;

	err = start(&p, options);
	if (!err)
		err = lines_of_text(text, len, take_line, &p, &too_long);
	return finish(&p, err, ret_kernel);
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

int sym_kernel_build_id(const char *notes_path, char *ret_hex, size_t size)
{
	char hex[BUILD_ID_HEX_SIZE] = "";
	struct buf notes;
	int err;

	if (size == 0)
		return -EINVAL;
	buf_init(&notes, NOTES_MAX);
	err = file_read_path(notes_path, &notes);
	if (!err && !build_id_in_notes(notes.data, notes.len, hex))
		hex[0] = 0;
	if (!err && strlen(hex) >= size)
		err = -ENOSPC;
	if (!err)
		memcpy(ret_hex, hex, strlen(hex) + 1);
	buf_fini(&notes);
	return err;
}
