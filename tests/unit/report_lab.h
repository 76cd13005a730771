/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of `sonde report`: runs it on a file or a store. */
#ifndef TESTS_UNIT_REPORT_LAB_H
#define TESTS_UNIT_REPORT_LAB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/report.h"

/* The report's status; the texts are to be freed. */
static inline int lab_report(struct report_options options, const char *path, char **ret_out,
			     char **ret_err)
{
	size_t out_len, err_len;
	FILE *out = open_memstream(ret_out, &out_len), *err = open_memstream(ret_err, &err_len);
	int status;

	assert_non_null(out);
	assert_non_null(err);
	options.path = path;
	status = report_run(&options, out, err);
	fclose(out);
	fclose(err);
	return status;
}

/* It must fail with one line that has `why`, and `names` too unless that is NULL. */
static inline void lab_report_fails(struct report_options options, const char *path,
				    const char *why, const char *names)
{
	char *out, *err;

	assert_int_equal(lab_report(options, path, &out, &err), 1);
	assert_string_equal(out, "");
	if (strncmp(err, "sonde report: ", 14) != 0 || !strstr(err, why) ||
	    (names && !strstr(err, names)))
		fail_msg("expected '%s' in: %s", why, err);
	assert_ptr_equal(strchr(err, '\n'), err + strlen(err) - 1);
	free(out);
	free(err);
}

#endif
