#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# deploy/sonde.yaml is what the option table says: UPDATE=1 writes it anew. And the agent takes it.

cd "$(dirname "$0")/../.." || exit 2
example=deploy/sonde.yaml
made=${BUILD:-build}/sonde.yaml
"$SONDE" agent --example-config >"$made" || exit 1
[ "$UPDATE" ] && cp "$made" $example
echo 1..2
if cmp -s "$made" $example; then
	echo "ok 1 - $example is up to date"
else
	diff $example "$made" | sed 's/^/# /'
	echo "not ok 1 - $example is up to date"
fi
# A wrong option behind it shows that the file itself was read without complaint.
said=$("$SONDE" agent --config $example --freq 0 2>&1)
case $said in
*"--freq"*"out of range"*) echo "ok 2 - the agent takes it" ;;
*) echo "# $said"; echo "not ok 2 - the agent takes it" ;;
esac
