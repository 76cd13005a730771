/* SPDX-License-Identifier: Apache-2.0 */
/* Names of profiles, and walks over their directory; see store_files.h. */
#include "agent/store/store_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/store/durable.h"
#include "base/clock.h"

static const int64_t DAY_S = 24 * 60 * 60;
static const int64_t LAST_S = INT64_MAX / (int64_t)NSEC_PER_SEC; /* in the year 2262 */

/* A type is a short word of a-z, 0-9, - and _. */
static bool type_is_valid(const char *type)
{
	size_t len = strspn(type, "abcdefghijklmnopqrstuvwxyz0123456789_-");

	return len > 0 && len < STORE_TYPE_MAX && type[len] == 0;
}

int store_name_init(struct store_name *name, int64_t start_ns, const char *type)
{
	if (start_ns < 0 || !type_is_valid(type))
		return -EINVAL;
	*name = (struct store_name){ .start_s = start_ns / (int64_t)NSEC_PER_SEC };
	snprintf(name->type, sizeof(name->type), "%s", type);
	return 0;
}

void store_name_format(const struct store_name *name, char ret_day[STORE_DAY_MAX],
		       char ret_file[STORE_NAME_MAX])
{
	time_t seconds = (time_t)name->start_s;
	char variant[16] = "", clock[16];
	struct tm tm = { 0 };

	gmtime_r(&seconds, &tm);
	strftime(ret_day, STORE_DAY_MAX, "%Y-%m-%d", &tm);
	strftime(clock, sizeof(clock), "%H%M%S", &tm);
	if (name->variant)
		snprintf(variant, sizeof(variant), ".%u", name->variant);
	snprintf(ret_file, STORE_NAME_MAX, "%s-%s%s.pb.gz", clock, name->type, variant);
}

static bool parse_time(const char *day, const char *file, int64_t *ret_start_s)
{
	struct tm tm = { 0 };
	char text[32];
	const char *end;
	time_t seconds;

	snprintf(text, sizeof(text), "%.10s %.6s", day, file);
	end = strptime(text, "%Y-%m-%d %H%M%S", &tm);
	if (!end || *end)
		return false;
	seconds = timegm(&tm);
	if (seconds < 0 || seconds > LAST_S)
		return false;
	*ret_start_s = seconds;
	return true;
}

bool store_name_parse(const char *day, const char *file, struct store_name *ret_name)
{
	char day_again[STORE_DAY_MAX], file_again[STORE_NAME_MAX];
	struct store_name name = { 0 };

	if (strlen(day) != 10 || strlen(file) < 8 || !parse_time(day, file, &name.start_s) ||
	    sscanf(file + 6, "-%31[a-z0-9_-].%u", name.type, &name.variant) < 1)
		return false;
	store_name_format(&name, day_again, file_again);
	if (strcmp(day, day_again) != 0 || strcmp(file, file_again) != 0)
		return false;
	*ret_name = name;
	return true;
}

struct walk {
	int64_t from_s, to_s;
	bool clean;
	int (*visit)(void *context, const struct store_name *name, const struct stat *st);
	void *context;
};

static int visit_file(const struct walk *w, int dir_fd, const char *day, const char *file)
{
	struct store_name name;
	struct stat st;

	if (w->clean && durable_is_left_over(file)) {
		unlinkat(dir_fd, file, 0);
		return 0;
	}
	if (!store_name_parse(day, file, &name))
		return 0;
	/* It may have been dropped for a cap in this moment. */
	if (fstatat(dir_fd, file, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	return w->visit(w->context, &name, &st);
}

/* Calls `each` with every name in the directory: 0, its first error, or -errno. */
static int each_name(int fd, const char *day, const struct walk *w,
		     int (*each)(const struct walk *w, int dir_fd, const char *day,
				 const char *name))
{
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	int err = 0;

	if (!d) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err) {
		const struct dirent *entry;

		errno = 0;
		entry = readdir(d);
		if (!entry) {
			err = -errno;
			break;
		}
		err = each(w, dirfd(d), day, entry->d_name);
	}
	closedir(d);
	return err;
}

static int visit_day(const struct walk *w, int dir_fd, const char *unused, const char *day)
{
	int64_t start_s;
	int err;

	if (strlen(day) != 10 || !parse_time(day, "000000", &start_s) ||
	    start_s + DAY_S <= w->from_s || start_s > w->to_s)
		return 0;
	err = each_name(openat(dir_fd, day, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), day,
			w, visit_file);
	return err == -ENOENT || err == -ENOTDIR ? 0 : err;
}

int store_walk(const char *profiles_dir, int64_t from_s, int64_t to_s, bool clean,
	       int (*visit)(void *context, const struct store_name *name, const struct stat *st),
	       void *context)
{
	struct walk w = { from_s, to_s, clean, visit, context };

	return each_name(open(profiles_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), NULL, &w,
			 visit_day);
}
