/* SPDX-License-Identifier: Apache-2.0 */
/* Own resource usage; see usage.h. */
#include "agent/usage.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/parse.h"

static nsec_t to_ns(struct timeval t)
{
	return (nsec_t)t.tv_sec * NSEC_PER_SEC + (nsec_t)t.tv_usec * 1000;
}

/* Second field of statm, in pages. */
static uint64_t rss(const char *proc_root)
{
	char path[256];
	struct buf text;
	uint64_t pages = 0;
	const char *p;

	snprintf(path, sizeof(path), "%s/self/statm", proc_root);
	buf_init(&text, 256);
	p = file_read_path(path, &text) ? NULL : buf_cstr(&text);
	p = p ? strchr(p, ' ') : NULL;
	if (p)
		parse_digits(p + 1, p + strlen(p), 10, &pages);
	buf_fini(&text);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t count_fds(const char *proc_root)
{
	char path[256];
	uint64_t count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/self/fd", proc_root);
	dir = opendir(path);
	if (!dir)
		return 0;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count > 3 ? count - 3 : 0; /* ".", ".." and the directory's own */
}

void usage_read(const char *proc_root, struct usage *ret_usage)
{
	struct rusage r = { 0 };

	getrusage(RUSAGE_SELF, &r);
	*ret_usage = (struct usage){
		.user_ns = to_ns(r.ru_utime),
		.system_ns = to_ns(r.ru_stime),
		.rss_bytes = rss(proc_root),
		.fds = count_fds(proc_root),
	};
}
