/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For run.py: loads an ELF file and answers hexadecimal virtual addresses on stdin, a line each,
 * with "KIND START RAW_NAME", KIND being "named", "start" (only the function's start is known) or
 * "none" (then a reason is in the place of the name); before it "FILE:LINE FUNCTION<TAB>" for each
 * call at the address, the innermost first, where lines are known. The first line tells of the load:
 * milliseconds, bytes, build-id.
 * The file is loaded a second time, told beforehand what it will be asked: an answer that differs is
 * told on stderr, and the exit status is 3.
 * usage: names FILE [DEBUG_DIR]
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbolizer/symbolizer.h"

static void answer(struct sym_file *file, uint64_t vaddr)
{
	struct sym_hit hit = { .raw_name = "" };
	enum sym_reason reason = sym_file_find(file, vaddr, &hit);

	struct sym_line lines[32];
	size_t count = reason == SYM_OK ? sym_file_lines(file, vaddr, lines, 32) : 0;

	for (size_t i = 0; i < count; i++)
		printf("%s:%u %s\t", lines[i].file, lines[i].line, lines[i].function);
	if (reason == SYM_OK || reason == SYM_START_ONLY)
		printf("%s %" PRIx64 " %s\n", reason == SYM_OK ? "named" : "start", hit.start,
		       hit.raw_name);
	else
		printf("none 0 %s\n", sym_reason_text(reason));
}

enum { ADDRESSES_MAX = 1 << 20 };

/* Of two loads of the file: whether both say the same of the address. */
static bool is_same(struct sym_file *all, struct sym_file *some, uint64_t vaddr)
{
	struct sym_hit want = { .raw_name = "" }, have = { .raw_name = "" };
	enum sym_reason reason = sym_file_find(all, vaddr, &want);

	if (sym_file_find(some, vaddr, &have) == reason && want.start == have.start &&
	    strcmp(want.raw_name, have.raw_name) == 0)
		return true;
	fprintf(stderr, "%" PRIx64 ": '%s' at %" PRIx64 ", but '%s' at %" PRIx64 " if it was told\n",
		vaddr, want.raw_name, want.start, have.raw_name, have.start);
	return false;
}

/* Whether the answers are the same when the addresses are known before the load. */
static bool check_wanted(int fd, struct sym_file_options options, struct sym_file *all,
			 const uint64_t *addresses, size_t count)
{
	struct sym_file *some;
	bool same = true;

	options.wanted = addresses;
	options.wanted_count = count;
	if (sym_file_load(fd, &options, &some))
		return false;
	for (size_t i = 0; i < count; i++)
		same &= is_same(all, some, addresses[i]);
	sym_file_free(some);
	return same;
}

int main(int argc, char **argv)
{
	struct sym_file_options options = { .no_demangle = true,
					    .lines = true,
					    .max_bytes = 512 * 1024 * 1024 };
	struct sym_file *file = NULL;
	static uint64_t addresses[ADDRESSES_MAX];
	nsec_t begin = clock_monotonic();
	size_t count = 0;
	int fd, err;

	options.debug_dir = argc > 2 ? argv[2] : NULL;
	fd = argc > 1 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	err = fd < 0 ? fd : sym_file_load(fd, &options, &file);
	if (err) {
		fprintf(stderr, "%s: %s\n", argc > 1 ? argv[1] : "usage", strerror(-err));
		return 1;
	}
	printf("%.2f %zu %s\n", (double)(clock_monotonic() - begin) / 1e6, sym_file_bytes(file),
	       sym_file_build_id(file));
	while (count < ADDRESSES_MAX && scanf("%" SCNx64, &addresses[count]) == 1)
		answer(file, addresses[count++]);
	err = check_wanted(fd, options, file, addresses, count) ? 0 : 3;
	sym_file_free(file);
	close(fd);
	return err;
}
