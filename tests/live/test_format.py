#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Files are valid for every reader in every odd case (E-01), values and times are sane (E-02)."""

import os
import subprocess
import time

import lab
import pprofread
from tap import check, equal, near, note, run, test

scratch = lab.Scratch()
HZ = 997


def go_accepts(path):
    """go tool pprof -raw, where there is one, must read the file."""
    try:
        r = subprocess.run(["go", "tool", "pprof", "-raw", "-symbolize=none", path], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                           env=dict(os.environ, PPROF_TMPDIR=scratch.name))
    except FileNotFoundError:
        return
    if r.returncode and "no such tool" in r.stderr:
        return
    equal(r.returncode, 0, f"go tool pprof -raw {path}: {r.stderr.strip()[-300:]}")


def record_workload(name, program, *args, length=1):
    with lab.Workload(program, *args) as w:
        r = lab.record("-F", HZ, "-p", w.pid, "-d", length, out=scratch.path(name))
    go_accepts(r.path)
    return r


@test("nothing has a name of its own (stripped static program)")
def nothing_named():
    r = record_workload("stripped.pb.gz", lab.wl("split_stripped"))
    check(r.count(r.profile.samples) > 30, "too few samples")


@test("JIT code without a map, and only that")
def jit_only():
    r = record_workload("jit.pb.gz", lab.wl("jit"), "-n")
    mine = r.count(s for s in r.profile.samples if lab.in_user_mode(s))
    check(mine > 30, f"{mine} samples of nameless code")


@test("an interval without samples is a valid file")
def empty():
    with subprocess.Popen(["sleep", "100"]) as child:
        r = lab.record("-F", HZ, "-p", child.pid, "-d", 1, out=scratch.path("empty.pb.gz"))
        child.kill()
    equal(r.count(r.profile.samples), 0, "samples of a process that sleeps")
    near(r.profile.duration_ns, 1e9, 3e8, "duration")
    go_accepts(r.path)


@test("a kernel thread: no user frames, no mappings of files")
def kernel_thread():
    # ksoftirqd of a CPU: a task that is always there; it may well be idle.
    pid = next(int(p) for p in os.listdir("/proc") if p.isdigit() and
               open(f"/proc/{p}/comm", encoding="utf-8").read().startswith("ksoftirqd/"))
    r = lab.record("-F", HZ, "-p", pid, "-d", 1, out=scratch.path("kthread.pb.gz"))
    files = {f.module for s in r.profile.samples for f in s.frames if f.module.startswith("/")}
    equal(files, set(), "files of a kernel thread")
    go_accepts(r.path)


@test("system-wide, with everything that runs here")
def everything():
    with lab.Workload(lab.wl("storm"), lab.wl("storm_child")), lab.Workload(lab.wl("jit")):
        r = lab.record("-a", "-F", HZ, "-d", 2, out=scratch.path("all.pb.gz"))
    note(f"{len(r.profile.samples)} samples, {len(r.profile.locations)} locations, "
         f"{len(r.profile.mappings)} mappings, {r.profile.size_bytes} bytes")
    go_accepts(r.path)
    check(lab.LABEL_CGROUP in r.profile.samples[0].labels, "no cgroup label")
    for i, m in r.profile.mappings.items():
        check(not any(m.get(n, [0])[-1] for n in (2, 3, 4)), f"mapping {i} is not 0/0/0")


@test("plain, gzip and zstd hold the same kind of profile; zstd is smaller than plain")
def compressions():
    sizes = {}
    for end in (".pb", ".pb.gz", ".pb.zst"):
        r = record_workload("same" + end, lab.wl("split")) if end != ".pb.zst" else None
        if r is None:  # go tool pprof reads no zstd
            with lab.Workload(lab.wl("split")) as w:
                r = lab.record("-F", HZ, "-p", w.pid, "-d", 1.5, out=scratch.path("same.pb.zst"))
        sizes[end] = r.profile.size_bytes
        equal([t for t, _u in r.profile.types], [lab.TYPE_SAMPLES, lab.TYPE_CPU], f"types of {end}")
        with open(r.path, "rb") as f:
            head = f.read(4)
        want = {".pb": None, ".pb.gz": b"\x1f\x8b", ".pb.zst": b"\x28\xb5\x2f\xfd"}[end]
        check(want is None or head.startswith(want), f"{end} begins with {head!r}")
    note(f"bytes: {sizes}")
    check(sizes[".pb.gz"] < sizes[".pb"] and sizes[".pb.zst"] < sizes[".pb"], f"sizes {sizes}")


@test("start and duration are those of the recording; the period is the asked one (E-02, E-03)")
def times():
    before = time.time()
    r = record_workload("times.pb.gz", lab.wl("split"), length=2)
    p = r.profile
    check(before - 2 <= p.time_ns / 1e9 <= time.time(), f"start {p.time_ns}")
    near(p.duration_ns, 2e9, 3e8, "duration")
    near(p.period, 1e9 / HZ, 2, "period")
    equal(p.period_type[1], "nanoseconds", "unit of the period")
    equal(dict(p.types)[lab.TYPE_CPU], "nanoseconds", "unit of the weights")


@test("the reader of these tests refuses damaged files")
def reader_is_strict():
    with lab.Workload(lab.wl("split")) as w:
        r = lab.record("-F", HZ, "-p", w.pid, "-d", 1, out=scratch.path("good.pb"))
    with open(r.path, "rb") as f:
        good = f.read()
    pprofread.Profile(good).check()
    refused = 0
    for cut in range(1, 40):
        try:
            pprofread.Profile(good[:len(good) * cut // 40]).check()
        except pprofread.Bad:
            refused += 1
    check(refused >= 38, f"{refused} of 39 cut files were refused")


if __name__ == "__main__":
    run()
