/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde symbolize`: names for the addresses of a profile that has none or few. */
#include "cli/symbolize.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/report_private.h"

enum { REASON_BYTES = 4096, TEXT_BYTES = 64 * 1024 };

#define FIELD(name) offsetof(struct symbolize_options, name)

const struct option_row symbolize_rows[] = {
	{ "output", 'o', OPTION_TEXT, "FILE", NULL, 0, 0, FIELD(output),
	  "where the result goes; else in place of the file" },
	{ "symfs", 0, OPTION_TEXT, "DIR", NULL, 0, 0, FIELD(symfs),
	  "root below which the files are, as they were on the other machine" },
	{ "debug-dir", 0, OPTION_TEXT, "DIR", "/usr/lib/debug", 0, 0, FIELD(debug_dir),
	  "where separate debug files are" },
	{ "no-demangle", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(no_demangle),
	  "names as they stand in the symbol tables" },
	{ "quiet", 'q', OPTION_FLAG, NULL, NULL, 0, 0, FIELD(quiet), "no summary" },
	{ 0 },
};

/* Of the locations without a name. */
struct tally {
	uint64_t named, left;
	bool no_memory;
};

/* Where the kernel lay: in a comment. */
static uint64_t kernel_text(const struct profile *p)
{
	static const char key[] = AGENT_KERNEL_TEXT;

	for (size_t i = 0; i < p->comment_count; i++) {
		const char *text = profile_text(p, p->comments[i]);

		if (strncmp(text, key, sizeof(key) - 1) == 0)
			return strtoull(text + sizeof(key) - 1, NULL, 16);
	}
	return 0;
}

/* A string of the profile from the bytes of a symbol. */
static int64_t add_text(struct profile *p, const char *bytes)
{
	struct buf text;
	int64_t id;

	buf_init(&text, TEXT_BYTES);
	text_escape(&text, bytes, strlen(bytes));
	id = profile_string_n(p, (const char *)text.data, text.len);
	buf_fini(&text);
	return id;
}

static int name_location(struct profile *p, uint32_t id, const struct sym_hit *hit)
{
	int64_t name = add_text(p, hit->name), raw = add_text(p, hit->raw_name), function;
	struct profile_function f;
	struct profile_line line = { 0 };

	if (name < 0 || raw < 0)
		return -ENOMEM;
	f = (struct profile_function){ .name = (uint32_t)name, .system_name = (uint32_t)raw };
	function = profile_add_function(p, &f);
	if (function <= 0)
		return -ENOMEM;
	line.function_id = (uint32_t)function;
	return profile_name_location(p, id, &line, 1);
}

static void tell(const struct profile *p, uint32_t mapping, enum sym_reason reason, uint64_t count)
{
	const struct profile_mapping *m = &p->mappings[mapping - 1];
	const char *build_id = profile_text(p, m->build_id);

	fprintf(stderr, "  %" PRIu64 " of %s%s%s: %s\n", count, profile_text(p, m->filename),
		*build_id ? ", build-id " : "", build_id,
		reason == SYM_FILE_CHANGED ? "the file there has another build-id"
					   : sym_reason_text(reason));
}

/* Names what can be named of one mapping. */
static void name_mapping(struct profile *p, uint32_t mapping,
			 const struct symbolize_options *options, struct tally *tally)
{
	struct profile_mapping *m = &p->mappings[mapping - 1];
	uint64_t left[SYM_REASON_COUNT] = { 0 }, before = tally->left;
	struct symbolize_source source = { 0 };
	enum sym_reason opened = SYM_REASON_COUNT; /* not tried yet */

	for (uint32_t id = 1; id <= p->location_count; id++) {
		const struct profile_location *l = &p->locations[id - 1];
		enum sym_reason reason;
		struct sym_hit hit;

		if (l->mapping_id != mapping || l->line_count)
			continue;
		if (opened == SYM_REASON_COUNT)
			opened = symbolize_source_open(options, profile_text(p, m->filename),
						       profile_text(p, m->build_id), kernel_text(p),
						       &source);
		reason = opened;
		if (opened == SYM_OK)
			reason = symbolize_source_find(&source, l->address, &hit);
		if (reason == SYM_OK && name_location(p, id, &hit))
			reason = SYM_NO_MEMORY;
		if (reason == SYM_OK)
			tally->named++;
		else
			tally->left++;
		left[reason] += reason != SYM_OK;
	}
	m->has_functions = tally->left == before;
	for (int i = 0; i < SYM_REASON_COUNT && !options->quiet; i++) {
		if (left[i])
			tell(p, mapping, (enum sym_reason)i, left[i]);
	}
	symbolize_source_close(&source);
}

static int write_result(const struct profile *p, const char *path, const struct tally *tally,
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
	struct tally tally = { 0 };
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
	for (uint32_t mapping = 1; mapping <= p->mapping_count; mapping++)
		name_mapping(p, mapping, options, &tally);
	err = write_result(p, options->output ? options->output : path, &tally, options->quiet);
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
	char reason[256];

	if (err)
		return err == 1 ? 0 : 2;
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
