/* SPDX-License-Identifier: Apache-2.0 */
/* libdw's unwinder over captured stacks. */
#ifndef TESTS_ORACLE_DWARF_H
#define TESTS_ORACLE_DWARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DWARF_MAX_FRAMES = 256, DWARF_REGS = 17 };

struct dwarf_frame {
	uint64_t pc;
	bool is_exact; /* not a return address */
};

struct dwarf_space;

/* An address space from the text of a /proc/PID/maps; the vDSO's line must name a file. */
struct dwarf_space *dwarf_space_new(char *maps);
void dwarf_space_free(struct dwarf_space *space);

/* Number of frames. */
size_t dwarf_stack(struct dwarf_space *space, const uint64_t regs[DWARF_REGS], const void *stack,
		   size_t size, struct dwarf_frame frames[DWARF_MAX_FRAMES]);

/* "module function+0x12" of an address. */
void dwarf_describe(struct dwarf_space *space, uint64_t addr, char *to, size_t size);

#endif
