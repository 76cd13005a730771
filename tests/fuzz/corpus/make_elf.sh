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
# Function starts, stubs, 32 bits; a debug link and names in .gnu_debugdata.
cat >>"$source" <<'EOF'
int puts(const char *);
int four(void) { return puts("four") + two(4); }
EOF
with_tables() { gcc -shared -nostdlib -fPIC -O1 -Wl,-z,noseparate-code -Wl,-z,norelro "$@" "$source"; }
with_tables -o plt.so -fcf-protection=none -Wl,-z,lazy
with_tables -o ibt.so -fcf-protection=full -Wl,-z,ibtplt -Wl,-z,now
llvm-objcopy-14 --strip-sections plt.so plt_no_sections.so
gcc -m32 -ffreestanding -c -fPIC -O1 -o narrow.o "$source" && ld -m elf_i386 -shared -z noseparate-code -o narrow.so narrow.o
rm -f narrow.o
objcopy --only-keep-debug plt.so plt.debug
cp plt.so mini.so
strip mini.so
xz -k plt.debug
objcopy --add-gnu-debuglink=plt.debug --add-section .gnu_debugdata=plt.debug.xz mini.so
mkdir -p ../minidebug
(printf '\0'; cat plt.debug.xz) >../minidebug/xz
(printf '\1'; cat plt.debug) >../minidebug/elf
rm -f plt.debug plt.debug.xz
strip plt.so ibt.so
ls -l
