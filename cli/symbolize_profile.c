/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for the addresses of a profile that has none or few.
 *
 * Mapping by mapping: what it is to be asked for is gathered first, so that its file need be read no
 * further than that takes. /proc/kallsyms, which the kernel needs 50 ms and more to write,
 * is read by a thread meanwhile.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/text.h"
#include "base/thread.h"
#include "cli/symbolize.h"

enum { TEXT_BYTES = 64 * 1024 };

/* One mapping on its way. */
struct naming {
	const struct symbolize_options *options;
	struct symbolize_mapping mapping;
	uint32_t id;
	char *path, *build_id, *release; /* copies, for the thread */
	uint64_t *wanted;
	struct symbolize_source source;
	enum sym_reason opened;
	pthread_t thread;
	bool is_in_thread;
};

/* What a comment that begins with `key` goes on with; "" without one. */
static const char *comment(const struct profile *p, const char *key)
{
	for (size_t i = 0; i < p->comment_count; i++) {
		const char *text = profile_text(p, p->comments[i]);

		if (strncmp(text, key, strlen(key)) == 0)
			return text + strlen(key);
	}
	return "";
}

/* Where the kernel lay. */
static uint64_t kernel_text(const struct profile *p)
{
	return strtoull(comment(p, AGENT_KERNEL_TEXT), NULL, 16);
}

/* A copy: the first word of "kernel: RELEASE MACHINE". */
static char *kernel_release(const struct profile *p)
{
	const char *text = comment(p, "kernel: ");

	return strndup(text, strcspn(text, " "));
}

/* A string of the profile from the bytes of a symbol. */
static int64_t add_text(struct profile *p, const char *bytes)
{
	struct buf text;
	int64_t id;

	buf_init(&text, TEXT_BYTES);
	text_escape(&text, bytes, strlen(bytes));
	id = profile_string_n(p, (const char *)text.data, text.len);
	buf_fini(&text);
	return id;
}

static int name_location(struct profile *p, uint32_t id, const struct sym_hit *hit)
{
	int64_t name = add_text(p, hit->name), raw = add_text(p, hit->raw_name), function;
	struct profile_function f;
	struct profile_line line = { 0 };

	if (name < 0 || raw < 0)
		return -ENOMEM;
	f = (struct profile_function){ .name = (uint32_t)name, .system_name = (uint32_t)raw };
	function = profile_add_function(p, &f);
	if (function <= 0)
		return -ENOMEM;
	line.function_id = (uint32_t)function;
	return profile_name_location(p, id, &line, 1);
}

static void tell(const struct profile *p, uint32_t mapping, enum sym_reason reason, uint64_t count)
{
	const struct profile_mapping *m = &p->mappings[mapping - 1];
	const char *build_id = profile_text(p, m->build_id);

	fprintf(stderr, "  %" PRIu64 " of %s%s%s: %s\n", count, profile_text(p, m->filename),
		*build_id ? ", build-id " : "", build_id,
		reason == SYM_FILE_CHANGED ? "the file there has another build-id"
					   : sym_reason_text(reason));
}

/* The mapping's addresses without names, as often as they come; -ENOMEM. */
static int gather(const struct profile *p, struct naming *n)
{
	size_t count = 0;

	for (size_t i = 0; i < p->location_count; i++)
		count += p->locations[i].mapping_id == n->id && !p->locations[i].line_count;
	n->wanted = reallocarray(NULL, count + 1, sizeof(*n->wanted));
	if (!n->wanted)
		return -ENOMEM;
	for (size_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];

		if (l->mapping_id == n->id && !l->line_count)
			n->wanted[n->mapping.wanted_count++] = l->address;
	}
	n->mapping.wanted = n->wanted;
	return 0;
}

static void *open_source(void *naming_ptr)
{
	struct naming *n = naming_ptr;

	if (n->mapping.wanted_count)
		n->opened = symbolize_source_open(n->options, &n->mapping, &n->source);
	return NULL;
}

static int naming_init(struct profile *p, uint32_t mapping, const struct symbolize_options *options,
		       struct naming *n)
{
	const struct profile_mapping *m = &p->mappings[mapping - 1];

	*n = (struct naming){ .options = options, .id = mapping };
	/* The profile's texts move when names are added. */
	n->path = strdup(profile_text(p, m->filename));
	n->build_id = strdup(profile_text(p, m->build_id));
	n->release = kernel_release(p);
	if (!n->path || !n->build_id || !n->release)
		return -ENOMEM;
	n->mapping = (struct symbolize_mapping){ .path = n->path,
						 .build_id = n->build_id,
						 .release = n->release,
						 .kernel_text = kernel_text(p) };
	return gather(p, n);
}

static void naming_fini(struct naming *n)
{
	if (n->is_in_thread)
		pthread_join(n->thread, NULL);
	n->is_in_thread = false;
	symbolize_source_close(&n->source);
	free(n->wanted);
	free(n->path);
	free(n->build_id);
	free(n->release);
}

/* Once the source is open. */
static void name_mapping(struct profile *p, struct naming *n, struct symbolize_tally *tally)
{
	uint64_t left[SYM_REASON_COUNT] = { 0 }, before = tally->left;

	for (uint32_t id = 1; n->mapping.wanted_count && id <= p->location_count; id++) {
		const struct profile_location *l = &p->locations[id - 1];
		enum sym_reason reason = n->opened;
		struct sym_hit hit;

		if (l->mapping_id != n->id || l->line_count)
			continue;
		if (reason == SYM_OK)
			reason = symbolize_source_find(&n->source, l->address, &hit);
		if ((reason == SYM_OK || (reason == SYM_START_ONLY && n->options->starts)) &&
		    name_location(p, id, &hit))
			reason = SYM_NO_MEMORY;
		if (reason == SYM_OK)
			tally->named++;
		else
			tally->left++;
		left[reason] += reason != SYM_OK;
	}
	p->mappings[n->id - 1].has_functions = tally->left == before;
	for (int i = 0; i < SYM_REASON_COUNT && !n->options->quiet; i++) {
		if (left[i])
			tell(p, n->id, (enum sym_reason)i, left[i]);
	}
}

static int name_file(struct profile *p, uint32_t mapping, const struct symbolize_options *options,
		     struct symbolize_tally *tally)
{
	struct naming n;
	int err = naming_init(p, mapping, options, &n);

	if (!err) {
		open_source(&n);
		name_mapping(p, &n, tally);
	}
	naming_fini(&n);
	return err;
}

static bool is_kernel(const struct profile *p, uint32_t mapping)
{
	return symbolize_is_kernel(profile_text(p, p->mappings[mapping - 1].filename));
}

/* The first of the kernel's mappings, 0 without one. A second one would have another build-id. */
static uint32_t find_kernel(const struct profile *p)
{
	for (uint32_t mapping = 1; mapping <= p->mapping_count; mapping++) {
		if (is_kernel(p, mapping))
			return mapping;
	}
	return 0;
}

int symbolize_profile(struct profile *p, const struct symbolize_options *options,
		      struct symbolize_tally *ret_tally)
{
	struct symbolize_tally tally = { 0 };
	struct naming kernel = { 0 };
	uint32_t first = find_kernel(p);
	int err = 0;

	if (first) {
		err = naming_init(p, first, options, &kernel);
		if (!err)
			kernel.is_in_thread = thread_start(&kernel.thread, open_source, &kernel) == 0;
	}
	for (uint32_t mapping = 1; mapping <= p->mapping_count && !err; mapping++) {
		if (mapping != first)
			err = name_file(p, mapping, options, &tally);
	}
	if (!err && first) {
		if (kernel.is_in_thread)
			pthread_join(kernel.thread, NULL);
		else
			open_source(&kernel);
		kernel.is_in_thread = false;
		name_mapping(p, &kernel, &tally);
	}
	naming_fini(&kernel);
	if (!err)
		*ret_tally = tally;
	return err;
}
