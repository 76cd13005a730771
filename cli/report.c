/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde report`: load a profile, choose what to show, print. See report.h. */
#include "cli/report.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/kernel_copy.h"
#include "cli/report_private.h"
#include "cli/report_store.h"
#include "cli/symbolize.h"
#include "proto/compress.h"
#include "proto/folded.h"
#include "proto/pprof.h"

/* Bounds on what one file may make us use; far over real profiles, far under a bomb. */
static const size_t MAX_FILE = 1UL << 30;
static const size_t MAX_PLAIN = 2UL << 30;
static const size_t MAX_PROFILE = 8UL << 30;
static const size_t MAX_TEXT = 8UL << 30;

enum { MAX_REASON = 4096 };

/* Writes the cause of a failure; returns `err`. */
static int explain(struct buf *reason, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int explain(struct buf *reason, int err, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	buf_put_str(reason, text);
	return err;
}

static int read_file(const char *path, struct buf *out, struct buf *reason)
{
	int err = strcmp(path, "-") == 0 ? file_read_all(STDIN_FILENO, out) :
					   file_read_path(path, out);

	if (err == -ENOSPC)
		return explain(reason, err, "larger than %zu MiB", MAX_FILE >> 20);
	if (err)
		return explain(reason, err, "%s", strerror(-err));
	if (out->len == 0)
		return explain(reason, -EBADMSG, "the file is empty");
	return 0;
}

static int unpack(const struct buf *file, struct buf *out, struct buf *reason)
{
	static const char *const names[] = { "plain", "gzip", "zstd" };
	enum compress_kind kind = compress_detect(file->data, file->len);
	int err = decompress(kind, file->data, file->len, out);

	if (err == -EBADMSG)
		return explain(reason, err, "damaged or cut %s data, or bytes that follow it",
			       names[kind]);
	if (err == -ENOSPC)
		return explain(reason, err, "unpacks to more than %zu MiB", MAX_PLAIN >> 20);
	if (err)
		return explain(reason, err, "%s", strerror(-err));
	return 0;
}

int report_load_file(const char *path, struct profile **ret_profile, struct buf *reason)
{
	char why[256];
	struct buf file, plain;
	int err;

	buf_init(&file, MAX_FILE);
	buf_init(&plain, MAX_PLAIN);
	err = read_file(path, &file, reason);
	if (!err)
		err = unpack(&file, &plain, reason);
	buf_fini(&file);
	if (!err) {
		err = pprof_read(plain.data, plain.len, MAX_PROFILE, ret_profile, why, sizeof(why));
		if (err)
			buf_put_str(reason, why);
	}
	buf_fini(&plain);
	return err;
}

/* A directory is a store of windows; a file is one profile, whole. */
static int load(const struct report_options *options, struct profile **ret_profile,
		struct buf *reason, FILE *warnings)
{
	struct stat st;

	if (stat(options->path, &st) == 0 && S_ISDIR(st.st_mode))
		return report_store_load(options, (int64_t)clock_realtime(), ret_profile, reason,
					 warnings);
	if (options->since || options->until || options->type)
		return explain(reason, -EINVAL,
			       "--since, --until and --type choose from a store directory, and "
			       "this is none");
	return report_load_file(options->path, ret_profile, reason);
}

static int add_names(struct profile *p)
{
	char cache_dir[PATH_MAX];
	const struct symbolize_options options = { .debug_dir = "/usr/lib/debug",
						   .cache_dir = cache_dir,
						   .quiet = true,
						   .starts = true };
	struct symbolize_tally tally;

	kernel_copy_default_dir(cache_dir, sizeof(cache_dir));
	return symbolize_profile(p, &options, &tally);
}

static int find_type(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->type_count; i++) {
		if (strcmp(profile_text(p, p->types[i].type), name) == 0)
			return (int)i;
	}
	return REPORT_NO_TYPE;
}

static int choose_type(struct report *r, struct buf *reason)
{
	const struct profile *p = r->p;
	const char *wanted = r->options->sample_type;
	int type;

	if (p->type_count == 0)
		return explain(reason, -EINVAL, "no sample types, so nothing was measured");
	r->samples_type = find_type(p, "samples");
	type = find_type(p, wanted ? wanted : profile_text(p, p->default_type));
	if (type != REPORT_NO_TYPE) {
		r->type = (size_t)type;
		return 0;
	}
	r->type = p->type_count - 1;
	if (!wanted)
		return 0;
	buf_put_str(reason, "no sample type '");
	text_escape(reason, wanted, strlen(wanted));
	buf_put_str(reason, "'; the file has");
	for (size_t i = 0; i < p->type_count; i++)
		buf_printf(reason, "%s %s", i ? "," : "", profile_text(p, p->types[i].type));
	return -EINVAL;
}

static int check_options(const struct report_options *o, struct buf *reason)
{
	if (o->call_graph && strcmp(o->call_graph, "caller") != 0 &&
	    strcmp(o->call_graph, "callee") != 0)
		return explain(reason, -EINVAL, "call trees are 'caller' or 'callee'");
	return 0;
}

/* Samples that a filter refuses get the value 0, which folded text leaves out. */
static int print_folded(struct report *r, struct buf *out)
{
	for (size_t i = 0; i < r->p->sample_count; i++) {
		struct profile_sample *sample = &r->p->samples[i];
		uint32_t leaf = sample->location_count ? r->first_frame[sample->locations[0] - 1] : 0;
		int64_t group = report_group_find(r, sample);

		if (group < 0)
			return -ENOMEM;
		if (!group || !r->frame_class[leaf])
			sample->values[r->type] = 0;
	}
	return folded_write(r->p, r->type, buf_sink(out));
}

static int make_text(struct report *r, struct buf *out, struct buf *reason)
{
	int err = check_options(r->options, reason);

	if (!err)
		err = choose_type(r, reason);
	if (!err)
		err = report_frames_build(r);
	if (!err)
		err = report_keys_parse(r, reason);
	if (!err)
		err = report_groups_init(r);
	if (err)
		return err;
	if (r->options->folded)
		return print_folded(r, out);
	err = report_rows_build(r);
	if (err)
		return err;
	if (!r->options->no_header)
		report_print_header(r, out);
	report_print_table(r, out);
	return buf_error(out);
}

static void report_fini(struct report *r)
{
	report_trees_free(r->trees);
	report_groups_fini(r);
	if (r->row_index.key_size)
		map_fini(&r->row_index);
	free(r->rows);
	free(r->frames);
	free(r->first_frame);
	buf_fini(&r->chain);
	strtab_fini(&r->texts);
	profile_free(r->p);
}

static int report_text_of_file(const struct report_options *options, struct buf *out,
			       struct buf *reason, FILE *warnings)
{
	struct report r = { .options = options };
	int err;

	buf_init(&r.chain, MAX_TEXT);
	err = strtab_init(&r.texts, MAX_TEXT);
	if (!err)
		err = load(options, &r.p, reason, warnings);
	if (!err && options->symbolize)
		err = add_names(r.p);
	if (!err)
		err = make_text(&r, out, reason);
	report_fini(&r);
	return err;
}

static void print_error(const char *path, struct buf *reason, int err, FILE *to)
{
	struct buf line;

	buf_init(&line, 4 * MAX_REASON + 4 * strlen(path));
	text_escape(&line, path, strlen(path));
	if (reason->len == 0)
		buf_put_str(reason, strerror(-err));
	fprintf(to, "sonde report: %s: %s; no report is made\n",
		buf_cstr(&line) ? (const char *)line.data : "",
		buf_cstr(reason) ? (const char *)reason->data : "out of memory");
	buf_fini(&line);
}

int report_run(const struct report_options *options, FILE *out, FILE *err)
{
	struct buf text, reason;
	int status;

	buf_init(&text, MAX_TEXT);
	buf_init(&reason, MAX_REASON);
	status = report_text_of_file(options, &text, &reason, err);
	if (status) {
		print_error(options->path, &reason, status, err);
	} else if (fwrite(text.data, 1, text.len, out) != text.len || fflush(out) != 0) {
		status = -errno;
		fprintf(err, "sonde report: writing the report: %s; it is not complete\n",
			strerror(errno));
	}
	buf_fini(&text);
	buf_fini(&reason);
	return status ? 1 : 0;
}
