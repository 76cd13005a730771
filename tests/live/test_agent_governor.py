#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The governor under a load that explodes: steps are announced, and the sums stay right."""

import bisect
import contextlib
import glob
import math
import os
import re
import signal
import threading
import time

import agentlab
import lab
from agentlab import Agent
from tap import check, equal, note, run, test

scratch = lab.Scratch()
HZ = 499
STEP = re.compile(r"^\S+ INFO +(governor: (less|more|configuration)\b.*)$", re.M)
TICK = os.sysconf("SC_CLK_TCK")


def machine_cpu():
    """Seconds that all CPUs were not idle, by /proc/stat. Steal is no time of this machine."""
    with open("/proc/stat") as f:
        user, nice, system, _idle, _iowait, irq, softirq = map(int, f.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / TICK


def process_cpu(pid):
    """Seconds that the threads of a process ran, by the scheduler's own books."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with open(path) as f:
            total += int(f.read().split()[0])
    return total / 1e9


@contextlib.contextmanager
def explosion():
    """Hundreds of new processes a second, each few of them from a new file; new mappings."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(lab.Workload(lab.wl("storm"), "-r", "300", "-m", "copies", "-k", "5",
                                         "-d", scratch.name, lab.wl("storm_child")))
        stack.enter_context(lab.Workload(lab.wl("churn"), "-f", "64", "-d", scratch.name))
        yield


class Truth(threading.Thread):
    """What ran, by /proc, at many moments: so that it can be told for any span."""

    def __init__(self, pids):
        super().__init__(daemon=True)
        self.pids, self.rows, self.done = pids, [], threading.Event()

    def run(self):
        os.setpriority(os.PRIO_PROCESS, 0, -15)  # this thread: many others want the CPUs
        while not self.done.wait(0.05):
            before = time.time()
            row = machine_cpu(), *map(process_cpu, self.pids.values())
            self.rows.append(((before + time.time()) / 2, *row))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.join()

    def _at(self, moment, column):
        i = min(max(bisect.bisect(self.rows, (moment,)), 1), len(self.rows) - 1)
        (t0, *a), (t1, *b) = self.rows[i - 1], self.rows[i]
        return a[column] + (b[column] - a[column]) * (moment - t0) / (t1 - t0)

    def of(self, profiles, column):
        return sum(self._at(p.end, column) - self._at(p.start, column) for p in profiles)


def own_cpu(profile):
    """CPU seconds of the samples that were taken in it, wherever they are shown: see books."""
    facts = profile.facts
    carried = facts.get("carried_out", 0) - facts.get("carried_in", 0)
    return profile.cpu * (1 + carried / max(profile.samples, 1))


def compare(what, profiles, truth):
    """Sums of profiles against /proc."""
    covered = sum(p.seconds for p in profiles)
    samples = sum(p.samples for p in profiles)
    rows = [("machine", sum(map(own_cpu, profiles)), truth.of(profiles, 0))]
    rows += [(name, sum(p.cpu_of(pid) for p in profiles), truth.of(profiles, 1 + i))
             for i, (name, pid) in enumerate(truth.pids.items())]
    for name, got, want in rows:
        share = min(1, want / covered / os.cpu_count())
        # What pure chance may do to a share of so many samples, beside the 3 %.
        chance = 4 * math.sqrt(share * (1 - share) / max(samples, 1)) * covered * os.cpu_count()
        note(f"{what}, {name}: {got:.2f} s in {len(profiles)} profiles of {samples} samples, by /proc "
             f"{want:.2f} s ({100 * (got / want - 1):+.2f} %, chance {100 * chance / want:.1f} %)")
        check(abs(got - want) <= 0.03 * want + chance, f"{what}: CPU seconds of {name} are off")


def steps_of(agent):
    return [m[0] for m in STEP.findall(agent.log)]


@test("the load explodes: steps down are in the log, the metrics and the profiles; sums stay right")
def steps_down():
    directory, calm = scratch.path("store"), lab.seconds(4, 20)
    config = scratch.path("sonde.yaml")
    with open(config, "w") as f:
        f.write("cpu-budget: 100\n")
    with contextlib.ExitStack() as stack:
        loads = {f"split, {n} threads": stack.enter_context(
            lab.Workload(lab.wl("split"), "-n", str(n))).pid for n in (4, 8, 16)}
        with Truth(loads) as truth, Agent(directory, "-c", config, hz=HZ, window="2s",
                                          collect="0.5s") as agent:
            agent.wait_ready()
            time.sleep(calm)
            equal(steps_of(agent), [], "steps while the budget is large")
            changed = time.time()
            with open(config, "w") as f:
                f.write("cpu-budget: 0.01\n")
            agent.process.send_signal(signal.SIGHUP)
            with explosion():
                got = agent.wait_metric("sonde_governor_level", 5, timeout=90)
                low = time.time()
                time.sleep(2 * calm)
                high = time.time()
            check(got["sonde_governor_steps_total[down]"] >= 2, "steps down in the metrics")
            equal(agent.metrics()["sonde_frequency_hertz"], HZ // 8, "frequency")
            with open(config, "w") as f:
                f.write("cpu-budget: 100\n")
            agent.process.send_signal(signal.SIGHUP)
            wanted = lambda: agent.metrics()["sonde_governor_level"] == 0
            agentlab.wait_for(wanted, 120, "back at full service")
            equal(agent.metrics()["sonde_frequency_hertz"], HZ, "frequency at the end")
            check(agent.metrics()["sonde_governor_steps_total[up]"] >= 5, "steps up in the metrics")
            agent.wait_metric("sonde_windows_total[cpu]",
                              agent.metrics()["sonde_windows_total[cpu]"] + 2)
            equal(agent.stop()[0], 0, "exit status")
        judge(directory, agent, truth, changed, (low, high))


def judge(directory, agent, truth, changed, low):
    steps, profiles = steps_of(agent), agentlab.stored(directory)
    for line in steps:
        note(line)
    announced = [c for p in profiles for c in p.profile.comments]
    for line in steps:
        check(line in announced, f"no profile has the comment {line!r}")
    equal(len([c for c in announced if c.startswith("governor: more")]), 5, "steps up in profiles")
    agentlab.no_overlap(profiles)
    compare("before", [p for p in profiles if p.end <= changed + 0.1], truth)
    across = [p for p in profiles if p.end > changed + 0.1 and p.start < low[0] - 0.1]
    check(any(c.startswith("governor: less") for p in across for c in p.profile.comments),
          "no step in the profiles across")
    compare("across", across, truth)
    compare("after", [p for p in profiles if p.start >= low[0] - 0.1 and p.end <= low[1] + 0.1], truth)
    compare("all", profiles, truth)
    hole = profiles[-1].end - profiles[0].start - sum(p.seconds for p in profiles)
    check(hole < 0.5, f"{hole:.2f} s are in no profile")
    kept = sum(p.samples for p in profiles)
    received = sum(p.facts["received"] - p.facts["idle"] - p.facts["filtered"] for p in profiles)
    equal(kept, received, "samples kept, over all steps")


if __name__ == "__main__":
    run()
