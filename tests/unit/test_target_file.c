/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of agent/resolve/target_file with real files, mapped by real processes: the right file
 * or a refusal, and never a wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/resolve/mounts.h"
#include "agent/resolve/target_file.h"

enum { NO_PID = 0x7ffffffe, SIZE = 4096, HANG_SECONDS = 20 };

static char dir[] = "/tmp/sonde-target-XXXXXX";
static char path[128];

/* What the kernel side would have sent; names is the packed path. */
struct lab {
	struct sonde_file record;
	struct path_names names;
	char packed[512];
	pid_t child;
};

static void write_file(const char *name, char fill)
{
	char bytes[SIZE];
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0755);

	memset(bytes, fill, sizeof(bytes));
	assert_int_equal(write(fd, bytes, sizeof(bytes)), SIZE);
	close(fd);
}

/* The path inside its own file system: what is behind the mount point, plus the mount's root. */
static void pack_path(struct lab *lab, const char *full)
{
	struct mounts m;
	struct stat st;
	char inside[256] = "";
	size_t best = 0, len;

	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(mounts_load("/proc/self/mountinfo", &m), 0);
	for (size_t i = 0; i < m.count; i++) {
		const struct mount *one = &m.list[i];
		size_t n = strcmp(one->point, "/") == 0 ? 0 : strlen(one->point);

		if (strncmp(full, one->point, n) != 0 || full[n] != '/' || n < best)
			continue;
		best = n;
		snprintf(inside, sizeof(inside), "%s%s", strcmp(one->root, "/") ? one->root : "",
			 full + n);
		lab->record.dev = (uint64_t)one->major << 20 | one->minor;
	}
	mounts_fini(&m);
	lab->names = (struct path_names){ .names = lab->packed };
	for (len = strlen(inside); len; len = strlen(inside)) {
		char *slash = strrchr(inside, '/');

		memcpy(lab->packed + lab->names.size, slash + 1, strlen(slash));
		lab->names.size += (uint32_t)strlen(slash);
		lab->names.count++;
		*slash = 0;
	}
}

static void describe(struct lab *lab, const char *full)
{
	struct stat st;

	*lab = (struct lab){ .record = { .tgid = NO_PID, .tid = NO_PID } };
	assert_int_equal(stat(full, &st), 0);
	lab->record.ino = st.st_ino;
	lab->record.mtime_sec = st.st_mtim.tv_sec;
	lab->record.mtime_nsec = (uint64_t)st.st_mtim.tv_nsec;
	pack_path(lab, full);
}

/* A child that maps the file and waits to be killed. */
static void start_child(struct lab *lab, const char *full)
{
	int report[2];
	void *at;

	assert_int_equal(pipe(report), 0);
	lab->child = fork();
	if (lab->child == 0) {
		int fd = open(full, O_RDONLY);

		at = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, fd, 0);
		if (write(report[1], &at, sizeof(at)) != sizeof(at))
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(report[0], &at, sizeof(at)), sizeof(at));
	close(report[0]);
	close(report[1]);
	assert_ptr_not_equal(at, MAP_FAILED);
	lab->record.tgid = lab->record.tid = (uint32_t)lab->child;
	lab->record.vm_start = (uintptr_t)at;
	lab->record.vm_end = (uintptr_t)at + SIZE;
}

static void stop_child(struct lab *lab)
{
	kill(lab->child, SIGKILL);
	waitpid(lab->child, NULL, 0);
}

/* map_files needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN. */
static void need_map_files(void)
{
	if (geteuid() == 0)
		return;
	print_message("# skip: map_files is for root\n");
	skip();
}

/* Opens, and checks the first byte. */
static int open_it(const struct lab *lab, char want, struct target_file *ret_file)
{
	struct target_file file;
	int err;
	char c;

	memset(&file, 'x', sizeof(file));
	alarm(HANG_SECONDS);
	err = target_file_open("/proc", &lab->record, &lab->names, &file);
	alarm(0);
	assert_non_null(memchr(file.path, 0, sizeof(file.path)));
	if (!err) {
		assert_int_equal(pread(file.fd, &c, 1, 0), 1);
		assert_int_equal(c, want);
		assert_int_equal(fcntl(file.fd, F_GETFD), FD_CLOEXEC);
		close(file.fd);
	}
	if (ret_file)
		*ret_file = file;
	return err;
}

static int setup(void **state)
{
	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/lib (deleted) x.so", dir);
	write_file(path, 'a');
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static void test_mapped_by_a_process(void **state)
{
	struct target_file file;
	struct lab lab;

	need_map_files();
	describe(&lab, path);
	start_child(&lab, path);
	assert_int_equal(open_it(&lab, 'a', &file), 0);
	assert_string_equal(file.path, path);
	stop_child(&lab);
}

static void test_executable(void **state)
{
	char self[PATH_MAX] = "";
	struct target_file file;
	struct lab lab;

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	describe(&lab, self);
	lab.record.tgid = lab.record.tid = (uint32_t)getpid();
	assert_int_equal(open_it(&lab, '\x7f', &file), 0);
	assert_string_equal(file.path, self);
}

/* The thread that was sampled has gone, its process lives. */
static void test_thread_that_has_gone(void **state)
{
	struct lab lab;

	need_map_files();
	describe(&lab, path);
	start_child(&lab, path);
	lab.names.count = lab.names.size = 0;
	lab.record.tid = NO_PID;
	assert_int_equal(open_it(&lab, 'a', NULL), 0);
	stop_child(&lab);
}

static void test_deleted_but_mapped(void **state)
{
	struct target_file file;
	struct lab lab;

	need_map_files();
	describe(&lab, path);
	start_child(&lab, path);
	unlink(path);
	assert_int_equal(open_it(&lab, 'a', &file), 0);
	assert_string_equal(file.path, path);
	/* Another file of that name is there now. */
	write_file(path, 'b');
	assert_int_equal(open_it(&lab, 'a', &file), 0);
	stop_child(&lab);
	assert_int_equal(open_it(&lab, 'a', NULL), -ESTALE);
}

/* A name that really ends like the kernel's mark stays whole. */
static void test_name_that_ends_in_deleted(void **state)
{
	char odd[160];
	struct target_file file;
	struct lab lab;

	need_map_files();
	snprintf(odd, sizeof(odd), "%s/x (deleted)", dir);
	write_file(odd, 'a');
	describe(&lab, odd);
	start_child(&lab, odd);
	assert_int_equal(open_it(&lab, 'a', &file), 0);
	assert_string_equal(file.path, odd);
	stop_child(&lab);
}

static void test_by_path_when_the_process_has_gone(void **state)
{
	struct lab lab;

	describe(&lab, path);
	assert_int_equal(open_it(&lab, 'a', NULL), 0);
	lab.record.dev ^= 1 << 20;
	assert_int_equal(open_it(&lab, 'a', NULL), -ENOENT);
}

static void copy_mountinfo(const char *to)
{
	char line[4096];
	FILE *in = fopen("/proc/self/mountinfo", "r"), *out = fopen(to, "w");

	assert_non_null(in);
	assert_non_null(out);
	while (fgets(line, sizeof(line), in))
		fputs(line, out);
	fclose(in);
	assert_int_equal(fclose(out), 0);
}

/* An agent in a container does not see the host's files, but process 1 does. */
static void test_by_path_of_process_1(void **state)
{
	char name[512], proc[160], root[256];
	struct target_file file;
	struct lab lab;

	describe(&lab, path);
	snprintf(proc, sizeof(proc), "%s/proc", dir);
	snprintf(name, sizeof(name), "mkdir -p %s/self %s/1", proc, proc);
	assert_int_equal(system(name), 0);
	snprintf(name, sizeof(name), "%s/self/mountinfo", proc);
	write_file(name, '\n');
	assert_int_equal(target_file_open(proc, &lab.record, &lab.names, &file), -ENOENT);
	snprintf(name, sizeof(name), "%s/1/mountinfo", proc);
	copy_mountinfo(name);
	assert_int_equal(target_file_open(proc, &lab.record, &lab.names, &file), -ENOENT);
	snprintf(root, sizeof(root), "%s/1/root", proc);
	assert_int_equal(symlink("/", root), 0);
	assert_int_equal(target_file_open(proc, &lab.record, &lab.names, &file), 0);
	assert_int_equal(target_file_verify(file.fd, &file.identity), 0);
	close(file.fd);
	/* Another version there is refused like one here. */
	write_file(path, 'b');
	lab.record.mtime_sec--;
	assert_int_equal(target_file_open(proc, &lab.record, &lab.names, &file), -ESTALE);
}

static void test_replaced(void **state)
{
	struct lab lab;
	char other[160];

	describe(&lab, path);
	snprintf(other, sizeof(other), "%s/new", dir);
	write_file(other, 'b');
	assert_int_equal(rename(other, path), 0);
	assert_int_equal(open_it(&lab, 'a', NULL), -ESTALE);
}

/* The same inode with another content: only mtime tells. */
static void test_rewritten_in_place(void **state)
{
	struct target_file file;
	struct lab lab;
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };

	describe(&lab, path);
	write_file(path, 'b');
	times[1].tv_sec = lab.record.mtime_sec;
	times[1].tv_nsec = (long)lab.record.mtime_nsec ^ 1;
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_int_equal(open_it(&lab, 'a', &file), -ESTALE);
	assert_non_null(strstr(file.path, "x.so"));
	times[1].tv_sec++;
	times[1].tv_nsec = (long)lab.record.mtime_nsec;
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_int_equal(open_it(&lab, 'a', NULL), -ESTALE);
}

static void test_gone(void **state)
{
	struct lab lab;

	describe(&lab, path);
	unlink(path);
	assert_int_equal(open_it(&lab, 'a', NULL), -ENOENT);
	lab.names.count = lab.names.size = 0;
	assert_int_equal(open_it(&lab, 'a', NULL), -ENOENT);
}

static void test_something_else_in_the_way(void **state)
{
	struct lab lab;

	describe(&lab, path);
	unlink(path);
	assert_int_equal(mkfifo(path, 0755), 0);
	assert_int_not_equal(open_it(&lab, 'a', NULL), 0); /* and does not wait for a writer */
	unlink(path);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_not_equal(open_it(&lab, 'a', NULL), 0);
	rmdir(path);
	assert_int_equal(symlink("/dev/zero", path), 0);
	assert_int_not_equal(open_it(&lab, 'a', NULL), 0);
}

static void test_verify(void **state)
{
	struct lab lab;
	struct target_identity identity;
	int fd = open(path, O_RDONLY), pipes[2];

	describe(&lab, path);
	identity = (struct target_identity){ lab.record.ino, lab.record.mtime_sec,
					     lab.record.mtime_nsec };
	assert_int_equal(target_file_verify(fd, &identity), 0);
	identity.ino++;
	assert_int_equal(target_file_verify(fd, &identity), -ESTALE);
	close(fd);
	assert_int_equal(target_file_verify(-1, &identity), -EBADF);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(target_file_verify(pipes[0], &identity), -EINVAL);
	close(pipes[0]);
	close(pipes[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_mapped_by_a_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_executable, setup, teardown),
		cmocka_unit_test_setup_teardown(test_thread_that_has_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deleted_but_mapped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_name_that_ends_in_deleted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_by_path_when_the_process_has_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_by_path_of_process_1, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rewritten_in_place, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_something_else_in_the_way, setup, teardown),
		cmocka_unit_test_setup_teardown(test_verify, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
