/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sonde report DIR`: the windows of an agent's store that overlap the asked time, merged into one
 * profile, for the same report as of a file.
 */
#ifndef CLI_REPORT_STORE_H
#define CLI_REPORT_STORE_H

#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "cli/report.h"
#include "proto/profile.h"

/*
 * A time as people write it, all in UTC, to ns since the epoch: "1h", "30m" or "90s" before
 * `now_ns`; "2026-11-29 03:12", also with seconds, with T and with Z; "2026-11-29"; "03:12" or
 * "03:12:30", of today or, if that is still to come, of yesterday; "now". 0 or -EINVAL.
 */
int report_parse_time(const char *text, int64_t now_ns, int64_t *ret_ns);

/*
 * On failure -errno and one line in `reason`. What is damaged, or cannot be merged with the rest,
 * is left out with a line on `warnings`.
 */
int report_store_load(const struct report_options *options, int64_t now_ns,
		      struct profile **ret_profile, struct buf *reason, FILE *warnings);

#endif
