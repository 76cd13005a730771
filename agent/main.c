/* SPDX-License-Identifier: Apache-2.0 */
/* Entry point: finds the command and runs it. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "agent/version.h"
#include "cli/commands.h"

enum { NAME_WIDTH = 10 }; /* of the longest command */

static void usage(FILE *out)
{
	fprintf(out, "Usage: sonde COMMAND [options]\n\n"
		     "A profiler for Linux that sees every process.\n\nCommands:\n");
	for (const struct command *c = commands; c->name; c++) {
		if (!strchr(c->name, ' '))
			fprintf(out, "  %-*s %s\n", NAME_WIDTH, c->name, c->summary);
	}
	fprintf(out, "\n'sonde COMMAND --help' tells the options; 'sonde --version' the version.\n");
}

int main(int argc, char **argv)
{
	/* Buffers for parsing go back to the system when they are freed, however large one was. */
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	/* What the reading thread allocates is freed by the loop: one heap for both stays small. */
	mallopt(M_ARENA_MAX, 1);
	if (argc < 2) {
		usage(stderr);
		return 2;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		usage(stdout);
		return 0;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("sonde %s\n", SONDE_VERSION);
		return 0;
	}
	for (const struct command *c = commands; c->name; c++) {
		if (strcmp(c->name, argv[1]) == 0)
			return c->run(argc - 1, argv + 1);
	}
	fprintf(stderr, "sonde: unknown command '%s'; see sonde --help\n", argv[1]);
	return 2;
}
