/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks through /proc/PID/maps, whose lines are
 *   7f1a00000000-7f1a00001000 r-xp 00000000 08:01 131      /var/jit/jit-42.dump
 * A path is written as it is, but for newlines; it may end in " (deleted)".
 */
#include "symbolizer/jitdump_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "symbolizer/line_reader.h"

enum { FIELDS_BEFORE_PATH = 5, MAPS_MAX = 16 * 1024 * 1024, FOUND = 1 };

struct search {
	char name[32]; /* "/jit-42.dump" */
	struct jitdump_place *place;
};

/* Behind `n` fields and the blanks that follow each. */
static const char *skip_fields(const char *p, const char *end, int n)
{
	while (n-- > 0) {
		while (p < end && *p != ' ')
			p++;
		while (p < end && *p == ' ')
			p++;
	}
	return p;
}

static bool ends_in(const char *text, size_t len, const char *tail)
{
	size_t n = strlen(tail);

	return len >= n && memcmp(text + len - n, tail, n) == 0;
}

static int take_line(void *search_ptr, const char *line, size_t len)
{
	static const char deleted[] = " (deleted)";
	struct search *s = search_ptr;
	const char *end = line + len, *path = skip_fields(line, end, FIELDS_BEFORE_PATH);
	const char *blank = memchr(line, ' ', len);
	size_t path_len = (size_t)(end - path);
	bool is_deleted = ends_in(path, path_len, deleted);

	if (is_deleted)
		path_len -= sizeof(deleted) - 1;
	if (!blank || (size_t)(blank - line) >= sizeof(s->place->range) ||
	    path_len >= sizeof(s->place->path) || !ends_in(path, path_len, s->name))
		return 0;
	memcpy(s->place->range, line, (size_t)(blank - line));
	s->place->range[blank - line] = 0;
	if (is_deleted)
		path_len = 0;
	memcpy(s->place->path, path, path_len);
	s->place->path[path_len] = 0;
	return FOUND;
}

static void start(struct search *search, uint32_t ns_pid, struct jitdump_place *place)
{
	search->place = place;
	snprintf(search->name, sizeof(search->name), "/jit-%u.dump", ns_pid);
}

int jitdump_place_parse(const char *maps, size_t len, uint32_t ns_pid,
			struct jitdump_place *ret_place)
{
	struct jitdump_place place;
	struct search search;
	uint64_t too_long;
	int err;

	start(&search, ns_pid, &place);
	err = lines_of_text(maps, len, take_line, &search, &too_long);
	if (err == FOUND)
		*ret_place = place;
	return err == FOUND ? 0 : -ENOENT;
}

int jitdump_place_find(int proc_fd, uint32_t ns_pid, struct jitdump_place *ret_place)
{
	int fd = openat(proc_fd, "maps", O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;
	struct line_cursor cursor = { 0 };
	struct jitdump_place place;
	struct search search;

	if (fd < 0)
		return -errno;
	start(&search, ns_pid, &place);
	err = lines_from(fd, &cursor, MAPS_MAX, take_line, &search);
	close(fd);
	if (err == FOUND)
		*ret_place = place;
	return err == FOUND ? 0 : err ? err : -ENOENT;
}

int jitdump_place_open(const struct jitdump_place *place, int proc_fd, uid_t uid,
		       struct jit_file_state *ret_state)
{
	int fd = jit_open_mapped(proc_fd, place->range, uid, ret_state);

	if (fd < 0 && fd != -EPERM && place->path[0] == '/')
		fd = jit_open(proc_fd, place->path + 1, uid, ret_state);
	return fd;
}
