/* SPDX-License-Identifier: Apache-2.0 */
/* The file of captured stacks: records of a type and a size, in native byte order. */
#ifndef TESTS_ORACLE_CAPTURE_H
#define TESTS_ORACLE_CAPTURE_H

#include <stdint.h>

#define CAPTURE_MAGIC 0x31706b7473646e73ULL

enum capture_type {
	CAPTURE_MAPS = 1, /* struct capture_maps, then the text of /proc/PID/maps */
	CAPTURE_SAMPLE,   /* struct capture_sample, then stack_size bytes from regs[7] on */
	CAPTURE_VDSO,     /* the image of the vDSO */
};

struct capture_head {
	uint32_t type;
	uint32_t size; /* of what follows */
};

/* The mappings of the process whose samples follow, until the next of the same process. */
struct capture_maps {
	uint32_t tgid;
	uint32_t pad;
};

enum { CAPTURE_REGS = 17 }; /* as DWARF numbers them; the last is rip */

struct capture_sample {
	uint32_t tgid, tid;
	uint64_t in_kernel; /* the sample interrupted the kernel: registers are those of its entry */
	uint64_t regs[CAPTURE_REGS];
	uint32_t stack_size;
	uint32_t pad;
};

/*
 * perf copies from rsp on, but rules may name what lies below: registers that were popped. The
 * bytes there read as 0 for all unwinders.
 */
enum { RED_ZONE = 128 };

#endif
