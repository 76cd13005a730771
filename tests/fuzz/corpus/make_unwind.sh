#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the seeds of fuzz_unwind: small ELF files, with unwind data of each kind.
set -e
cd "$(dirname "$0")/unwind"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/kinds.s" <<'EOF'
.text
frame: .cfi_startproc
push %rbp
.cfi_def_cfa_offset 16
.cfi_offset rbp,-16
mov %rsp,%rbp
.cfi_def_cfa_register rbp
.cfi_remember_state
leave
.cfi_def_cfa rsp,8
ret
.cfi_restore_state
nop
.cfi_endproc
plt: .cfi_startproc
.cfi_escape 0x0f,11,0x77,8,0x80,0,0x3f,0x1a,0x3b,0x2a,0x33,0x24,0x22
nop
.cfi_escape 0x0f,5,0x77,16,0x06,0x23,8
nop
.cfi_escape 0x0f,3,0x76,0x78,0x06,0x10,6,2,0x76,0
nop
.cfi_def_cfa r10,0
nop
.cfi_escape 0x2e,16,0x16,6,2,0x76,0,0x15,7,0,0x2f,3,2,0x13,0x7c
.cfi_undefined rip
nop
.cfi_endproc
restorer: .cfi_startproc
.cfi_signal_frame
.cfi_escape 0x0f,4,0x77,0xa0,1,0x06
.cfi_escape 0x10,6,3,0x77,0xf8,0
.cfi_escape 0x10,16,3,0x77,0xa8,1
nop
.cfi_endproc
nop
mov $15,%rax
syscall
EOF
sed '1i .cfi_sections .debug_frame' "$dir/kinds.s" >"$dir/debug.s"
link() { gcc -shared -nostdlib -Wl,-z,noseparate-code -Wl,-z,norelro -Wl,--build-id=none \
	-Wl,--hash-style=sysv -o "$@" 2>/dev/null; strip --keep-section=.debug_frame "$1"; }
link kinds.so "$dir/kinds.s"
link no_header.so "$dir/kinds.s" -Wl,--no-eh-frame-hdr
link debug.so "$dir/debug.s"
objcopy --compress-debug-sections=zlib debug.so zlib.so
objcopy --compress-debug-sections=zstd debug.so zstd.so || rm -f zstd.so
gcc -shared -nostdlib -Wl,--build-id=none -Wl,-z,noseparate-code -Wl,-z,norelro -o "$dir/c.so" -xc - <<'EOF'
int f(int x) { return x + 1; }
int g(int x) { volatile char b[300]; b[x] = f(x); return b[0]; }
EOF
llvm-objcopy-14 --strip-sections "$dir/c.so" no_sections.so
ls -l
