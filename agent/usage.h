/* SPDX-License-Identifier: Apache-2.0 */
/* What this process itself uses: CPU time, memory, file descriptors. */
#ifndef AGENT_USAGE_H
#define AGENT_USAGE_H

#include <stdint.h>

#include "base/clock.h"

struct usage {
	nsec_t user_ns, system_ns; /* of this process; BPF programs are not in it */
	uint64_t rss_bytes;
	uint64_t fds;
};

/* Reads <proc_root>/self and getrusage; what cannot be read stays 0. */
void usage_read(const char *proc_root, struct usage *ret_usage);

#endif
