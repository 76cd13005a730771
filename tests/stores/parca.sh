#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds Parca from its Go module into build/stores/, once for each version, without its web page;
# prints its path. Needs Go and the module proxy, which has refused all versions that were newer.
set -eu
cd "$(dirname "$0")/../.."
version=0.21.0
build=$PWD/${BUILD:-build}/stores
program=$build/parca-$version
[ -x "$program" ] && { echo "$program"; exit 0; }

command -v go >/dev/null || export PATH=$PATH:/usr/local/go/bin
command -v go >/dev/null || { echo "go is not installed" >&2; exit 1; }
export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -mod=mod"
rm -rf "$build/parca"
mkdir -p "$build/parca"
cd "$build/parca"
cat >go.mod <<END
module parca

go 1.22

require github.com/parca-dev/parca v$version
END
# By name and version only: the proxy lists no versions of it, which `go install` asks for.
source=$(go mod download -json "github.com/parca-dev/parca@v$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
[ "$source" ] || { echo "the module cannot be had" >&2; exit 1; }
# Its own list of checksums: one module that it needs is in no public list any more.
cat "$source/go.sum" >>go.sum
# Since Go 1.23 the linker refuses names of the runtime that one of its modules takes.
go build -ldflags=-checklinkname=0 -o "$program.new" github.com/parca-dev/parca/cmd/parca >&2
mv "$program.new" "$program"
rm -rf "$build/parca"
echo "$program"
