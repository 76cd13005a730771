#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the fuzz targets that were built (make fuzz), each for FUZZ_SECONDS on a copy of its
# corpus, one TAP line each. usage: run.sh [NAME...]; all targets without a name.
# What crashes is kept in build/fuzz/crashes/NAME-*; replay it with build/fuzz/fuzz_NAME FILE.

cd "$(dirname "$0")/../.." || exit 2
build=${BUILD:-build}/fuzz seconds=${FUZZ_SECONDS:-10} n=0 failed=0
export ASAN_OPTIONS=${ASAN_OPTIONS:-allocator_may_return_null=1}

if [ $# = 0 ]; then
	set -- $(basename -s .c tests/fuzz/fuzz_*.c | sed 's/^fuzz_//')
	[ "$1" != '*' ] || set --
	[ -z "${T:-}" ] || set -- $(printf '%s\n' "$@" | grep -F -- "$T")
fi
[ $# != 0 ] || { echo "1..0 # SKIP no fuzz target${T:+ with '$T' in its name}"; exit 0; }
mkdir -p "$build/crashes"
echo "1..$#"
for name; do
	n=$((n + 1))
	corpus=$build/corpus/$name log=$build/$name.log
	mkdir -p "$corpus"
	cp -n "tests/fuzz/corpus/$name/"* "$corpus" 2>/dev/null
	if "$build/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
		-max_len=16384 -print_final_stats=1 -artifact_prefix="$build/crashes/$name-" \
		"$corpus" >"$log" 2>&1 </dev/null; then
		echo "ok $n - fuzz_$name: $(awk '/number_of_executed_units/ { print $2 }' "$log") runs"
	else
		failed=1
		sed 's/^/# /' "$log" | grep -E 'ERROR|SUMMARY|runtime error|Test unit|No such|    #[0-9] ' | head -n 25
		echo "not ok $n - fuzz_$name"
	fi
done
exit $failed
