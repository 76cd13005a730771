/* SPDX-License-Identifier: Apache-2.0 */
/* The sort keys of `sonde report`: what makes two samples one row. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/text.h"
#include "cli/report_private.h"

#define FRAME(field) .frame_field = offsetof(struct report_frame, field)

static const struct report_key KEYS[] = {
	{ .name = "comm", .heading = "Command", .label = "comm" },
	{ .name = "thread", .heading = "Thread", .label = "thread" },
	{ .name = "pid", .heading = "Pid", .label = "pid", .right = true },
	{ .name = "tid", .heading = "Tid", .label = "tid", .right = true },
	{ .name = "dso", .heading = "Shared Object", FRAME(dso) },
	{ .name = "sym", .alias = "symbol", .heading = "Symbol", FRAME(symbol) },
	{ .name = "cgroup", .heading = "Cgroup", .label = "cgroup" },
	{ .name = "container", .heading = "Container", .label = "container_id" },
	{ .name = "pod", .heading = "Pod", .label = "pod_uid" },
	{ .name = "unit", .heading = "Unit", .label = "systemd_unit" },
	{ .name = "state", .heading = "State", .label = "state" },
	{ .name = "reason", .heading = "Reason", .label = "reason" },
	{ .name = "kind", .heading = "Kind", FRAME(kind) },
	{ .name = "file", .alias = "srcfile", .heading = "Source File", FRAME(file),
	  .needs_source = true },
	{ .name = "srcline", .heading = "Source:Line", FRAME(srcline), .needs_source = true },
};

enum { KEY_COUNT = sizeof(KEYS) / sizeof(KEYS[0]) };

_Static_assert((int)KEY_COUNT <= (int)REPORT_MAX_KEYS, "a row has a cell for each key");

#define OPTION(field) offsetof(struct report_options, field)

const struct report_filter report_filters[] = {
	{ "comm", "comm", OPTION(comm), false },
	{ "pid", "pid", OPTION(pid), false },
	{ "cgroup", "cgroup", OPTION(cgroup), false },
	{ "container", "container_id", OPTION(container), true },
	{ "pod", "pod_uid", OPTION(pod_uid), true },
	{ "unit", "systemd_unit", OPTION(unit), false },
	{ "reason", "reason", OPTION(reason), false },
	{ 0 },
};

/* One more is for idle waits. */
_Static_assert((int)(sizeof(report_filters) / sizeof(report_filters[0])) <=
		       (int)REPORT_MAX_FILTERS,
	       "a filter has a label");

const char *report_filter_list(const struct report *r, const struct report_filter *filter)
{
	return *(const char *const *)((const char *)r->options + filter->option);
}

static const char DEFAULT_SORT[] = "comm,dso,sym";

static uint32_t find_string(const struct profile *p, const char *text)
{
	for (size_t i = 1; i < p->strings.count; i++) {
		if (strcmp(profile_text(p, (uint32_t)i), text) == 0)
			return (uint32_t)i;
	}
	return 0;
}

static const struct report_key *find_key(const char *name, size_t len)
{
	for (size_t i = 0; i < KEY_COUNT; i++) {
		const struct report_key *key = &KEYS[i];

		if (strlen(key->name) == len && strncmp(key->name, name, len) == 0)
			return key;
		if (key->alias && strlen(key->alias) == len && strncmp(key->alias, name, len) == 0)
			return key;
	}
	return NULL;
}

static void explain_unknown(const char *name, size_t len, struct buf *reason)
{
	buf_put_str(reason, "unknown sort key '");
	text_escape(reason, name, len);
	buf_put_str(reason, "'; known:");
	for (size_t i = 0; i < KEY_COUNT; i++)
		buf_printf(reason, "%s %s", i ? "," : "", KEYS[i].name);
}

static bool any_label(const struct profile *p, uint32_t label)
{
	for (size_t i = 0; label && i < p->sample_count; i++) {
		for (size_t j = 0; j < p->samples[i].label_count; j++) {
			if (p->samples[i].labels[j].key == label)
				return true;
		}
	}
	return false;
}

/* A column of the default that would say "-" in every row is left out. */
static bool worth_showing(const struct report *r, const struct report_key *key, uint32_t label)
{
	if (key->label)
		return any_label(r->p, label);
	return strcmp(key->name, "dso") != 0 || r->p->mapping_count > 0;
}

static int add_key(struct report *r, const char *name, size_t len, bool only_if_useful,
		   struct buf *reason)
{
	const struct report_key *key = find_key(name, len);
	uint32_t label;

	if (!key) {
		explain_unknown(name, len, reason);
		return -EINVAL;
	}
	if (key->needs_source && !r->has_source) {
		buf_printf(reason, "--sort %s needs source files, and the file names none",
			   key->name);
		return -EINVAL;
	}
	label = key->label ? find_string(r->p, key->label) : 0;
	if (only_if_useful && !worth_showing(r, key, label))
		return 0;
	for (size_t i = 0; i < r->key_count; i++) {
		if (r->keys[i] == key)
			return 0;
	}
	if (key->label)
		r->labels[r->label_count++] =
			(struct report_label){ .key = label, .cell = (int)r->key_count };
	r->keys[r->key_count++] = key;
	return 0;
}

/* A filter by label; one entry serves a sort key of the same label too. */
static void add_filter(struct report *r, const struct report_filter *filter)
{
	const char *list = report_filter_list(r, filter);
	struct report_label *label = &r->labels[r->label_count];

	if (!list)
		return;
	*label = (struct report_label){ .key = find_string(r->p, filter->label), .cell = -1 };
	for (size_t i = 0; i < r->label_count; i++) {
		if (r->labels[i].cell >= 0 &&
		    strcmp(r->keys[r->labels[i].cell]->label, filter->label) == 0)
			label = &r->labels[i];
	}
	if (label == &r->labels[r->label_count])
		r->label_count++;
	label->filter = list;
	label->prefix = filter->prefix;
}

static int add_keys(struct report *r, struct buf *reason)
{
	const char *sort = r->options->sort ? r->options->sort : DEFAULT_SORT;
	bool is_default = strcmp(sort, DEFAULT_SORT) == 0;

	for (;;) {
		size_t len = strcspn(sort, ",");
		int err = add_key(r, sort, len, is_default, reason);

		if (err)
			return err;
		if (!sort[len])
			return 0;
		sort += len + 1;
	}
}

/* Only what has no such label is shown. */
static void hide_idle(struct report *r)
{
	uint32_t label = find_string(r->p, "idle");

	if (r->options->idle || !any_label(r->p, label))
		return;
	r->labels[r->label_count++] =
		(struct report_label){ .key = label, .cell = -1, .filter = "-" };
	r->hides_idle = true;
}

int report_keys_parse(struct report *r, struct buf *reason)
{
	int err = add_keys(r, reason);

	if (err)
		return err;
	for (const struct report_filter *filter = report_filters; filter->name; filter++)
		add_filter(r, filter);
	hide_idle(r);
	return 0;
}
