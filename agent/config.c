/* SPDX-License-Identifier: Apache-2.0 */
/* YAML into option tables, by libyaml's events; see config.h. */
#include "agent/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"

enum { MAX_FILE_BYTES = 64 * 1024, MAX_OPTIONS = 256 };

struct reader {
	yaml_parser_t yaml;
	const char *name; /* of the file */
	const struct option_row *rows;
	void *values;
	struct arena *memory;
	bool seen[MAX_OPTIONS];
	char *reason;
	size_t reason_size;
};

static int fail(struct reader *r, size_t line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The file's own words may hold anything, and `reason` is one line. */
static int fail(struct reader *r, size_t line, const char *format, ...)
{
	int n = snprintf(r->reason, r->reason_size, "%s:%zu: ", r->name, line + 1);
	va_list args;

	if (n < 0 || (size_t)n >= r->reason_size)
		return -EINVAL;
	va_start(args, format);
	vsnprintf(r->reason + n, r->reason_size - (size_t)n, format, args);
	va_end(args);
	for (char *c = r->reason; *c; c++) {
		if (iscntrl((unsigned char)*c))
			*c = '?';
	}
	return -EINVAL;
}

static int next_event(struct reader *r, yaml_event_t *event)
{
	if (yaml_parser_parse(&r->yaml, event))
		return 0;
	return fail(r, r->yaml.problem_mark.line, "not YAML: %s",
		    r->yaml.problem ? r->yaml.problem : "unknown fault");
}

/* Reads the next event, which must be of this type. */
static int expect(struct reader *r, yaml_event_type_t type, const char *what)
{
	yaml_event_t event;
	int err = next_event(r, &event);

	if (err)
		return err;
	if (event.type != type)
		err = fail(r, event.start_mark.line, "%s", what);
	yaml_event_delete(&event);
	return err;
}

static bool *find_seen(struct reader *r, const char *name)
{
	for (size_t i = 0; r->rows[i].name && i < MAX_OPTIONS; i++) {
		if (strcmp(r->rows[i].name, name) == 0)
			return &r->seen[i];
	}
	return NULL;
}

static bool is_null(const yaml_event_t *value)
{
	const char *text = (const char *)value->data.scalar.value;

	return value->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (!text[0] || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

static int set_value(struct reader *r, const char *name, const yaml_event_t *value)
{
	size_t len = value->data.scalar.length, line = value->start_mark.line;
	const char *text = (const char *)value->data.scalar.value;
	char why[256];
	int err;

	if (is_null(value))
		return fail(r, line, "%s has no value; leave the line out to get the default",
			    name);
	if (strlen(text) != len)
		return fail(r, line, "the value of %s holds a NUL character", name);
	text = arena_copy(r->memory, text, len);
	if (!text)
		return fail(r, line, "out of memory");
	err = options_set(r->rows, r->values, name, text, why, sizeof(why));
	return err ? fail(r, line, "%s", why) : 0;
}

/* The value that follows a key. */
static int read_value(struct reader *r, const char *name)
{
	yaml_event_t event;
	int err = next_event(r, &event);

	if (err)
		return err;
	if (event.type == YAML_SCALAR_EVENT)
		err = set_value(r, name, &event);
	else
		err = fail(r, event.start_mark.line,
			   "the value of %s is %s; one plain value is wanted", name,
			   event.type == YAML_ALIAS_EVENT            ? "an alias"
			   : event.type == YAML_SEQUENCE_START_EVENT ? "a list"
								     : "a mapping");
	yaml_event_delete(&event);
	return err;
}

static int read_pair(struct reader *r, const yaml_event_t *key)
{
	const char *name = (const char *)key->data.scalar.value;
	bool *seen;

	if (key->type != YAML_SCALAR_EVENT || strlen(name) != key->data.scalar.length)
		return fail(r, key->start_mark.line, "an option's name is wanted here");
	seen = find_seen(r, name);
	if (!seen)
		return fail(r, key->start_mark.line, "there is no option '%s'", name);
	if (*seen)
		return fail(r, key->start_mark.line, "%s is set twice", name);
	*seen = true;
	return read_value(r, name);
}

/* Pairs up to the mapping's end; the number of options bounds them. */
static int read_pairs(struct reader *r)
{
	for (;;) {
		yaml_event_t event;
		int err = next_event(r, &event);
		bool end;

		if (err)
			return err;
		end = event.type == YAML_MAPPING_END_EVENT;
		if (!end)
			err = read_pair(r, &event);
		yaml_event_delete(&event);
		if (err || end)
			return err;
	}
}

/* What a document holds: a mapping, or nothing at all. */
static int read_root(struct reader *r)
{
	yaml_event_t event;
	int err = next_event(r, &event);

	if (err)
		return err;
	if (event.type == YAML_MAPPING_START_EVENT)
		err = read_pairs(r);
	else if (event.type != YAML_SCALAR_EVENT || !is_null(&event))
		err = fail(r, event.start_mark.line, "lines 'option: value' are wanted");
	yaml_event_delete(&event);
	if (!err)
		err = expect(r, YAML_DOCUMENT_END_EVENT, "lines 'option: value' are wanted");
	return err ? err : expect(r, YAML_STREAM_END_EVENT, "a second document is not read");
}

static int read_stream(struct reader *r)
{
	yaml_event_t event;
	int err = expect(r, YAML_STREAM_START_EVENT, "not YAML");
	bool empty;

	if (err)
		return err;
	err = next_event(r, &event);
	if (err)
		return err;
	empty = event.type == YAML_STREAM_END_EVENT;
	yaml_event_delete(&event);
	return empty ? 0 : read_root(r);
}

int config_parse(const char *name, const void *bytes, size_t len, const struct option_row *rows,
		 void *values, struct arena *memory, char *reason, size_t reason_size)
{
	struct reader r = {
		.name = name,
		.rows = rows,
		.values = values,
		.memory = memory,
		.reason = reason,
		.reason_size = reason_size,
	};
	int err;

	if (len > MAX_FILE_BYTES) {
		snprintf(reason, reason_size, "%s: larger than %d KiB", name,
			 MAX_FILE_BYTES / 1024);
		return -EFBIG;
	}
	if (!yaml_parser_initialize(&r.yaml)) {
		snprintf(reason, reason_size, "%s: out of memory", name);
		return -ENOMEM;
	}
	yaml_parser_set_encoding(&r.yaml, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.yaml, bytes, len);
	err = read_stream(&r);
	yaml_parser_delete(&r.yaml);
	return err;
}

int config_load(const char *path, const struct option_row *rows, void *values, struct arena *memory,
		char *reason, size_t reason_size)
{
	struct buf text;
	int err;

	/* One byte over the bound, so that config_parse tells of larger files. */
	buf_init(&text, MAX_FILE_BYTES + 1);
	err = file_read_path(path, &text);
	if (err && err != -ENOSPC)
		snprintf(reason, reason_size, "%s: %s", path, strerror(-err));
	else
		err = config_parse(path, text.data ? (const char *)text.data : "", text.len, rows,
				   values, memory, reason, reason_size);
	buf_fini(&text);
	return err;
}

/* Texts in double quotes, so that no YAML type is guessed. */
static void write_value(const struct option_row *row, FILE *out)
{
	if (row->type != OPTION_TEXT) {
		fputs(row->fallback ? row->fallback : "no", out);
		return;
	}
	fputc('"', out);
	for (const char *c = row->fallback; *c; c++)
		fprintf(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	fputc('"', out);
}

static void write_row(const struct option_row *row, FILE *out)
{
	fprintf(out, "# %s\n", row->help);
	if (row->min != row->max && row->type == OPTION_DURATION)
		fprintf(out, "# from %.15gs to %.15gs\n", row->min / 1e9, row->max / 1e9);
	else if (row->min != row->max)
		fprintf(out, "# from %.15g to %.15g\n", row->min, row->max);
	/* Nothing to write where the default is "none". */
	if (!row->fallback && row->type != OPTION_FLAG) {
		fprintf(out, "#%s: %s\n", row->name, row->value_name);
		return;
	}
	fprintf(out, "%s: ", row->name);
	write_value(row, out);
	fputc('\n', out);
}

void config_example(const struct option_row *rows, FILE *out)
{
	const char *between = "";

	for (const struct option_row *row = rows; row->name; row++) {
		if (row->argv_only)
			continue;
		fputs(between, out);
		write_row(row, out);
		between = "\n";
	}
}
