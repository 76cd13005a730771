/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a file, one by one; see read_parts.h. */
#include "agent/resolve/read_parts.h"

#include <limits.h>

static int read_table(const struct sym_file_options *options, const struct read_job *job,
		      struct read_result *result)
{
	const struct unwind_options unwind = { .debug_dir = options->debug_dir };

	return unwind_table_build(job->fd, &unwind, &result->table);
}

static int read_symbols(const struct sym_file_options *options, const struct read_job *job,
			struct read_result *result)
{
	struct sym_file_options of_file = *options;
	char path[PATH_MAX];

	of_file.path = target_file_path(job->fd, path);
	of_file.root = job->root[0] ? job->root : NULL;
	return sym_file_load(job->fd, &of_file, &result->symbols);
}

/* Its files are verified in there: they may grow while they are read, and be no worse for it. */
static int read_jit(const struct sym_file_options *options, const struct read_job *job,
		    struct read_result *result)
{
	result->jit = job->jit;
	sym_jit_refresh(job->jit, job->fd, job->from_ns);
	return 0;
}

struct read_result read_part(const struct sym_file_options *options, const struct read_job *job,
			     enum read_part part)
{
	static int (*const read[])(const struct sym_file_options *, const struct read_job *,
				   struct read_result *) = {
		[READ_TABLE] = read_table,
		[READ_SYMBOLS] = read_symbols,
		[READ_JIT] = read_jit,
	};
	struct read_result result = { .id = job->id, .part = part };
	int err;

	result.err = read[part](options, job, &result);
	err = part == READ_JIT ? 0 : target_file_verify(job->fd, &job->identity);
	if (err) {
		read_result_drop(&result);
		result.err = err;
	}
	return result;
}

void read_result_drop(struct read_result *result)
{
	unwind_table_free(result->table);
	sym_file_free(result->symbols);
	sym_jit_free(result->jit);
	result->table = NULL;
	result->symbols = NULL;
	result->jit = NULL;
}

size_t read_result_bytes(const struct read_result *result)
{
	return (result->table ? result->table->bytes : 0) +
	       (result->symbols ? sym_file_bytes(result->symbols) : 0);
}
