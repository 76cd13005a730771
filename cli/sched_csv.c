/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of `sonde sched` for programs: comma-separated, in nanoseconds (RFC 4180). */
#include <inttypes.h>
#include <string.h>

#include "cli/sched.h"

static void put_text(struct buf *out, const char *text)
{
	buf_put_byte(out, '"');
	for (; *text; text++) {
		if (*text == '"')
			buf_put_byte(out, '"');
		buf_put_byte(out, (uint8_t)*text);
	}
	buf_put_str(out, "\",");
}

static void put_row(const struct profile *p, const struct sched_group *g, struct buf *out)
{
	const struct sched_totals *t = &g->totals;
	uint64_t delays = sched_delay_count(g);

	put_text(out, profile_text(p, g->key.comm));
	put_text(out, profile_text(p, g->key.thread));
	put_text(out, profile_text(p, g->key.cgroup));
	buf_printf(out, "%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64, g->key.pid, g->key.tid,
		   t->threads, t->elapsed_ns);
	buf_printf(out, ",%" PRId64 ",%" PRId64, t->exec_ns, sched_stolen_ns(t));
	for (int i = SONDE_SCHED_RUNNING + 1; i < SONDE_SCHED_STATE_COUNT; i++)
		buf_printf(out, ",%" PRId64, t->ns[i]);
	buf_printf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, sched_voluntary(g),
		   sched_involuntary(g), t->migrations);
	buf_printf(out, ",%" PRIu64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64 "\n", delays, t->delay_ns,
		   sched_quantile(t->delay, 0.99, t->max_delay_ns), t->max_delay_ns);
}

void sched_table_csv(const struct sched_table *t, const struct sched_view *view, struct buf *out)
{
	size_t rows = view->rows && view->rows < t->count ? view->rows : t->count;

	buf_put_str(out, "comm,thread,cgroup,pid,tid,threads,lifetime,run,stolen");
	for (int i = SONDE_SCHED_RUNNING + 1; i < SONDE_SCHED_STATE_COUNT; i++)
		buf_printf(out, ",%s", sched_reason_names[i]);
	buf_put_str(out, ",voluntary,involuntary,migrations,delays,delay,p99,max\n");
	for (size_t i = 0; i < rows; i++)
		put_row(t->p, &t->groups[i], out);
}
