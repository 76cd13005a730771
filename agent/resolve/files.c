/* SPDX-License-Identifier: Apache-2.0 */
/* Table of sampled files; see files.h. */
#include "agent/resolve/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/resolve/target_file.h"

/* KEEP in drains: about an hour. */
enum { MAX_FILES = 16384, KEEP = 3600 };

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
	known_init(&t->known, MAX_FILES, KEEP, file_free);
}

void file_table_fini(struct file_table *t)
{
	known_fini(&t->known);
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

/* Reads the symbols; a file that changes meanwhile is given up. */
static int load_symbols(struct file_table *t, int fd, const struct sonde_file *record,
			struct known_file *file)
{
	int err;

	if (file_table_bytes(t) >= t->budget)
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

bool file_table_event(struct file_table *t, const struct event *event, uint32_t now)
{
	struct known_file *file, *have = known_renew(&t->known, event->id, now);
	struct target_file target;
	bool retry;
	int err;

	if (have && have->reason == SYM_OK)
		return false;
	file = calloc(1, sizeof(*file));
	if (!file)
		return true;
	if (t->no_reading) {
		file->reason = SYM_NO_BUDGET;
		path_names_join(&event->file.path, target.path, sizeof(target.path));
		file->path = strdup(target.path);
		known_put(&t->known, event->id, file, now);
		return true;
	}
	err = target_file_open(t->proc_root, event->file.record, &event->file.path, &target);
	retry = err != 0;
	if (!err) {
		err = load_symbols(t, target.fd, event->file.record, file);
		retry = err == -ESTALE;
		close(target.fd);
	}
	file->reason = reason_of(err);
	file->path = strdup(target.path);
	if (err)
		t->failed++;
	else
		t->opened++;
	return known_put(&t->known, event->id, file, now) != 0 || retry;
}

struct known_file *file_table_find(struct file_table *t, uint64_t id, uint32_t now)
{
	return known_get(&t->known, id, now);
}

void file_table_drop(struct file_table *t, struct forget_list *list)
{
	const uint64_t *id;
	size_t cursor = 0;

	while (map_next(&t->known.map, &cursor, &id, NULL))
		forget_list_add(list, *id);
	known_fini(&t->known);
	known_init(&t->known, MAX_FILES, KEEP, file_free);
}

size_t file_table_bytes(const struct file_table *t)
{
	struct known_file *const *file;
	size_t cursor = 0, bytes = 0;

	/* A known entry begins with its object. */
	while (map_next(&t->known.map, &cursor, NULL, &file))
		bytes += (*file)->symbols ? sym_file_bytes((*file)->symbols) : 0;
	return bytes;
}
