#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the seeds of fuzz_elf: small shared objects, with and without section headers.
set -e
cd "$(dirname "$0")/elf"
source=$(mktemp --suffix=.c)
trap 'rm -f "$source"' EXIT
cat >"$source" <<'EOF'
__attribute__((weak)) int one(int x) { return x * 3; }
static __attribute__((noinline, used)) int two(int x) { return one(x) + 1; }
int _ZN2ns5threeEi(int x) { return two(x); }
asm(".text\n.globl bare\nbare: nop\nret\n");
EOF
link() { gcc -shared -nostdlib -fPIC -O1 -fno-asynchronous-unwind-tables -Wl,-z,noseparate-code \
	-Wl,-z,norelro "$@" "$source"; }
link -o both.so -Wl,--hash-style=both -Wl,--build-id
link -o gnu_hash.so -Wl,--hash-style=gnu -Wl,--build-id=none
llvm-objcopy-14 --strip-sections gnu_hash.so no_sections.so
link -o sysv.so -Wl,--hash-style=sysv -Wl,--build-id=0x00
strip sysv.so
ls -l
