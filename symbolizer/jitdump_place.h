/* SPDX-License-Identifier: Apache-2.0 */
/* Where a process has its jitdump; private to jitdump.c. */
#ifndef SYMBOLIZER_JITDUMP_PLACE_H
#define SYMBOLIZER_JITDUMP_PLACE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbolizer/jit_open.h"

enum { JITDUMP_RANGE_SIZE = 40, JITDUMP_PATH_SIZE = 4096 };

struct jitdump_place {
	char range[JITDUMP_RANGE_SIZE]; /* "START-END", as in maps and map_files */
	char path[JITDUMP_PATH_SIZE];   /* in the process's own root; "" if it is deleted */
};

/* The mapping of jit-<ns_pid>.dump: 0, -ENOENT if there is none, or another -errno. */
int jitdump_place_find(int proc_fd, uint32_t ns_pid, struct jitdump_place *ret_place);

/* The same in the text of a maps file. */
int jitdump_place_parse(const char *maps, size_t len, uint32_t ns_pid,
			struct jitdump_place *ret_place);

/* Opens it by the mapping, else by the path; as jit_open. */
int jitdump_place_open(const struct jitdump_place *place, int proc_fd, uid_t uid,
		       struct jit_file_state *ret_state);

#endif
