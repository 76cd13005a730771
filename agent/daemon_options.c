/* SPDX-License-Identifier: Apache-2.0 */
/* Options that are loaded again while the agent runs: which of them count at once. */
#include <stdio.h>
#include <string.h>

#include "agent/daemon_private.h"

enum kind { TEXT, NUMBER, FLAG };

/* What parts of the agent took over when they were opened: it stays as it was. */
static const struct fixed_option {
	const char *name;
	enum kind kind;
	size_t offset;
} fixed[] = {
#define FIELD(name) offsetof(struct daemon_options, name)
	{ "dir", TEXT, FIELD(dir) },
	{ "listen", TEXT, FIELD(listen) },
	{ "debug-dir", TEXT, FIELD(debug_dir) },
	{ "symfs", TEXT, FIELD(symfs) },
	{ "collect", NUMBER, FIELD(collect_ns) },
	{ "window", NUMBER, FIELD(window_ns) },
	{ "unwind-tables", NUMBER, FIELD(unwind_mib) },
	{ "sched-threads", NUMBER, FIELD(sched_threads) },
	{ "sched-groups", NUMBER, FIELD(sched_groups) },
	{ "cpu-clock", FLAG, FIELD(cpu_clock) },
	{ "idle", FLAG, FIELD(idle) },
	{ "thread-names", FLAG, FIELD(thread_names) },
	{ "no-demangle", FLAG, FIELD(no_demangle) },
	{ "no-symbols", FLAG, FIELD(no_symbols) },
#undef FIELD
};

/* Copies the field; false if it is as it was. */
static bool keep_field(const struct fixed_option *o, const void *from, void *to)
{
	static const size_t sizes[] = {
		[TEXT] = sizeof(char *), [NUMBER] = sizeof(uint64_t), [FLAG] = sizeof(bool)
	};
	const char *old = (const char *)from + o->offset;
	char *new = (char *)to + o->offset;
	bool differs = o->kind == TEXT
			       ? strcmp(*(const char *const *)old, *(const char *const *)new) != 0
			       : memcmp(old, new, sizes[o->kind]) != 0;

	memcpy(new, old, sizes[o->kind]);
	return differs;
}

void daemon_options_renew(struct daemon_options *options, const struct daemon_options *fresh,
			  char *kept, size_t size)
{
	struct daemon_options next = *fresh;
	size_t len = 0;

	kept[0] = 0;
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		if (keep_field(&fixed[i], options, &next) && len < size)
			len += (size_t)snprintf(kept + len, size - len, "%s%s", len ? ", " : "",
						fixed[i].name);
	}
	*options = next;
}
