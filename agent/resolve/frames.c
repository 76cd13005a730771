/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From normalised frames to locations of the profile. A location is made once for each frame
 * of a profile; all later samples find it in a map.
 */
#include <stdio.h>
#include <string.h>

#include "agent/resolve/resolve_private.h"
#include "base/text.h"

#define KERNEL_FRAME 4 /* beyond the tags of enum sonde_frame_tag */

enum { MAX_NAME_BYTES = 64 * 1024, MAX_LINES = 32 };

static const char *const marker_texts[] = {
#define X(id, text) [SONDE_MARKER_##id] = text,
	SONDE_MARKERS(X)
#undef X
};

/* A string of the profile from foreign bytes. */
static int64_t clean_string(struct resolver *r, const char *bytes)
{
	size_t len = strlen(bytes);
	struct buf text;
	int64_t id;

	if (text_is_clean(bytes, len))
		return profile_string_n(r->profile, bytes, len);
	buf_init(&text, MAX_NAME_BYTES);
	text_escape(&text, bytes, len);
	id = profile_string_n(r->profile, (const char *)text.data, text.len);
	buf_fini(&text);
	return id;
}

static uint32_t add_mapping(struct resolver *r, const char *filename, const char *build_id)
{
	int64_t name = clean_string(r, filename);
	int64_t build = profile_string(r->profile, build_id);
	struct profile_mapping mapping;
	int64_t id;

	if (name < 0 || build < 0)
		return 0;
	mapping =
		(struct profile_mapping){ .filename = (uint32_t)name, .build_id = (uint32_t)build };
	id = profile_add_mapping(r->profile, &mapping);
	return id > 0 ? (uint32_t)id : 0;
}

/* A location of `mapping` with the found name, or without one. 0 when out of memory. */
static uint32_t add_location(struct resolver *r, uint32_t mapping, uint64_t address,
			     const struct sym_hit *hit)
{
	struct profile_function function = { 0 };
	struct profile_line line = { 0 };
	int64_t name, raw, id;

	if (!hit) {
		if (mapping)
			map_add(&r->unnamed_mappings, &mapping, NULL);
		id = profile_add_location(r->profile, mapping, address, NULL, 0);
		return id > 0 ? (uint32_t)id : 0;
	}
	name = clean_string(r, hit->name);
	raw = clean_string(r, hit->raw_name);
	if (name < 0 || raw < 0)
		return 0;
	function.name = (uint32_t)name;
	function.system_name = (uint32_t)raw;
	id = profile_add_function(r->profile, &function);
	if (id <= 0)
		return 0;
	line.function_id = (uint32_t)id;
	id = profile_add_location(r->profile, mapping, address, &line, 1);
	return id > 0 ? (uint32_t)id : 0;
}

/* The same with source lines, and a function for each call that was put in line. */
static uint32_t add_lines(struct resolver *r, uint32_t mapping, uint64_t address,
			  const struct sym_line *calls, size_t count)
{
	struct profile_line lines[MAX_LINES];
	int64_t id;

	for (size_t i = 0; i < count; i++) {
		int64_t name = clean_string(r, calls[i].function);
		int64_t file = clean_string(r, calls[i].file);

		if (name < 0 || file < 0)
			return 0;
		id = profile_add_function(r->profile,
					  &(struct profile_function){ .name = (uint32_t)name,
								      .system_name = (uint32_t)name,
								      .filename = (uint32_t)file });
		if (id <= 0)
			return 0;
		lines[i] = (struct profile_line){ (uint32_t)id, calls[i].line };
	}
	id = profile_add_location(r->profile, mapping, address, lines, count);
	return id > 0 ? (uint32_t)id : 0;
}

static uint32_t text_location(struct resolver *r, const char *text)
{
	struct sym_hit hit = { .name = text, .raw_name = text };

	return add_location(r, 0, 0, &hit);
}

static uint32_t file_mapping(struct resolver *r, struct known_file *file)
{
	const char *build_id = file->symbols ? sym_file_build_id(file->symbols) : "";

	if (file->profile != r->profile_number || !file->mapping_id) {
		file->mapping_id = add_mapping(r, file->path ? file->path : "", build_id);
		file->profile = r->profile_number;
	}
	return file->mapping_id;
}

static struct frame_value locate_file(struct resolver *r, const struct sonde_frame *frame)
{
	struct known_file *file = file_table_find(&r->files, frame->file, r->now);
	struct frame_value value = { .reason = SYM_NO_FILE };
	struct sym_line calls[MAX_LINES];
	struct sym_hit hit;
	uint64_t vaddr;
	size_t count;

	if (!file) {
		value.location = text_location(r, "[unknown file]");
		return value;
	}
	value.reason = file->reason;
	if (!file->symbols) {
		value.location = add_location(r, file_mapping(r, file), frame->off, NULL);
		return value;
	}
	if (!sym_file_vaddr(file->symbols, frame->off, &vaddr)) {
		value.reason = SYM_NO_SEGMENT;
		value.location = add_location(r, file_mapping(r, file), frame->off, NULL);
		return value;
	}
	value.reason = sym_file_find(file->symbols, vaddr, &hit);
	count = value.reason == SYM_OK ? sym_file_lines(file->symbols, vaddr, calls, MAX_LINES) : 0;
	if (count > 0) {
		value.location = add_lines(r, file_mapping(r, file), vaddr, calls, count);
		return value;
	}
	value.location = add_location(
		r, file_mapping(r, file), vaddr,
		value.reason == SYM_OK || value.reason == SYM_START_ONLY ? &hit : NULL);
	/* Such a mapping is not wholly named: a store or `symbolize` may know better. */
	if (value.reason == SYM_START_ONLY && file->mapping_id)
		map_add(&r->unnamed_mappings, &file->mapping_id, NULL);
	return value;
}

static struct frame_value locate_vdso(struct resolver *r, const struct sonde_frame *frame)
{
	struct frame_value value = { .reason = SYM_NO_FILE };
	uint64_t vaddr = frame->off;
	struct sym_hit hit;
	uint32_t mapping;

	if (r->vdso) {
		sym_file_vaddr(r->vdso, frame->off, &vaddr);
		value.reason = sym_file_find(r->vdso, vaddr, &hit);
	}
	mapping = add_mapping(r, "[vdso]", r->vdso ? sym_file_build_id(r->vdso) : "");
	value.location = add_location(r, mapping, vaddr, value.reason == SYM_OK ? &hit : NULL);
	return value;
}

/* Named JIT code has a mapping of its own, so that this one is wholly named. */
static struct frame_value locate_anon(struct resolver *r, const struct sonde_frame *frame,
				      const struct known_process *process, struct sym_jit *jit)
{
	struct frame_value value = { .reason = SYM_NO_MEMORY };
	struct sym_hit hit;

	if (r->options.no_symbols)
		value.reason = SYM_LEFT_OUT;
	else if (process && process->jit_reading)
		value.reason = SYM_READING;
	if (jit)
		value.reason = sym_jit_find(jit, frame->off, &hit);
	if (value.reason == SYM_OK)
		value.location = add_location(r, add_mapping(r, "[jit]", ""), frame->off, &hit);
	else
		value.location = add_location(r, add_mapping(r, "[anon]", ""), frame->off, NULL);
	return value;
}

static struct frame_value locate_kernel(struct resolver *r, uint64_t addr)
{
	struct sym_hit hit = { 0 };
	struct frame_value value = { .reason = kernel_names_find(r->kernel, addr, r->elapsed_ns,
								    &hit) };
	const char *module = value.reason == SYM_OK ? hit.module : KERNEL_MODULE;
	uint32_t mapping = add_mapping(r, module, kernel_names_build_id(r->kernel, module));

	value.location = add_location(r, mapping, addr, value.reason == SYM_OK ? &hit : NULL);
	return value;
}

static void push(struct resolver *r, struct frame_value value, struct sample_frames *frames)
{
	if (!value.location || frames->count >= MAX_SAMPLE_FRAMES)
		return;
	if (frames->count == 0) {
		frames->leaf_is_code = true;
		frames->leaf_reason = value.reason;
	}
	frames->locations[frames->count++] = value.location;
	r->totals.frames[value.reason] += frames->samples;
}

static void add_marker(struct resolver *r, uint64_t marker, struct sample_frames *frames)
{
	if (marker >= SONDE_MARKER_COUNT)
		marker = SONDE_MARKER_NONE;
	r->totals.markers[marker] += frames->samples;
	frames_add_text(r, marker_texts[marker], frames);
}

void frames_add_text(struct resolver *r, const char *text, struct sample_frames *frames)
{
	uint32_t location = text_location(r, text);

	if (location && frames->count < MAX_SAMPLE_FRAMES)
		frames->locations[frames->count++] = location;
}

/* What is not known yet may be known at the next drain: such a frame is not remembered. */
static bool is_final(const struct resolver *r, const struct sonde_frame *frame,
		     enum sym_reason reason)
{
	return reason != SYM_NO_FILE && reason != SYM_FILE_CHANGED && reason != SYM_NO_BUDGET &&
	       reason != SYM_READING;
}

static void add_frame(struct resolver *r, const struct sonde_frame *frame, uint64_t process_id,
		      const struct known_process *process, struct sample_frames *frames)
{
	struct frame_key key = { .file = frame->file, .off = frame->off };
	struct sym_jit *jit = NULL;
	struct frame_value *known, value;

	if (frame->file == SONDE_FRAME_ANON) {
		if (process && !r->options.no_symbols) {
			jit = process_jit(process);
			key.process = process_id ^ (jit ? sym_jit_version(jit) : 0);
		} else {
			key.process = process_id;
		}
	}
	known = map_find(&r->frame_locations, &key);
	if (known) {
		push(r, *known, frames);
		return;
	}
	if (frame->file & SONDE_FILE_ID_BIT)
		value = locate_file(r, frame);
	else if (frame->file == SONDE_FRAME_VDSO)
		value = locate_vdso(r, frame);
	else
		value = locate_anon(r, frame, process, jit);
	push(r, value, frames);
	if (value.location && is_final(r, frame, value.reason) &&
	    map_add(&r->frame_locations, &key, &known) == 1)
		*known = value;
}

void frames_add_user(struct resolver *r, const struct user_stack *stack, uint64_t process_id,
		     const struct known_process *process, struct sample_frames *frames)
{
	for (uint32_t i = 0; i < stack->count; i++) {
		if (stack->frames[i].file == SONDE_FRAME_MARKER)
			add_marker(r, stack->frames[i].off, frames);
		else
			add_frame(r, &stack->frames[i], process_id, process, frames);
	}
}

void frames_add_kernel(struct resolver *r, const struct kernel_stack *stack,
		       struct sample_frames *frames)
{
	for (uint32_t i = 0; i < stack->count; i++) {
		/* All but the interrupted pc are return addresses. */
		struct frame_key key = { .file = KERNEL_FRAME,
					 .off = stack->addrs[i] - (i ? 1 : 0) };
		struct frame_value *known = map_find(&r->frame_locations, &key), value;

		if (known) {
			push(r, *known, frames);
			continue;
		}
		value = locate_kernel(r, key.off);
		push(r, value, frames);
		/* Of what is not known yet more may be known at the next drain. */
		if (value.location && !kernel_names_are_coming(r->kernel) &&
		    map_add(&r->frame_locations, &key, &known) == 1)
			*known = value;
	}
}
