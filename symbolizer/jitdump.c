/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of JIT code from jitdump files; see jitdump.h.
 *
 * A reading goes on where the last one ended. What was loaded before the samples in question makes
 * one layer (jit_layers.h), what came since then another, so that an address which changed
 * hands meanwhile is known as such. Code that has moved leaves a symbol without a name.
 */
#include "symbolizer/jitdump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "symbolizer/demangle.h"
#include "symbolizer/jit_layers.h"
#include "symbolizer/jit_open.h"
#include "symbolizer/jitdump_place.h"
#include "symbolizer/jitdump_read.h"

enum {
	KEPT_MAX = 64 * 1024 * 1024,
	BATCH_MAX = KEPT_MAX / 2,
	MAX_RECORDS = 1 << 21, /* in one reading; past it, no names until it has caught up */
	MAX_IN_BATCH = 1 << 20,
};

struct jitdump {
	struct jit_layers layers;
	struct sym_readable readable;
	struct jitdump_place place;
	struct jit_file_state state;
	struct jit_guard guard;
	struct jitdump_header header;
	uint32_t pid; /* that the header must have; 0: any */
	uint64_t off; /* of the next record; 0: nothing was read */
	uint64_t bad_records;
	uint64_t end_ns; /* if is_over: when the names ended */
	bool is_over;    /* closed, or damaged: nothing behind is read */
	bool is_behind;  /* more was there than one reading takes */
	bool in_doubt;   /* changed while it was read */
	bool no_demangle;
};

struct reading {
	struct jitdump *dump;
	struct sym_builder b;
	struct map names; /* code address -> its name's offset in `b` */
	uint64_t from_ns;
	uint64_t changed_ns; /* of the file; for time stamps that say nothing */
	uint64_t until_ns;   /* of the batch */
	bool is_recent;      /* the batch may be of the time of the samples */
	bool is_check;       /* read once more, for the digest only */
	uint64_t digest;
};

static void batch_init(struct reading *r)
{
	sym_builder_init(&r->b, SYM_NEWEST_WINS, BATCH_MAX);
	map_init(&r->names, sizeof(uint64_t), sizeof(uint32_t), MAX_IN_BATCH);
	r->until_ns = 0;
}

static void batch_fini(struct reading *r)
{
	sym_builder_fini(&r->b);
	map_fini(&r->names);
}

static int flush(struct reading *r)
{
	int err = jit_layers_add(&r->dump->layers, &r->b, r->until_ns, false, r->from_ns);

	batch_fini(r);
	batch_init(r);
	return err;
}

/* Adds [addr, addr + size) once there is room for it. */
static int add(struct reading *r, uint64_t addr, uint64_t size, const char *name, size_t len)
{
	struct sym_candidate c = { .addr = addr, .size = size, .rank = SYM_RANK_SIZED };
	uint32_t *offset = NULL;
	int err = -EFBIG;

	for (int try = 0; try < 2 && err == -EFBIG; try++) {
		err = try ? flush(r) : 0;
		if (!err)
			err = sym_builder_add_name(&r->b, name, len, NULL, &c.name);
		if (!err)
			err = sym_builder_add(&r->b, &c);
		if (!err && map_add(&r->names, &addr, &offset) < 0)
			err = -EFBIG; /* it is there twice then, which does no harm */
	}
	if (!err)
		*offset = c.name;
	return err;
}

/* The name of the code that begins at addr, as a copy in `name`; "" if there is none. */
static void name_at(const struct reading *r, uint64_t addr, char name[JITDUMP_NAME_MAX + 1])
{
	const uint32_t *offset = map_find(&r->names, &addr);
	struct sym_found found = { 0 };

	if (offset)
		found.name = r->b.names + *offset;
	else if (jit_layers_find(&r->dump->layers, addr, UINT64_MAX, &found) != SYM_OK ||
		 found.start != addr)
		found.name = "";
	strncpy(name, found.name, JITDUMP_NAME_MAX);
	name[JITDUMP_NAME_MAX] = 0;
}

static int take_move(struct reading *r, const struct jitdump_record *record)
{
	char name[JITDUMP_NAME_MAX + 1];
	int err;

	name_at(r, record->old_addr, name);
	if (!name[0])
		r->dump->bad_records++;
	err = add(r, record->old_addr, record->size, "", 0);
	/* Also without a name: what was there before is not there any more. */
	return err ? err : add(r, record->addr, record->size, name, strlen(name));
}

static uint64_t time_of(const struct reading *r, const struct jitdump_record *record)
{
	return r->dump->header.has_arch_time || record->time_ns > r->changed_ns ? r->changed_ns
										: record->time_ns;
}

static int take(struct reading *r, const struct jitdump_record *record)
{
	uint64_t time_ns = time_of(r, record);
	int err = 0;

	if (!r->is_recent && time_ns >= r->from_ns) {
		err = flush(r);
		r->is_recent = true;
	}
	if (time_ns > r->until_ns)
		r->until_ns = time_ns;
	switch (record->kind) {
	case JITDUMP_LOAD:
		return err ? err
			   : add(r, record->addr, record->size, record->name, record->name_len);
	case JITDUMP_MOVE:
		return err ? err : take_move(r, record);
	case JITDUMP_CLOSE:
		r->dump->is_over = true;
		r->dump->end_ns = time_ns;
		return err;
	case JITDUMP_BAD:
		r->dump->bad_records++;
		return err;
	default:
		return err;
	}
}

static void digest(struct reading *r, const struct jitdump_record *record)
{
	const uint64_t numbers[] = { record->kind, record->time_ns,  record->addr,
				     record->size, record->old_addr, record->next };

	r->digest = r->digest * 0x9e3779b97f4a7c15ULL ^ hash_bytes(numbers, sizeof(numbers));
	r->digest ^= hash_bytes(record->name, record->name_len);
}

/* Takes whole records from *off on, up to `end` or the first that is not whole. */
static int read_records(struct reading *r, struct jitdump_window *w, uint64_t *off, uint64_t end)
{
	bool was_over = r->dump->is_over;
	int err = 0;

	r->dump->is_behind = false;
	for (size_t n = 0; *off < end && r->dump->is_over == was_over; n++) {
		struct jitdump_record record;

		if (n == MAX_RECORDS) {
			r->dump->is_behind = true;
			return 0;
		}
		err = jitdump_read_record(w, *off, &record);
		if (err)
			break;
		digest(r, &record);
		if (!r->is_check)
			err = take(r, &record);
		if (err)
			break;
		*off = record.next;
	}
	if (err == -EBADMSG && !r->is_check) {
		r->dump->bad_records++;
		r->dump->is_over = true;
		r->dump->end_ns = r->changed_ns;
	}
	return err == -EBADMSG || err == -EAGAIN ? 0 : err;
}

static int start(struct jitdump *dump, struct jitdump_window *w)
{
	int err = jitdump_read_header(w, &dump->header);

	/* Of a parent, say: its code is not ours. */
	if (!err && dump->pid && dump->header.pid != dump->pid)
		err = -EBADMSG;
	if (!err && dump->header.size > w->size)
		err = -EBADMSG;
	if (err)
		return err;
	jit_layers_fini(&dump->layers);
	jit_layers_init(&dump->layers, KEPT_MAX);
	dump->off = dump->header.size;
	dump->is_over = false;
	return 0;
}

static int read_window(struct jitdump *dump, struct jitdump_window *w, struct reading *r)
{
	int err;

	batch_init(r);
	err = read_records(r, w, &dump->off, w->size);
	if (!err)
		err = flush(r);
	batch_fini(r);
	return err;
}

int jitdump_parse(const void *bytes, size_t len, uint32_t pid, uint64_t from_ns,
		  struct jitdump **ret_dump)
{
	struct jitdump *dump = calloc(1, sizeof(*dump));
	struct reading r = { .dump = dump, .from_ns = from_ns, .changed_ns = UINT64_MAX };
	struct jitdump_window w;
	int err;

	if (!dump)
		return -ENOMEM;
	dump->pid = pid;
	jitdump_window_init(&w, -1, bytes, len);
	err = start(dump, &w);
	if (!err)
		err = read_window(dump, &w, &r);
	if (err)
		jitdump_free(dump);
	else
		*ret_dump = dump;
	return err;
}

/* -EAGAIN unless the file still holds what was read from `from` on. */
static int check(struct jitdump_window *w, uint64_t from, uint64_t to, const struct reading *r,
		 const struct jit_file_state *before)
{
	struct reading again = { .dump = r->dump, .is_check = true };
	struct jit_file_state after;
	bool was_over = r->dump->is_over, was_behind = r->dump->is_behind;
	int err = jit_state_of(w->fd, &after);

	if (err || jit_same_state(before, &after))
		return err;
	w->len = 0; /* read again */
	r->dump->is_over = false;
	err = read_records(&again, w, &from, to);
	r->dump->is_over = was_over;
	r->dump->is_behind = was_behind;
	return err ? err : again.digest == r->digest && from == to ? 0 : -EAGAIN;
}

static int read_file(struct jitdump *dump, int fd, const struct jit_file_state *state,
		     uint64_t from_ns)
{
	struct reading r = { .dump = dump, .from_ns = from_ns, .changed_ns = clock_monotonic() };
	struct jitdump_window w;
	uint64_t began, bad_before = dump->bad_records;
	int err = jitdump_window_init(&w, fd, NULL, (uint64_t)state->size);

	if (!err && (dump->off == 0 || dump->in_doubt || !jit_same_file(&dump->state, state) ||
		     !jit_guard_holds(fd, &dump->guard)))
		err = start(dump, &w);
	if (dump->header.has_arch_time)
		r.changed_ns = jit_changed_ns(state);
	began = dump->off;
	if (!err) {
		dump->in_doubt = true;
		err = read_window(dump, &w, &r);
	}
	if (!err)
		err = check(&w, began, dump->off, &r, state);
	if (!err)
		err = jit_guard_take(fd, dump->off, &dump->guard);
	jitdump_window_fini(&w);
	if (err) {
		dump->bad_records = bad_before; /* all is read again */
		return err;
	}
	dump->in_doubt = false;
	dump->state = *state;
	return dump->off != began;
}

int jitdump_refresh(struct jitdump *dump, int proc_fd, uid_t uid, uint64_t from_ns)
{
	struct jit_file_state state;
	int fd, err = 0;

	if (dump->is_over && !dump->in_doubt)
		return 0;
	fd = jitdump_place_open(&dump->place, proc_fd, uid, &state);
	if (fd < 0)
		return fd;
	if (!jit_same_state(&dump->state, &state) || dump->in_doubt || dump->is_behind)
		err = read_file(dump, fd, &state, from_ns);
	close(fd);
	return err;
}

int jitdump_load(int proc_fd, uint32_t ns_pid, uid_t uid, uint64_t from_ns, bool no_demangle,
		 struct jitdump **ret_dump)
{
	struct jitdump *dump = calloc(1, sizeof(*dump));
	int err;

	if (!dump)
		return -ENOMEM;
	dump->pid = ns_pid;
	dump->no_demangle = no_demangle;
	jit_layers_init(&dump->layers, KEPT_MAX);
	err = jitdump_place_find(proc_fd, ns_pid, &dump->place);
	if (!err)
		err = jitdump_refresh(dump, proc_fd, uid, from_ns);
	if (err < 0 && err != -EAGAIN) {
		jitdump_free(dump);
		return err;
	}
	*ret_dump = dump;
	return 0;
}

void jitdump_free(struct jitdump *dump)
{
	if (!dump)
		return;
	jit_layers_fini(&dump->layers);
	sym_readable_fini(&dump->readable);
	free(dump);
}

size_t jitdump_bytes(const struct jitdump *dump)
{
	return sizeof(*dump) + dump->readable.cap + jit_layers_bytes(&dump->layers);
}

uint64_t jitdump_bad_records(const struct jitdump *dump)
{
	return dump->bad_records;
}

bool jitdump_is_moving(const struct jitdump *dump, uint64_t from_ns)
{
	return dump->in_doubt || dump->is_behind || (dump->is_over && dump->end_ns >= from_ns) ||
	       jit_layers_are_moving(&dump->layers, from_ns);
}

enum sym_reason jitdump_find(struct jitdump *dump, uint64_t addr, uint64_t from_ns,
			     struct sym_hit *ret_hit)
{
	struct sym_found found;
	enum sym_reason reason;

	if (dump->in_doubt)
		return SYM_JIT_CHANGED;
	if (dump->is_behind)
		return SYM_JIT_UNREAD;
	if (dump->is_over && dump->end_ns < from_ns)
		return SYM_NOT_COVERED;
	reason = jit_layers_find(&dump->layers, addr, from_ns, &found);
	if (reason == SYM_NOT_COVERED && dump->layers.is_cut)
		return SYM_JIT_UNREAD;
	if (reason != SYM_OK)
		return reason;
	*ret_hit = (struct sym_hit){
		.name = sym_readable_jit_name(&dump->readable, found.name, dump->no_demangle),
		.raw_name = found.name,
		.start = found.start,
	};
	return SYM_OK;
}
