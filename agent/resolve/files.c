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
 * In drains (a second in a recording, ten in the agent): how long an unused file is kept; what
 * was used more recently keeps its symbols; when files that found no room are tried again.
 */
enum { MAX_FILES = 16384, KEEP = 3600, IN_USE = 2, RETRY = 30 };

static void file_free(void *object)
{
	struct known_file *file = object;

	if (!file)
		return;
	sym_file_free(file->symbols);
	free(file->path);
	free(file);
}

void file_table_init(struct file_table *t, const char *proc_root, size_t budget,
		     const struct sym_file_options *options)
{
	*t = (struct file_table){ .options = *options, .proc_root = proc_root, .budget = budget };
	t->built_end = &t->built;
	known_init(&t->known, MAX_FILES, KEEP, file_free);
}

void file_table_fini(struct file_table *t)
{
	struct unwind_table *table;
	uint64_t file;

	while (file_table_next_built(t, &file, &table))
		unwind_table_free(table);
	known_fini(&t->known);
	free(t->evicted.ids);
	t->evicted = (struct forget_list){ 0 };
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
		forget_list_add(&t->evicted, id);
	}
	return true;
}

/* Reads the symbols; a file that changes meanwhile is given up. */
static int load_symbols(struct file_table *t, int fd, const struct sonde_file *record,
			struct known_file *file, uint32_t now)
{
	int err;

	if (!make_room(t, now))
		return -ENOMEM;
	err = sym_file_load(fd, &t->options, &file->symbols);
	if (err)
		return err;
	err = target_file_verify(fd, record);
	if (err) {
		sym_file_free(file->symbols);
		file->symbols = NULL;
		return err;
	}
	return 0;
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

static void build_table(struct file_table *t, int fd, uint64_t id)
{
	const struct unwind_options options = { .debug_dir = t->options.debug_dir };
	struct unwind_table *table;

	add_built(t, id, unwind_table_build(fd, &options, &table) ? NULL : table);
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

/* A file that cannot be read now: its path is known all the same. */
static void put_unread(struct file_table *t, const struct event *event, enum sym_reason reason,
		       uint32_t now)
{
	struct known_file *file = calloc(1, sizeof(*file));
	char path[PATH_MAX];

	if (!file)
		return;
	path_names_join(&event->file.path, path, sizeof(path));
	file->reason = reason;
	file->path = strdup(path);
	known_put(&t->known, event->id, file, now);
}

/* Reads the open file. Returns true if it shall be announced again. */
static bool read_file(struct file_table *t, const struct event *event,
		      const struct target_file *target, uint32_t now)
{
	struct known_file *file = calloc(1, sizeof(*file));
	int err;

	if (!file)
		return true;
	err = load_symbols(t, target->fd, event->file.record, file, now);
	file->reason = reason_of(err);
	file->path = strdup(target->path);
	if (err)
		t->failed++;
	else
		t->opened++;
	if (err == -ESTALE)
		add_built(t, event->id, NULL);
	else
		build_table(t, target->fd, event->id);
	return known_put(&t->known, event->id, file, now) != 0 || err == -ESTALE;
}

bool file_table_event(struct file_table *t, const struct event *event, uint32_t now)
{
	struct known_file *have = known_renew(&t->known, event->id, now);
	struct target_file target;
	bool again = false;
	int err;

	err = target_file_open(t->proc_root, event->file.record, &event->file.path, &target);
	if (err) {
		t->failed++;
		if (!have)
			put_unread(t, event, reason_of(err), now);
		add_built(t, event->id, NULL); /* until the next try: frame pointers */
		return true;
	}
	/* Symbols may be there already: then only the kernel side has dropped its table. */
	if (t->no_reading && !have)
		put_unread(t, event, SYM_NO_BUDGET, now);
	if (t->no_reading || (have && have->reason == SYM_OK))
		build_table(t, target.fd, event->id);
	else
		again = read_file(t, event, &target, now);
	close(target.fd);
	return again;
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

void file_table_tick(struct file_table *t, uint32_t now, struct forget_list *list)
{
	while (t->evicted.count)
		forget_list_add(list, t->evicted.ids[--t->evicted.count]);
	if (now % RETRY == 0)
		ask_again(t, SYM_NO_MEMORY, list);
}

size_t file_table_bytes(const struct file_table *t)
{
	struct known_file *const *file;
	size_t cursor = 0, bytes = 0;

	while (map_next(&t->known.map, &cursor, NULL, &file))
		bytes += (*file)->symbols ? sym_file_bytes((*file)->symbols) : 0;
	return bytes;
}
