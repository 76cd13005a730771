#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Shares of functions against the program's own measure; weights; what go tool pprof reads."""

import os
import re
import subprocess

import lab
import peers
from tap import check, equal, near, note, run, skip, test

HOT = ("hot_60", "hot_30", "hot_10")
scratch = lab.Scratch()


def truth_of(truth):
    return [truth["functions"][f] for f in HOT]


@test("60/30/10 split of a running process, by pid, two threads")
def split_by_pid():
    with lab.Workload(lab.wl("split"), "-n", "2") as w:
        r = lab.record("-F", "997", "-p", w.pid, "-d", lab.seconds(3, 20),
                       out=scratch.path("pid.pb.gz"))
        truth = w.stop()
    samples = r.select(comm="split")
    equal(r.count(samples), r.count(r.profile.samples), "samples of the target and of all")
    lab.check_split(r, samples, HOT, truth_of(truth))


@test("60/30/10 at 99 Hz, system-wide: within 2 points in the full form; perf beside it")
def split_99():
    length = lab.seconds(5, 60)
    with lab.Workload(lab.wl("split"), "-n", str(2 * os.cpu_count())) as w:
        perf = peers.Perf(scratch.path("perf.data"), 99, "-a")
        r = lab.record("-a", "-F", "99", "-d", length, out=scratch.path("99.pb.gz"))
        perf.stop()
        truth = w.stop()
    samples = r.select(pid=w.pid)
    enough = r.count(samples) > 60 * 99
    if lab.FULL and not enough:
        note(f"warning: a busy machine: {r.count(samples)} samples, 2 points need {60 * 99}")
    stacks = [s for c, s, _user in perf.stacks() if c == "split"]
    counts = [sum(f in s for s in stacks) for f in HOT]
    if sum(counts):
        note("perf of the same run: " + ", ".join(
            f"{f} {100 * c / sum(counts):.2f} %" for f, c in zip(HOT, counts)) +
            f" of {sum(counts)} samples")
    lab.check_split(r, samples, HOT, truth_of(truth), fixed=0.02 if enough else None)


@test("the stack goes from the hot function up to the thread's start")
def callers():
    r = lab.record("-F", "499", out=scratch.path("callers.pb.gz"),
                   command=[lab.wl("split"), "-t", "1"])
    samples = [s for s in r.select(comm="split") if lab.in_user_mode(s) and lab.has(s, *HOT)]
    good = [s for s in samples if [f.function for f in lab.user_frames(s)][1:4] ==
            ["take_turns", "worker_main", "main"]]
    note(f"{r.count(good)} of {r.count(samples)} go hot_* <- take_turns <- worker_main <- main")
    check(samples and r.count(good) >= 0.98 * r.count(samples),
          f"an example: {samples[0].frames if samples else None}")


@test("weights sum to samples x period and to the program's CPU time")
def weights():
    r = lab.record("-F", "499", out=scratch.path("weights.pb.gz"),
                   command=[lab.wl("split"), "-t", lab.seconds("3", "20"), "-n", "2"])
    truth = lab.truth_in(r.stdout)
    samples = r.select(comm="split")
    n, ns = r.count(samples), r.cpu_ns(samples)
    note(f"period {r.profile.period} {r.profile.period_type}, {n} samples, {ns / 1e9:.3f} s, "
         f"own measure {truth['cpu_ns'] / 1e9:.3f} s")
    near(r.profile.period, 1e9 / 499, 2, "period in ns")
    near(ns, n * r.profile.period, n, "weights against samples x period")
    near(ns, truth["cpu_ns"], 0.05 * truth["cpu_ns"], "weights against the CPU clock")


@test("CPUs busy for N seconds weigh N seconds each, within 5 %")
def all_cpus():
    length = lab.seconds(3, 30)
    cpus = os.cpu_count()
    with lab.Workload(lab.wl("split"), "-n", str(2 * cpus)):
        r = lab.record("-a", "-F", "99", "-d", length, out=scratch.path("cpus.pb.gz"))
    ns = r.cpu_ns(r.profile.samples)
    note(f"{ns / 1e9:.2f} s of {cpus} CPUs x {r.profile.duration_ns / 1e9:.2f} s")
    check(r.profile.duration_ns > 0.95e9 * length, f"duration {r.profile.duration_ns}")
    if r.profile.duration_ns > 1.2e9 * length:
        note(f"warning: asked for {length} s: sonde itself did not get a CPU in time")
    near(ns, cpus * r.profile.duration_ns, 0.05 * cpus * r.profile.duration_ns, "sum of weights")


@test("go tool pprof -top reads the file and gives the same order")
def go_pprof():
    go = lab.need("go")
    out = scratch.path("go.pb.gz")
    r = lab.record("-F", "997", out=out, command=[lab.wl("split"), "-t", "3"])
    env = dict(os.environ, PPROF_TMPDIR=scratch.name, PPROF_BINARY_PATH="/nowhere")
    top = subprocess.run([go, "tool", "pprof", "-top", "-symbolize=none", out], env=env, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if top.returncode and "no such tool" in top.stderr:
        skip("this go has no pprof")
    equal(top.returncode, 0, f"status of go tool pprof ({top.stderr.strip()[-300:]})")
    order = re.findall(r"\s(hot_\d0)\s*$", top.stdout, re.M)
    note("\n".join(top.stdout.splitlines()[:9]))
    equal(order, list(HOT), "order of the functions")
    flat = re.search(r"^\s*([\d.]+)(ms|s)\s.*hot_60", top.stdout, re.M)
    got = float(flat.group(1)) * (1e6 if flat.group(2) == "ms" else 1e9)
    want = r.cpu_ns(s for s in r.profile.samples if lab.leaf(s).function == "hot_60")
    near(got, want, 0.02 * want + 1e7, "flat time of hot_60")


@test("a task busy 2 ms of each 10 ms shows as 20 % (C-01)")
def lockstep():
    length = lab.seconds(5, 30)
    r = lab.record(out=scratch.path("lock.pb.gz"), command=[lab.wl("busy2of10"), "-t", length])
    truth = lab.truth_in(r.stdout)
    rate = 1e9 / r.profile.period
    share = r.cpu_ns(r.select(comm="busy2of10")) / truth["wall_ns"]
    want = truth["cpu_ns"] / truth["wall_ns"]
    note(f"default rate {rate:.1f} Hz; share {100 * share:.1f} %, own measure {100 * want:.1f} %")
    check(round(rate) % 10 != 0, f"the default rate {rate} is a round number")
    near(share, want, max(0.03, 4 * (0.16 / (length * rate)) ** 0.5), "share of one CPU")


if __name__ == "__main__":
    run()
