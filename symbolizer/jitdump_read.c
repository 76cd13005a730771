/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding of jitdump records; see jitdump_read.h. All numbers are in the byte order of the
 * machine that runs the code, which is this one.
 */
#include "symbolizer/jitdump_read.h"

#include <errno.h>
#include <string.h>

enum { ID_LOAD = 0, ID_MOVE = 1, ID_CLOSE = 3, MAGIC = 0x4a695444, VERSION = 1, ARCH_TIME = 1 };

/* As they stand in the file; all fields are aligned in it. */
struct file_header {
	uint32_t magic, version, total_size, elf_mach, pad, pid;
	uint64_t timestamp, flags;
};

struct file_prefix {
	uint32_t id, total_size;
	uint64_t timestamp;
};

struct file_load {
	struct file_prefix prefix;
	uint32_t pid, tid;
	uint64_t vma, code_addr, code_size, code_index;
	/* the name with its NUL, then the code */
};

struct file_move {
	struct file_prefix prefix;
	uint32_t pid, tid;
	uint64_t vma, old_code_addr, new_code_addr, code_size, code_index;
};

_Static_assert(sizeof(struct file_header) == 40, "no padding");
_Static_assert(sizeof(struct file_load) == 56, "no padding");
_Static_assert(sizeof(struct file_move) == 64, "no padding");

int jitdump_read_header(struct jitdump_window *w, struct jitdump_header *ret_header)
{
	const uint8_t *bytes = jitdump_window_at(w, 0, sizeof(struct file_header));
	struct file_header h;

	if (!bytes)
		return -EBADMSG;
	memcpy(&h, bytes, sizeof(h));
	if (h.magic != MAGIC || h.version != VERSION || h.total_size < sizeof(h))
		return -EBADMSG;
	*ret_header = (struct jitdump_header){ .size = h.total_size,
					       .pid = h.pid,
					       .time_ns = h.timestamp,
					       .has_arch_time = h.flags & ARCH_TIME };
	return 0;
}

static bool is_range(uint64_t addr, uint64_t size)
{
	return size > 0 && size <= UINT64_MAX - addr;
}

static enum jitdump_kind read_load(struct jitdump_window *w, uint64_t off, size_t size,
				   struct jitdump_record *r)
{
	const uint8_t *bytes = jitdump_window_at(w, off, sizeof(struct file_load));
	size_t room = size - sizeof(struct file_load), len;
	struct file_load load;

	if (!bytes)
		return JITDUMP_BAD;
	memcpy(&load, bytes, sizeof(load));
	if (load.code_size > room || !is_range(load.code_addr, load.code_size))
		return JITDUMP_BAD;
	room -= (size_t)load.code_size;
	len = room < JITDUMP_NAME_MAX ? room : JITDUMP_NAME_MAX;
	bytes = jitdump_window_at(w, off + sizeof(load), len);
	if (!bytes)
		return JITDUMP_BAD;
	r->name = (const char *)bytes;
	r->name_len = strnlen(r->name, len);
	/* An end within the record, or the name was cut. */
	if (r->name_len == 0 || r->name_len == room)
		return JITDUMP_BAD;
	r->addr = load.code_addr;
	r->size = load.code_size;
	return JITDUMP_LOAD;
}

static enum jitdump_kind read_move(struct jitdump_window *w, uint64_t off, struct jitdump_record *r)
{
	const uint8_t *bytes = jitdump_window_at(w, off, sizeof(struct file_move));
	struct file_move move;

	if (!bytes)
		return JITDUMP_BAD;
	memcpy(&move, bytes, sizeof(move));
	if (!is_range(move.old_code_addr, move.code_size) ||
	    !is_range(move.new_code_addr, move.code_size))
		return JITDUMP_BAD;
	r->addr = move.new_code_addr;
	r->old_addr = move.old_code_addr;
	r->size = move.code_size;
	return JITDUMP_MOVE;
}

int jitdump_read_record(struct jitdump_window *w, uint64_t off, struct jitdump_record *ret_record)
{
	const uint8_t *bytes = jitdump_window_at(w, off, sizeof(struct file_prefix));
	struct jitdump_record r = { .kind = JITDUMP_OTHER };
	struct file_prefix prefix;

	if (!bytes)
		return -EAGAIN;
	memcpy(&prefix, bytes, sizeof(prefix));
	if (prefix.total_size < sizeof(prefix))
		return -EBADMSG;
	if (prefix.total_size > w->size - off)
		return -EAGAIN;
	r.time_ns = prefix.timestamp;
	r.next = off + prefix.total_size;
	if (prefix.id == ID_LOAD)
		r.kind = prefix.total_size < sizeof(struct file_load)
				 ? JITDUMP_BAD
				 : read_load(w, off, prefix.total_size, &r);
	else if (prefix.id == ID_MOVE)
		r.kind = prefix.total_size < sizeof(struct file_move) ? JITDUMP_BAD
								      : read_move(w, off, &r);
	else if (prefix.id == ID_CLOSE)
		r.kind = JITDUMP_CLOSE;
	*ret_record = r;
	return 0;
}
