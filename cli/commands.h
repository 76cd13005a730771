/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the program: one row each; main, help and the man page walk the table. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "agent/options.h"

struct command {
	const char *name;    /* of two words: run by the command of the first one */
	const char *summary; /* one line */
	const char *usage;   /* what follows "sonde NAME " */
	const char *detail;  /* paragraphs for the man page; NULL: none */
	const struct option_row *options;
	int (*run)(int argc, char **argv); /* argv[0] is the command's name; exit status */
};

/* Ended by a row without name. */
extern const struct command commands[];

int record_main(int argc, char **argv);
int report_main(int argc, char **argv);
int symbolize_main(int argc, char **argv);
int sched_main(int argc, char **argv);
int doctor_main(int argc, char **argv);
int agent_main(int argc, char **argv);
int man_main(int argc, char **argv);

extern const struct option_row record_rows[];
extern const struct option_row report_rows[];
extern const struct option_row symbolize_rows[];
extern const struct option_row sched_record_rows[];
extern const struct option_row sched_report_rows[];
extern const struct option_row doctor_rows[];
extern const struct option_row agent_rows[];

/*
 * Parses argv into `values`; on --help prints the help of `name` and returns 1, on an error
 * prints one line and returns -EINVAL. Else 0 and the index of the first operand.
 */
int command_options(const char *name, int argc, char **argv, void *values, int *ret_rest);

#endif
