#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""sonde report against an independent reader of the same file; files that others wrote."""

import os
import re
import shutil
import subprocess

import lab
import pprofread
from tap import check, equal, near, note, run, skip, test

scratch = lab.Scratch()
HZ = 997
SPLIT = "r" + os.urandom(4).hex()[:7]  # a command's name of this run: other tests run split, too
ROW = re.compile(r"^\s*([\d.]+)%\s+(\d+)\s+(\S.*?)\s{2,}(\S.*?)\s{2,}\[(.)\] (.*?)\s*$")

GO_PROGRAM = """package main
import ("os"; "runtime/pprof"; "time")
//go:noinline
func goHot(n int) int { x := 1; for i := 0; i < n; i++ { x = x*31 + i }; return x }
func main() {
	f, _ := os.Create(os.Args[1])
	pprof.StartCPUProfile(f)
	for end := time.Now().Add(time.Second); time.Now().Before(end); { goHot(100000) }
	pprof.StopCPUProfile()
	f.Close()
}
"""


def report(*args, status=0):
    r = subprocess.run([lab.SONDE, "report", *args], text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, check=False)
    equal(r.returncode, status, f"status of report {args} ({r.stderr.strip()})")
    return r.stdout if status == 0 else r.stderr


def recorded(name="report.pb.gz"):
    """One recording of two programs, made once."""
    path = scratch.path(name)
    if not os.path.exists(path):
        shutil.copy(lab.wl("split"), scratch.path(SPLIT))
        with lab.Workload(scratch.path(SPLIT)), lab.Workload(lab.wl("jit")):
            lab.record("-a", "-F", HZ, "-d", 2, out=path)
    return lab.Recording(path, 0, "", "", 0)


def rows(text):
    return [m.groups() for m in map(ROW.match, text.splitlines()) if m]


@test("rows of the default table are those of the file: share, samples, command, object, symbol")
def table():
    r = recorded()
    found = rows(report(r.path))
    total = r.cpu_ns(r.profile.samples)
    check(len(found) > 5, f"only {len(found)} rows")
    for function in ("hot_60", "hot_30", "hot_10"):
        mine = [s for s in r.select(comm=SPLIT) if lab.leaf(s).function == function]
        row = next((x for x in found if x[5] == function and x[2] == SPLIT), None)
        check(row, f"no row for {function}")
        equal(int(row[1]), r.count(mine), f"samples of {function}")
        near(float(row[0]), 100 * r.cpu_ns(mine) / total, 0.0051, f"overhead of {function}")
        equal((row[3], row[4]), (SPLIT, "."), f"object and mode of {function}")
    overheads = [float(x[0]) for x in found]
    equal(overheads, sorted(overheads, reverse=True), "order of the rows")
    near(sum(overheads), 100, 0.005 * len(found), "sum of the overheads")


@test("--sort, --comm and --pid")
def keys():
    r = recorded()
    text = report("--sort", "comm", "--no-header", r.path)
    shares = dict(re.findall(r"^\s*([\d.]+)%\s+\d+\s+(\S+)\s*$", text, re.M)[i][::-1]
                  for i in range(2))
    total = r.cpu_ns(r.profile.samples)
    for comm, share in shares.items():
        near(float(share), 100 * r.cpu_ns(r.select(comm=comm)) / total, 0.0051, comm)
    only = rows(report("--comm", SPLIT, r.path))
    equal({x[2] for x in only}, {SPLIT}, "commands with --comm split")
    pid = next(s.labels[lab.LABEL_PID] for s in r.select(comm="jit"))
    equal({x[2] for x in rows(report("--pid", str(pid), r.path))}, {"jit"}, "commands with --pid")


@test("--folded: the values of the file, in the order of its stacks")
def folded():
    r = recorded()
    total = good = 0
    for line in report("--folded", r.path).splitlines():
        stack, _, value = line.rpartition(" ")
        total += int(value)
        check(";" in stack, f"no stack in {line!r}")
        if stack.startswith(SPLIT + ";") and stack.endswith(";hot_60"):
            good += ";main;worker_main;take_turns;" in stack
    check(good, "no stack main;worker_main;take_turns;hot_60")
    equal(total, r.cpu_ns(r.profile.samples), "sum of the values")


@test("--children and call trees name the callers")
def callers():
    r = recorded()
    inclusive = report("--children", "--comm", SPLIT, r.path)
    row = re.search(r"^\s*([\d.]+)%\s.*take_turns\s*$", inclusive, re.M)
    mine = r.cpu_ns(s for s in r.select(comm=SPLIT) if lab.has(s, "take_turns"))
    check(row, "no row for take_turns")
    got, shown = float(row.group(1)), mine / r.cpu_ns(r.select(comm=SPLIT))
    whole = mine / r.cpu_ns(r.profile.samples)
    check(min(abs(got - 100 * shown), abs(got - 100 * whole)) < 0.1,
          f"take_turns: {got} %, by the file {100 * shown:.2f} or {100 * whole:.2f} %")
    for order in ("caller", "callee"):
        tree = report("-g", order, "--comm", SPLIT, r.path)
        check("worker_main" in tree and "take_turns" in tree, f"no callers with -g {order}")


@test("a profile written by Go itself, and sonde's zstd and plain files")
def others():
    for end in (".pb", ".pb.zst"):
        r = recorded("report" + end)
        check(any(x[5] == "hot_60" for x in rows(report(r.path))), f"no hot_60 in {end}")
    go = lab.need("go")
    source, program, out = scratch.path("hot.go"), scratch.path("hot"), scratch.path("go.pb.gz")
    with open(source, "w", encoding="ascii") as f:
        f.write(GO_PROGRAM)
    built = subprocess.run([go, "build", "-o", program, source], text=True, stderr=subprocess.PIPE,
                           env=dict(os.environ, GO111MODULE="off"), check=False)
    if built.returncode:
        skip(f"go builds nothing here: {built.stderr.strip()[-100:]}")
    subprocess.run([program, out], check=True)
    theirs = pprofread.load(out)
    want = sum(s.values[0] for s in theirs.samples if s.frames[0].function == "main.goHot")
    text = report("--sort", "sym", out)
    note("\n".join(line for line in text.splitlines() if "main." in line))
    row = re.search(r"^\s*[\d.]+%\s+(\d+)\s+.*main\.goHot", text, re.M)
    check(row, "no main.goHot")
    equal(int(row.group(1)), want, "samples of main.goHot")


@test("what is not a profile: one line with the reason, a status that is not 0")
def refused():
    for name, content in (("empty", b""), ("text", b"hello\n" * 99),
                          ("zip", b"\x1f\x8b\x08" + b"x" * 50)):
        path = scratch.path(name)
        with open(path, "wb") as f:
            f.write(content)
        said = report(path, status=1)
        check(path in said and len(said.strip().splitlines()) == 1, f"{name}: said {said!r}")
    check("/nowhere" in report("/nowhere", status=1), "the missing file is not named")


if __name__ == "__main__":
    run()
