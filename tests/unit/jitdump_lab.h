/* SPDX-License-Identifier: Apache-2.0 */
/* Writing jitdumps into memory, record by record. */
#ifndef TESTS_UNIT_JITDUMP_LAB_H
#define TESTS_UNIT_JITDUMP_LAB_H

#include "base/buf.h"

enum { PID = 5, HEADER = 40, LOAD = 56, MOVE = 64 };

static struct buf file;

static inline void put32(uint32_t n)
{
	buf_put(&file, &n, sizeof(n));
}

static inline void put64(uint64_t n)
{
	buf_put(&file, &n, sizeof(n));
}

static inline void prefix(uint32_t id, size_t size, uint64_t time)
{
	put32(id);
	put32((uint32_t)size);
	put64(time);
}

static inline void begin_as(uint32_t pid, uint64_t flags)
{
	buf_fini(&file);
	buf_init(&file, 1 << 20);
	put32(0x4a695444);
	put32(1);
	put32(HEADER);
	put32(62);
	put32(0);
	put32(pid);
	put64(1000);
	put64(flags);
}

static inline void begin(void)
{
	begin_as(PID, 0);
}

static inline void put_load(uint64_t time, uint64_t addr, uint64_t size, const char *name)
{
	prefix(0, LOAD + strlen(name) + 1 + size, time);
	put32(PID);
	put32(PID);
	put64(addr);
	put64(addr);
	put64(size);
	put64(1);
	buf_put(&file, name, strlen(name) + 1);
	for (uint64_t i = 0; i < size; i++)
		buf_put_byte(&file, 0xcc);
}

static inline void put_move(uint64_t time, uint64_t from, uint64_t to, uint64_t size)
{
	prefix(1, MOVE, time);
	put32(PID);
	put32(PID);
	put64(to);
	put64(from);
	put64(to);
	put64(size);
	put64(1);
}

static inline void put_close(uint64_t time)
{
	prefix(3, 16, time);
}

#endif
