#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Scheduler accounting in the agent: series, wall-clock profiles, switched off and on again."""
import collections
import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess
import sys

import agentlab
import lab
import pprofread
from agentlab import Agent
from tap import check, equal, near, note, run, test

scratch = lab.Scratch()
ID = "0123456789abcdef" * 4
LINE = re.compile(r"^(sonde_sched_\w+)(?:\{(.*)\})? (\S+)$", re.M)
PAIR = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
OWNER = ("container", "pod_uid", "systemd_unit")


def series(page):
    """(name, labels) -> value, of the scheduler accounting."""
    return {(name, tuple(sorted(PAIR.findall(labels or "")))): float(value)
            for name, labels, value in LINE.findall(page)}


def by_owner(found, family):
    """Whose -> {the other labels -> value}."""
    result = collections.defaultdict(dict)
    for (name, labels), value in found.items():
        if name == family:
            whose = tuple(l for l in labels if l[0] in OWNER)
            result[whose][tuple(l for l in labels if l[0] not in OWNER)] = value
    return result


def closed(page):
    """Over all states a group's time is the lifetimes of its threads; the worst case."""
    found = series(page)
    lives = by_owner(found, "sonde_sched_lifetime_seconds_total")
    worst = 0
    for whose, states in by_owner(found, "sonde_sched_seconds_total").items():
        life = lives[whose][()]
        if life < 0.05:
            continue
        off = abs(sum(states.values()) - life) / life
        worst = max(worst, off)
        check(off <= 0.005, f"{whose}: states add up to {sum(states.values()):.3f} s of {life:.3f} s: {states}")
    return found, worst


class Box:
    """A cgroup that is named like docker's container, under v1 or v2."""

    def __init__(self):
        for root in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup"):
            self.path = f"{root}/docker/{ID}"
            try:
                os.makedirs(self.path, exist_ok=True)
                return
            except OSError:
                continue
        check(False, "no cgroup can be made")

    def run(self, *argv):
        def enter():
            with open(f"{self.path}/cgroup.procs", "w") as f:
                f.write("0")
        return subprocess.Popen(argv, preexec_fn=enter, stdout=subprocess.PIPE, text=True)

    def remove(self):
        agentlab.wait_for(lambda: not open(f"{self.path}/cgroup.procs").read(), 20, "an empty cgroup")
        os.rmdir(self.path)
        with contextlib.suppress(OSError):  # others may have containers there
            os.rmdir(os.path.dirname(self.path))


def collections_later(agent, count):
    return agent.wait_metric("sonde_collections_total",
                             agent.metrics()["sonde_collections_total"] + count)


@test("series: books closed, checked by promtool, never going down; a container has its own")
def page():
    box = Box()
    with Agent(scratch.path("series"), collect="500ms", window="2s") as agent:
        agent.wait_ready()
        first = series(agent.page())
        load = box.run(lab.wl("schedmix"), "sleep10", "4", "10")
        load.communicate()
        collections_later(agent, 2)
        text = agent.page()
        equal(agent.problems(), [], "problems in the log")
        agent.stop()
    box.remove()
    found, worst = closed(text)
    note(f"{len(found)} series; books at most {100 * worst:.3f} % off")
    for key, value in first.items():
        if key[0].endswith("_total"):
            check(found.get(key, 0) >= value, f"{key} went down: {value} to {found.get(key)}")
    mine = by_owner(found, "sonde_sched_seconds_total").get((("container", ID),))
    check(mine, f"no series of the container: {sorted(by_owner(found, 'sonde_sched_seconds_total'))}")
    slept = mine[(("reason", "sleep"), ("state", "blocked"))]
    check(2 < slept < 4.2, f"it slept {slept} s of 4")
    counts = by_owner(found, "sonde_sched_off_cpu_seconds_bucket")[(("container", ID),)]
    equal(max(counts.values()), counts[(("le", "+Inf"),)], "the last bucket")
    check(counts[(("le", "+Inf"),)] >= 100, f"times off the CPU: {counts}")
    promtool = shutil.which("promtool")
    if promtool:
        result = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
        equal((result.returncode, result.stderr), (0, ""), "promtool")


@test("wall-clock profiles: in the store, sent like all others, readable; the sum is the lifetimes")
def wall():
    directory, sent = scratch.path("wall"), scratch.path("sent")
    os.mkdir(sent)
    sleeper = subprocess.Popen(["sleep", "100"])
    try:
        with Agent(directory, "--export-dir", sent, "--send-spread", "0", "--send-gather", "0",
                   collect="500ms", window="2s") as agent:
            agent.wait_ready()
            collections_later(agent, 6)
            agent.wait_metric("sonde_windows_total[wall]", 1)
            agent.wait_metric("sonde_windows_total[cpu]", 1)
            there = agent.wait_metric("sonde_sink_wall_seconds_total[directory]", 2)
            life = sum(sum(v.values()) for v in
                       by_owner(series(agent.page()), "sonde_sched_lifetime_seconds_total").values())
            equal(agent.stop()[0], 0, "exit status")
            log = agent.problems()
    finally:
        sleeper.kill()
        sleeper.wait()
    equal(log, [], "problems in the log")
    # Samples of two seconds and more on each CPU, and no nanoseconds among them.
    check(there["sonde_sink_samples_total[directory]"] < 1e6, "samples that were sent")
    profiles = [pprofread.load(p) for p in sorted(glob.glob(f"{directory}/profiles/*/*-wall.pb.gz"))]
    check(len(profiles) >= 2, f"{len(profiles)} profiles")
    total = mine = seconds = 0
    for p in profiles:
        p.check()
        seconds += p.duration_ns / 1e9
        total += sum(s.values[0] for s in p.samples) / 1e9
        mine += sum(s.values[0] for s in p.samples if s.labels.get("pid") == sleeper.pid and
                    [f.function for f in s.frames] == ["sleep", "blocked"]) / 1e9
    note(f"{seconds:.2f} s: {total:.1f} s of threads; the page said {life:.1f}; one slept {mine:.2f} s")
    check(total >= life, "less in the profiles than on the page before")
    near(mine, seconds, 0.02 * seconds, "the sleeper")
    shown = agentlab.report(directory, "--type", "wall").stdout
    check("sleep" in shown, shown)
    check("wall" not in agentlab.report(directory).stdout.splitlines()[0], "the report's own choice is not cpu")
    files = glob.glob(f"{sent}/sleep/wall/*/*/*/*/*.pb.gz")
    check(files, f"nothing of sleep was sent: {glob.glob(sent + '/*')[:10]}")
    got = sum(sum(s.values[0] for s in pprofread.load(f).samples) for f in files) / 1e9
    check(got >= 0.98 * mine, f"sent {got:.2f} s of {mine:.2f}")
    equal(os.listdir(f"{directory}/wall/journal"), [], "left in the journal")


@test("off and on again by SIGHUP: nothing counted between, books closed after, threads found anew")
def off_and_on():
    directory, config = scratch.path("toggle"), scratch.path("toggle.yaml")

    def configure(off):
        with open(config, "w") as f:
            f.write(f"no-sched: {'yes' if off else 'no'}\n")

    def reload(agent, off):
        configure(off)
        before = agent.metrics()["sonde_reloads_total"]
        agent.process.send_signal(signal.SIGHUP)
        agent.wait_metric("sonde_reloads_total", before + 1)
        equal(agent.metrics()["sonde_sched_on"], 0 if off else 1, "sonde_sched_on")

    def lifetime(agent):
        return sum(sum(v.values()) for v in
                   by_owner(series(agent.page()), "sonde_sched_lifetime_seconds_total").values())

    configure(False)
    sleeper = subprocess.Popen(["sleep", "100"])
    try:
        with Agent(directory, "--config", config, collect="500ms", window="1s") as agent:
            agent.wait_ready()
            collections_later(agent, 2)
            reload(agent, True)
            at, programs = lifetime(agent), len(agent.bpf_ids())
            check(at > 1, f"{at} s before")
            collections_later(agent, 3)
            equal(lifetime(agent), at, "lifetimes while it is off")
            reload(agent, False)
            collections_later(agent, 4)
            found, worst = closed(agent.page())
            note(f"{at:.1f} s of threads before, {lifetime(agent) - at:.1f} s after; {100 * worst:.3f} % off")
            check(lifetime(agent) > at, "nothing counted after")
            equal(found[("sonde_sched_starts_total", ())], 2, "starts")
            equal(len(agent.bpf_ids()), programs, "programs and maps")
            for kind in ("stale", "torn", "backwards", "read_errors"):
                equal(found[("sonde_sched_losses_total", (("kind", kind),))], 0, kind)
            agent.stop()
    finally:
        sleeper.kill()
        sleeper.wait()


@test("over the budget the governor switches it off first, and says so")
def governor():
    with lab.Workload(lab.wl("split"), "-n", str(os.cpu_count())), \
            Agent(scratch.path("governor"), "--cpu-budget", "0.0001", collect="1s") as agent:
        agent.wait_ready()
        agent.wait_log(r"governor: less: .*: no ", timeout=120)
        off = agent.wait_log(r"INFO  governor: .*").group(0)
        note(off)
        equal(agent.metrics()["sonde_sched_on"], 0, "sonde_sched_on")
        agent.stop()


@test("--no-sched: nothing of it, and the rest as ever")
def without():
    with Agent(scratch.path("without"), "--no-sched", collect="500ms", window="1s") as agent:
        agent.wait_ready()
        collections_later(agent, 3)
        equal(re.findall(r"^sonde_sched_(?!lost)\w+", agent.page(), re.M), [], "series")
        agent.stop()
    equal(glob.glob(f"{agent.dir}/profiles/*/*-wall*"), [], "wall-clock profiles")


run()
