/* SPDX-License-Identifier: Apache-2.0 */
/* Table of sampled files; see files.h. */
#include "agent/resolve/files.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/resolve/target_file.h"

/*
 * In drains, by which uses are noted: what was used more recently keeps its symbols; a file is never
 * kept for less than that, since the stacks that refer to it are kept for as long.
 */
enum { MAX_FILES = 16384, IN_USE = 2, KEEP_LEAST = 10 };

/* How long an unused file is kept; how often files that found no room are tried again. */
static const nsec_t KEEP = 3600 * NSEC_PER_SEC, RETRY = 60 * NSEC_PER_SEC;

/*
 * How long counts wait for symbols that are on their way. A reader that hangs would hold them for
 * ever.
 */
static const nsec_t PATIENCE = 30 * NSEC_PER_SEC;

static void file_free(void *object)
{
	struct known_file *file = object;

	if (!file)
		return;
	sym_file_free(file->symbols);
	free(file->path);
	free(file);
}

int file_table_init(struct file_table *t, const char *proc_root, size_t budget,
		    const struct sym_file_options *options)
{
	*t = (struct file_table){ .options = *options, .proc_root = proc_root, .budget = budget };
	t->built_end = &t->built;
	known_init(&t->known, MAX_FILES, UINT32_MAX, file_free);
	return reader_new(options, &t->reader);
}

void file_table_fini(struct file_table *t)
{
	struct unwind_table *table;
	uint64_t file;

	reader_free(t->reader);
	t->reader = NULL;
	while (file_table_next_built(t, &file, &table))
		unwind_table_free(table);
	known_fini(&t->known);
	free(t->again.ids);
	t->again = (struct forget_list){ 0 };
}

static enum sym_reason reason_of(int err)
{
	switch (err) {
	case 0:
		return SYM_OK;
	case -ESTALE:
		return SYM_FILE_CHANGED;
	case -ENOEXEC:
	case -EBADMSG:
		return SYM_BAD_ELF;
	case -ENOMEM:
	case -EFBIG:
		return SYM_NO_MEMORY;
	case -EAGAIN:
		return SYM_READING;
	case -ECANCELED:
		return SYM_NO_BUDGET;
	default:
		return SYM_NO_FILE;
	}
}

static bool has_symbols(const void *object)
{
	return ((const struct known_file *)object)->symbols != NULL;
}

static void free_symbols(struct known_file *file)
{
	sym_file_free(file->symbols);
	file->symbols = NULL;
	file->reason = SYM_NO_MEMORY;
}

/* Frees symbols that were unused for longest until the budget holds; false if all are in use. */
static bool make_room(struct file_table *t, uint32_t now)
{
	size_t bytes = file_table_bytes(t);

	while (bytes >= t->budget) {
		uint32_t age;
		uint64_t id;
		struct known_file *file = known_oldest(&t->known, now, has_symbols, &id, &age);

		if (!file || age < IN_USE)
			return false;
		bytes -= sym_file_bytes(file->symbols);
		free_symbols(file);
		forget_list_add(&t->again, id);
	}
	return true;
}

/* An answer for the kernel side; takes over `table`. Without memory it asks no more. */
static void add_built(struct file_table *t, uint64_t id, struct unwind_table *table)
{
	struct built_table *built = calloc(1, sizeof(*built));

	if (!built) {
		unwind_table_free(table);
		return;
	}
	*built = (struct built_table){ .file = id, .table = table };
	*t->built_end = built;
	t->built_end = &built->next;
}

bool file_table_next_built(struct file_table *t, uint64_t *ret_file,
			   struct unwind_table **ret_table)
{
	struct built_table *built = t->built;

	if (!built)
		return false;
	t->built = built->next;
	if (!t->built)
		t->built_end = &t->built;
	*ret_file = built->file;
	*ret_table = built->table;
	free(built);
	return true;
}

/* A file without symbols, for now or for good; NULL without memory or room for it. */
static struct known_file *put_file(struct file_table *t, uint64_t id, const char *path,
				   enum sym_reason reason, uint32_t now)
{
	struct known_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->reason = reason;
	file->path = strdup(path);
	return known_put(&t->known, id, file, now) ? NULL : file;
}

/*
 * Whether symbols are wanted; the file is known then, as being read. Symbols may be there already:
 * then only the kernel side has dropped its table.
 */
static bool wants_symbols(struct file_table *t, uint64_t id, const char *path, uint32_t now)
{
	const struct known_file *have = known_get(&t->known, id, now);
	struct known_file *file;

	if (have && (have->reason == SYM_OK || have->reading))
		return false;
	if (t->no_reading) {
		if (!have)
			put_file(t, id, path, SYM_NO_BUDGET, now);
		return false;
	}
	if (!make_room(t, now)) {
		put_file(t, id, path, SYM_NO_MEMORY, now);
		return false;
	}
	file = put_file(t, id, path, SYM_READING, now);
	if (!file)
		return false;
	file->reading = clock_monotonic();
	t->symbols_due++;
	return true;
}

/* Has the reader read it. Returns true if the kernel side shall ask again. */
static bool read_file(struct file_table *t, uint64_t id, const struct target_file *target,
		      uint32_t now)
{
	struct read_job job = { .id = id, .fd = target->fd, .identity = target->identity,
				.wants_table = true };

	memcpy(job.root, target->root, sizeof(job.root));
	job.wants_symbols = wants_symbols(t, id, target->path, now);
	if (reader_submit(t->reader, &job) == 0)
		return known_age(&t->known, id, now) == UINT32_MAX; /* found no room */
	close(target->fd);
	t->put_off++;
	if (job.wants_symbols) {
		t->symbols_due--;
		put_file(t, id, target->path, SYM_READING, now);
	}
	return true;
}

bool file_table_event(struct file_table *t, const struct event *event, uint32_t now)
{
	bool is_known = known_renew(&t->known, event->id, now);
	struct target_file target;
	int err;

	err = target_file_open(t->proc_root, event->file.record, &event->file.path, &target);
	if (!err)
		return read_file(t, event->id, &target, now);
	t->failed++;
	if (!is_known)
		put_file(t, event->id, target.path, reason_of(err), now);
	add_built(t, event->id, NULL); /* until the next try: frame pointers */
	return true;
}

/* Takes over `symbols`. A file that was given up meanwhile needs none. */
static void take_symbols(struct file_table *t, const struct read_result *result, uint32_t now)
{
	struct known_file *file = known_get(&t->known, result->id, now);
	int err = result->err;

	t->symbols_due--;
	if (!file || !file->reading) {
		sym_file_free(result->symbols);
		return;
	}
	file->reading = 0;
	if (!err && !make_room(t, now))
		err = -ENOMEM;
	file->reason = reason_of(err);
	if (err) {
		sym_file_free(result->symbols);
		t->failed += err != -EAGAIN && err != -ECANCELED;
		t->put_off += err == -EAGAIN;
	} else {
		file->symbols = result->symbols;
		t->opened++;
	}
	if (err == -ESTALE || err == -EAGAIN)
		forget_list_add(&t->again, result->id);
}

void file_table_take(struct file_table *t, const struct read_result *result, uint32_t now)
{
	if (result->part == READ_SYMBOLS) {
		take_symbols(t, result, now);
		return;
	}
	/* A file that cannot be read, or has changed, has no table. */
	add_built(t, result->id, result->table);
	if (result->err == -ESTALE)
		forget_list_add(&t->again, result->id);
}

bool file_table_is_reading(const struct file_table *t, const struct known_file *file)
{
	return file->reading && clock_monotonic() - file->reading < PATIENCE;
}

struct known_file *file_table_find(struct file_table *t, uint64_t id, uint32_t now)
{
	return known_get(&t->known, id, now);
}

/* Those with `reason` are announced again. */
static void ask_again(struct file_table *t, enum sym_reason reason, struct forget_list *list)
{
	struct known_file **file;
	const uint64_t *id;
	size_t cursor = 0;

	/* A known entry begins with its object. */
	while (map_next(&t->known.map, &cursor, &id, &file)) {
		if ((*file)->reason == reason)
			forget_list_add(list, *id);
	}
}

void file_table_set_reading(struct file_table *t, bool read_files, struct forget_list *list)
{
	if (t->no_reading && read_files)
		ask_again(t, SYM_NO_BUDGET, list);
	t->no_reading = !read_files;
	reader_set_symbols(t->reader, read_files);
}

void file_table_drop(struct file_table *t, struct forget_list *list)
{
	struct known_file **file;
	size_t cursor = 0;

	while (map_next(&t->known.map, &cursor, NULL, &file)) {
		if ((*file)->symbols)
			free_symbols(*file);
	}
	ask_again(t, SYM_NO_MEMORY, list);
}

/* KEEP in drains, by their mean interval: one that came late changes little. */
static uint32_t drains_to_keep(uint32_t drains, nsec_t elapsed)
{
	nsec_t interval = drains ? elapsed / drains : 0;
	nsec_t keep = interval ? KEEP / interval : UINT32_MAX;

	if (keep < KEEP_LEAST)
		return KEEP_LEAST;
	return keep < UINT32_MAX ? (uint32_t)keep : UINT32_MAX;
}

void file_table_tick(struct file_table *t, uint32_t now, nsec_t elapsed, struct forget_list *list)
{
	t->known.keep = drains_to_keep(now, elapsed);
	known_expire(&t->known, now, list);
	while (t->again.count)
		forget_list_add(list, t->again.ids[--t->again.count]);
	if (elapsed - t->retried < RETRY)
		return;
	t->retried = elapsed;
	ask_again(t, SYM_NO_MEMORY, list);
}

size_t file_table_bytes(const struct file_table *t)
{
	struct known_file *const *file;
	size_t cursor = 0, bytes = reader_bytes(t->reader, READ_SYMBOLS);

	while (map_next(&t->known.map, &cursor, NULL, &file))
		bytes += (*file)->symbols ? sym_file_bytes((*file)->symbols) : 0;
	return bytes;
}
