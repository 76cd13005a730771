/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening the files in which JITs describe their code, below the root of their own process, and
 * trusting them no further than needed: the process chooses what lies there, and may change it
 * while it is read. Private to symbolizer/.
 */
#ifndef SYMBOLIZER_JIT_OPEN_H
#define SYMBOLIZER_JIT_OPEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* A file as it was at some moment. */
struct jit_file_state {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime;
};

/* What a file holds before some offset, as far as it is checked later: its head and the end. */
struct jit_guard {
	uint64_t off;
	uint64_t head, tail; /* hashes */
};

/*
 * Opens `path` below the root of the process whose directory in /proc is `proc_fd`, for reading:
 * an fd, -ENOENT, -EPERM if it is no regular file or not owned by `uid` or root or is a
 * symbolic link, or another -errno.
 */
int jit_open(int proc_fd, const char *path, uid_t uid, struct jit_file_state *ret_state);

/* The same for the file that is mapped at `range` ("START-END" as in maps); needs privileges. */
int jit_open_mapped(int proc_fd, const char *range, uid_t uid, struct jit_file_state *ret_state);

/* The state of a path without opening it for reading: 0 or -errno. */
int jit_look(int proc_fd, const char *path, struct jit_file_state *ret_state);

int jit_state_of(int fd, struct jit_file_state *ret_state);
bool jit_same_file(const struct jit_file_state *a, const struct jit_file_state *b);
bool jit_same_state(const struct jit_file_state *a, const struct jit_file_state *b);

/*
 * CLOCK_MONOTONIC of the last change, by the file's own word: never in the future, and a little
 * late rather than early, since file systems keep time in ticks.
 */
uint64_t jit_changed_ns(const struct jit_file_state *state);

/* Notes what lies before `off`: 0 or -errno. */
int jit_guard_take(int fd, uint64_t off, struct jit_guard *ret_guard);

/* Whether the file still begins as it did: it has only grown. */
bool jit_guard_holds(int fd, const struct jit_guard *guard);

#endif
