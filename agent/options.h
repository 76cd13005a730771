/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options as tables: one row gives name, letter, type, unit, default, bounds, environment variable
 * and help. Parsing of argv and environment, --help and the man page walk the same rows.
 */
#ifndef AGENT_OPTIONS_H
#define AGENT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum option_type {
	OPTION_FLAG,     /* bool */
	OPTION_NUMBER,   /* uint64_t */
	OPTION_REAL,     /* double */
	OPTION_DURATION, /* uint64_t, ns */
	OPTION_TEXT,     /* const char *; NULL without default */
};

struct option_row {
	const char *name; /* long name, without -- ; the last row has NULL */
	char letter;      /* or 0 */
	enum option_type type;
	const char *value_name; /* "HZ", "FILE" ...; NULL for flags */
	const char *fallback;   /* default, as text; NULL: 0, false, NULL */
	double min, max;        /* numbers and reals; equal: no bounds */
	size_t offset;          /* of the field in the struct to fill */
	const char *help;
	bool argv_only;         /* means nothing in a file or in the environment */
};

/*
 * Fills `values` from the defaults, then the environment (SONDE_<NAME>, upper case, - as _), then
 * argv[1..]. Stops at the first argument that is no option, or behind "--"; *ret_rest is its index.
 * Returns 0, 1 if --help or -h was given, or -EINVAL with one line in `reason`.
 * Texts point into argv, the environment or the table.
 */
int options_parse(const struct option_row *rows, int argc, char **argv, void *values,
		  int *ret_rest, char *reason, size_t reason_size);

/*
 * Sets one option by its long name, for configuration files: 0, -ENOENT if there is none, or
 * -EINVAL, with one line in `reason`. A text is kept as the pointer that was given.
 */
int options_set(const struct option_row *rows, void *values, const char *name, const char *text,
		char *reason, size_t reason_size);

/* Goes on behind an operand, argv[0], as options_parse does behind the command. */
int options_more(const struct option_row *rows, int argc, char **argv, void *values,
		 int *ret_rest, char *reason, size_t reason_size);

/* The environment and argv once more, over what a configuration file has set. */
int options_override(const struct option_row *rows, int argc, char **argv, void *values,
		     char *reason, size_t reason_size);

/* The rows as help text. */
void options_help(const struct option_row *rows, FILE *out);

/* The rows as man page source (man(7)). */
void options_man(const struct option_row *rows, FILE *out);

#endif
