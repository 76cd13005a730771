/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sink will never take is set aside, to be looked at or sent by hand:
 * <dir>/dead/<window>-<first sample>-<sink>.pb.gz, pprof with all labels and the reason as a
 * comment. The newest 64 stay, of 64 MiB together.
 */
#ifndef AGENT_EXPORT_DEAD_LETTER_H
#define AGENT_EXPORT_DEAD_LETTER_H

#include <stdint.h>

#include "agent/export/sink.h"

/* 0 or -errno; then nothing was kept. */
int dead_letter_write(const char *dir, const struct export_batch *batch, uint64_t window,
		      const char *sink, const char *why);

#endif
