#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Scheduler accounting against workloads that log their own clocks (cases O-01 to O-03, O-05)."""
import contextlib
import csv
import io
import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lab  # noqa: E402
import schedload  # noqa: E402
from tap import check, equal, near, note, run, skip, test  # noqa: E402

MS, S = 1e6, 1e9
REASONS = ("disk uninterruptible lock poll socket pipe sleep child page_fault stopped other").split()
WAITS = ("woken", "preempted", "quota")
LOAD = (sys.executable, schedload.__file__)


# ---- reading ----

def report(path, *options):
    run_ = subprocess.run([lab.SONDE, "sched", "report", "-n", "0", *options, path],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check(run_.returncode == 0, f"sched report: status {run_.returncode}: {run_.stderr}")
    return run_.stdout


def rows(path, *options):
    """Rows as dictionaries; numbers are numbers."""
    result = []
    for row in csv.DictReader(io.StringIO(report(path, "--csv", *options))):
        result.append({k: int(v) if re.fullmatch(r"-?\d+", v) and k not in ("comm", "thread") else v
                       for k, v in row.items()})
    return result


def total(row, names):
    return sum(row[name] for name in names)


def logged(truth):
    """The lives of a role's threads as far as they wrote their logs."""
    return truth["cpu"] + truth["delay"] + truth["waited"]


def accounted(row):
    return total(row, ("run", "stolen") + WAITS + tuple(REASONS))


class Mix:
    """The one recording that most tests look at."""
    scratch = path = truth = None

    @classmethod
    def get(cls):
        if cls.truth:
            return cls
        cls.scratch = lab.Scratch()
        cls.path, truth = cls.scratch.path("mix.pb.gz"), cls.scratch.path("truth.json")
        record = subprocess.run([lab.SONDE, "sched", "record", "-o", cls.path, "--", *LOAD, "mix",
                                 truth, str(schedload.SECONDS)],
                                stderr=subprocess.PIPE, text=True)
        check(record.returncode == 0, f"sched record: {record.stderr}")
        note(record.stderr)
        with open(truth) as f:
            cls.truth = json.load(f)
        cls.by_role = {}
        for row in rows(cls.path, "--by", "process"):
            truth = cls.truth["roles"].get(row["comm"])
            if truth and truth["pid"] == row["pid"]:
                cls.by_role[row["comm"]] = row
        return cls

    @classmethod
    def roles(cls):
        cls.get()
        for role, _, _, reason in schedload.ROLES:
            truth, row = cls.truth["roles"][role], cls.by_role.get(role)
            check(truth, f"{role} ended without its log")
            check(row, f"{role}: no row")
            yield role, reason, truth, row


@test("sum of the buckets = lifetimes, within 0.5 %: per process, per cgroup, over all")
def closed():
    Mix.get()
    for by in ("process", "cgroup", "all"):
        worst = 0
        for row in rows(Mix.path, "--by", by, "-k"):
            if row["lifetime"] < 10 * MS:
                continue
            off = abs(accounted(row) - row["lifetime"]) / row["lifetime"]
            worst = max(worst, off)
            check(off <= 0.005, f"{by} {row['comm']}:{row['pid']} {row['cgroup']}: {accounted(row) / S:.4f} s "
                                f"of {row['lifetime'] / S:.4f} s")
        note(f"{by}: at most {100 * worst:.4f} % off")


@test("lifetimes are those that the programs measured, within 0.5 %")
def lifetimes():
    for role, _, truth, row in Mix.roles():
        # Its parent may know of the end before the last thread has got a CPU to end on.
        most = truth["threads"] * (1.005 * truth["outer"] + 500 * MS)
        check(0.995 * logged(truth) <= row["lifetime"] <= most,
              f"{role}: {row['lifetime'] / S:.3f} s; at least {logged(truth) / S:.3f}, at most {most / S:.3f} s")


@test("on-CPU time: within 1 % of the scheduler's count and of utime + stime")
def on_cpu():
    for role, _, truth, row in Mix.roles():
        note(f"{role}: {row['run'] / S:.3f} s, schedstat {truth['cpu'] / S:.3f}, rusage "
             f"{truth['rusage'] / S:.3f}, stolen {row['stolen'] / S:.3f}")
        near(row["run"] / S, truth["cpu"] / S, 0.01 * truth["cpu"] / S + 0.01, f"{role} and its own clock")
        if role not in ("child", "vfork"):  # rusage has the children's, too
            near(row["run"] / S, truth["rusage"] / S, 0.01 * truth["rusage"] / S + 0.01, f"{role} and rusage")


@test("waits for a CPU: within 2 % of the scheduler's run delay")
def delays():
    for role, _, truth, row in Mix.roles():
        have = total(row, WAITS)
        note(f"{role}: {have / S:.3f} s, schedstat {truth['delay'] / S:.3f}, naps late by {truth['late'] / S:.3f}")
        # Its log ends before it does: on a busy machine the last steps wait, too. And schedstat goes by a
        # clock that stands still from a wake-up that preempts to the switch: the naps saw that time.
        rest = max(0, row["lifetime"] - logged(truth))
        most = max(1.02 * truth["delay"], truth["late"])
        check(0.98 * truth["delay"] - 5 * MS <= have <= most + 5 * MS + rest, role)


@test("blocked time: within 2 % of what the programs measured, and for the right reason")
def blocked():
    for role, reason, truth, row in Mix.roles():
        have, named = total(row, REASONS), row[reason] if reason else 0
        note(f"{role}: {have / S:.3f} s of {truth['waited'] / S:.3f} measured; {reason}: {named / S:.3f}")
        rest = max(0, row["lifetime"] - logged(truth))
        # What the hypervisor and interrupts took is a wait to the program: its schedstat lacks it.
        check(0.98 * truth["waited"] - row["stolen"] - 10 * MS <= have <= 1.02 * truth["waited"] + 10 * MS + rest, role)
        if reason == "stopped":
            near(named / S, Mix.truth["stopped"] / S, 0.02 * Mix.truth["stopped"] / S, "stopped")
        elif reason:
            least = 0.98 * (have - truth["dropped"]) - 10 * MS
            check(named >= least, f"{role}: only {named / S:.3f} of {have / S:.3f} s are {reason}")


@test("throttled time of a cgroup with a quota: within 2 % of its cpu.stat")
def quota():
    Mix.get()
    if "throttled" not in Mix.truth:
        skip("no cpu controller to make a quota with")
    row = Mix.by_role["busy_quota"]
    note(f"quota: {row['quota'] / S:.3f} s, cpu.stat {Mix.truth['throttled'] / S:.3f} s")
    # A period may have begun that cpu.stat did not know of yet.
    near(row["quota"] / S, Mix.truth["throttled"] / S, 0.02 * Mix.truth["throttled"] / S + 0.1, "throttled")


@test("no idle task, nothing lost (O-01, O-02)")
def clean():
    Mix.get()
    text = report(Mix.path, "-k")
    check(not re.search(r"^(swapper|idle)", text, re.M), "an idle task has a row")
    for row in rows(Mix.path, "-k"):
        check(row["pid"] or row["comm"] == "[overflow]", f"a row without a process: {row}")
        for name in ("run", "stolen") + WAITS + tuple(REASONS):
            most = row["threads"] * (schedload.SECONDS + 30) * S
            check(0 <= row[name] <= most, f"{row['comm']}: {name} {row[name]}")
    for counter in ("threads_full", "ends_refused", "merged", "backwards", "torn", "read_errors", "stale"):
        check(not re.search(rf"^# {counter}=", text, re.M), f"{counter} is not 0:\n{text[-600:]}")


@test("a sleep that began before and goes on after counts for the window (O-03)")
def open_sleep():
    with lab.Scratch() as scratch:
        path = os.path.join(scratch, "sleep.pb.gz")
        sleep = subprocess.Popen(["sleep", "60"])
        try:
            record(path, "-d", "2")
        finally:
            sleep.kill()
            sleep.wait()
        row = [r for r in rows(path) if r["pid"] == sleep.pid]
        check(len(row) == 1, f"rows of the sleeper: {row}")
        near(row[0]["sleep"] / S, 2, 0.02, "sleep")


def record(path, *options):
    result = subprocess.run([lab.SONDE, "sched", "record", "-q", "-o", path, *options],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check(result.returncode == 0, f"sched record: {result.stderr}")
    return result.stdout


def losses(path):
    return dict((name, int(n)) for name, n in re.findall(r"^# (\w+)=(\d+)$", report(path), re.M))


def between(what, have, least, most):
    check(least - 0.02 <= have <= most + 0.02, f"{what}: {have:.3f} s; at least {least:.3f}, at most {most:.3f}")


@test("a process moved between cgroups: its time is that of the cgroup it was in")
def moved():
    base = next((b for b in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup") if os.path.exists(f"{b}/cgroup.procs")), None)
    groups = [f"{base}/sonde_moved_{x}" for x in "ab"]
    with lab.Scratch() as scratch:
        path, truth = os.path.join(scratch, "moved.pb.gz"), os.path.join(scratch, "truth.json")
        try:
            for group in groups:
                os.makedirs(group, exist_ok=True)
            record(path, "--", *LOAD, "move", truth, *groups)
        finally:
            for group in groups:
                os.rmdir(group)
        with open(truth) as f:
            truth = json.load(f)
        before_a, after_a, before_b, after_b, end = truth["moments"]
        by_group = {r["cgroup"].rsplit("/", 1)[-1]: r["lifetime"] / S for r in rows(path, "--by", "cgroup")}
        busy = sum(r["run"] + r["stolen"] + total(r, WAITS) for r in rows(path) if r["pid"] == truth["pid"]) / S
        note(f"{truth}; {by_group}; {busy:.3f} s in all")
        # Two threads. The last one's end may be noticed late, and the process lived before it was moved.
        between("time in a", by_group["sonde_moved_a"], 2 * (before_b - after_a), 2 * (after_b - before_a))
        between("time in b", by_group["sonde_moved_b"], 2 * (end - after_b) - 0.1, 2 * (end - before_b))
        check(busy >= 2 * (end - after_a) - 0.1, f"only {busy:.3f} s on a CPU or waiting for one")
        equal(losses(path).get("merged", 0), 0, "segments that the ring refused")


@test("more threads than there is room for: nothing lost uncounted")
def overflow():
    with lab.Scratch() as scratch:
        path = os.path.join(scratch, "full.pb.gz")
        record(path, "--max-threads", "64", "--", lab.wl("schedmix"), "pool", "3")
        text = report(path)
        check(re.search(r"^# threads_full=\d+", text, re.M), f"no threads_full:\n{text}")
        row = [r for r in rows(path) if r["comm"] == "[overflow]"][0]
        check(row["threads"] > 0, f"overflow row: {row}")
        share = re.search(r"lived \(([\d.]+) %\)", text)
        near(float(share.group(1)), 100, 0.5, "accounted for")


def switches():
    with open("/proc/stat") as f:
        return int(re.search(r"^ctxt (\d+)", f.read(), re.M).group(1))


@test("20,000 threads that sleep and wake, pipes beside: no loss, memory bounded")
def crowd():
    seconds = lab.seconds(6, 60)
    with lab.Scratch() as scratch:
        path = os.path.join(scratch, "crowd.pb.gz")
        pipes = [subprocess.Popen(["taskset", "-c", str(cpu), lab.wl("schedmix"), "pipe", str(seconds)],
                                  stdout=subprocess.DEVNULL) for cpu in range(os.cpu_count())]
        before, began = switches(), time.monotonic()
        recorder = subprocess.Popen([lab.SONDE, "sched", "record", "-q", "-o", path, "--", lab.wl("crowd"),
                                     "-t", str(seconds), "-n", "20000", "-p", "2000", "-m", "100",
                                     "-f", os.path.join(scratch, "crowd.so")])
        peak = 0
        while recorder.poll() is None:
            with contextlib.suppress(OSError, AttributeError), open(f"/proc/{recorder.pid}/status") as f:
                peak = int(re.search(r"^VmHWM:\s+(\d+)", f.read(), re.M).group(1))
            with contextlib.suppress(subprocess.TimeoutExpired):
                recorder.wait(0.1)
        rate = (switches() - before) / (time.monotonic() - began)
        for pipe in pipes:
            pipe.wait()
        equal(recorder.returncode, 0, "status of sched record")
        note(f"{rate:.0f} switches/s; at most {peak / 1024:.1f} MiB resident")
        check(0 < peak < 96 << 10, "resident memory of the recorder")
        if lab.FULL:
            check(rate >= 100000, f"only {rate:.0f} switches/s: the machine did other things")
        row = max((r for r in rows(path, "--by", "comm")), key=lambda r: r["threads"])
        text = report(path)
        share = re.search(r"lived \(([\d.]+) %\)", text)
        lost = losses(path)
        note(f"{row['threads']} threads, {row['voluntary'] + row['involuntary']} switches, {share.group(1)} %, {lost}")
        near(float(share.group(1)), 100, 0.5, "accounted for")
        # Those whose last record found the ring full are counted, and their time as the machine's.
        check(row["threads"] + lost.get("ends_refused", 0) >= 1000, f"{row['threads']} threads, {lost}")
        for name in ("threads_full", "torn", "read_errors", "backwards", "stale", "lost"):
            check(not lost.get(name), f"{name}: {lost}")


def perf_preempted(path):
    """pid -> ns that tasks which never sleep waited for a CPU: perf sched latency does not see wake-ups here."""
    shown = subprocess.run(["perf", "sched", "latency", "-p", "-i", path], capture_output=True, text=True).stdout
    return {int(m[1]): int(m[2]) * float(m[3]) * MS for m in
            re.finditer(r"^\s*\S+:(\d+)\s*\|\s*[\d.]+ ms \|\s*(\d+) \| avg:\s*([\d.]+) ms", shown, re.M)}


def perf_woken(path):
    """tid -> ns from wake-ups to the CPU."""
    shown = subprocess.run(["perf", "sched", "timehist", "-i", path], capture_output=True, text=True).stdout
    found = {}
    for m in re.finditer(r"^\s*[\d.]+ +\[\d+\] +\S+\[(\d+)[^\]]*\] +[\d.]+ +([\d.]+) +[\d.]+", shown, re.M):
        found[int(m[1])] = found.get(int(m[1]), 0) + float(m[2]) * MS
    return found


@test("run-queue delays beside perf sched, at a rate that it holds: within 5 %")
def beside_perf():
    lab.need("perf")
    if not lab.FULL:
        skip("FULL=1 runs it: a file of perf's of 10 s")
    with lab.Scratch() as scratch:
        mine, theirs, truth = (os.path.join(scratch, n) for n in ("s.pb.gz", "perf.data", "truth.json"))
        result = subprocess.run(["perf", "sched", "record", "-m", "16M", "-o", theirs, lab.SONDE, "sched", "record", "-q",
                                 "-o", mine, "--", *LOAD, "some", truth, "10"], capture_output=True, text=True)
        if not os.path.exists(theirs) or re.search(r"LOST|lost", result.stderr):
            skip(f"perf sched does not hold this rate, or does not run here: {result.stderr[-200:]!r}")
        busy, woken = perf_preempted(theirs), perf_woken(theirs)
        compared = 0
        for row in rows(mine):
            if row["comm"] not in schedload.SOME:
                continue
            sleeps = not row["comm"].startswith("busy")
            have, want = row["woken" if sleeps else "delay"], (woken if sleeps else busy).get(row["pid"], 0)
            note(f"{row['comm']}: {have / MS:.2f} ms, perf {want / MS:.2f} ms, {row['delays']} waits")
            near(have / MS, want / MS, 0.05 * want / MS + 1, row["comm"])
            compared += 1
        equal(compared, len(schedload.SOME), "tasks compared")


run()
