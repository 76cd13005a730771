/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Header lines that say who we are, out of files that are read again for each request, so that
 * a token may be replaced at any time.
 */
#ifndef AGENT_EXPORT_CREDENTIALS_H
#define AGENT_EXPORT_CREDENTIALS_H

#include <stddef.h>

struct credentials {
	const char *bearer_file;  /* a token; NULL: none */
	const char *basic_file;   /* user:password; NULL: none */
	const char *headers_file; /* lines "Name: value", # for comments; NULL: none */
	const char *tenant;       /* for X-Scope-OrgID; NULL: none */
};

/*
 * The lines as a NULL-ended array for credentials_free. On failure -errno, and one line in
 * `why` that names the file; never a part of its content.
 */
int credentials_read(const struct credentials *c, char ***ret_lines, char *why, size_t why_size);

/* Frees the lines, and leaves nothing of them in memory. */
void credentials_free(char **lines);

#endif
