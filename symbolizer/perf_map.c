/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of JIT code from perf-PID.map files, which the profiled process writes while it runs: see
 * symbolizer.h for the format.
 *
 * Each reading goes on where the last one ended and puts a layer on those before (jit_layers.h).
 * A file that was truncated, replaced or written anew is read from its head, and its names take
 * the place of all older ones. If it changes while it is read, what was read is read a second
 * time: lines made of an old head and a new tail must not become names.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/parse.h"
#include "symbolizer/demangle.h"
#include "symbolizer/jit_layers.h"
#include "symbolizer/jit_open.h"
#include "symbolizer/line_reader.h"
#include "symbolizer/sym_builder.h"
#include "symbolizer/sym_table.h"
#include "symbolizer/symbolizer.h"

enum {
	READ_MAX = 64 * 1024 * 1024, /* of a file, in one reading: its end */
	KEPT_MAX = 64 * 1024 * 1024,
	JIT_NAME_MAX = 1024, /* longer names are cut */
	PATH_SIZE = 64,
};

struct sym_perfmap {
	struct jit_layers layers;
	struct sym_readable readable;
	struct jit_file_state state;
	struct jit_guard guard;
	struct line_cursor cursor;
	uint64_t bad_lines;
	bool no_demangle;
	bool is_cut;     /* older lines were left out */
	bool in_doubt;   /* changed while it was read: no name until it is read again */
	bool look_again; /* may have changed since without a new time stamp */
};

/* One reading of a part of the file. Lines go to the layers when the builder is full. */
struct reading {
	struct sym_perfmap *map;
	struct sym_builder b;
	uint64_t until_ns, from_ns;
	bool is_reset;
	bool is_check; /* read once more, for the digest only */
	uint64_t digest;
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

static int flush(struct reading *r)
{
	int err = jit_layers_add(&r->map->layers, &r->b, r->until_ns, r->is_reset, r->from_ns);

	r->is_reset = false;
	sym_builder_init(&r->b, SYM_NEWEST_WINS, KEPT_MAX / 2);
	return err;
}

static int add_symbol(struct reading *r, struct sym_candidate *c, const char *name, size_t len)
{
	int err = sym_builder_add_name(&r->b, name, len, NULL, &c->name);

	return err ? err : sym_builder_add(&r->b, c);
}

static int take_line(void *reading_ptr, const char *line, size_t len)
{
	struct reading *r = reading_ptr;
	struct sym_candidate c = { .rank = SYM_RANK_SIZED };
	const char *name;
	size_t name_len;
	int err;

	r->digest = (r->digest ^ hash_bytes(line, len)) * 0x9e3779b97f4a7c15ULL + len;
	if (r->is_check)
		return 0;
	if (!parse_line(line, line + len, &c, &name)) {
		r->bad_lines++;
		return 0;
	}
	name_len = (size_t)(line + len - name);
	name_len = strnlen(name, name_len < JIT_NAME_MAX ? name_len : JIT_NAME_MAX);
	err = add_symbol(r, &c, name, name_len);
	if (err != -EFBIG)
		return err;
	err = flush(r);
	return err ? err : add_symbol(r, &c, name, name_len);
}

static struct sym_perfmap *map_new(bool no_demangle)
{
	struct sym_perfmap *map = calloc(1, sizeof(*map));

	if (map) {
		jit_layers_init(&map->layers, KEPT_MAX);
		map->no_demangle = no_demangle;
	}
	return map;
}

int sym_perfmap_parse(const char *text, size_t len, struct sym_perfmap **ret_map)
{
	struct sym_perfmap *map = map_new(false);
	struct reading r = { .map = map, .until_ns = 0, .from_ns = 1 };
	int err;

	if (!map)
		return -ENOMEM;
	sym_builder_init(&r.b, SYM_NEWEST_WINS, KEPT_MAX / 2);
	err = lines_of_text(text, len, take_line, &r, &map->cursor.too_long);
	if (!err)
		err = flush(&r);
	map->bad_lines = r.bad_lines + map->cursor.too_long;
	sym_builder_fini(&r.b);
	if (err)
		sym_perfmap_free(map);
	else
		*ret_map = map;
	return err;
}

/*
 * Whether the file still holds what was just read between the cursors. `before`: its state when it
 * was opened; ret_state: its state now.
 */
static int check(int fd, const struct line_cursor *from, const struct line_cursor *to,
		 const struct reading *r, const struct jit_file_state *before,
		 struct jit_file_state *ret_state)
{
	struct reading again = { .is_check = true };
	struct line_cursor cursor = *from;
	int err = jit_state_of(fd, ret_state);

	if (err || jit_same_state(before, ret_state))
		return err;
	err = lines_from(fd, &cursor, to->off, take_line, &again);
	if (err)
		return err;
	return again.digest == r->digest && cursor.off == to->off ? 0 : -EAGAIN;
}

/* Where to go on: at the old end if the file has only grown, else at its head. */
static struct line_cursor find_start(struct sym_perfmap *map, int fd,
				     const struct jit_file_state *state, bool *ret_is_reset)
{
	struct line_cursor cursor = map->cursor;
	uint64_t size = (uint64_t)state->size;

	*ret_is_reset = map->in_doubt || !jit_same_file(&map->state, state) || size < cursor.off ||
			!jit_guard_holds(fd, &map->guard);
	if (*ret_is_reset) {
		cursor = (struct line_cursor){ .too_long = cursor.too_long };
		map->is_cut = false;
	}
	if (size - cursor.off > READ_MAX) {
		/* The lines left out might have renamed what older ones told. */
		cursor.off = size - READ_MAX;
		cursor.is_skipping = true;
		*ret_is_reset = true;
		map->is_cut = true;
	}
	return cursor;
}

static int read_on(struct sym_perfmap *map, int fd, const struct jit_file_state *state,
		   uint64_t from_ns)
{
	struct reading r = { .map = map, .from_ns = from_ns };
	struct jit_file_state after = *state;
	struct line_cursor start = find_start(map, fd, state, &r.is_reset), cursor = start;
	bool is_new;
	int err;

	r.until_ns = jit_changed_ns(state);
	sym_builder_init(&r.b, SYM_NEWEST_WINS, KEPT_MAX / 2);
	map->in_doubt = true;
	err = lines_from(fd, &cursor, (uint64_t)state->size, take_line, &r);
	if (!err)
		err = check(fd, &start, &cursor, &r, state, &after);
	if (!err)
		err = jit_guard_take(fd, cursor.off, &map->guard);
	if (!err)
		err = flush(&r);
	sym_builder_fini(&r.b);
	if (err)
		return err;
	is_new = cursor.off != map->cursor.off || start.off != map->cursor.off;
	map->in_doubt = false;
	map->state = *state;
	map->bad_lines += r.bad_lines + cursor.too_long - map->cursor.too_long;
	map->cursor = cursor;
	map->look_again = r.until_ns >= from_ns;
	return is_new;
}

int sym_perfmap_refresh(struct sym_perfmap *map, int proc_fd, uint32_t ns_pid, uid_t uid,
			uint64_t from_ns)
{
	struct jit_file_state state;
	char path[PATH_SIZE];
	int fd, err;

	snprintf(path, sizeof(path), "tmp/perf-%u.map", ns_pid);
	err = jit_look(proc_fd, path, &state);
	if (err)
		return err;
	if (jit_same_state(&map->state, &state) && !map->look_again && !map->in_doubt)
		return 0;
	fd = jit_open(proc_fd, path, uid, &state);
	if (fd < 0)
		return fd;
	err = read_on(map, fd, &state, from_ns);
	close(fd);
	return err;
}

int sym_perfmap_load(int proc_fd, uint32_t ns_pid, uid_t uid, uint64_t from_ns, bool no_demangle,
		     struct sym_perfmap **ret_map)
{
	struct sym_perfmap *map = map_new(no_demangle);
	int err;

	if (!map)
		return -ENOMEM;
	err = sym_perfmap_refresh(map, proc_fd, ns_pid, uid, from_ns);
	/* In doubt is better than not there: it is read again, and says why there is no name. */
	if (err < 0 && err != -EAGAIN) {
		sym_perfmap_free(map);
		return err;
	}
	*ret_map = map;
	return 0;
}

void sym_perfmap_free(struct sym_perfmap *map)
{
	if (!map)
		return;
	jit_layers_fini(&map->layers);
	sym_readable_fini(&map->readable);
	free(map);
}

size_t sym_perfmap_bytes(const struct sym_perfmap *map)
{
	return sizeof(*map) + map->readable.cap + jit_layers_bytes(&map->layers);
}

uint64_t sym_perfmap_bad_lines(const struct sym_perfmap *map)
{
	return map->bad_lines;
}

bool sym_perfmap_is_moving(const struct sym_perfmap *map, uint64_t from_ns)
{
	return map->in_doubt || jit_layers_are_moving(&map->layers, from_ns);
}

enum sym_reason sym_perfmap_find(struct sym_perfmap *map, uint64_t addr, uint64_t from_ns,
				 struct sym_hit *ret_hit)
{
	struct sym_found found;
	enum sym_reason reason;

	if (map->in_doubt)
		return SYM_JIT_CHANGED;
	reason = jit_layers_find(&map->layers, addr, from_ns, &found);
	if (reason == SYM_NOT_COVERED && (map->is_cut || map->layers.is_cut))
		return SYM_JIT_UNREAD;
	if (reason != SYM_OK)
		return reason;
	*ret_hit = (struct sym_hit){
		.name = sym_readable_jit_name(&map->readable, found.name, map->no_demangle),
		.raw_name = found.name,
		.start = found.start,
	};
	return SYM_OK;
}
