/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of `sonde agent`'s option table that say where profiles are sent. FIELD(name) is a field
 * of the daemon's options.
 */
#ifndef CLI_AGENT_SINKS_H
#define CLI_AGENT_SINKS_H

#include "agent/export/exporter.h"

/* The rows of a sink that is reached by HTTP: its name in options, its number, what it is. */
#define HTTP_SINK_ROWS(name, number, what) \
	{ name, 0, OPTION_TEXT, "URL", NULL, 0, 0, FIELD(export.sinks[number].target), \
	  "send to " what }, \
	{ name "-path", 0, OPTION_TEXT, "PATH", NULL, 0, 0, FIELD(export.sinks[number].path), \
	  "behind the URL, in place of the usual path" }, \
	{ name "-bearer-file", 0, OPTION_TEXT, "FILE", NULL, 0, 0, \
	  FIELD(export.sinks[number].credentials.bearer_file), "with a token; read each time" }, \
	{ name "-basic-file", 0, OPTION_TEXT, "FILE", NULL, 0, 0, \
	  FIELD(export.sinks[number].credentials.basic_file), \
	  "with user:password; read each time" }, \
	{ name "-headers-file", 0, OPTION_TEXT, "FILE", NULL, 0, 0, \
	  FIELD(export.sinks[number].credentials.headers_file), \
	  "with lines 'Name: value' for more headers; read each time" }, \
	{ name "-tenant", 0, OPTION_TEXT, "ID", NULL, 0, 0, \
	  FIELD(export.sinks[number].credentials.tenant), "for the header X-Scope-OrgID" }

#define SINK_ROWS \
	HTTP_SINK_ROWS("otlp", SINK_OTLP, "an OTLP receiver, such as http://collector:4318"), \
	HTTP_SINK_ROWS("parca", SINK_PARCA, "Parca, such as http://parca:7070"), \
	HTTP_SINK_ROWS("pyroscope", SINK_PYROSCOPE, "Pyroscope, such as http://pyroscope:4040"), \
	{ "export-dir", 0, OPTION_TEXT, "DIR", NULL, 0, 0, \
	  FIELD(export.sinks[SINK_DIRECTORY].target), \
	  "send to a folder: one pprof file for each service and window" }, \
	{ "node", 0, OPTION_TEXT, "NAME", NULL, 0, 0, FIELD(export.node), \
	  "of this machine in what is sent; the host name if not given" }, \
	{ "labels", 0, OPTION_TEXT, "LIST", NULL, 0, 0, FIELD(export.labels), \
	  "name=text,name=text for all that is sent" }, \
	{ "max-series", 0, OPTION_NUMBER, "N", "512", 1, 1e5, FIELD(export.max_series), \
	  "series a window; programs past that are joined by container" }, \
	{ "spool-size", 0, OPTION_NUMBER, "MIB", "256", 1, 1e6, FIELD(export.spool_mib), \
	  "cap of what waits to be sent; the oldest goes first" }, \
	{ "send-spread", 0, OPTION_DURATION, "TIME", "20s", 0, 3.6e12, FIELD(export.spread_ns), \
	  "windows wait up to this long, each node for a time of its own" }, \
	{ "send-gather", 0, OPTION_DURATION, "TIME", "10m", 0, 3.6e12, FIELD(export.gather_ns), \
	  "small windows wait up to this long and go as one; 0: none does" }, \
	{ "send-timeout", 0, OPTION_DURATION, "TIME", "30s", 1e9, 6e11, \
	  FIELD(export.http.timeout_ns), "of one request" }, \
	{ "send-retry-max", 0, OPTION_DURATION, "TIME", "5m", 1e8, 3.6e12, \
	  FIELD(export.retry_max_ns), "longest pause between two tries" }, \
	{ "send-rate", 0, OPTION_NUMBER, "KIB", "1024", 0, 1e7, FIELD(export.rate_kib), \
	  "a second to each sink, on average; 0: no limit" }, \
	{ "send-size", 0, OPTION_NUMBER, "KIB", "4096", 16, 65536, FIELD(export.request_kib), \
	  "largest request before compression" }, \
	{ "pyroscope-max-age", 0, OPTION_DURATION, "TIME", "1h", 0, 0, FIELD(export.max_age_ns), \
	  "older windows are not sent there, as it refuses them" }, \
	{ "tls-ca", 0, OPTION_TEXT, "FILE", NULL, 0, 0, FIELD(export.http.ca_file), \
	  "certificates to trust, in place of the system's" }, \
	{ "tls-cert", 0, OPTION_TEXT, "FILE", NULL, 0, 0, FIELD(export.http.cert_file), \
	  "certificate of this agent" }, \
	{ "tls-key", 0, OPTION_TEXT, "FILE", NULL, 0, 0, FIELD(export.http.key_file), \
	  "its key" }, \
	{ "tls-no-verify", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(export.http.no_verify), \
	  "take any certificate: for tests only" }, \
	{ "proxy", 0, OPTION_TEXT, "URL", NULL, 0, 0, FIELD(export.http.proxy), \
	  "of all sinks; http_proxy and https_proxy count if not given, empty: none" }, \
	{ "no-proxy", 0, OPTION_TEXT, "LIST", NULL, 0, 0, FIELD(export.http.no_proxy), \
	  "hosts reached without it; no_proxy counts if not given" }

#endif
