#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds an OpenTelemetry Collector with an OTLP receiver and a file exporter from its Go modules into
# build/stores/, once for each version; prints its path. Needs Go 1.25 or newer and the module proxy.
set -eu
cd "$(dirname "$0")/../.."
version=0.159.0
build=$PWD/${BUILD:-build}/stores
program=$build/otelcol-$version
[ -x "$program" ] && { echo "$program"; exit 0; }

command -v go >/dev/null || export PATH=$PATH:/usr/local/go/bin
command -v go >/dev/null || { echo "go is not installed" >&2; exit 1; }
export CGO_ENABLED=0 GOFLAGS=-buildvcs=false
mkdir -p "$build/tree"
GOBIN=$build go install "go.opentelemetry.io/collector/cmd/builder@v$version" >&2
cat >"$build/manifest.yaml" <<END
dist: { name: otelcol, output_path: $build/tree }
receivers:
  - gomod: go.opentelemetry.io/collector/receiver/otlpreceiver v$version
exporters:
  - gomod: github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter v$version
END
"$build/builder" --config "$build/manifest.yaml" >&2
mv "$build/tree/otelcol" "$program"
rm -rf "$build/tree"
echo "$program"
