/* SPDX-License-Identifier: Apache-2.0 */
/* See exporter_options.h. */
#include "agent/export/exporter_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

enum { TEXT_BYTES = 1 << 20 };

struct exporter_texts {
	struct arena memory;
};

bool exporter_is_wanted(const struct exporter_options *options)
{
	for (int i = 0; i < SINK_COUNT; i++) {
		if (options->sinks[i].target)
			return true;
	}
	return false;
}

bool exporter_needs_http(const struct exporter_options *options)
{
	for (int i = 0; i < SINK_COUNT; i++) {
		if (options->sinks[i].target && sink_types[i]->path)
			return true;
	}
	return false;
}

/* ---- texts ---- */

enum { OPTION_TEXTS = 8, SINK_TEXTS = 6, ALL_TEXTS = OPTION_TEXTS + SINK_COUNT * SINK_TEXTS };

/* Where the texts of the options are. */
static void find_texts(struct exporter_options *o, const char **ret_fields[ALL_TEXTS])
{
	const char **fields[OPTION_TEXTS] = { &o->node,           &o->labels,
					      &o->version,        &o->http.ca_file,
					      &o->http.cert_file, &o->http.key_file,
					      &o->http.proxy,     &o->http.no_proxy };
	size_t n = 0;

	for (; n < OPTION_TEXTS; n++)
		ret_fields[n] = fields[n];
	for (int i = 0; i < SINK_COUNT; i++) {
		struct sink_options *s = &o->sinks[i];

		ret_fields[n++] = &s->target;
		ret_fields[n++] = &s->path;
		ret_fields[n++] = &s->credentials.bearer_file;
		ret_fields[n++] = &s->credentials.basic_file;
		ret_fields[n++] = &s->credentials.headers_file;
		ret_fields[n++] = &s->credentials.tenant;
	}
}

int exporter_options_copy(const struct exporter_options *from, struct exporter_options *ret_options,
			  struct exporter_texts **ret_texts)
{
	struct exporter_options o = *from;
	struct exporter_texts *texts = calloc(1, sizeof(*texts));
	const char **fields[ALL_TEXTS];

	if (!texts)
		return -ENOMEM;
	arena_init(&texts->memory, TEXT_BYTES);
	find_texts(&o, fields);
	for (size_t i = 0; i < ALL_TEXTS; i++) {
		if (!*fields[i])
			continue;
		*fields[i] = arena_copy(&texts->memory, *fields[i], strlen(*fields[i]));
		if (!*fields[i]) {
			exporter_texts_free(texts);
			return -ENOMEM;
		}
	}
	*ret_options = o;
	*ret_texts = texts;
	return 0;
}

/* The node's name and the version are filled in at the opening, so they do not count. */
bool exporter_options_differ(const struct exporter_options *a, const struct exporter_options *b)
{
	struct exporter_options left = *a, right = *b;
	const char **l[ALL_TEXTS], **r[ALL_TEXTS];

	left.node = right.node = left.version = right.version = NULL;
	find_texts(&left, l);
	find_texts(&right, r);
	for (size_t i = 0; i < ALL_TEXTS; i++) {
		if (!*l[i] != !*r[i] || (*l[i] && strcmp(*l[i], *r[i]) != 0))
			return true;
	}
	return false;
}

void exporter_texts_free(struct exporter_texts *texts)
{
	if (!texts)
		return;
	arena_fini(&texts->memory);
	free(texts);
}

/* ---- labels ---- */

/* What sonde sets itself, or a store reserves. */
static bool is_reserved(const char *name)
{
	if (strncmp(name, "__", 2) == 0 || strcmp(name, "service_name") == 0 ||
	    strcmp(name, "node") == 0)
		return true;
	for (int i = 0; i < SERIES_LABEL_COUNT; i++) {
		if (strcmp(name, series_label_name(i)) == 0)
			return true;
	}
	return false;
}

static bool is_name(const char *name)
{
	if (!isalpha((unsigned char)*name) && *name != '_')
		return false;
	for (; *name; name++) {
		if (!isalnum((unsigned char)*name) && *name != '_')
			return false;
	}
	return true;
}

static bool is_there(const struct push_label *labels, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(labels[i].name, name) == 0)
			return true;
	}
	return false;
}

int exporter_parse_labels(const char *text, char **ret_text,
			  struct push_label labels[EXPORT_MAX_USER_LABELS], size_t *ret_count)
{
	char *copy, *rest, *pair;
	size_t count = 0;

	*ret_text = NULL;
	*ret_count = 0;
	if (!text || !*text)
		return 0;
	copy = rest = strdup(text);
	if (!copy)
		return -ENOMEM;
	while ((pair = strsep(&rest, ",")) != NULL) {
		char *equals = strchr(pair, '=');

		if (!equals || !equals[1] || count == EXPORT_MAX_USER_LABELS)
			break;
		*equals = 0;
		if (!is_name(pair) || is_reserved(pair) || is_there(labels, count, pair))
			break;
		labels[count++] = (struct push_label){ pair, equals + 1 };
	}
	if (pair) {
		free(copy);
		return -EINVAL;
	}
	*ret_text = copy;
	*ret_count = count;
	return 0;
}

/* ---- checking ---- */

static int check_url(const char *sink, const char *url, char *reason, size_t size)
{
	const char *host = strstr(url, "://");

	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) {
		snprintf(reason, size, "%s: '%s' does not begin with http:// or https://", sink,
			 url);
		return -EINVAL;
	}
	host += 3;
	if (!*host || *host == '/' || *host == ':') {
		snprintf(reason, size, "%s: '%s' names no host", sink, url);
		return -EINVAL;
	}
	if (strcspn(host, "@") < strcspn(host, "/")) {
		snprintf(reason, size,
			 "%s: credentials do not belong into the address; use %s-basic-file", sink,
			 sink);
		return -EINVAL;
	}
	if (strpbrk(url, " \t\r\n?#")) {
		snprintf(reason, size, "%s: '%s' is no address of a server with a path", sink, url);
		return -EINVAL;
	}
	return 0;
}

/* A file that cannot be read now is found when it is too late. */
static int check_credentials(const char *sink, const struct credentials *c, char *reason,
			     size_t size)
{
	char why[512], **lines;

	if (c->bearer_file && c->basic_file) {
		snprintf(reason, size, "%s: both a bearer and a basic file", sink);
		return -EINVAL;
	}
	if (credentials_read(c, &lines, why, sizeof(why))) {
		snprintf(reason, size, "%s: %s", sink, why);
		return -EINVAL;
	}
	credentials_free(lines);
	return 0;
}

int exporter_check(const struct exporter_options *o, char *reason, size_t reason_size)
{
	struct push_label labels[EXPORT_MAX_USER_LABELS];
	char *text;
	size_t count;
	int err = exporter_parse_labels(o->labels, &text, labels, &count);

	free(text);
	if (err) {
		snprintf(reason, reason_size,
			 "labels: '%s' is not name=text,name=text with names that are free",
			 o->labels);
		return err;
	}
	for (int i = 0; !err && i < SINK_COUNT; i++) {
		const struct sink_options *s = &o->sinks[i];
		const char *name = sink_types[i]->name;

		if (!s->target)
			continue;
		if (!sink_types[i]->path) {
			err = s->target[0] == '/' ? 0 : -EINVAL;
			if (err)
				snprintf(reason, reason_size, "%s: '%s' is no absolute path", name,
					 s->target);
			continue;
		}
		err = check_url(name, s->target, reason, reason_size);
		if (!err && s->path && s->path[0] != '/') {
			snprintf(reason, reason_size, "%s: path '%s' has no / at its start", name,
				 s->path);
			err = -EINVAL;
		}
		if (!err)
			err = check_credentials(name, &s->credentials, reason, reason_size);
	}
	return err;
}
