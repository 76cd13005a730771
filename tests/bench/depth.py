#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What one sample costs at exactly 10, 30 and 100 frames without frame pointers, all in, by the
kernel's BPF statistics (which add two readings of the clock to each run). One process of the
given depth on each CPU, and nothing else. Settings: BENCH_SECONDS=8 BENCH_ROUNDS=1
"""
import collections
import os
import statistics
import subprocess
import sys
import tempfile
import time

import bench

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live")]
import lab  # noqa: E402

SECONDS = float(os.environ.get("BENCH_SECONDS", "8"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "1"))
DEPTHS, RATES = (10, 30, 100), (99, 999)
START = 2.0  # seconds until the tables are loaded and the caches are as they will be


def runs(pid):
    """(runs, ns) of the perf-event programs that a process holds."""
    ids = bench.held_by(pid)
    mine = [v for k, v in bench.programs().items() if k in ids]
    return sum(v[0] for v in mine), sum(v[1] for v in mine)


def one(depth, hz, out):
    """ns of a run, number of runs, share of samples with that depth."""
    burning = [subprocess.Popen(["taskset", "-c", str(cpu), lab.wl("depth"), str(depth)],
                                stdout=subprocess.DEVNULL) for cpu in os.sched_getaffinity(0)]
    try:
        with lab.Sysctl("kernel.bpf_stats_enabled", 1):
            began = time.monotonic()
            process = lab.start("-a", "-F", hz, "-d", SECONDS + START + 1, out=out)
            time.sleep(START)
            before = runs(process.pid)
            time.sleep(SECONDS)
            after = runs(process.pid)
            r = lab.finish(process, out, began)
    finally:
        for p in burning:
            p.kill()
            p.wait()
    depths = collections.Counter()
    i = r.profile.value_index(lab.TYPE_SAMPLES)
    for s in r.profile.samples:
        depths[len(lab.user_frames(s)) if s.labels.get(lab.LABEL_COMM) == "depth" else None] += s.values[i]
    n = after[0] - before[0]
    return (after[1] - before[1]) / max(n, 1), n, depths[depth] / max(sum(depths.values()), 1)


def main():
    if os.geteuid():
        sys.exit("bench-depth: needs root")
    print(f"{SECONDS:g} s each, {os.cpu_count()} CPUs, kernel {os.uname().release}; "
          f"median [lowest-highest] of {ROUNDS}\n")
    print("| frames | Hz | ns a sample | samples | with this depth |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=lab.BUILD) as folder:
        for depth in DEPTHS:
            for hz in RATES:
                done = [one(depth, hz, os.path.join(folder, "depth.pb.gz")) for _ in range(ROUNDS)]
                ns = [d[0] for d in done]
                print(f"| {depth} | {hz} | {statistics.median(ns):.0f} [{min(ns):.0f}-{max(ns):.0f}] "
                      f"| {sum(d[1] for d in done)} | {100 * min(d[2] for d in done):.1f} % |", flush=True)


main()
