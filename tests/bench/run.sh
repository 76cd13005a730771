#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What sonde costs beside other profilers on this machine; see docs/BENCH.md.
# Settings: BENCH_SECONDS=60 BENCH_ROUNDS=3 BENCH_HZ=99 BENCH_TOOLS="sonde perf ..."
cd "$(dirname "$0")/../.." || exit 2
exec python3 -B tests/bench/bench.py
