/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing mountinfo; see mounts.h. */
#include "agent/resolve/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/parse.h"

enum { MAX_MOUNTINFO = 8 << 20, MAX_MOUNTS = 65536 };

/* Undoes \040 and the like, in place. */
static void unescape(char *s)
{
	char *to = s;

	while (*s) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = 0;
}

/* "36 35 98:0 /root /mount/point options ...": the third to fifth field. */
static bool parse_line(char *line, struct mount *ret_mount)
{
	char *fields[5], *save = NULL;
	uint64_t major, minor;
	const char *p, *end;

	for (int i = 0; i < 5; i++) {
		fields[i] = strtok_r(i ? NULL : line, " ", &save);
		if (!fields[i])
			return false;
	}
	end = fields[2] + strlen(fields[2]);
	p = parse_digits(fields[2], end, 10, &major);
	if (!p || *p != ':' || parse_digits(p + 1, end, 10, &minor) != end)
		return false;
	if (fields[3][0] != '/' || fields[4][0] != '/')
		return false;
	unescape(fields[3]);
	unescape(fields[4]);
	*ret_mount = (struct mount){ .major = (uint32_t)major, .minor = (uint32_t)minor,
				     .root = fields[3], .point = fields[4] };
	return true;
}

int mounts_parse(struct buf *text, struct mounts *ret_mounts)
{
	struct mounts m = { 0 };
	char *line, *save = NULL;
	size_t cap = 0;

	if (!buf_cstr(text))
		return buf_error(text);
	for (line = strtok_r((char *)text->data, "\n", &save); line && m.count < MAX_MOUNTS;
	     line = strtok_r(NULL, "\n", &save)) {
		if (m.count == cap) {
			size_t more = cap ? cap * 2 : 32;
			struct mount *list = reallocarray(m.list, more, sizeof(*list));

			if (!list) {
				free(m.list);
				return -ENOMEM;
			}
			m.list = list;
			cap = more;
		}
		if (parse_line(line, &m.list[m.count]))
			m.count++;
	}
	m.text = *text;
	buf_init(text, text->max);
	*ret_mounts = m;
	return 0;
}

int mounts_load(const char *path, struct mounts *ret_mounts)
{
	struct buf text;
	int err;

	buf_init(&text, MAX_MOUNTINFO);
	err = file_read_path(path, &text);
	if (!err)
		err = mounts_parse(&text, ret_mounts);
	buf_fini(&text);
	return err;
}

void mounts_fini(struct mounts *m)
{
	buf_fini(&m->text);
	free(m->list);
	*m = (struct mounts){ 0 };
}

bool mount_translate(const struct mount *m, const char *path, char *out, size_t size)
{
	size_t root_len = strcmp(m->root, "/") == 0 ? 0 : strlen(m->root);
	const char *point = strcmp(m->point, "/") == 0 ? "" : m->point;
	int len;

	/* A single file can be mounted too: then root is the path itself. */
	if (strncmp(path, m->root, root_len) != 0 ||
	    (path[root_len] != '/' && !(root_len && path[root_len] == 0)))
		return false;
	len = snprintf(out, size, "%s%s", point, path + root_len);
	return len > 0 && (size_t)len < size;
}
