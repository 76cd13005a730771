/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of JIT code from perf-PID.map files, which the profiled process writes: see
 * symbolizer.h for the format. perf_map_open.c finds and checks the file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "symbolizer/demangle.h"
#include "symbolizer/line_reader.h"
#include "symbolizer/perf_map_open.h"
#include "symbolizer/sym_builder.h"
#include "symbolizer/sym_table.h"
#include "symbolizer/symbolizer.h"

enum {
	FILE_MAX = 64 * 1024 * 1024,
	KEPT_MAX = 64 * 1024 * 1024,
	JIT_NAME_MAX = 1024, /* longer names are cut */
};

struct sym_perfmap {
	struct sym_table symbols;
	struct sym_readable readable;
	struct perf_map_source source;
	uint64_t bad_lines;
};

struct parser {
	struct sym_builder b;
	uint64_t bad_lines;
};

/* A hexadecimal number with or without 0x, and the blanks behind it; NULL if there is none. */
static const char *parse_hex(const char *p, const char *end, uint64_t *ret_value)
{
	if (end - p >= 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	p = parse_digits(p, end, 16, ret_value);
	if (!p || p == end || *p != ' ')
		return NULL;
	while (p < end && *p == ' ')
		p++;
	return p;
}

static bool parse_line(const char *p, const char *end, struct sym_candidate *ret,
		       const char **ret_name)
{
	p = parse_hex(p, end, &ret->addr);
	if (p)
		p = parse_hex(p, end, &ret->size);
	if (!p || p == end || *p == 0 || ret->size == 0 || ret->size > UINT64_MAX - ret->addr)
		return false;
	*ret_name = p;
	return true;
}

static int take_line(void *parser_ptr, const char *line, size_t len)
{
	struct parser *p = parser_ptr;
	struct sym_candidate c = { .rank = SYM_RANK_SIZED };
	const char *name;
	size_t name_len;
	int err;

	if (!parse_line(line, line + len, &c, &name)) {
		p->bad_lines++;
		return 0;
	}
	name_len = (size_t)(line + len - name);
	name_len = strnlen(name, name_len < JIT_NAME_MAX ? name_len : JIT_NAME_MAX);
	err = sym_builder_add_name(&p->b, name, name_len, NULL, &c.name);
	return err ? err : sym_builder_add(&p->b, &c);
}

static void start(struct parser *p)
{
	p->bad_lines = 0;
	sym_builder_init(&p->b, SYM_NEWEST_WINS, KEPT_MAX);
}

/* `err` is what the reading of lines gave. */
static int finish(struct parser *p, int err, struct sym_perfmap **ret_map)
{
	struct sym_perfmap *map = NULL;

	if (err)
		goto out;
	err = -ENOMEM;
	map = calloc(1, sizeof(*map));
	if (!map)
		goto out;
	map->bad_lines = p->bad_lines;
	err = sym_builder_finish(&p->b, false, &map->symbols);
	if (err)
		goto out;
	*ret_map = map;
	map = NULL;
out:
	sym_builder_fini(&p->b);
	sym_perfmap_free(map);
	return err;
}

int sym_perfmap_parse(const char *text, size_t len, struct sym_perfmap **ret_map)
{
	uint64_t too_long = 0;
	struct parser p;
	int err;

	start(&p);
	err = lines_of_text(text, len, take_line, &p, &too_long);
	p.bad_lines += too_long;
	return finish(&p, err, ret_map);
}

int sym_perfmap_load(const char *proc_root, uint32_t pid, uint32_t ns_pid, uid_t uid,
		     struct sym_perfmap **ret_map)
{
	struct perf_map_source source = { .pid = pid, .ns_pid = ns_pid };
	uint64_t too_long = 0;
	struct parser p;
	int fd, err;

	source.proc_root = strdup(proc_root);
	if (!source.proc_root)
		return -ENOMEM;
	fd = err = perf_map_open(&source, uid);
	if (fd < 0)
		goto out;
	start(&p);
	err = lines_of_fd(fd, FILE_MAX, take_line, &p, &too_long);
	close(fd);
	p.bad_lines += too_long;
	err = finish(&p, err, ret_map);
	if (err)
		goto out;
	(*ret_map)->source = source;
	source.proc_root = NULL;
out:
	free(source.proc_root);
	return err;
}

void sym_perfmap_free(struct sym_perfmap *map)
{
	if (!map)
		return;
	sym_table_fini(&map->symbols);
	sym_readable_fini(&map->readable);
	free(map->source.proc_root);
	free(map);
}

size_t sym_perfmap_bytes(const struct sym_perfmap *map)
{
	return sizeof(*map) + map->readable.cap + sym_table_bytes(&map->symbols);
}

uint64_t sym_perfmap_bad_lines(const struct sym_perfmap *map)
{
	return map->bad_lines;
}

bool sym_perfmap_is_stale(const struct sym_perfmap *map)
{
	return map->source.proc_root && perf_map_has_changed(&map->source);
}

enum sym_reason sym_perfmap_find(struct sym_perfmap *map, uint64_t addr, struct sym_hit *ret_hit)
{
	struct sym_found found;

	if (!sym_table_find(&map->symbols, addr, &found))
		return SYM_NOT_COVERED;
	*ret_hit = (struct sym_hit){
		.name = sym_readable_name(&map->readable, found.name, false),
		.raw_name = found.name,
		.start = found.start,
	};
	return SYM_OK;
}
