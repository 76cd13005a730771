/* SPDX-License-Identifier: Apache-2.0 */
/* What the checks are made of: findings and small files; see health_private.h. */
#include "agent/health_private.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/parse.h"

enum { MAX_PATH = 512, MAX_BYTES = 256 * 1024 };

void health_ok(struct health_finding *f, const char *format, ...)
{
	va_list args;

	f->status = HEALTH_OK;
	va_start(args, format);
	vsnprintf(f->found, sizeof(f->found), format, args);
	va_end(args);
}

void health_bad(struct health_finding *f, enum health_status status, const char *lost,
		const char *cure, const char *format, ...)
{
	va_list args;

	f->status = status;
	snprintf(f->lost, sizeof(f->lost), "%s", lost);
	snprintf(f->cure, sizeof(f->cure), "%s", cure);
	va_start(args, format);
	vsnprintf(f->found, sizeof(f->found), format, args);
	va_end(args);
}

int health_read_file(const char *root, const char *path, struct buf *text)
{
	char name[MAX_PATH];
	int err;

	if (snprintf(name, sizeof(name), "%s/%s", root, path) >= (int)sizeof(name))
		return -ENAMETOOLONG;
	buf_init(text, MAX_BYTES);
	err = file_read_path(name, text);
	if (err == -ENOSPC) /* its head will do */
		err = 0;
	if (!err && !buf_cstr(text))
		err = -ENOMEM;
	if (err)
		buf_fini(text);
	return err;
}

int health_read_line(const char *root, const char *path, char *line, size_t size)
{
	struct buf text;
	int err = health_read_file(root, path, &text);

	if (err)
		return err;
	snprintf(line, size, "%.*s", (int)strcspn((const char *)text.data, "\n"),
		 (const char *)text.data);
	buf_fini(&text);
	return 0;
}

int health_read_number(const char *root, const char *path, int64_t *ret_value)
{
	char line[32], *end;
	int err = health_read_line(root, path, line, sizeof(line));
	int64_t value;

	if (err)
		return err;
	errno = 0;
	value = strtoll(line, &end, 10);
	if (errno || end == line || *end)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

bool health_has_capability(const struct health_world *w, int number)
{
	static const char mark[] = "\nCapEff:\t";
	uint64_t effective = 0;
	const char *line;
	struct buf text;

	if (health_read_file(w->roots.proc, "self/status", &text))
		return false;
	line = strstr((const char *)text.data, mark);
	if (line)
		effective = strtoull(line + strlen(mark), NULL, 16);
	buf_fini(&text);
	return effective >> number & 1;
}

bool health_has_privilege(const struct health_world *w, enum privilege p)
{
	bool stands_in =
		p == PRIVILEGE_BPF || p == PRIVILEGE_PERFMON || p == PRIVILEGE_CHECKPOINT_RESTORE;

	return health_has_capability(w, privilege_number(p)) ||
	       (stands_in && health_has_capability(w, CAP_SYS_ADMIN));
}

bool health_kernel_is_before(const struct health_world *w, int major, int minor)
{
	int have_major, have_minor;
	char release[128];

	if (health_read_line(w->roots.proc, "sys/kernel/osrelease", release, sizeof(release)) ||
	    sscanf(release, "%d.%d", &have_major, &have_minor) != 2)
		return false;
	return have_major < major || (have_major == major && have_minor < minor);
}
