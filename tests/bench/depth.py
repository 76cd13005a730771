#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What one sample costs at exactly 10, 30 and 100 frames without frame pointers, all in, by the
kernel's BPF statistics (which add two readings of the clock to each run). One process of the
given depth on each CPU, in a cgroup that alone is recorded: what a sample of anything else costs is
measured first and taken off. Settings: BENCH_SECONDS=8 BENCH_ROUNDS=1
"""
import collections
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "live"), os.path.join(HERE, "..", "unwind_table")]
import lab  # noqa: E402
import load  # noqa: E402

SECONDS = float(os.environ.get("BENCH_SECONDS", "8"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "1"))
DEPTHS, RATES = (10, 30, 100), (99, 999)


def one(depth, hz, out, filtered_ns):
    """ns of a sample that was kept, how many were, their share of all, that with this depth of them."""
    group = load.Cgroup(f"depth{depth}")
    burning = [subprocess.Popen(["taskset", "-c", str(cpu), lab.wl("depth"), str(depth)],
                                stdout=subprocess.DEVNULL, preexec_fn=group.enter)
               for cpu in sorted(os.sched_getaffinity(0))]
    try:
        m = load.Measured(group, hz, SECONDS, out)
    finally:
        group.close()
        for p in burning:
            p.wait()
    depths, i = collections.Counter(), m.recording.profile.value_index(lab.TYPE_SAMPLES)
    for s in m.recording.profile.samples:
        depths[len(lab.user_frames(s))] += s.values[i]
    kept = sum(depths.values())
    return (m.ns_per_kept(filtered_ns), kept, 100 * kept / m.recording.fact("received"),
            100 * depths[depth] / max(kept, 1))


def main():
    if os.geteuid() or not load.cgroup_root():
        sys.exit("bench-depth: needs root and cgroup v2")
    print(f"{SECONDS:g} s each, {os.cpu_count()} CPUs, kernel {os.uname().release}; "
          f"median [lowest-highest] of {ROUNDS}\n")
    print("| frames | Hz | ns a sample | samples | of all | with this depth |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=lab.BUILD) as folder:
        out = os.path.join(folder, "depth.pb.gz")
        for hz in RATES:
            filtered_ns = load.filtered_cost(hz, out)
            for depth in DEPTHS:
                done = [one(depth, hz, out, filtered_ns) for _ in range(ROUNDS)]
                ns = [d[0] for d in done if d[0]]
                print(f"| {depth} | {hz} | {statistics.median(ns):.0f} [{min(ns):.0f}-{max(ns):.0f}] | "
                      f"{sum(d[1] for d in done)} | {min(d[2] for d in done):.0f} % | "
                      f"{min(d[3] for d in done):.1f} % |", flush=True)


main()
