/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/resolve/files: the reason why a file has no symbols, and when to ask again. */
#include "agent/resolve/files.h"
#include "resolve_lab.h"

#include <fcntl.h>
#include <stdlib.h>

enum { BUDGET = 64 << 20 };

static const struct sym_file_options options;
static struct file_table table;
static char path[] = "/tmp/sonde-files-XXXXXX";

static int setup(void **state)
{
	int fd;

	strcpy(path + sizeof(path) - 7, "XXXXXX");
	fd = mkstemp(path);
	if (fd < 0 || close(fd) || file_table_init(&table, "/proc", BUDGET, &options))
		return -1;
	return reader_start(table.reader);
}

/* Nothing is read before reader_start. */
static int setup_idle(void **state)
{
	int err = setup(state);

	file_table_fini(&table);
	return err || file_table_init(&table, "/proc", BUDGET, &options) ? -1 : 0;
}

/* Until all that was announced is read. */
static void settle(uint32_t now)
{
	struct pollfd results = { .fd = reader_fd(table.reader), .events = POLLIN };
	struct read_result result;
	size_t jobs;

	do {
		while (reader_next(table.reader, &result))
			file_table_take(&table, &result, now);
		jobs = reader_jobs(table.reader, READ_TABLE) + reader_jobs(table.reader, READ_SYMBOLS);
	} while (poll(&results, 1, jobs ? -1 : 0) > 0);
}

static int teardown(void **state)
{
	file_table_fini(&table);
	return unlink(path);
}

static bool announce_at(const struct sonde_file *record, uint32_t now)
{
	struct event event = lab_file_event(record, LAB_FILE);
	bool again = file_table_event(&table, &event, now);

	settle(now);
	return again;
}

static bool announce(const struct sonde_file *record)
{
	return announce_at(record, 1);
}

/* This process, as if it ran `file`. */
static struct sonde_file record_of(const char *file)
{
	struct sonde_file record;
	struct stat st;

	lab_file_record(&record);
	assert_int_equal(stat(file, &st), 0);
	record.ino = st.st_ino;
	record.mtime_sec = st.st_mtim.tv_sec;
	record.mtime_nsec = (uint64_t)st.st_mtim.tv_nsec;
	return record;
}

static void check(enum sym_reason reason, bool has_symbols)
{
	struct known_file *file = file_table_find(&table, LAB_FILE, 1);

	assert_non_null(file);
	assert_int_equal(file->reason, reason);
	assert_int_equal(file->symbols != NULL, has_symbols);
	assert_non_null(file->path);
}

static void test_good_file(void **state)
{
	struct sonde_file record;
	size_t bytes;

	lab_file_record(&record);
	assert_null(file_table_find(&table, LAB_FILE, 1));
	assert_false(announce(&record));
	check(SYM_OK, true);
	bytes = file_table_bytes(&table);
	assert_true(bytes > 0);
	assert_int_equal(table.opened, 1);
	/* Once more: the same object stays. */
	assert_false(announce(&record));
	assert_int_equal(table.opened, 1);
	assert_int_equal(file_table_bytes(&table), bytes);
}

static void test_another_version(void **state)
{
	struct sonde_file record;

	lab_file_record(&record);
	record.mtime_sec++;
	assert_true(announce(&record)); /* ask again */
	check(SYM_FILE_CHANGED, false);
	assert_int_equal(table.failed, 1);
	record.mtime_sec--;
	assert_false(announce(&record));
	check(SYM_OK, true);
}

/* A text file below a /proc of the test: exe is a link to it. */
static void test_no_elf(void **state)
{
	char root[] = "/tmp/sonde-proc-XXXXXX", dir[64], link[96], command[96];
	struct sonde_file record = record_of(path);

	assert_non_null(mkdtemp(root));
	snprintf(dir, sizeof(dir), "%s/%u", root, record.tid);
	assert_int_equal(mkdir(dir, 0755), 0);
	snprintf(link, sizeof(link), "%s/exe", dir);
	assert_int_equal(symlink(path, link), 0);
	table.proc_root = root;
	assert_false(announce(&record)); /* asking again would not help */
	check(SYM_BAD_ELF, false);
	assert_string_equal(file_table_find(&table, LAB_FILE, 1)->path, path);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	assert_int_equal(system(command), 0);
}

static void test_gone(void **state)
{
	struct sonde_file record;

	lab_file_record(&record);
	record.tid = record.tgid = 0x7ffffffe;
	assert_true(announce(&record));
	check(SYM_NO_FILE, false);
	assert_string_equal(file_table_find(&table, LAB_FILE, 1)->path, "/bin/program");
}

static void test_over_the_budget(void **state)
{
	struct sonde_file record;

	lab_file_record(&record);
	table.budget = 0;
	assert_false(announce(&record));
	check(SYM_NO_MEMORY, false);
}

/* At the budget the symbols that were unused for longest go, and come back when used again. */
static void test_eviction(void **state)
{
	const uint64_t other = LAB_FILE + 1;
	struct forget_list list = { 0 };
	struct sonde_file record;
	struct event event;

	lab_file_record(&record);
	assert_false(announce_at(&record, 1));
	table.budget = file_table_bytes(&table); /* full */
	event = lab_file_event(&record, other);
	assert_false(file_table_event(&table, &event, 2)); /* the first one is in use */
	settle(2);
	assert_int_equal(file_table_find(&table, other, 2)->reason, SYM_NO_MEMORY);
	file_table_tick(&table, 2, 0, &list);
	assert_int_equal(list.count, 0);

	assert_false(file_table_event(&table, &event, 10));
	settle(10);
	assert_int_equal(file_table_find(&table, other, 10)->reason, SYM_OK);
	assert_int_equal(file_table_find(&table, LAB_FILE, 10)->reason, SYM_NO_MEMORY);
	file_table_tick(&table, 10, 0, &list);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.ids[0], LAB_FILE);
	assert_true(file_table_bytes(&table) <= table.budget);
	free(list.ids);
}

/* Announced again while it was on its way out: it stays, since the kernel side counts on it. */
static void test_sent_again_while_forgotten(void **state)
{
	const uint32_t late = 100000;
	struct forget_list list = { 0 };
	struct sonde_file record;

	lab_file_record(&record);
	announce(&record);
	file_table_tick(&table, late, late * NSEC_PER_SEC, &list);
	assert_int_equal(list.count, 1);
	assert_false(announce_at(&record, late + 1));
	for (uint32_t now = late + 1; now < late + 5; now++)
		file_table_tick(&table, now, late * NSEC_PER_SEC, &list);
	assert_int_equal(list.count, 1);
	assert_non_null(file_table_find(&table, LAB_FILE, late + 5));
	assert_int_equal(table.opened, 1);
	free(list.ids);
}

static void test_drop(void **state)
{
	struct forget_list list = { 0 };
	struct sonde_file record;

	lab_file_record(&record);
	announce(&record);
	file_table_drop(&table, &list);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.ids[0], LAB_FILE);
	assert_int_equal(file_table_bytes(&table), 0);
	/* The path stays: frames keep their module until the file is announced again. */
	assert_non_null(file_table_find(&table, LAB_FILE, 1));
	assert_int_equal(file_table_find(&table, LAB_FILE, 1)->reason, SYM_NO_MEMORY);
	assert_non_null(file_table_find(&table, LAB_FILE, 1)->path);
	assert_false(announce(&record));
	assert_int_equal(file_table_find(&table, LAB_FILE, 1)->reason, SYM_OK);
	free(list.ids);
}

/* ---- while files are being read ---- */

static struct unwind_table *next_table(uint64_t want_file)
{
	struct unwind_table *unwind;
	uint64_t file;

	assert_true(file_table_next_built(&table, &file, &unwind));
	assert_int_equal(file, want_file);
	return unwind;
}

/* Announced, not waited for. */
static bool queue(uint64_t id)
{
	struct sonde_file record;
	struct event event;

	lab_file_record(&record);
	event = lab_file_event(&record, id);
	return file_table_event(&table, &event, 1);
}

static void test_on_their_way(void **state)
{
	struct unwind_table *unwind;

	assert_false(queue(LAB_FILE));
	check(SYM_READING, false);
	assert_true(file_table_is_reading(&table, file_table_find(&table, LAB_FILE, 1)));
	/* Announced again meanwhile: another table, but not the symbols again. */
	assert_false(queue(LAB_FILE));
	assert_int_equal(table.symbols_due, 1);
	assert_int_equal(reader_start(table.reader), 0);
	settle(1);
	check(SYM_OK, true);
	assert_false(file_table_is_reading(&table, file_table_find(&table, LAB_FILE, 1)));
	assert_int_equal(table.symbols_due, 0);
	for (int i = 0; i < 2; i++) {
		unwind = next_table(LAB_FILE);
		assert_non_null(unwind);
		unwind_table_free(unwind);
	}
}

/* The copy of this program that is announced, and changed before it is read. */
static void test_changed_before_it_was_read(void **state)
{
	const struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
	struct forget_list list = { 0 };
	char root[] = "/tmp/sonde-proc-XXXXXX", command[256];
	struct sonde_file record;
	struct event event;

	assert_non_null(mkdtemp(root));
	snprintf(command, sizeof(command), "cp /proc/%d/exe %s; mkdir %s/%d; ln -s %s %s/%d/exe",
		 getpid(), path, root, getpid(), path, root, getpid());
	assert_int_equal(system(command), 0);
	table.proc_root = root;
	record = record_of(path);
	event = lab_file_event(&record, LAB_FILE);
	assert_false(file_table_event(&table, &event, 1));
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_int_equal(reader_start(table.reader), 0);
	settle(1);
	check(SYM_FILE_CHANGED, false);
	assert_null(next_table(LAB_FILE));
	assert_int_equal(table.failed, 1);
	file_table_tick(&table, 1, 0, &list);
	assert_true(list.count > 0);
	assert_int_equal(list.ids[0], LAB_FILE);
	free(list.ids);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	assert_int_equal(system(command), 0);
}

/* More files than the reader takes: the kernel side is told to ask again, and nothing is lost. */
static void test_full_queue(void **state)
{
	const uint64_t last = LAB_FILE + READER_MAX_JOBS + 9;
	uint64_t refused = 0;

	for (uint64_t id = LAB_FILE; id <= last; id++)
		refused += queue(id);
	assert_true(refused >= 10);
	assert_int_equal(table.put_off, refused);
	assert_int_equal(table.symbols_due, READER_MAX_JOBS + 10 - refused);
	assert_int_equal(file_table_find(&table, last, 1)->reason, SYM_READING);
	assert_false(file_table_is_reading(&table, file_table_find(&table, last, 1)));
	assert_int_equal(reader_start(table.reader), 0);
	settle(1);
	assert_false(queue(last));
	settle(1);
	assert_int_equal(file_table_find(&table, last, 1)->reason, SYM_OK);
	assert_int_equal(table.symbols_due, 0);
}

/* The budget holds when files within it come at once. Which is named: what waits counts, too. */
static void test_budget_at_arrival(void **state)
{
	int counts[SYM_REASON_COUNT] = { 0 };

	for (uint64_t i = 0; i < 3; i++)
		assert_false(queue(LAB_FILE + i));
	table.budget = 1;
	assert_int_equal(reader_start(table.reader), 0);
	settle(1);
	for (uint64_t i = 0; i < 3; i++)
		counts[file_table_find(&table, LAB_FILE + i, 1)->reason]++;
	assert_true(table.opened == 1 && counts[SYM_OK] == 1 && counts[SYM_NO_MEMORY] == 2);
}

/* Over the CPU budget what has not been read yet is left out too, and read later. */
static void test_reading_put_off_while_queued(void **state)
{
	struct forget_list list = { 0 };
	struct sonde_file record;

	lab_file_record(&record);
	assert_false(queue(LAB_FILE));
	file_table_set_reading(&table, false, &list);
	assert_int_equal(reader_start(table.reader), 0);
	settle(1);
	check(SYM_NO_BUDGET, false);
	unwind_table_free(next_table(LAB_FILE)); /* stacks stay whole */
	assert_int_equal(list.count, 0);
	file_table_set_reading(&table, true, &list);
	assert_int_equal(list.count, 1);
	assert_false(announce(&record));
	check(SYM_OK, true);
	free(list.ids);
}

/* Dropped while it is read: what comes then counts anew. */
static void test_drop_while_reading(void **state)
{
	struct forget_list list = { 0 };

	assert_false(queue(LAB_FILE));
	file_table_drop(&table, &list);
	assert_int_equal(list.count, 0);
	assert_int_equal(reader_start(table.reader), 0);
	settle(1);
	check(SYM_OK, true);
	free(list.ids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_good_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_version, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_elf, setup, teardown),
		cmocka_unit_test_setup_teardown(test_over_the_budget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_eviction, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sent_again_while_forgotten, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drop, setup, teardown),
		cmocka_unit_test_setup_teardown(test_on_their_way, setup_idle, teardown),
		cmocka_unit_test_setup_teardown(test_changed_before_it_was_read, setup_idle, teardown),
		cmocka_unit_test_setup_teardown(test_full_queue, setup_idle, teardown),
		cmocka_unit_test_setup_teardown(test_budget_at_arrival, setup_idle, teardown),
		cmocka_unit_test_setup_teardown(test_reading_put_off_while_queued, setup_idle, teardown),
		cmocka_unit_test_setup_teardown(test_drop_while_reading, setup_idle, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
