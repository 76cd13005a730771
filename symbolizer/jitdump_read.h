/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a jitdump file, checked and decoded; private to jitdump.c. */
#ifndef SYMBOLIZER_JITDUMP_READ_H
#define SYMBOLIZER_JITDUMP_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/jitdump_window.h"

enum jitdump_kind { JITDUMP_LOAD, JITDUMP_MOVE, JITDUMP_CLOSE, JITDUMP_OTHER, JITDUMP_BAD };

struct jitdump_header {
	uint32_t size; /* of the header: where the records begin */
	uint32_t pid;
	uint64_t time_ns;
	bool has_arch_time; /* time stamps are of some CPU counter, not CLOCK_MONOTONIC */
};

/* The strings are good until the window moves. */
struct jitdump_record {
	enum jitdump_kind kind;
	uint64_t time_ns;
	uint64_t addr, size;
	uint64_t old_addr; /* JITDUMP_MOVE */
	const char *name;  /* JITDUMP_LOAD; not NUL-ended */
	size_t name_len;   /* at most JITDUMP_NAME_MAX */
	uint64_t next;     /* offset of the next record */
};

enum { JITDUMP_NAME_MAX = 1024 };

/* 0, or -EBADMSG: another format, version or byte order. */
int jitdump_read_header(struct jitdump_window *w, struct jitdump_header *ret_header);

/*
 * The record at `off`: 0, -EAGAIN if its end is not written yet, or -EBADMSG if its size is
 * wrong, so that nothing behind it can be found. A record of wrong content is JITDUMP_BAD.
 */
int jitdump_read_record(struct jitdump_window *w, uint64_t off, struct jitdump_record *ret_record);

#endif
