/* SPDX-License-Identifier: Apache-2.0 */
/* Names for every frame of the profile, made once: rows and trees then compare numbers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report_private.h"
#include "proto/folded.h"

enum { NAME_MAX_BYTES = 1 << 20 };

struct name_parts {
	const char *dso;
	const char *kind;
	const char *name; /* "" for an address */
};

/* Bracketed mappings that are user space; all others are the kernel and its modules. */
static const struct {
	const char *prefix;
	const char *kind;
} USER_BRACKETS[] = {
	{ "[jit", "jit" },	 { "[vdso", "user" },	 { "[vsyscall", "user" },
	{ "[anon", "user" },	 { "[heap", "user" },	 { "[stack", "user" },
	{ "[unknown", "user" },	 { "[memfd", "user" },	 { "[uprobes", "user" },
};

static const char *kind_of_file(const char *file)
{
	size_t len = strlen(file);

	if (file[0] != '[')
		return len > 3 && strcmp(file + len - 3, ".ko") == 0 ? "kernel" : "user";
	for (size_t i = 0; i < sizeof(USER_BRACKETS) / sizeof(USER_BRACKETS[0]); i++) {
		if (strncmp(file, USER_BRACKETS[i].prefix, strlen(USER_BRACKETS[i].prefix)) == 0)
			return USER_BRACKETS[i].kind;
	}
	return "kernel";
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* perf and Go's tools write "[kernel.kallsyms]_stext" and the like. */
static const char *dso_name(const char *file)
{
	static const char kernel[] = "[kernel.kallsyms]";

	if (!file[0])
		return "[unknown]";
	if (strncmp(file, kernel, sizeof(kernel) - 1) == 0)
		return kernel;
	return file[0] == '[' ? file : base_name(file);
}

static void name_frame(const struct profile *p, const struct profile_location *location,
		       size_t line, struct name_parts *parts)
{
	*parts = (struct name_parts){ .dso = "[unknown]", .kind = "user", .name = "" };
	if (line < location->line_count) {
		const struct profile_function *function =
			&p->functions[location->lines[line].function_id - 1];

		parts->name = profile_text(p, function->name ? function->name :
							       function->system_name);
	}
	if (location->mapping_id) {
		const char *file =
			profile_text(p, p->mappings[location->mapping_id - 1].filename);

		parts->dso = dso_name(file);
		parts->kind = kind_of_file(file);
	} else if (parts->name[0]) {
		/* A name without a file: a reason such as [truncated], or a runtime's frame. */
		parts->dso = "-";
		parts->kind = parts->name[0] == '[' ? "marker" : "user";
	}
}

/* Interns what is in the buffer; 0 (the empty text) stands in when memory ran out. */
static uint32_t intern_buf(struct report *r, struct buf *text, int *err)
{
	int64_t number = buf_error(text) ? -ENOMEM :
			 strtab_add(&r->texts, (const char *)text->data, text->len);

	buf_reset(text);
	if (number < 0) {
		*err = -ENOMEM;
		return 0;
	}
	return (uint32_t)number;
}

static uint32_t intern(struct report *r, const char *text, int *err)
{
	int64_t number = strtab_add(&r->texts, text, strlen(text));

	if (number < 0)
		*err = -ENOMEM;
	return number < 0 ? 0 : (uint32_t)number;
}

static void fill_source(struct report *r, const struct profile_line *line,
			struct report_frame *frame, struct buf *text, int *err)
{
	const struct profile_function *function = &r->p->functions[line->function_id - 1];
	const char *file = profile_text(r->p, function->filename);

	if (!file[0])
		return;
	r->has_source = true;
	frame->file = intern(r, file, err);
	buf_printf(text, "%s:%lld", base_name(file), (long long)line->line);
	frame->srcline = intern_buf(r, text, err);
}

static int fill_frame(struct report *r, const struct profile_location *location, size_t line,
		      struct report_frame *frame, struct buf *text)
{
	struct name_parts parts;
	int err = 0;

	name_frame(r->p, location, line, &parts);
	frame->dso = intern(r, parts.dso, &err);
	frame->kind = intern(r, parts.kind, &err);
	if (parts.name[0])
		buf_put_str(text, parts.name);
	else
		buf_printf(text, "0x%016llx", (unsigned long long)location->address);
	frame->name = intern_buf(r, text, &err);
	buf_printf(text, "%s %s", strcmp(parts.kind, "kernel") == 0 ? "[k]" : "[.]",
		   report_text(r, frame->name));
	frame->symbol = intern_buf(r, text, &err);
	folded_frame_text(r->p, location, line, text);
	frame->text = intern_buf(r, text, &err);
	frame->file = frame->srcline = intern(r, "-", &err);
	if (line < location->line_count)
		fill_source(r, &location->lines[line], frame, text, &err);
	return err;
}

static int fill_empty_stack(struct report *r, struct report_frame *frame)
{
	int err = 0;
	uint32_t dash = intern(r, "-", &err);
	uint32_t name = intern(r, "[no stack]", &err);

	*frame = (struct report_frame){
		.dso = dash,
		.symbol = intern(r, "[.] [no stack]", &err),
		.name = name,
		.text = name,
		.kind = intern(r, "marker", &err),
		.file = dash,
		.srcline = dash,
	};
	return err;
}

static size_t lines_of(const struct profile_location *location)
{
	return location->line_count ? location->line_count : 1;
}

static int allocate(struct report *r)
{
	const struct profile *p = r->p;
	size_t count = 1;

	for (size_t i = 0; i < p->location_count; i++)
		count += lines_of(&p->locations[i]);
	if (count > UINT32_MAX)
		return -ENOMEM;
	r->frames = calloc(count, sizeof(*r->frames));
	r->first_frame = calloc(p->location_count + 1, sizeof(*r->first_frame));
	return r->frames && r->first_frame ? 0 : -ENOMEM;
}

int report_frames_build(struct report *r)
{
	const struct profile *p = r->p;
	struct buf text;
	int err;

	buf_init(&text, NAME_MAX_BYTES + p->strings.text.used);
	err = allocate(r);
	if (!err)
		err = fill_empty_stack(r, &r->frames[0]);
	r->frame_count = 1;
	for (size_t i = 0; i < p->location_count && !err; i++) {
		const struct profile_location *location = &p->locations[i];

		r->first_frame[i] = (uint32_t)r->frame_count;
		for (size_t line = 0; line < lines_of(location) && !err; line++)
			err = fill_frame(r, location, line, &r->frames[r->frame_count++], &text);
		r->first_frame[i + 1] = (uint32_t)r->frame_count;
	}
	buf_fini(&text);
	return err;
}
