/* SPDX-License-Identifier: Apache-2.0 */
/* What the catalogue keeps of a profile; see store_files.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* ---- in the header of a gzip file ---- */

/*
 * An extra field (RFC 1952) with one subfield "So": version, start, end (both int64, little
 * endian), host and labels, each ended by a NUL.
 */
enum {
	GZIP_HEAD = 10,
	GZIP_FLAGS = 3,
	GZIP_FLAG_EXTRA = 4,
	SUBFIELD_HEAD = 4,
	STAMP_VERSION = 1,
	STAMP_NUMBERS = 17,
	MAX_STAMP = STAMP_NUMBERS + sizeof(((struct store_facts *)0)->host) +
		    sizeof(((struct store_facts *)0)->labels),
	MAX_STAMPED_HEAD = GZIP_HEAD + 2 + SUBFIELD_HEAD + MAX_STAMP,
};

static void put_le(uint8_t *to, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get_le(const uint8_t *from, int bytes)
{
	uint64_t value = 0;

	for (int i = bytes; i-- > 0;)
		value = value << 8 | from[i];
	return value;
}

int store_facts_stamp(struct buf *gz, const struct store_facts *facts)
{
	size_t host = strlen(facts->host) + 1, labels = strlen(facts->labels) + 1;
	size_t data = STAMP_NUMBERS + host + labels, more = 2 + SUBFIELD_HEAD + data;
	size_t rest = gz->len - GZIP_HEAD;
	uint8_t *p;

	/* Only what we compressed ourselves: a head without any optional field. */
	if (gz->len < GZIP_HEAD || gz->data[GZIP_FLAGS])
		return -EINVAL;
	if (!buf_reserve(gz, more))
		return buf_error(gz);
	p = gz->data + GZIP_HEAD;
	memmove(p + more, p, rest);
	gz->len += more;
	gz->data[GZIP_FLAGS] = GZIP_FLAG_EXTRA;
	put_le(p, SUBFIELD_HEAD + data, 2);
	p[2] = 'S';
	p[3] = 'o';
	put_le(p + 4, data, 2);
	p += 2 + SUBFIELD_HEAD;
	p[0] = STAMP_VERSION;
	put_le(p + 1, (uint64_t)facts->start_ns, 8);
	put_le(p + 9, (uint64_t)facts->end_ns, 8);
	memcpy(p + STAMP_NUMBERS, facts->host, host);
	memcpy(p + STAMP_NUMBERS + host, facts->labels, labels);
	return 0;
}

static bool lines_are_clean(const char *text)
{
	for (size_t len; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		if (!text_is_clean(text, len))
			return false;
	}
	return true;
}

/* A text of the stamp, with its NUL: the byte behind it, or NULL. */
static const uint8_t *take_text(const uint8_t *p, const uint8_t *end, char *text, size_t size)
{
	const uint8_t *nul = memchr(p, 0, (size_t)(end - p));

	if (!nul || (size_t)(nul - p) >= size || !lines_are_clean((const char *)p))
		return NULL;
	memcpy(text, p, (size_t)(nul - p) + 1);
	return nul + 1;
}

static int parse_stamp(const uint8_t *head, size_t len, struct store_facts *facts)
{
	const uint8_t *p = head + GZIP_HEAD + 2 + SUBFIELD_HEAD, *end;
	size_t data;

	if (len < GZIP_HEAD + 2 + SUBFIELD_HEAD + STAMP_NUMBERS || head[0] != 0x1f ||
	    head[1] != 0x8b || head[GZIP_FLAGS] != GZIP_FLAG_EXTRA ||
	    memcmp(head + GZIP_HEAD + 2, "So", 2) != 0)
		return -EBADMSG;
	data = get_le(p - 2, 2);
	if (data < STAMP_NUMBERS || data > len - (size_t)(p - head) || p[0] != STAMP_VERSION ||
	    get_le(head + GZIP_HEAD, 2) != SUBFIELD_HEAD + data)
		return -EBADMSG;
	end = p + data;
	facts->start_ns = (int64_t)get_le(p + 1, 8);
	facts->end_ns = (int64_t)get_le(p + 9, 8);
	if (facts->end_ns < facts->start_ns)
		return -EBADMSG;
	p = take_text(p + STAMP_NUMBERS, end, facts->host, sizeof(facts->host));
	p = p ? take_text(p, end, facts->labels, sizeof(facts->labels)) : NULL;
	return p == end ? 0 : -EBADMSG;
}

/* ---- from the content ---- */

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

static int read_stamp(const char *path, struct store_facts *ret_facts)
{
	struct store_facts facts = { 0 };
	uint8_t head[MAX_STAMPED_HEAD];
	int err = -EBADMSG, fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = read(fd, head, sizeof(head));
	if (len > 0 && fstat(fd, &st) == 0)
		err = parse_stamp(head, (size_t)len, &facts);
	close(fd);
	if (err)
		return err;
	facts.bytes = (uint64_t)st.st_size;
	*ret_facts = facts;
	return 0;
}

int store_facts_read(const char *path, struct store_facts *ret_facts)
{
	struct store_facts facts = { 0 };
	struct scan scan = { 0 };
	struct wire_reader all;
	struct buf plain;
	int err;

	if (read_stamp(path, ret_facts) == 0)
		return 0;
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
