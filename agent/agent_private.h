/* SPDX-License-Identifier: Apache-2.0 */
/* What agent.c (life, events, drains) and agent_take.c (profiles and their books) share. */
#ifndef AGENT_AGENT_PRIVATE_H
#define AGENT_AGENT_PRIVATE_H

#include "agent/agent.h"
#include "agent/off.h"
#include "agent/tables.h"

struct agent {
	struct agent_options options;
	struct collect *collect;
	struct resolver *resolver;
	struct agent_off *off; /* NULL: only what runs on a CPU */
	int fd; /* an epoll of those of both */
	struct table_feeder tables;
	struct profile *profile; /* in the making */
	nsec_t started;          /* of that profile, monotonic */
	nsec_t end;              /* that it shall not go beyond; 0: none */
	struct agent_totals warm_up; /* the books of the samples thrown away at the start */
	struct agent_totals taken;   /* the books when the last profile was taken */
};

/* An empty profile whose types say what will be counted: 0 or -errno. */
int agent_prepare_profile(struct agent *a);

/* The profile in the making began at `since`, monotonic. */
void agent_start_clock(struct agent *a, nsec_t since);

#endif
