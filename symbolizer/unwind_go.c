/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's stack switches; see unwind_go.h.
 *
 * systemstack and its like set up a frame, then load rsp with the thread's stack, while rbp goes
 * on to lead to the goroutine's: the chain of frame pointers is whole, it only leads to another
 * stack. morestack and mcall leave the goroutine for good: what called mcall has ended its turn, so
 * that a stack begins there; what called morestack goes on afterwards, and the runtime's own records
 * tell where it was. Where the thread is given another goroutine meanwhile (in execute, which
 * does not return) they tell of that one: a stack begins there, too. gogo is on its way into a goroutine.
 */
#include "symbolizer/unwind_go.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/go_pclntab.h"
#include "symbolizer/unwind_window.h"

enum {
	CODE_MAX = 1024, /* bytes of a function; the largest of them has 250 */
	PROLOGUE = 64,
	PIECE = 64 * 1024,
	LONGEST_NAME = 64,
	BACKWARD_MAX = 4096, /* jumps in the order of the records, of which linkers make none */
};

/* A function's range in the file, and the first bytes of its code. */
struct function {
	uint64_t off;
	uint64_t size;
	size_t len;
	uint8_t code[CODE_MAX];
};

bool unwind_go_is_go(const struct elf_file *elf)
{
	return elf_section_by_name(elf, ".gopclntab") || elf_section_by_name(elf, ".go.buildinfo");
}

/*
 * Go's .debug_frame tells the CFA, but not where rbp was saved, so that it can be used only where
 * rbp is the caller's still: in functions without a frame, at the first and at the last
 * instructions. There frame pointers would lose the caller; elsewhere they are right.
 */
struct unwind_rule unwind_go_rule(struct unwind_rule rule)
{
	bool no_frame = rule.cfa == UNWIND_SP && rule.cfa_off == 8 && rule.fp == UNWIND_FP_SAME;

	return no_frame || rule.cfa == UNWIND_END ? rule : (struct unwind_rule){ 0 };
}

/* --- the functions --------------------------------------------------------------------------- */

static void add_range(struct unwind_go *go, const struct function *f, uint64_t from,
		      struct unwind_rule rule, bool is_last_word)
{
	if (go->count == UNWIND_GO_RANGES || from >= f->size)
		return;
	go->ranges[go->count++] = (struct unwind_go_range){
		.from = f->off + from,
		.to = f->off + f->size,
		.rule = rule,
		.is_last_word = is_last_word,
	};
}

/* Behind "mov %rsp, %rbp" or "lea N(%rsp), %rbp", by which rbp leads to where it was saved; or 0. */
static size_t frame_is_set(const struct function *f)
{
	static const struct {
		uint8_t bytes[4];
		uint8_t len, operand;
	} ways[] = {
		{ { 0x48, 0x89, 0xe5 }, 3, 0 },
		{ { 0x48, 0x8b, 0xec }, 3, 0 },
		{ { 0x48, 0x8d, 0x6c, 0x24 }, 4, 1 },
		{ { 0x48, 0x8d, 0xac, 0x24 }, 4, 4 },
	};

	for (size_t at = 0; at + 4 < f->len && at < PROLOGUE; at++) {
		for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
			if (memcmp(f->code + at, ways[i].bytes, ways[i].len) == 0)
				return at + ways[i].len + ways[i].operand;
		}
	}
	return 0;
}

/* Behind the begin of a "mov N(%any), %rsp", by which the stack is another; or 0. */
static size_t stack_is_left(const struct function *f)
{
	for (size_t at = 0; at + 2 < f->len; at++) {
		const uint8_t *p = f->code + at;
		bool is_load = (p[0] == 0x48 || p[0] == 0x49) && p[1] == 0x8b;

		/* To register 4 (rsp), from memory at a register with an offset of one or four bytes. */
		if (is_load && (p[2] & 0x38) == 0x20 && (p[2] >> 6 == 1 || p[2] >> 6 == 2))
			return at + 1;
	}
	return 0;
}

static void add_switch(struct unwind_go *go, const struct function *f)
{
	static const struct unwind_rule rule = {
		.cfa = UNWIND_FP_SWITCH, .cfa_off = 16, .fp = UNWIND_FP_AT_CFA, .fp_off = -16
	};
	size_t from = frame_is_set(f);

	if (from)
		add_range(go, f, from, rule, false);
}

/* Before the switch .debug_frame is right. */
static void add_lost(struct unwind_go *go, const struct function *f)
{
	static const struct unwind_rule rule = { .cfa = UNWIND_UNSUPPORTED };

	add_range(go, f, stack_is_left(f), rule, true);
}

/* Until all is known by which its rule leads on. */
static void add_morestack(struct unwind_go *go, const struct function *f)
{
	size_t count = go->count;

	add_lost(go, f);
	if (go->count == count || !stack_is_left(f))
		return;
	unwind_go_stack_morestack(&go->stack, f->code, f->len);
	go->morestack = go->count;
}

static void add_systemstack(struct unwind_go *go, const struct function *f)
{
	unwind_go_stack_systemstack(&go->stack, f->code, f->len);
	add_switch(go, f);
}

static void add_left(struct unwind_go *go, const struct function *f)
{
	static const struct unwind_rule rule = { .cfa = UNWIND_END };
	size_t from = stack_is_left(f);

	if (from)
		add_range(go, f, from, rule, true);
}

static void add_root(struct unwind_go *go, const struct function *f)
{
	static const struct unwind_rule rule = { .cfa = UNWIND_END };

	add_range(go, f, 0, rule, true);
}

static void add_execute(struct unwind_go *go, const struct function *f)
{
	go->stack.has_execute = true;
	add_root(go, f);
}

static const struct {
	const char *name; /* with the NUL of the name before it */
	void (*add)(struct unwind_go *go, const struct function *f);
} functions[] = {
	{ "\0runtime.systemstack", add_systemstack },
	{ "\0runtime.asmcgocall", add_switch },
	{ "\0runtime.nanotime1", add_switch },
	{ "\0runtime.walltime", add_switch },
	{ "\0runtime.walltime1", add_switch },
	{ "\0runtime.vgetrandom1", add_switch },
	{ "\0time.now", add_switch },
	{ "\0runtime.morestack", add_morestack },
	{ "\0gogo", add_lost },
	{ "\0runtime.mcall", add_left },
	{ "\0runtime.execute", add_execute },
	{ "\0runtime.goexit", add_root },
	{ "\0runtime.mstart", add_root },
	{ "\0runtime.rt0_go", add_root },
};

enum { FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

/* --- finding them ---------------------------------------------------------------------------- */

struct finder {
	const struct elf_file *elf;
	struct go_place place;
	uint64_t text;
	int64_t names[FUNCTIONS]; /* their offsets, or -1 */
	struct unwind_window functab;
	struct unwind_window records;
	struct function function;
};

static int find_names(struct finder *f)
{
	const struct go_header *h = &f->place.header;
	uint64_t size = (h->units > h->names ? h->units : h->size) - h->names;
	struct unwind_window names;
	const uint8_t *bytes;
	int err = 0;

	if (size > GO_PCLNTAB_MAX)
		return -EFBIG;
	unwind_window_init(&names, &f->elf->source, f->place.off + h->names, size);
	for (uint64_t at = 0; at < size && !err; at += PIECE - LONGEST_NAME) {
		size_t len = size - at < PIECE ? (size_t)(size - at) : PIECE;

		err = unwind_window_see(&names, at, len, &bytes);
		for (size_t i = 0; i < FUNCTIONS && !err; i++) {
			size_t name_len = 1 + strlen(functions[i].name + 1) + 1;
			const uint8_t *found = memmem(bytes, len, functions[i].name, name_len);

			if (found && f->names[i] < 0)
				f->names[i] = (int64_t)at + (found - bytes) + 1;
		}
	}
	unwind_window_fini(&names);
	return err;
}

static int take_function(struct finder *f, size_t which, uint64_t vaddr, uint64_t size,
			 struct unwind_go *go)
{
	struct function *fn = &f->function;
	int err;

	*fn = (struct function){ .size = size, .len = size < CODE_MAX ? (size_t)size : CODE_MAX };
	if (!elf_exec_segment(f->elf, vaddr) || !elf_file_offset(f->elf, vaddr, &fn->off) ||
	    !elf_in_file(f->elf, fn->off, size))
		return -EBADMSG;
	err = elf_source_read(&f->elf->source, fn->off, fn->code, fn->len);
	if (!err)
		functions[which].add(go, fn);
	return err;
}

static uint64_t pc_at(const uint8_t *p, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, p, size);
	return value;
}

static int take_functions(struct finder *f, struct unwind_go *go)
{
	const struct go_header *h = &f->place.header;
	size_t pc = h->version >= 18 ? 4 : h->ptr_size, backward = 0;
	uint64_t last = 0;

	for (uint64_t i = 0; i < h->func_count; i++) {
		const uint8_t *entry, *record;
		uint64_t start, end, at;
		int64_t name;
		int err = unwind_window_see(&f->functab, h->functab + 2 * i * pc, 3 * pc, &entry);

		if (err)
			return err;
		start = pc_at(entry, pc);
		at = pc_at(entry + pc, pc) + (h->version == 2 ? 0 : h->functab);
		end = pc_at(entry + 2 * pc, pc);
		backward += at < last;
		last = at;
		if (end < start || backward > BACKWARD_MAX)
			return -EBADMSG;
		/* Behind the entry. */
		err = unwind_window_see(&f->records, at, pc + 4, &record);
		if (err)
			return err;
		name = (int64_t)pc_at(record + pc, 4);
		for (size_t which = 0; which < FUNCTIONS && !err; which++) {
			if (name == f->names[which])
				err = take_function(f, which, f->text + start, end - start, go);
		}
		if (err)
			return err;
	}
	return 0;
}

static int find_ranges(struct finder *f, struct unwind_go *go)
{
	int err = go_pclntab_find(f->elf, &f->place);

	if (!err && f->place.header.version >= 18)
		err = go_text_find(f->elf, &f->place, &f->text);
	if (!err)
		err = find_names(f);
	if (err)
		return err;
	unwind_window_init(&f->functab, &f->elf->source, f->place.off, f->place.header.size);
	unwind_window_init(&f->records, &f->elf->source, f->place.off, f->place.header.size);
	err = take_functions(f, go);
	unwind_window_fini(&f->functab);
	unwind_window_fini(&f->records);
	return err;
}

int unwind_go_find(const struct elf_file *elf, struct unwind_go *ret_go)
{
	struct unwind_go go = { 0 };
	struct finder *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->elf = elf;
	memset(f->names, 0xff, sizeof(f->names));
	err = find_ranges(f, &go);
	free(f);
	if (err == -ENOMEM || err == -EIO)
		return err;
	/* Two segments may show functions in ascending order at descending offsets. */
	for (size_t i = 1; i < go.count && !err; i++)
		err = go.ranges[i].from < go.ranges[i - 1].to ? -EBADMSG : 0;
	if (go.morestack)
		unwind_go_stack_rule(&go.stack, &go.ranges[go.morestack - 1].rule);
	*ret_go = err ? (struct unwind_go){ 0 } : go;
	return 0;
}

/* --- in between the rows ---------------------------------------------------------------------- */

void unwind_go_begin(struct unwind_go *go)
{
	go->rule = (struct unwind_rule){ 0 };
	go->from = 0;
	go->next = 0;
}

/* The rows of [go->from, to). */
static int write_up_to(struct unwind_go *go, struct unwind_rows *rows, uint64_t to)
{
	int err = 0;

	while (go->from < to && !err) {
		const struct unwind_rule *rule = &go->rule;
		const struct unwind_go_range *r = &go->ranges[go->next];
		uint64_t end = to;

		if (go->next < go->count && r->to <= go->from) {
			go->next++;
			continue;
		}
		if (go->next < go->count && r->from > go->from) {
			end = r->from;
		} else if (go->next < go->count) {
			end = r->to;
			if (r->is_last_word || rule->cfa == UNWIND_NONE)
				rule = &r->rule;
		}
		err = unwind_rows_put(rows, go->from, rule);
		go->from = end < to ? end : to;
	}
	return err;
}

int unwind_go_put(struct unwind_go *go, struct unwind_rows *rows, uint64_t off,
		  const struct unwind_rule *rule)
{
	int err;

	if (!go->count)
		return unwind_rows_put(rows, off, rule);
	err = write_up_to(go, rows, off);
	go->rule = *rule;
	return err;
}

int unwind_go_end(struct unwind_go *go, struct unwind_rows *rows)
{
	return go->count ? write_up_to(go, rows, UINT64_MAX) : 0;
}
