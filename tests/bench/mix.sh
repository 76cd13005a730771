#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A mix of everyday programs that keeps all CPUs busy until it is killed: compilers, archives, text
# tools, an interpreter, a kernel-heavy copy, a program with frame pointers.
# usage: mix.sh <directory for files> <directory of workloads> [compile|large]
# compile: compilers alone; large: with large programs too
dir=$1 workloads=$2 kind=$3
seq 1 400000 >"$dir/numbers"

compile() { for f in base/*.c; do gcc -O2 -D_GNU_SOURCE -I. -c -o "$dir/$1.o" "$f"; done; }
archive() {
	gzip -c "$dir/numbers" | gzip -dc | sha256sum
	xz -1 -c "$dir/numbers" | xz -dc | md5sum
}
text() {
	sort -R "$dir/numbers" | sort -n | awk '{ n += $1 } END { print n }'
	grep -c 77 "$dir/numbers"
}
script() {
	python3 -c 'import json, re, zlib
for i in range(40):
    s = json.dumps([{"k%d" % k: [k] * 9} for k in range(999)])
    re.findall(r"k\d+7", s), zlib.crc32(zlib.compress(s.encode())), json.loads(s)'
}
copy() { dd if=/dev/zero of=/dev/null bs=4k count=400000; find /usr/lib -name '*.so*' | wc -l; }
hot() { "$workloads/split" -t 1; }

# Programs with many symbols; those that are not here are left out.
large() {
	for f in base/*.c; do clang-14 -O2 -D_GNU_SOURCE -I. -c -o "$dir/$1.l.o" "$f"; done
	node -e 'for (let i = 0; i < 300; i++) JSON.stringify(Array(9999).fill({ a: i }))'
	java -Xshare:auto -version
	git log --stat -n 200
	gdb -batch -ex 'info functions main' "$workloads/split"
	perl -e 'for (1..300000) { $h{$_ % 999} .= "x"; } print join ",", sort keys %h'
	ruby -e '300000.times.map(&:to_s).sort.join'
}

loop() { while :; do for job in "$@"; do $job "$1"; done; done >/dev/null 2>&1; }
cpus=$(nproc)
n=0
while [ $n -lt "$cpus" ]; do
	if [ "$kind" = compile ]; then
		loop compile &
	else
		loop compile text copy &
		loop script archive hot &
		[ "$kind" != large ] || loop large &
	fi
	n=$((n + 1))
done
echo ready
wait
