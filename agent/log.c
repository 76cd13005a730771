/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's log; see log.h. Its state is the one global of the program that changes. */
#include "agent/log.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/text.h"

enum { MESSAGE_BYTES = 2048, LINE_BYTES = 5 * MESSAGE_BYTES };

static const struct {
	const char *name, *shown;
	int syslog_priority;
} levels[] = {
	[LOG_ERROR] = { "error", "ERROR", 3 },
	[LOG_WARN] = { "warn", "WARN", 4 },
	[LOG_INFO] = { "info", "INFO", 6 },
	[LOG_DEBUG] = { "debug", "DEBUG", 7 },
};

enum { LEVEL_COUNT = sizeof(levels) / sizeof(levels[0]) };

/* Guards the sites and the order of lines. */
static pthread_mutex_t sink = PTHREAD_MUTEX_INITIALIZER;
static enum log_level threshold = LOG_INFO;

void log_set_level(enum log_level level)
{
	threshold = level;
}

int log_parse_level(const char *name, enum log_level *ret_level)
{
	for (int i = 0; i < LEVEL_COUNT; i++) {
		if (strcmp(name, levels[i].name) == 0) {
			*ret_level = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

/*
 * Whether standard error is the journal. The variable alone does not tell: children of a
 * service inherit it and may write elsewhere, so it names the device and inode.
 */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uintmax_t device, inode;
	struct stat st;

	if (!stream || sscanf(stream, "%ju:%ju", &device, &inode) != 2 || fstat(STDERR_FILENO, &st))
		return false;
	return st.st_dev == device && st.st_ino == inode;
}

static void put_head(struct buf *line, enum log_level level)
{
	nsec_t now = clock_realtime();
	time_t seconds = (time_t)(now / NSEC_PER_SEC);
	struct tm utc;
	char text[32];

	if (is_journal()) {
		buf_printf(line, "<%d>", levels[level].syslog_priority);
		return;
	}
	gmtime_r(&seconds, &utc);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
	buf_printf(line, "%s.%03uZ %-5s ", text, (unsigned)(now % NSEC_PER_SEC / 1000000),
		   levels[level].shown);
}

/* Whether one more line may pass; *ret_left_out is how many did not before it. */
static bool admit(struct log_site *site, uint32_t *ret_left_out)
{
	nsec_t now = clock_monotonic();

	if (!site->since || now - site->since >= LOG_INTERVAL_SECONDS * NSEC_PER_SEC) {
		site->since = now;
		site->written = 0;
	}
	if (site->written >= LOG_BURST) {
		site->suppressed++;
		return false;
	}
	site->written++;
	*ret_left_out = site->suppressed;
	site->suppressed = 0;
	return true;
}

static void write_line(enum log_level level, const char *message, uint32_t left_out)
{
	struct buf line;

	buf_init(&line, LINE_BYTES);
	put_head(&line, level);
	text_escape(&line, message, strlen(message));
	if (left_out)
		buf_printf(&line, " (%" PRIu32 " more like this were left out before)", left_out);
	buf_put_byte(&line, '\n');
	/* One write: lines of several writers do not mix. Nobody is left to tell if it fails. */
	if (!buf_error(&line))
		file_write_all(STDERR_FILENO, line.data, line.len);
	buf_fini(&line);
}

void log_write(struct log_site *site, enum log_level level, const char *format, ...)
{
	char message[MESSAGE_BYTES];
	uint32_t left_out = 0;
	va_list args;

	if (level > threshold)
		return;
	pthread_mutex_lock(&sink);
	if (admit(site, &left_out)) {
		va_start(args, format);
		vsnprintf(message, sizeof(message), format, args);
		va_end(args);
		write_line(level, message, left_out);
	}
	pthread_mutex_unlock(&sink);
}
