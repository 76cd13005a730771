/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables; see options.h. */
#include "agent/options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

enum { LEAST_COLUMN = 30, MAX_NAME = 64 };

struct parser {
	const struct option_row *rows;
	char *values;
	const char *dashes; /* what stands before a name in messages */
	char *reason;
	size_t reason_size;
};

static int fail(const struct parser *p, const char *format, const char *what, const char *value)
{
	snprintf(p->reason, p->reason_size, format, what, value);
	return -EINVAL;
}

static int fail_value(const struct parser *p, const struct option_row *row, const char *text,
		      const char *what)
{
	snprintf(p->reason, p->reason_size, "%s%s: '%s' is %s", p->dashes, row->name, text, what);
	return -EINVAL;
}

static int check_bounds(const struct parser *p, const struct option_row *row, double value,
			const char *text)
{
	bool is_time = row->type == OPTION_DURATION;
	double scale = is_time ? 1e9 : 1;
	const char *unit = is_time ? "s" : "";

	if (row->min == row->max || (value >= row->min && value <= row->max))
		return 0;
	snprintf(p->reason, p->reason_size, "%s%s: %s is out of range, %g%s to %g%s is allowed",
		 p->dashes, row->name, text, row->min / scale, unit, row->max / scale, unit);
	return -EINVAL;
}

static int set_number(const struct parser *p, const struct option_row *row, const char *text)
{
	uint64_t value;
	int err = row->type == OPTION_DURATION ? parse_duration(text, &value)
					       : parse_u64(text, 10, &value);

	if (err)
		return fail_value(p, row, text, row->type == OPTION_DURATION
							? "no duration, such as 30, 1.5m or 200ms"
							: "no number");
	err = check_bounds(p, row, (double)value, text);
	if (!err)
		memcpy(p->values + row->offset, &value, sizeof(value));
	return err;
}

static int set_real(const struct parser *p, const struct option_row *row, const char *text)
{
	char *end;
	double value = strtod(text, &end);
	int err;

	if (end == text || *end || !isfinite(value))
		return fail_value(p, row, text, "no number");
	err = check_bounds(p, row, value, text);
	if (!err)
		memcpy(p->values + row->offset, &value, sizeof(value));
	return err;
}

static int set_flag(const struct parser *p, const struct option_row *row, const char *text)
{
	bool on = strcmp(text, "1") == 0 || strcmp(text, "yes") == 0 || strcmp(text, "true") == 0;

	if (!on && strcmp(text, "0") != 0 && strcmp(text, "no") != 0 && strcmp(text, "false") != 0)
		return fail_value(p, row, text, "neither yes nor no");
	memcpy(p->values + row->offset, &on, sizeof(on));
	return 0;
}

static int set(const struct parser *p, const struct option_row *row, const char *text)
{
	switch (row->type) {
	case OPTION_FLAG:
		return set_flag(p, row, text);
	case OPTION_NUMBER:
	case OPTION_DURATION:
		return set_number(p, row, text);
	case OPTION_REAL:
		return set_real(p, row, text);
	case OPTION_TEXT:
		memcpy(p->values + row->offset, &text, sizeof(text));
		return 0;
	}
	return -EINVAL;
}

static const char *environment(const struct option_row *row)
{
	char name[MAX_NAME] = "SONDE_";
	size_t n = strlen(name);

	if (row->argv_only)
		return NULL;
	for (const char *s = row->name; *s && n + 1 < sizeof(name); s++)
		name[n++] = *s == '-' ? '_' : (char)toupper((unsigned char)*s);
	name[n] = 0;
	return getenv(name);
}

static const char *fallback(const struct option_row *row)
{
	return row->fallback;
}

/* Sets each option for which `source` has a text. */
static int set_all(const struct parser *p, const char *(*source)(const struct option_row *row))
{
	for (const struct option_row *row = p->rows; row->name; row++) {
		const char *text = source(row);
		int err = text ? set(p, row, text) : 0;

		if (err)
			return err;
	}
	return 0;
}

static const struct option_row *find_long(const struct parser *p, const char *name, size_t len)
{
	for (const struct option_row *row = p->rows; row->name; row++) {
		if (strlen(row->name) == len && strncmp(row->name, name, len) == 0)
			return row;
	}
	return NULL;
}

static const struct option_row *find_letter(const struct parser *p, char letter)
{
	for (const struct option_row *row = p->rows; row->name; row++) {
		if (row->letter == letter)
			return row;
	}
	return NULL;
}

/* "--name", "--name=value", "--name value". *i moves past a value taken from argv. */
static int parse_long(const struct parser *p, int argc, char **argv, int *i)
{
	const char *name = argv[*i] + 2, *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const struct option_row *row = find_long(p, name, len);

	if (!row)
		return fail(p, "unknown option '%s'; see --help%s", argv[*i], "");
	if (equals)
		return set(p, row, equals + 1);
	if (row->type == OPTION_FLAG)
		return set(p, row, "1");
	if (*i + 1 >= argc)
		return fail(p, "--%s needs a value: %s", row->name, row->value_name);
	return set(p, row, argv[++*i]);
}

/* "-a", "-F99", "-F 99", "-aF 99". */
static int parse_letters(const struct parser *p, int argc, char **argv, int *i)
{
	for (const char *s = argv[*i] + 1; *s; s++) {
		const struct option_row *row = find_letter(p, *s);
		int err;

		if (!row)
			return fail(p, "unknown option '%s'; see --help%s", argv[*i], "");
		if (row->type == OPTION_FLAG) {
			err = set(p, row, "1");
			if (err)
				return err;
			continue;
		}
		if (s[1])
			return set(p, row, s + 1);
		if (*i + 1 >= argc)
			return fail(p, "--%s needs a value: %s", row->name, row->value_name);
		return set(p, row, argv[++*i]);
	}
	return 0;
}

static int parse_argv(const struct parser *p, int argc, char **argv, int *ret_rest)
{
	int i, err = 0;

	for (i = 1; !err && i < argc; i++) {
		const char *arg = argv[i];

		if (strcmp(arg, "--") == 0) {
			i++;
			break;
		}
		if (arg[0] != '-' || arg[1] == 0)
			break;
		if (strcmp(arg, "--help") == 0 || (strcmp(arg, "-h") == 0 && !find_letter(p, 'h')))
			return 1;
		err = arg[1] == '-' ? parse_long(p, argc, argv, &i)
				    : parse_letters(p, argc, argv, &i);
	}
	if (err)
		return err;
	*ret_rest = i;
	return 0;
}

int options_parse(const struct option_row *rows, int argc, char **argv, void *values,
		  int *ret_rest, char *reason, size_t reason_size)
{
	struct parser p = { rows, values, "--", reason, reason_size };
	int err = set_all(&p, fallback);

	if (!err)
		err = set_all(&p, environment);
	return err ? err : parse_argv(&p, argc, argv, ret_rest);
}

int options_more(const struct option_row *rows, int argc, char **argv, void *values,
		 int *ret_rest, char *reason, size_t reason_size)
{
	struct parser p = { rows, values, "--", reason, reason_size };

	return parse_argv(&p, argc, argv, ret_rest);
}

int options_override(const struct option_row *rows, int argc, char **argv, void *values,
		     char *reason, size_t reason_size)
{
	struct parser p = { rows, values, "--", reason, reason_size };
	int rest, err = set_all(&p, environment);

	return err ? err : parse_argv(&p, argc, argv, &rest);
}

int options_set(const struct option_row *rows, void *values, const char *name, const char *text,
		char *reason, size_t reason_size)
{
	struct parser p = { rows, values, "", reason, reason_size };
	const struct option_row *row = find_long(&p, name, strlen(name));

	if (!row || row->argv_only) {
		snprintf(reason, reason_size, "there is no option '%s'", name);
		return -ENOENT;
	}
	return set(&p, row, text);
}

/* Where all help texts begin: behind the longest name. */
static int help_column(const struct option_row *rows)
{
	int column = LEAST_COLUMN;

	for (const struct option_row *row = rows; row->name; row++) {
		size_t value = row->value_name ? 1 + strlen(row->value_name) : 0;
		int width = (int)(strlen("  -x, --") + strlen(row->name) + value + 1);

		column = width > column ? width : column;
	}
	return column;
}

static bool has_default(const struct option_row *row)
{
	return row->fallback && row->fallback[0];
}

void options_help(const struct option_row *rows, FILE *out)
{
	int column = help_column(rows);

	for (const struct option_row *row = rows; row->name; row++) {
		int n = 0;

		n += row->letter ? fprintf(out, "  -%c, ", row->letter) : fprintf(out, "      ");
		n += fprintf(out, "--%s", row->name);
		if (row->value_name)
			n += fprintf(out, " %s", row->value_name);
		fprintf(out, "%*s%s", column - n, "", row->help);
		if (has_default(row))
			fprintf(out, " [%s]", row->fallback);
		fputc('\n', out);
	}
}

void options_man(const struct option_row *rows, FILE *out)
{
	for (const struct option_row *row = rows; row->name; row++) {
		fprintf(out, ".TP\n");
		if (row->letter)
			fprintf(out, "\\fB\\-%c\\fR, ", row->letter);
		fprintf(out, "\\fB\\-\\-%s\\fR", row->name);
		if (row->value_name)
			fprintf(out, " \\fI%s\\fR", row->value_name);
		fprintf(out, "\n%s", row->help);
		if (has_default(row))
			fprintf(out, ". Default: %s.", row->fallback);
		fputc('\n', out);
	}
}
