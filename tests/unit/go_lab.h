/* SPDX-License-Identifier: Apache-2.0 */
/* Makes Go's pclntab in each of its layouts, for tests and for the seeds of fuzzing. */
#ifndef TESTS_UNIT_GO_LAB_H
#define TESTS_UNIT_GO_LAB_H

#include <string.h>

#include "base/buf.h"
#include "symbolizer/go_pclntab.h"

enum { GO_LAB_TEXT = 0x401000, GO_LAB_STEP = 0x40 };

static inline void go_put(struct buf *b, uint64_t value, size_t size)
{
	buf_put(b, &value, size);
}

static inline void go_set(struct buf *b, size_t at, uint64_t value, size_t size)
{
	memcpy(b->data + at, &value, size);
}

/* One record a function: entry and the offset of its name. */
static inline size_t go_lab_record(struct buf *b, unsigned int version, size_t ptr, size_t number,
				   uint32_t name)
{
	size_t at = b->len;

	if (version >= 18)
		go_put(b, number * GO_LAB_STEP, 4);
	else
		go_put(b, GO_LAB_TEXT + number * GO_LAB_STEP, ptr);
	go_put(b, name, 4);
	for (int i = 0; i < 9; i++)
		go_put(b, 0, 4);
	return at;
}

/*
 * A table of `count` functions (at most 64) of GO_LAB_STEP bytes each from GO_LAB_TEXT on; `version`
 * is 2, 16, 18 or 20.
 */
static inline struct buf go_lab_table(unsigned int version, size_t ptr, const char *const *names,
				      size_t count)
{
	static const uint8_t magics[] = { [2] = 0xfb, [16] = 0xfa, [18] = 0xf0, [20] = 0xf1 };
	size_t pc = version >= 18 ? 4 : ptr, fields = version == 2 ? 1 : version == 16 ? 7 : 8;
	size_t names_at, functab, offsets[64];
	struct buf b;

	buf_init(&b, 1 << 20);
	go_put(&b, 0xffffff00u | magics[version], 4);
	go_put(&b, 0, 2);
	go_put(&b, 1, 1);
	go_put(&b, ptr, 1);
	go_put(&b, count, ptr);
	for (size_t i = 1; i < fields; i++)
		go_put(&b, 0, ptr);
	functab = b.len;
	for (size_t i = 0; version == 2 && i < 2 * count + 1; i++)
		go_put(&b, 0, pc);
	names_at = b.len;
	for (size_t i = 0; i < count; i++) {
		offsets[i] = version == 2 ? b.len : b.len - names_at;
		buf_put(&b, names[i], strlen(names[i]) + 1);
	}
	if (version != 2) {
		functab = b.len;
		for (size_t i = 0; i < 2 * count + 1; i++)
			go_put(&b, 0, pc);
		go_set(&b, 8 + (version == 16 ? 2 : 3) * ptr, names_at, ptr);
		go_set(&b, 8 + (version == 16 ? 6 : 7) * ptr, functab, ptr);
	}
	for (size_t i = 0; i < count; i++) {
		size_t at = go_lab_record(&b, version, ptr, i, (uint32_t)offsets[i]);

		go_set(&b, functab + 2 * i * pc,
		       (version >= 18 ? 0 : GO_LAB_TEXT) + i * GO_LAB_STEP, pc);
		go_set(&b, functab + (2 * i + 1) * pc, at - (version == 2 ? 0 : functab), pc);
	}
	go_set(&b, functab + 2 * count * pc,
	       (version >= 18 ? 0 : GO_LAB_TEXT) + count * GO_LAB_STEP, pc);
	return b;
}

#endif
