#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the seeds of fuzz_pclntab: a table in each layout, for 32 and 64 bits.
set -e
cd "$(dirname "$0")"
mkdir -p pclntab
program=$(mktemp)
trap 'rm -f "$program"' EXIT
gcc -std=gnu17 -D_GNU_SOURCE -I../../.. -I../../unit -x c -o "$program" - -x c ../../../base/buf.c <<'EOF'
#include <stdio.h>
#include <string.h>
#include "go_lab.h"
int main(void)
{
	static const char *const names[] = { "runtime.main", "main.(*T).Do", "main.f.func1" };
	static const unsigned int versions[] = { 2, 16, 18, 20 };

	for (int i = 0; i < 8; i++) {
		struct buf b = go_lab_table(versions[i / 2], i % 2 ? 8 : 4, names, 3);
		char path[64];
		FILE *f;

		snprintf(path, sizeof(path), "pclntab/go_%u_%d", versions[i / 2], i % 2 ? 64 : 32);
		f = fopen(path, "w");
		fwrite(b.data, 1, b.len, f);
		fclose(f);
		buf_fini(&b);
	}
	return 0;
}
EOF
"$program"
ls -l pclntab
