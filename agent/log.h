/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's log, on standard error. ERROR: we stop. WARN: degraded, and what is lost. INFO: a
 * few lines at start, stop and each change of state. DEBUG: free. Only agent/ logs.
 *
 * Under systemd (JOURNAL_STREAM is set) lines carry the level as "<3>" and no time. Each call site
 * writes at most LOG_BURST lines in LOG_INTERVAL; what is left out is said with the next
 * line that passes. Text is made clean (base/text.h).
 */
#ifndef AGENT_LOG_H
#define AGENT_LOG_H

#include <stdint.h>

#include "base/clock.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

enum { LOG_BURST = 5, LOG_INTERVAL_SECONDS = 60 };

struct log_site {
	nsec_t since;
	uint32_t written, suppressed;
};

void log_set_level(enum log_level level);

/* "error", "warn", "info", "debug": 0 or -EINVAL. */
int log_parse_level(const char *name, enum log_level *ret_level);

void log_write(struct log_site *site, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define LOG_AT(level, ...) \
	do { \
		static struct log_site log_site_; \
		log_write(&log_site_, level, __VA_ARGS__); \
	} while (0)

#define log_error(...) LOG_AT(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) LOG_AT(LOG_WARN, __VA_ARGS__)
#define log_info(...) LOG_AT(LOG_INFO, __VA_ARGS__)
#define log_debug(...) LOG_AT(LOG_DEBUG, __VA_ARGS__)

#endif
