/* SPDX-License-Identifier: Apache-2.0 */
/* The table of sinks. */
#include "agent/export/sink.h"

const struct sink_type *const sink_types[SINK_COUNT] = {
	[SINK_OTLP] = &sink_otlp,
	[SINK_PARCA] = &sink_parca,
	[SINK_PYROSCOPE] = &sink_pyroscope,
	[SINK_DIRECTORY] = &sink_directory,
};
