/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the parsers of small texts, and the escaping of foreign bytes. What they accept
 * must hold what their header promises.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/proc.h"
#include "base/text.h"

enum { MAX_CPUS = 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_cpu_list(const char *text)
{
	int cpus[MAX_CPUS];
	size_t count = SIZE_MAX;

	if (parse_cpu_list(text, cpus, MAX_CPUS, &count)) {
		assert(count == SIZE_MAX);
		return;
	}
	assert(count <= MAX_CPUS);
	for (size_t i = 0; i < count; i++)
		assert(cpus[i] >= 0 && cpus[i] <= 65535);
}

static void check_escape(const char *bytes, size_t size)
{
	struct buf out;
	bool same;

	buf_init(&out, size * 4);
	text_escape(&out, bytes, size);
	assert(!buf_error(&out));
	same = out.len == size && (!size || !memcmp(out.data, bytes, size));
	assert(same == text_is_clean(bytes, size));
	for (size_t i = 0; i < out.len; i++)
		assert(out.data[i] >= 0x20 && out.data[i] != 0x7f);
	assert(text_is_clean((char *)out.data, out.len) || memchr(out.data, '\\', out.len));
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	uint64_t value;

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = 0;
	check_cpu_list(text);
	if (!parse_duration(text, &value))
		assert(value < 9200000000000000000ULL);
	parse_u64(text, 0, &value);
	parse_digits(text, text + size, 16, &value);
	proc_stat_start_ticks(text, size, &value);
	check_escape(text, size);
	free(text);
	return 0;
}
