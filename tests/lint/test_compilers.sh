#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Case K-01: the BPF programs compile for both architectures with clang 14 and with newer ones,
# and what each makes loads here. A newer clang is tested if one is installed (clang-16, ...).

build=${BUILD:-build}
n=0 failed=0
mkdir -p "$build/compilers"
unset MAKEFLAGS MFLAGS T
result() { # status name
	n=$((n + 1))
	[ "$1" = 0 ] && echo "ok $n - $2" || { echo "not ok $n - $2"; failed=1; }
}

clangs=$(for v in 14 15 16 17 18 19 20 21 22; do command -v clang-$v >/dev/null && echo clang-$v; done)
for clang in $clangs; do
	out=$build/compilers/$clang
	make NO_SETUP=1 CLANG="$clang" BUILD="$out" bpf bpf-arm64 >"$out.log" 2>&1
	result $? "$clang compiles for x86-64 and arm64"
	! grep -q 'warning:' "$out.log"
	result $? "$clang has no warnings"
	grep -E 'warning:|error:' "$out.log" | head -n 10 | sed 's/^/# /'
	if [ "$(id -u)" = 0 ]; then
		for object in sonde sched; do
			"$build/tools/bpf_insns" -c "$out/gen/x86_64/$object.o" 2>&1 | sed 's/^/# /'
			result "${PIPESTATUS[0]}" "what $clang makes of $object loads here"
		done
	else
		result 0 "what $clang makes loads here # SKIP needs root"
	fi
done
if [ "$(wc -w <<<"$clangs")" -lt 2 ]; then
	result 0 "a newer clang # SKIP none is installed (tools/setup compilers)"
fi
echo "1..$n"
exit $failed
