/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See catalogue.h. A rollback journal and not WAL: a reader without write permission can open it,
 * and with one transaction a minute there is nothing for WAL to win.
 */
#include "agent/store/catalogue.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

static const char VERSION[] = "1"; /* as SCHEMA sets it */

enum { BUSY_MS = 250, MAX_ROWS = 1 << 20 };

static const char SET_UP[] = "PRAGMA synchronous=NORMAL;"
			     "PRAGMA cache_size=-256;"
			     "PRAGMA trusted_schema=OFF;";

static const char SCHEMA[] = "CREATE TABLE IF NOT EXISTS profiles("
			     "file TEXT PRIMARY KEY, type TEXT NOT NULL, start_ns INTEGER NOT NULL,"
			     "end_ns INTEGER NOT NULL, host TEXT NOT NULL, labels TEXT NOT NULL,"
			     "bytes INTEGER NOT NULL) WITHOUT ROWID;"
			     "CREATE INDEX IF NOT EXISTS by_start ON profiles(start_ns);"
			     "PRAGMA user_version=1;";

enum statement { PUT, REMOVE, LOAD, STATEMENT_COUNT };

static const char *const SQL[STATEMENT_COUNT] = {
	[PUT] = "INSERT OR REPLACE INTO profiles(file, type, start_ns, end_ns, host, labels, bytes)"
		" VALUES(?, ?, ?, ?, ?, ?, ?)",
	[REMOVE] = "DELETE FROM profiles WHERE file = ?",
	[LOAD] = "SELECT file, start_ns, end_ns, bytes FROM profiles"
		 " WHERE start_ns BETWEEN ? AND ?",
};

struct catalogue {
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENT_COUNT];
};

/* -EBADMSG if the file is to blame, -EIO if it may be good: busy, a full disk ... */
static int error_of(int status)
{
	status &= 0xff; /* without the details of extended codes */
	if (status == SQLITE_OK || status == SQLITE_DONE || status == SQLITE_ROW)
		return 0;
	return status == SQLITE_CORRUPT || status == SQLITE_NOTADB ? -EBADMSG : -EIO;
}

static int execute(struct catalogue *c, const char *sql)
{
	return error_of(sqlite3_exec(c->db, sql, NULL, NULL, NULL));
}

/* The first column of the first row, as text that is `wanted`: 0, -EBADMSG if not, or -EIO. */
static int expect(struct catalogue *c, const char *sql, const char *wanted)
{
	sqlite3_stmt *statement = NULL;
	int err = error_of(sqlite3_prepare_v2(c->db, sql, -1, &statement, NULL));

	if (!err)
		err = error_of(sqlite3_step(statement));
	if (!err) {
		const char *text = (const char *)sqlite3_column_text(statement, 0);

		err = text && strcmp(text, wanted) == 0 ? 0 : -EBADMSG;
	}
	sqlite3_finalize(statement);
	return err;
}

void catalogue_close(struct catalogue *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < STATEMENT_COUNT; i++)
		sqlite3_finalize(c->statements[i]);
	sqlite3_close(c->db);
	free(c);
}

static int open_database(const char *path, int flags, struct catalogue **ret_catalogue)
{
	struct catalogue *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	err = error_of(sqlite3_open_v2(path, &c->db, flags | SQLITE_OPEN_NOMUTEX, NULL));
	if (!err)
		err = error_of(sqlite3_busy_timeout(c->db, BUSY_MS));
	if (!err)
		err = execute(c, SET_UP);
	if (err)
		catalogue_close(c);
	else
		*ret_catalogue = c;
	return err;
}

/* A table of other columns is as bad as a damaged one. */
static int prepare(struct catalogue *c)
{
	for (size_t i = 0; i < STATEMENT_COUNT; i++) {
		int status = sqlite3_prepare_v2(c->db, SQL[i], -1, &c->statements[i], NULL);

		if (status != SQLITE_OK)
			return status == SQLITE_ERROR ? -EBADMSG : error_of(status);
	}
	return 0;
}

static int check_and_prepare(struct catalogue *c)
{
	int err = expect(c, "PRAGMA quick_check", "ok");

	if (err)
		return err;
	if (expect(c, "PRAGMA user_version", "0") == 0)
		err = execute(c, SCHEMA); /* a new file */
	else
		err = expect(c, "PRAGMA user_version", VERSION);
	return err ? err : prepare(c);
}

static int open_checked(const char *path, struct catalogue **ret_catalogue)
{
	struct catalogue *c;
	int err = open_database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &c);

	if (err)
		return err;
	err = check_and_prepare(c);
	if (err)
		catalogue_close(c);
	else
		*ret_catalogue = c;
	return err;
}

/* With its journal: an old one must not be played into a new file. */
static void delete_database(const char *path)
{
	static const char *const endings[] = { "-journal", "-wal", "-shm", "" };

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		char file[PATH_MAX];

		if (snprintf(file, sizeof(file), "%s%s", path, endings[i]) < (int)sizeof(file))
			unlink(file);
	}
}

int catalogue_open(const char *path, struct catalogue **ret_catalogue)
{
	int err = open_checked(path, ret_catalogue);

	if (err != -EBADMSG)
		return err;
	delete_database(path);
	return open_checked(path, ret_catalogue);
}

int catalogue_open_readonly(const char *path, struct catalogue **ret_catalogue)
{
	struct catalogue *c;
	int err = open_database(path, SQLITE_OPEN_READONLY, &c);

	if (err)
		return err;
	err = expect(c, "PRAGMA user_version", VERSION);
	if (!err)
		err = prepare(c);
	if (err)
		catalogue_close(c);
	else
		*ret_catalogue = c;
	return err;
}

int catalogue_begin(struct catalogue *c)
{
	return execute(c, "BEGIN IMMEDIATE");
}

int catalogue_commit(struct catalogue *c)
{
	return execute(c, "COMMIT");
}

static void path_of(const struct store_name *name, char path[STORE_DAY_MAX + STORE_NAME_MAX])
{
	char day[STORE_DAY_MAX], file[STORE_NAME_MAX];

	store_name_format(name, day, file);
	snprintf(path, STORE_DAY_MAX + STORE_NAME_MAX, "%s/%s", day, file);
}

static int bind_text(sqlite3_stmt *statement, int at, const char *text)
{
	return sqlite3_bind_text(statement, at, text, -1, SQLITE_TRANSIENT);
}

static int run(sqlite3_stmt *statement)
{
	int status = sqlite3_step(statement);

	sqlite3_reset(statement);
	return error_of(status);
}

int catalogue_put(struct catalogue *c, const struct store_name *name,
		  const struct store_facts *facts)
{
	char path[STORE_DAY_MAX + STORE_NAME_MAX];
	sqlite3_stmt *put = c->statements[PUT];

	path_of(name, path);
	if (bind_text(put, 1, path) || bind_text(put, 2, name->type) ||
	    sqlite3_bind_int64(put, 3, facts->start_ns) ||
	    sqlite3_bind_int64(put, 4, facts->end_ns) || bind_text(put, 5, facts->host) ||
	    bind_text(put, 6, facts->labels) ||
	    sqlite3_bind_int64(put, 7, (sqlite3_int64)facts->bytes))
		return -EIO;
	return run(put);
}

int catalogue_remove(struct catalogue *c, const struct store_name *name)
{
	char path[STORE_DAY_MAX + STORE_NAME_MAX];

	path_of(name, path);
	return bind_text(c->statements[REMOVE], 1, path) ? -EIO : run(c->statements[REMOVE]);
}

void catalogue_rows_init(struct map *rows)
{
	map_init(rows, sizeof(struct store_name), sizeof(struct catalogue_row), MAX_ROWS);
}

/* A row with a name that is not ours is left out, as its file would be. */
static int add_row(sqlite3_stmt *load, struct map *rows)
{
	const char *path = (const char *)sqlite3_column_text(load, 0);
	const char *slash = path ? strchr(path, '/') : NULL;
	struct catalogue_row *row;
	struct store_name name;
	char day[STORE_DAY_MAX];

	if (!slash || slash - path >= STORE_DAY_MAX)
		return 0;
	snprintf(day, sizeof(day), "%.*s", (int)(slash - path), path);
	if (!store_name_parse(day, slash + 1, &name))
		return 0;
	if (map_add(rows, &name, &row) < 0)
		return -ENOMEM;
	*row = (struct catalogue_row){
		.start_ns = sqlite3_column_int64(load, 1),
		.end_ns = sqlite3_column_int64(load, 2),
		.bytes = (uint64_t)sqlite3_column_int64(load, 3),
	};
	return 0;
}

int catalogue_load(struct catalogue *c, int64_t from_ns, int64_t to_ns, struct map *rows)
{
	sqlite3_stmt *load = c->statements[LOAD];
	int status = SQLITE_DONE, err = 0;

	if (sqlite3_bind_int64(load, 1, from_ns) || sqlite3_bind_int64(load, 2, to_ns))
		return -EIO;
	while (!err && (status = sqlite3_step(load)) == SQLITE_ROW)
		err = add_row(load, rows);
	sqlite3_reset(load);
	return err ? err : error_of(status);
}
