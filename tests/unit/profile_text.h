/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles from a text description, for golden tests. One thing a line:
 *
 *   type NAME UNIT            default NAME           period NAME UNIT N
 *   time START_NS DURATION_NS comment TEXT           source FILE (of functions that follow)
 *   mapping KEY FILE
 *   sample VALUES LABELS | FRAMES
 *
 * VALUES are one per type with commas; a single one is the first, and times the period the
 * second. LABELS: key=text or key=#number; \xNN is a byte. FRAMES, leaf first: NAME@KEY or
 * 0xADDRESS@KEY, without @KEY for no mapping, NAME+NAME (innermost first) for inlined functions,
 * and :LINE at the end. "_" in "[...]" and after a comma is a blank.
 */
#ifndef TESTS_UNIT_PROFILE_TEXT_H
#define TESTS_UNIT_PROFILE_TEXT_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/profile.h"

enum { TEXT_MAX_FRAMES = 64, TEXT_MAX_LABELS = 8, TEXT_MAX_MAPPINGS = 16 };

struct profile_text {
	struct profile *p;
	char mapping_keys[TEXT_MAX_MAPPINGS][16];
	uint32_t source;
};

static inline uint32_t text_string(struct profile_text *t, const char *text)
{
	int64_t number = profile_string(t->p, text);

	assert(number >= 0);
	return (uint32_t)number;
}

static inline void text_unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		unsigned byte;

		if (sscanf(text, "\\x%2x", &byte) == 1) {
			*to++ = (char)byte;
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = 0;
}

static inline void text_blanks(char *name)
{
	for (size_t i = 0; name[i]; i++) {
		if (name[i] == '_' && (name[0] == '[' || (i && name[i - 1] == ',')))
			name[i] = ' ';
	}
}

static inline uint32_t text_mapping(const struct profile_text *t, const char *key)
{
	for (uint32_t i = 0; key && i < t->p->mapping_count; i++) {
		if (strcmp(t->mapping_keys[i], key) == 0)
			return i + 1;
	}
	assert(!key);
	return 0;
}

static inline uint32_t text_frame(struct profile_text *t, char *frame)
{
	struct profile_line lines[4] = { 0 };
	char *colon = strrchr(frame, ':'), *at, *save = NULL;
	int64_t line_number = 0, location;
	size_t line_count = 0;
	uint32_t mapping;

	if (colon && colon[1] >= '0' && colon[1] <= '9') {
		line_number = atoll(colon + 1);
		*colon = 0;
	}
	at = strchr(frame, '@');
	if (at)
		*at = 0;
	mapping = text_mapping(t, at ? at + 1 : NULL);
	if (strncmp(frame, "0x", 2) == 0) {
		location = profile_add_location(t->p, mapping, strtoull(frame, NULL, 16), NULL, 0);
		assert(location > 0);
		return (uint32_t)location;
	}
	for (char *name = strtok_r(frame, "+", &save); name; name = strtok_r(NULL, "+", &save)) {
		struct profile_function f = { .filename = t->source };
		int64_t function;

		text_blanks(name);
		f.name = text_string(t, name);
		function = profile_add_function(t->p, &f);
		assert(function > 0);
		lines[line_count++] = (struct profile_line){ (uint32_t)function, line_number };
	}
	location = profile_add_location(t->p, mapping, 0, lines, line_count);
	assert(location > 0);
	return (uint32_t)location;
}

static inline struct profile_label text_label(struct profile_text *t, char *label)
{
	char *value = strchr(label, '=');
	struct profile_label result = { 0 };

	assert(value);
	*value++ = 0;
	text_unescape(value);
	result.key = text_string(t, label);
	if (value[0] == '#')
		result.num = atoll(value + 1);
	else
		result.str = text_string(t, value);
	return result;
}

static inline void text_values(const struct profile_text *t, char *text, int64_t *values)
{
	size_t count = 0;
	char *save = NULL;

	for (char *v = strtok_r(text, ",", &save); v; v = strtok_r(NULL, ",", &save))
		values[count++] = atoll(v);
	if (count == 1 && t->p->type_count == 2)
		values[1] = values[0] * t->p->period;
}

static inline void text_sample(struct profile_text *t, char *line)
{
	struct profile_label labels[TEXT_MAX_LABELS];
	uint32_t stack[TEXT_MAX_FRAMES];
	int64_t values[PROFILE_MAX_TYPES] = { 0 };
	size_t label_count = 0, depth = 0;
	char *save = NULL, *word;
	bool frames = false;
	int err;

	text_values(t, strtok_r(line, " ", &save), values);
	while ((word = strtok_r(NULL, " ", &save)) != NULL) {
		assert(label_count < TEXT_MAX_LABELS && depth < TEXT_MAX_FRAMES);
		if (strcmp(word, "|") == 0)
			frames = true;
		else if (frames)
			stack[depth++] = text_frame(t, word);
		else
			labels[label_count++] = text_label(t, word);
	}
	err = profile_add_sample(t->p, stack, depth, values, labels, label_count);
	assert(!err);
}

static inline void text_line(struct profile_text *t, char *line)
{
	struct profile *p = t->p;
	char *rest = strchr(line, ' '), a[256] = "", b[256] = "";

	if (!rest || line[0] == '#')
		return;
	*rest++ = 0;
	if (strcmp(line, "comment") == 0) {
		assert(profile_add_comment(p, "%s", rest) == 0);
		return;
	}
	if (strcmp(line, "sample") == 0) {
		text_sample(t, rest);
		return;
	}
	sscanf(rest, "%255s %255s", a, b);
	if (strcmp(line, "type") == 0) {
		assert(profile_add_type(p, a, b) > 0);
	} else if (strcmp(line, "default") == 0) {
		p->default_type = text_string(t, a);
	} else if (strcmp(line, "source") == 0) {
		t->source = text_string(t, a);
	} else if (strcmp(line, "time") == 0) {
		p->time_ns = atoll(a);
		p->duration_ns = atoll(b);
	} else if (strcmp(line, "period") == 0) {
		p->period_type = (struct profile_type){ text_string(t, a), text_string(t, b) };
		p->period = atoll(strrchr(rest, ' ') + 1);
	} else if (strcmp(line, "mapping") == 0) {
		struct profile_mapping m = { .filename = text_string(t, b) };
		int64_t id = profile_add_mapping(p, &m);

		assert(id > 0 && id <= TEXT_MAX_MAPPINGS);
		snprintf(t->mapping_keys[id - 1], sizeof(t->mapping_keys[0]), "%.15s", a);
	} else {
		fprintf(stderr, "unknown line: %s %s\n", line, rest);
		abort();
	}
}

/* The profile that the file describes, to be freed; aborts on a mistake in it. */
static inline struct profile *profile_from_text(const char *path)
{
	struct profile_text t = { 0 };
	FILE *f = fopen(path, "r");
	char line[1024];

	if (!f || profile_new(16 << 20, &t.p)) {
		perror(path);
		abort();
	}
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		text_line(&t, line);
	}
	fclose(f);
	return t.p;
}

#endif
