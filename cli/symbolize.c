/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde symbolize`: names for the addresses of a profile that has none or few. */
#include "cli/symbolize.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/kernel_copy.h"
#include "cli/output.h"
#include "cli/report_private.h"

enum { REASON_BYTES = 4096 };

#define FIELD(name) offsetof(struct symbolize_options, name)

const struct option_row symbolize_rows[] = {
	{ "output", 'o', OPTION_TEXT, "FILE", NULL, 0, 0, FIELD(output),
	  "where the result goes; else in place of the file" },
	{ "symfs", 0, OPTION_TEXT, "DIR", NULL, 0, 0, FIELD(symfs),
	  "root below which the files are, as they were on the other machine" },
	{ "debug-dir", 0, OPTION_TEXT, "DIR", "/usr/lib/debug", 0, 0, FIELD(debug_dir),
	  "where separate debug files are" },
	{ "cache-dir", 0, OPTION_TEXT, "DIR", NULL, 0, 0, FIELD(cache_dir),
	  "where the kernel's symbols are kept by build-id; '': nowhere (default: ~/.cache/sonde)" },
	{ "no-demangle", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(no_demangle),
	  "names as they stand in the symbol tables" },
	{ "quiet", 'q', OPTION_FLAG, NULL, NULL, 0, 0, FIELD(quiet), "no summary" },
	{ 0 },
};

static int write_result(const struct profile *p, const char *path, const struct symbolize_tally *tally,
			bool quiet)
{
	struct output output = { .fd = -1 };
	uint64_t bytes;
	int err = output_open(path, &output);

	if (!err)
		err = output_write(&output, p, &bytes);
	output_close(&output);
	if (err) {
		fprintf(stderr, "sonde symbolize: %s: %s; nothing is written\n", path,
			strerror(-err));
		return 1;
	}
	if (!quiet)
		fprintf(stderr, "%" PRIu64 " addresses named, %" PRIu64 " not -> %s\n",
			tally->named, tally->left, path);
	return tally->named || !tally->left ? 0 : 1;
}

static int symbolize(const char *path, const struct symbolize_options *options)
{
	struct symbolize_tally tally;
	struct profile *p;
	struct buf reason;
	int err;

	buf_init(&reason, REASON_BYTES);
	err = report_load_file(path, &p, &reason);
	if (err) {
		fprintf(stderr, "sonde symbolize: %s: %s; nothing is written\n", path,
			buf_cstr(&reason));
		buf_fini(&reason);
		return 1;
	}
	buf_fini(&reason);
	err = symbolize_profile(p, options, &tally);
	if (err)
		fprintf(stderr, "sonde symbolize: %s: %s; nothing is written\n", path,
			strerror(-err));
	err = err ? 1 : write_result(p, options->output ? options->output : path, &tally,
				     options->quiet);
	profile_free(p);
	return err;
}

static int mistake(const char *what, const char *how)
{
	fprintf(stderr, "sonde symbolize: %s%s\n", what, how);
	return 2;
}

int symbolize_main(int argc, char **argv)
{
	struct symbolize_options options = { 0 };
	int rest, end, err = command_options("symbolize", argc, argv, &options, &rest);
	const char *path, *out;
	char reason[256], cache_dir[PATH_MAX];

	if (err)
		return err == 1 ? 0 : 2;
	kernel_copy_default_dir(cache_dir, sizeof(cache_dir));
	if (!options.cache_dir)
		options.cache_dir = cache_dir;
	if (options.symfs && !options.symfs[0])
		options.symfs = NULL; /* as with record: none */
	if (rest == argc)
		return mistake("which file? ", "see sonde symbolize --help");
	path = argv[rest];
	err = options_more(symbolize_rows, argc - rest, argv + rest, &options, &end, reason,
			   sizeof(reason));
	if (err)
		return mistake(reason, "");
	if (rest + end < argc)
		return mistake(argv[rest + end], ": one file at a time");
	out = options.output ? options.output : path;
	if (!output_knows(out) || (strcmp(out, "-") == 0 && !options.output))
		return mistake(out, " ends in none of .pb.gz, .pb.zst, .pb, .folded: give -o FILE");
	return symbolize(path, &options);
}
