#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/run counts as it should: each case is a program that prints some lines.

cd "$(dirname "$0")/../.." || exit 2
folder=$(mktemp -d) n=0 failed=0
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/unit"

expect() { # counts, exit status of the program, its lines
	local got
	printf '#!/bin/sh\ncat <<"end"\n%s\nend\nexit %d\n' "$3" "$2" >"$folder/unit/test_x"
	chmod +x "$folder/unit/test_x"
	got=$(BUILD=$folder T='' tests/run unit | tail -n 1)
	n=$((n + 1))
	if [ "$got" = "$1" ]; then
		echo "ok $n - ${3//[$'\n']/, }" | tr -d '#'
	else
		echo "# $got, not $1"
		echo "not ok $n - ${3//[$'\n']/, }" | tr -d '#'
		failed=1
	fi
}

echo 1..10
expect '1 passed, 0 failed, 0 skipped' 0 $'1..1\nok 1 - a'
expect '1 passed, 1 failed, 0 skipped' 1 $'1..2\nok 1 - a\nnot ok 2 - b'
expect '1 passed, 1 failed, 0 skipped' 0 $'1..2\nok 1 - a'
expect '1 passed, 1 failed, 0 skipped' 3 $'1..1\nok 1 - a'
expect '0 passed, 1 failed, 0 skipped' 0 'nothing'
expect '0 passed, 0 failed, 1 skipped' 0 $'1..1\nok 1 - a # SKIP no runc here'
expect '0 passed, 1 failed, 0 skipped' 0 $'1..1\nok 1 - a # SKIP'
expect '0 passed, 0 failed, 1 skipped' 0 $'1..1\n# skip: needs root\nnot ok 1 # SKIP test_a'
expect '0 passed, 1 failed, 0 skipped' 0 $'1..1\nnot ok 1 # SKIP test_a'
expect '0 passed, 1 failed, 0 skipped' 0 '1..0 # SKIP'
exit $failed
