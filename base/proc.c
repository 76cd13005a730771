/* SPDX-License-Identifier: Apache-2.0 */
/* Facts from /proc; see proc.h. */
#include "base/proc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/parse.h"

/* A process in many groups on many CPUs has a long status. */
enum { START_FIELD = 22, MAX_STAT_BYTES = 8192, MAX_STATUS_BYTES = 1 << 20 };

int proc_stat_start_ticks(const char *text, size_t len, uint64_t *ret_ticks)
{
	const char *end = text + len, *p = memrchr(text, ')', len);

	for (int field = 2; p && field < START_FIELD; field++) {
		p = memchr(p, ' ', (size_t)(end - p));
		if (p)
			p++;
	}
	if (!p || !parse_digits(p, end, 10, ret_ticks))
		return -EBADMSG;
	return 0;
}

int proc_start_ticks(const char *proc_root, uint32_t pid, uint64_t *ret_ticks)
{
	char path[256];
	struct buf text;
	int err;

	if (snprintf(path, sizeof(path), "%s/%u/stat", proc_root, pid) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	buf_init(&text, MAX_STAT_BYTES);
	err = file_read_path(path, &text);
	if (err)
		err = -ESRCH;
	else
		err = proc_stat_start_ticks((const char *)text.data, text.len, ret_ticks);
	buf_fini(&text);
	return err;
}

int proc_is_process(const char *proc_root, uint32_t pid)
{
	static const char key[] = "\nTgid:\t";
	uint64_t tgid = 0;
	char path[256];
	const char *p;
	struct buf text;
	int err;

	snprintf(path, sizeof(path), "%s/%u/status", proc_root, pid);
	buf_init(&text, MAX_STATUS_BYTES);
	err = file_read_path(path, &text);
	p = err ? NULL : buf_cstr(&text);
	p = p ? strstr(p, key) : NULL;
	if (p)
		parse_digits(p + strlen(key), p + strlen(p), 10, &tgid);
	buf_fini(&text);
	if (tgid == 0)
		return -ESRCH;
	return tgid == pid ? 0 : -ECHILD;
}
