/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the thread that reads target files (reader.h) does with one of them: jobs, results and the
 * work between. Nothing here waits for anything but the file.
 */
#ifndef AGENT_RESOLVE_READ_PARTS_H
#define AGENT_RESOLVE_READ_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/resolve/target_file.h"
#include "symbolizer/symbolizer.h"
#include "symbolizer/unwind.h"

enum read_part { READ_TABLE, READ_SYMBOLS, READ_JIT, READ_PARTS };

/* One file of which parts are wanted, or, with `jit`, one process. */
struct read_job {
	uint64_t id; /* of the file or process, for the results */
	int fd;      /* the file, or the process's directory in /proc */
	struct target_identity identity;
	char root[TARGET_ROOT_BYTES]; /* of the process: debug files may be there; "": unknown */
	bool wants_table, wants_symbols;
	struct sym_jit *jit; /* to be refreshed; nobody else touches it meanwhile */
	uint64_t from_ns;    /* see sym_jit_refresh */
};

/* 0, -ESTALE (it changed), -EAGAIN (queue full), -ECANCELED (see reader_set_symbols), -errno. */
struct read_result {
	uint64_t id;
	enum read_part part;
	int err;
	struct unwind_table *table; /* the fetcher's; NULL: none */
	struct sym_file *symbols;
	struct sym_jit *jit; /* that of the job */
};

struct read_result read_part(const struct sym_file_options *options, const struct read_job *job,
			     enum read_part part);

void read_result_drop(struct read_result *result);

/* Bytes that were not there before the job. */
size_t read_result_bytes(const struct read_result *result);

#endif
