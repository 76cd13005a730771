/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for code that sets up frame pointers; see unwind_bare.h. */
#include "symbolizer/unwind_bare.h"

#include <string.h>

enum {
	SHORT = 64, /* functions are aligned to 64 bytes at most */
	BYTES_MAX = 32 * 1024 * 1024,
	PIECE = 64 * 1024,
	BETWEEN = 16, /* bytes of other instructions between the two, with the first */
	PUSH_RBP = 0x55,
};

void unwind_bare_init(struct unwind_bare *b, const struct elf_source *source)
{
	*b = (struct unwind_bare){ .bytes = BYTES_MAX };
	unwind_window_init(&b->code, source, 0, source->size);
}

void unwind_bare_fini(struct unwind_bare *b)
{
	unwind_window_fini(&b->code);
}

/* "mov %rsp, %rbp", in its two encodings, behind a "push %rbp". */
static bool sets_frame(const uint8_t *bytes, size_t len)
{
	static const uint8_t moves[][3] = { { 0x48, 0x89, 0xe5 }, { 0x48, 0x8b, 0xec } };

	for (size_t i = 0; i < 2; i++) {
		const uint8_t *at = bytes, *end = bytes + len, *found;

		while ((found = memmem(at, (size_t)(end - at), moves[i], sizeof(moves[i])))) {
			size_t before = (size_t)(found - bytes) < BETWEEN ? (size_t)(found - bytes) : BETWEEN;

			if (memchr(found - before, PUSH_RBP, before))
				return true;
			at = found + 1;
		}
	}
	return false;
}

bool unwind_bare_is(struct unwind_bare *b, uint64_t from, uint64_t to)
{
	if (to < from + SHORT || to - from > b->bytes)
		return false;
	b->bytes -= to - from;
	while (from < to) {
		size_t len = to - from < PIECE ? (size_t)(to - from) : PIECE;
		const uint8_t *bytes;

		if (unwind_window_see(&b->code, from, len, &bytes) || sets_frame(bytes, len))
			return false;
		if (len < PIECE)
			break;
		from += len - (BETWEEN + 2); /* one that lies across two pieces is whole in the next */
	}
	return true;
}
