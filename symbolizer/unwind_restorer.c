/* SPDX-License-Identifier: Apache-2.0 */
/* Finds rt_sigreturn by its code; see unwind_restorer.h. */
#include "symbolizer/unwind_restorer.h"

enum {
	SMALL_GAP = 256,
	SMALL_GAPS_MAX = 4096,
	BYTES_MAX = 16 * 1024 * 1024,
	PIECE = 64 * 1024,
};

static const uint8_t restorer[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };

static bool is_small(uint64_t from, uint64_t to)
{
	return to - from < SMALL_GAP;
}

static bool can_hold(uint64_t from, uint64_t to)
{
	return to > from && to - from >= sizeof(restorer);
}

void unwind_restorers_init(struct unwind_restorers *r, const struct elf_source *source,
			   const struct unwind_index *covered)
{
	size_t small = 0;

	for (size_t i = 1; i < covered->count; i++) {
		uint64_t from = covered->refs[i - 1].off + covered->refs[i - 1].size;

		small += can_hold(from, covered->refs[i].off) &&
			 is_small(from, covered->refs[i].off);
	}
	*r = (struct unwind_restorers){
		.bytes = BYTES_MAX,
		.small_gaps = small <= SMALL_GAPS_MAX,
	};
	unwind_window_init(&r->code, source, 0, source->size);
}

void unwind_restorers_fini(struct unwind_restorers *r)
{
	unwind_window_fini(&r->code);
}

bool unwind_restorer_find(struct unwind_restorers *r, uint64_t from, uint64_t to,
			  uint64_t *ret_begin, uint64_t *ret_end)
{
	const uint8_t *bytes, *found;
	uint64_t at = from;

	if (!can_hold(from, to) || (is_small(from, to) && !r->small_gaps))
		return false;
	while (can_hold(at, to)) {
		size_t len = to - at < PIECE ? (size_t)(to - at) : PIECE;

		/* What cannot be read is left as it is: without a rule. */
		if (r->bytes < len || unwind_window_see(&r->code, at, len, &bytes))
			return false;
		r->bytes -= len;
		found = memmem(bytes, len, restorer, sizeof(restorer));
		if (found) {
			at += (uint64_t)(found - bytes);
			*ret_begin = at > from ? at - 1 : at;
			*ret_end = at + sizeof(restorer);
			return true;
		}
		at += len - (sizeof(restorer) - 1);
	}
	return false;
}
