/* SPDX-License-Identifier: Apache-2.0 */
/* Folded stacks; see folded.h. Lines of equal text are one line, whatever made them differ. */
#include "proto/folded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strtab.h"

enum { BLOCK_SIZE = 64 * 1024 };

static const size_t NO_BOUND = SIZE_MAX / 4;

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static const char *function_name(const struct profile *p, const struct profile_line *line)
{
	const struct profile_function *function = &p->functions[line->function_id - 1];

	return profile_text(p, function->name ? function->name : function->system_name);
}

void folded_frame_text(const struct profile *p, const struct profile_location *location,
		       size_t line, struct buf *out)
{
	const char *name = line < location->line_count ?
				   function_name(p, &location->lines[line]) :
				   "";
	const char *module = "";

	if (location->mapping_id)
		module = base_name(profile_text(p, p->mappings[location->mapping_id - 1].filename));
	if (name[0])
		buf_put_str(out, name);
	else if (module[0])
		buf_printf(out, "%s+0x%llx", module, (unsigned long long)location->address);
	else
		buf_put_str(out, "[unknown]");
}

/* The text of one element: what would break the format is replaced. */
static void put_element(struct buf *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		buf_put_byte(out, (uint8_t)(c == ';' ? ':' : c == '\n' ? ' ' : c));
	}
}

struct fold {
	const struct profile *p;
	struct buf frames;     /* ";outer;inner" of each location, one after the other */
	size_t *frames_start;  /* by location id - 1; the end is the next one's start */
	struct buf line;       /* the line being built */
	struct strtab lines;   /* distinct lines */
	int64_t *values;       /* by line number */
	size_t value_cap;
	uint32_t comm_key;     /* string number of "comm", or 0 */
};

static uint32_t find_string(const struct profile *p, const char *text)
{
	for (size_t i = 1; i < p->strings.count; i++) {
		if (strcmp(profile_text(p, (uint32_t)i), text) == 0)
			return (uint32_t)i;
	}
	return 0;
}

/* Within a location the outermost line comes last; folded text wants it first. */
static int render_frames(struct fold *f)
{
	const struct profile *p = f->p;
	struct buf text;
	int err;

	f->frames_start = calloc(p->location_count + 1, sizeof(*f->frames_start));
	if (!f->frames_start)
		return -ENOMEM;
	buf_init(&text, NO_BOUND);
	for (size_t i = 0; i < p->location_count; i++) {
		const struct profile_location *location = &p->locations[i];
		size_t lines = location->line_count ? location->line_count : 1;

		for (size_t line = lines; line-- > 0;) {
			buf_reset(&text);
			folded_frame_text(p, location, line, &text);
			buf_put_byte(&f->frames, ';');
			put_element(&f->frames, (const char *)text.data, text.len);
		}
		f->frames_start[i + 1] = f->frames.len;
	}
	err = buf_error(&text) ? -ENOMEM : buf_error(&f->frames);
	buf_fini(&text);
	return err;
}

static const char *sample_comm(const struct fold *f, const struct profile_sample *sample)
{
	for (size_t i = 0; f->comm_key && i < sample->label_count; i++) {
		if (sample->labels[i].key == f->comm_key)
			return profile_text(f->p, sample->labels[i].str);
	}
	return "";
}

static void build_line(struct fold *f, const struct profile_sample *sample)
{
	const char *comm = sample_comm(f, sample);

	buf_reset(&f->line);
	put_element(&f->line, comm, strlen(comm));
	for (size_t i = sample->location_count; i-- > 0;) {
		size_t location = sample->locations[i] - 1;
		size_t start = f->frames_start[location];

		/* Without a command the first separator goes. */
		if (f->line.len == 0)
			start++;
		buf_put(&f->line, f->frames.data + start, f->frames_start[location + 1] - start);
	}
	if (f->line.len == 0)
		buf_put_str(&f->line, "[unknown]");
}

static int reserve_value(struct fold *f, size_t number)
{
	size_t cap = f->value_cap ? f->value_cap * 2 : 256;
	int64_t *values;

	if (number < f->value_cap)
		return 0;
	values = reallocarray(f->values, cap, sizeof(*values));
	if (!values)
		return -ENOMEM;
	memset(values + f->value_cap, 0, (cap - f->value_cap) * sizeof(*values));
	f->values = values;
	f->value_cap = cap;
	return 0;
}

static int fold_sample(struct fold *f, const struct profile_sample *sample, int64_t value)
{
	int64_t number;

	build_line(f, sample);
	if (buf_error(&f->line))
		return -ENOMEM;
	number = strtab_add(&f->lines, (const char *)f->line.data, f->line.len);
	if (number < 0 || reserve_value(f, (size_t)number))
		return -ENOMEM;
	if (__builtin_add_overflow(f->values[number], value, &f->values[number]))
		f->values[number] = INT64_MAX;
	return 0;
}

static int fold_all(struct fold *f, size_t type)
{
	int err = render_frames(f);

	for (size_t i = 0; i < f->p->sample_count && !err; i++) {
		const struct profile_sample *sample = &f->p->samples[i];

		if (sample->values[type])
			err = fold_sample(f, sample, sample->values[type]);
	}
	return err;
}

static int compare_lines(const void *a, const void *b, void *context)
{
	const struct strtab *lines = context;

	return strcmp(strtab_get(lines, *(const uint32_t *)a),
		      strtab_get(lines, *(const uint32_t *)b));
}

static int flush(struct buf *out, struct byte_sink sink)
{
	int err;

	if (buf_error(out))
		return -ENOMEM;
	err = out->len ? sink.write(sink.context, out->data, out->len) : 0;
	buf_reset(out);
	return err;
}

/* Line 0 of the table is the empty string, which is no line. */
static int write_sorted(struct fold *f, struct byte_sink sink)
{
	size_t count = f->lines.count - 1;
	uint32_t *order = calloc(count + 1, sizeof(*order));
	struct buf out;
	int err = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i + 1;
	qsort_r(order, count, sizeof(*order), compare_lines, &f->lines);
	buf_init(&out, NO_BOUND);
	for (size_t i = 0; i < count && !err; i++) {
		buf_put_str(&out, strtab_get(&f->lines, order[i]));
		buf_printf(&out, " %lld\n", (long long)f->values[order[i]]);
		if (out.len >= BLOCK_SIZE)
			err = flush(&out, sink);
	}
	if (!err)
		err = flush(&out, sink);
	buf_fini(&out);
	free(order);
	return err;
}

int folded_write(const struct profile *p, size_t type, struct byte_sink sink)
{
	struct fold f = { .p = p, .comm_key = find_string(p, "comm") };
	int err;

	buf_init(&f.frames, NO_BOUND);
	buf_init(&f.line, NO_BOUND);
	err = strtab_init(&f.lines, NO_BOUND);
	if (!err)
		err = fold_all(&f, type);
	if (!err)
		err = write_sorted(&f, sink);
	strtab_fini(&f.lines);
	buf_fini(&f.frames);
	buf_fini(&f.line);
	free(f.frames_start);
	free(f.values);
	return err;
}
