/* SPDX-License-Identifier: Apache-2.0 */
/* What the catalogue keeps of a profile; see store_files.h. */
#include <errno.h>
#include <string.h>

#include "agent/store/store_files.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/text.h"
#include "proto/compress.h"
#include "proto/pprof_fields.h"
#include "proto/wire.h"

enum {
	MAX_FILE = 256 << 20,
	MAX_PLAIN = 1 << 30,
	MAX_COMMENTS = 256, /* looked at for host and labels */
};

static const char HOST[] = "host: ";

/* Whether it is "word: value"; counters (sonde.x=1) and sentences are not. */
static bool is_label(const char *text, size_t len)
{
	size_t word = 0;

	while (word < len && ((text[word] >= 'a' && text[word] <= 'z') || text[word] == '_'))
		word++;
	return word > 0 && len - word > 2 && text[word] == ':' && text[word + 1] == ' ';
}

/* Text that does not fit is left out as a whole: half a label would be a wrong one. */
static void note_comment(struct store_facts *facts, const char *text, size_t len)
{
	size_t have = strlen(facts->labels);

	if (len > strlen(HOST) && strncmp(text, HOST, strlen(HOST)) == 0) {
		text += strlen(HOST);
		len -= strlen(HOST);
		if (len < sizeof(facts->host) && !facts->host[0])
			memcpy(facts->host, text, len);
		return;
	}
	if (!is_label(text, len) || have + len + 2 > sizeof(facts->labels))
		return;
	if (have)
		facts->labels[have++] = '\n';
	memcpy(facts->labels + have, text, len);
}

static int64_t end_of(int64_t start_ns, int64_t duration_ns)
{
	int64_t end;

	if (duration_ns < 0)
		duration_ns = 0;
	return __builtin_add_overflow(start_ns, duration_ns, &end) ? INT64_MAX : end;
}

void store_facts_of(const struct profile *p, struct store_facts *ret_facts)
{
	struct store_facts facts = { .start_ns = p->time_ns };

	facts.end_ns = end_of(p->time_ns, p->duration_ns);
	for (size_t i = 0; i < p->comment_count; i++) {
		const char *text = profile_text(p, p->comments[i]);

		note_comment(&facts, text, strlen(text));
	}
	*ret_facts = facts;
}

struct scan {
	int64_t start_ns, duration_ns;
	uint64_t comments[MAX_COMMENTS]; /* string numbers */
	size_t comment_count;
};

static int scan_scalars(struct wire_reader all, struct scan *scan)
{
	struct wire_field field;
	uint64_t value;
	int got;

	while ((got = wire_next(&all, &field)) == 1) {
		if (field.number == PROFILE_TIME_NANOS && field.type == WIRE_VARINT)
			scan->start_ns = (int64_t)field.value;
		if (field.number == PROFILE_DURATION_NANOS && field.type == WIRE_VARINT)
			scan->duration_ns = (int64_t)field.value;
		while (field.number == PROFILE_COMMENT && scan->comment_count < MAX_COMMENTS &&
		       wire_next_element(&field, &value) == 1)
			scan->comments[scan->comment_count++] = value;
	}
	return got;
}

/* Strings may come before or after what refers to them. */
static void scan_strings(struct wire_reader all, const struct scan *scan, struct store_facts *facts)
{
	struct wire_field field;
	uint64_t number = 0;

	while (wire_next(&all, &field) == 1) {
		const char *text = (const char *)field.bytes.pos;
		size_t len;

		if (field.number != PROFILE_STRING_TABLE || field.type != WIRE_BYTES)
			continue;
		len = (size_t)(field.bytes.end - field.bytes.pos);
		for (size_t i = 0; i < scan->comment_count; i++) {
			if (scan->comments[i] == number && text_is_clean(text, len))
				note_comment(facts, text, len);
		}
		number++;
	}
}

static int read_plain(const char *path, struct buf *plain, uint64_t *ret_bytes)
{
	struct buf file;
	int err;

	buf_init(&file, MAX_FILE);
	err = file_read_path(path, &file);
	if (!err)
		err = decompress(compress_detect(file.data, file.len), file.data, file.len, plain);
	*ret_bytes = file.len;
	buf_fini(&file);
	return err;
}

int store_facts_read(const char *path, struct store_facts *ret_facts)
{
	struct store_facts facts = { 0 };
	struct scan scan = { 0 };
	struct wire_reader all;
	struct buf plain;
	int err;

	buf_init(&plain, MAX_PLAIN);
	err = read_plain(path, &plain, &facts.bytes);
	all = (struct wire_reader){ plain.data, plain.data + plain.len };
	if (!err)
		err = plain.len ? scan_scalars(all, &scan) : -EBADMSG;
	if (!err) {
		facts.start_ns = scan.start_ns;
		facts.end_ns = end_of(scan.start_ns, scan.duration_ns);
		scan_strings(all, &scan, &facts);
		*ret_facts = facts;
	}
	buf_fini(&plain);
	return err;
}
