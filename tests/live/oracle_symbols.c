/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For oracle_symbols.py: loads an ELF file and answers hexadecimal virtual addresses on stdin,
 * a line each, with "START RAW_NAME", or "- REASON"; first a line of figures about the load.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbolizer/symbolizer.h"

int main(int argc, char **argv)
{
	struct sym_file_options options = { .debug_dir = argc > 2 ? argv[2] : NULL };
	struct sym_file *file = NULL;
	nsec_t begin = clock_monotonic();
	uint64_t vaddr;
	int fd, err;

	fd = argc > 1 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	err = fd < 0 ? fd : sym_file_load(fd, &options, &file);
	if (err) {
		fprintf(stderr, "%s: %s\n", argc > 1 ? argv[1] : "usage", strerror(-err));
		return 1;
	}
	printf("%.2f %zu %s\n", (double)(clock_monotonic() - begin) / 1e6, sym_file_bytes(file),
	       sym_file_build_id(file));
	while (scanf("%" SCNx64, &vaddr) == 1) {
		struct sym_hit hit;
		enum sym_reason reason = sym_file_find(file, vaddr, &hit);

		if (reason == SYM_OK)
			printf("%" PRIx64 " %s\n", hit.start, hit.raw_name);
		else
			printf("- %s\n", sym_reason_text(reason));
	}
	sym_file_free(file);
	close(fd);
	return 0;
}
