/* SPDX-License-Identifier: Apache-2.0 */
/* Delivery to stores, as a part of the agent: its life, its words in the log, its metrics. */
#include <string.h>

#include "agent/daemon_private.h"
#include "agent/log.h"
#include "agent/metrics.h"
#include "agent/version.h"
#include "base/clock.h"

/* What the last window gets to be sent before the agent ends. */
static const nsec_t GRACE = 5 * NSEC_PER_SEC;

int daemon_export_open(struct daemon *d, char *reason, size_t size)
{
	if (!exporter_is_wanted(&d->options.export))
		return 0;
	d->options.export.version = SONDE_VERSION;
	return exporter_open(d->options.dir, &d->options.export, &d->exporter, reason, size);
}

static const char *proxy_text(const struct exporter_options *o)
{
	if (!o->http.proxy)
		return "the environment's proxy, if any";
	return o->http.proxy[0] ? o->http.proxy : "no proxy";
}

void daemon_export_start(struct daemon *d)
{
	const struct exporter_options *o = &d->options.export;
	int err;

	if (!d->exporter)
		return;
	for (int i = 0; i < SINK_COUNT; i++) {
		if (!o->sinks[i].target)
			continue;
		log_info("sink %s: %s%s%s", sink_types[i]->name, o->sinks[i].target,
			 sink_types[i]->path ? ", by " : "",
			 sink_types[i]->path ? proxy_text(o) : "");
	}
	if (o->http.no_verify)
		log_warn("sinks: certificates are not verified: anybody may read and take "
			 "the profiles");
	err = exporter_start(d->exporter);
	if (err)
		log_warn("sinks: no thread: %s; windows stay in the spool", strerror(-err));
}

void daemon_export_notices(struct daemon *d)
{
	enum notice_level level;
	char text[1024];

	while (d->exporter && exporter_next_notice(d->exporter, &level, text, sizeof(text))) {
		if (level == NOTICE_WARN)
			log_warn("%s", text);
		else
			log_info("%s", text);
	}
}

void daemon_export_close(struct daemon *d)
{
	exporter_close(d->exporter, GRACE);
	d->exporter = NULL;
}

/* Families with one sample for each sink. */
static const struct sink_metric {
	const char *name;
	enum metric_type type;
	const char *help;
	size_t offset; /* of a uint64_t in struct sink_totals */
	double unit;   /* of the metric; 0: 1 */
} sink_metrics[] = {
#define FIELD(field) offsetof(struct sink_totals, field)
	{ "sonde_sink_requests_total", METRIC_COUNTER, "Requests that went out.", FIELD(requests) },
	{ "sonde_sink_sent_bytes_total", METRIC_COUNTER, "Bodies of requests, as sent.",
	  FIELD(bytes) },
	{ "sonde_sink_windows_total", METRIC_COUNTER,
	  "Windows of both types done with: each part was taken, or set aside.", FIELD(windows) },
	{ "sonde_sink_samples_total", METRIC_COUNTER, "Samples that were taken.", FIELD(samples) },
	{ "sonde_sink_wall_seconds_total", METRIC_COUNTER,
	  "Time of threads that was taken, of wall-clock profiles.", FIELD(wall_ns), NSEC_PER_SEC },
	{ "sonde_sink_retries_total", METRIC_COUNTER, "Tries that failed and came again.",
	  FIELD(retries) },
	{ "sonde_sink_splits_total", METRIC_COUNTER, "Requests split for their size.",
	  FIELD(splits) },
	{ "sonde_sink_refused_total", METRIC_COUNTER,
	  "Profiles that will never be taken, set aside in spool/dead.", FIELD(refused) },
	{ "sonde_sink_dropped_age_total", METRIC_COUNTER, "Windows that were too old to be taken.",
	  FIELD(dropped_age) },
	{ "sonde_sink_dropped_cap_total", METRIC_COUNTER,
	  "Windows dropped for the spool's cap before they were sent.", FIELD(dropped_cap) },
	{ "sonde_sink_dropped_disk_total", METRIC_COUNTER,
	  "Refused profiles that the disk did not take either.", FIELD(dropped_disk) },
	{ "sonde_sink_damaged_total", METRIC_COUNTER, "Windows that could not be read.",
	  FIELD(damaged) },
	{ "sonde_sink_folded_series_total", METRIC_COUNTER,
	  "Series that were joined with others for the bound on their number.",
	  FIELD(folded_series) },
	{ "sonde_sink_waiting_windows", METRIC_GAUGE, "Windows in the spool for this sink.",
	  FIELD(waiting) },
	{ "sonde_sink_failures", METRIC_GAUGE, "Failures in a row; 0 while it works.",
	  FIELD(failures) },
#undef FIELD
};

static void write_sink_metric(const struct daemon *d, struct buf *out, const struct sink_metric *m)
{
	struct sink_totals totals;

	metric_family(out, m->name, m->type, m->help);
	for (size_t i = 0; exporter_totals(d->exporter, i, &totals); i++) {
		uint64_t value;

		memcpy(&value, (const char *)&totals + m->offset, sizeof(value));
		metric_sample(out, m->name, "sink", totals.name,
			      (double)value / (m->unit ? m->unit : 1));
	}
}

void daemon_export_metrics(const struct daemon *d, struct buf *out)
{
	static const char last[] = "sonde_sink_last_success_timestamp_seconds";
	struct sink_totals totals;
	struct spool_totals spool;

	if (!d->exporter)
		return;
	exporter_spool_totals(d->exporter, &spool);
	metric_single(out, "sonde_spool_bytes", METRIC_GAUGE, "Size of the spool.",
		      (double)spool.bytes);
	metric_single(out, "sonde_spool_windows", METRIC_GAUGE, "Windows in the spool.",
		      (double)spool.chunks);
	metric_single(out, "sonde_spool_written_total", METRIC_COUNTER,
		      "Windows that went into the spool.", (double)spool.written);
	for (size_t i = 0; i < sizeof(sink_metrics) / sizeof(sink_metrics[0]); i++)
		write_sink_metric(d, out, &sink_metrics[i]);
	metric_family(out, last, METRIC_GAUGE, "When a request was taken last; 0: never.");
	for (size_t i = 0; exporter_totals(d->exporter, i, &totals); i++)
		metric_sample(out, last, "sink", totals.name, totals.last_success_s);
}
