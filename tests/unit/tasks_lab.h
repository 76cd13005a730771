/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of agent/resolve/tasks: process records, and a /proc of the test's own. */
#ifndef TESTS_UNIT_TASKS_LAB_H
#define TESTS_UNIT_TASKS_LAB_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/resolve/tasks.h"

enum {
	TGID = 100,
	TID = 105,
	NS_TGID = 7,
	TICKS = 5000,
	ID = 11,
	ID_AFTER_EXEC = 12,
	ADDR = 0x1010
};

static char root[] = "/tmp/sonde-tasks-XXXXXX";
static struct task_tables tables;
static struct reader *reader;

static inline void make_dirs(const char *path)
{
	char part[256];

	for (size_t i = 1; i <= strlen(path); i++) {
		if (path[i] != '/' && path[i] != 0)
			continue;
		memcpy(part, path, i);
		part[i] = 0;
		mkdir(part, 0755);
	}
}

static inline void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static inline void write_stat(uint32_t pid, uint64_t ticks)
{
	char path[256], text[256];

	snprintf(path, sizeof(path), "%s/%u", root, pid);
	make_dirs(path);
	snprintf(path, sizeof(path), "%s/%u/stat", root, pid);
	snprintf(text, sizeof(text),
		 "%u (x) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 %lu 2 3\n", pid, ticks);
	write_text(path, text);
}

static inline void write_map(uint32_t pid, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%u/root/tmp", root, pid);
	make_dirs(path);
	snprintf(path, sizeof(path), "%s/%u/root/tmp/perf-%u.map", root, pid, NS_TGID);
	write_text(path, text);
}

static inline int setup(void **state)
{
	strcpy(root + sizeof(root) - 7, "XXXXXX");
	if (!mkdtemp(root))
		return -1;
	if (reader_new(&(struct sym_file_options){ 0 }, &reader))
		return -1;
	task_tables_init(&tables, root, false, reader);
	return 0;
}

static inline int teardown(void **state)
{
	char command[128];

	task_tables_fini(&tables);
	reader_free(reader);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static inline void put_process(uint64_t id, const char *comm, uint32_t now)
{
	struct sonde_process record = { .tgid = TGID,
					.tid = TID,
					.ns_tgid = NS_TGID,
					.euid = geteuid(),
					.start_ns = TICKS * SONDE_NS_PER_TICK + 123 };
	struct event event = { .type = SONDE_RECORD_PROCESS, .id = id, .process = &record };
	size_t len = strlen(comm);

	memcpy(record.comm, comm, len < sizeof(record.comm) ? len : sizeof(record.comm));
	assert_int_equal(task_tables_event(&tables, &event, now), 0);
}

static inline struct known_process *process(uint64_t id, uint32_t now)
{
	struct known_process *p = known_get(&tables.processes, id, now);

	assert_non_null(p);
	return p;
}

#endif
