#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent's end: kill -9 at any moment, SIGTERM, and a second one in its place (C-02)."""

import contextlib
import os
import random
import signal
import time

import agentlab
import lab
from agentlab import Agent, bpf_alive, wait_for
from tap import check, equal, note, run, skip, test

scratch = lab.Scratch()
HZ, COLLECT, WINDOW = 99, 1.0, 3.0
# The machine may be busy with other things: a collection that is due may be this late.
LATE = 2.0


def in_time(good, text):
    """A limit in seconds says nothing on a machine that is overloaded by others."""
    others = os.getloadavg()[0] / os.cpu_count()
    if not good and others > 6:
        skip(f"{text}, but {others:.0f} other tasks wait for each CPU")
    check(good, text)


@contextlib.contextmanager
def load():
    """All CPUs busy, processes that come and go, mappings that change."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(lab.Workload(lab.wl("split"), "-n", str(os.cpu_count())))
        stack.enter_context(lab.Workload(lab.wl("storm"), "-r", "50", lab.wl("storm_child")))
        stack.enter_context(lab.Workload(lab.wl("churn"), "-f", "16", "-d", scratch.name))
        yield


class Run:
    """One life of the agent: when it sampled, and until when."""

    def __init__(self, directory, seconds, from_ready):
        with Agent(directory, hz=HZ, listen=False) as agent:
            if from_ready:
                agent.wait_ready()
            time.sleep(seconds)
            check(agent.running(), f"the agent ended by itself: {agent.log}")
            self.ids, self.ready = agent.bpf_ids(), agent.ready_at()
            self.problems = agent.problems()
            self.killed = time.time()
            agent.kill()
            self.began = agent.began
        wait_for(lambda: not bpf_alive(self.ids), 10, "BPF programs and maps are gone",
                 lambda: bpf_alive(self.ids))

    def missing(self, profiles):
        """Seconds of this life that are in no profile; None if it never got to sample."""
        mine = [p for p in profiles if self.began <= p.start < self.killed]
        if mine:
            return self.killed - mine[0].start - sum(p.seconds for p in mine)
        return self.killed - self.ready if self.ready else None


def check_disk(directory, shows="split"):
    """What is there is whole, and the report reads it."""
    agentlab.chunks(directory)  # each under a good name is good, or this raises
    profiles = agentlab.stored(directory)
    if profiles:
        r = agentlab.report(directory, "--since", "1h")
        check(shows in r.stdout, f"the report does not show the load: {r.stdout!r}")
    return profiles


@test("kill -9 at random moments under load: nothing stays, nothing torn, one collection missing")
def kills():
    directory, lives = scratch.path("kill"), []
    rng = random.Random(os.environ.get("SEED", 7))
    count = int(lab.seconds(30, 200))
    with load():
        for i in range(count):
            # A third of them early, where it loads, and flushes what the one before left.
            early = i % 3 == 0
            longest = 0.5 if early else 2.2 * WINDOW if lab.FULL else 1.2 * WINDOW
            lives.append(Run(directory, rng.uniform(0, longest), not early))
            if i % 5 == 0 or i == count - 1:
                check_disk(directory)
        left = agentlab.chunks(directory)
        with Agent(directory, hz=HZ) as agent:
            agent.wait_ready()
            equal(agentlab.chunks(directory), [], "chunks after the next start")
            damaged = agent.metrics()["sonde_journal_damaged_total"]
            agent.wait_metric("sonde_windows_total[cpu]", 2)
            equal(agent.stop()[0], 0, "exit status")
    judge(directory, lives, left, damaged)


def judge(directory, lives, left, damaged):
    profiles = check_disk(directory)
    agentlab.no_overlap(profiles)
    missing = [m for m in (life.missing(profiles) for life in lives) if m is not None]
    for life in lives:
        if (life.missing(profiles) or 0) > 2 * COLLECT:
            note(f"killed {life.killed - life.ready:.2f} s after it was ready, "
                 f"{life.missing(profiles):.2f} s missing; {life.problems}")
    note(f"{len(lives)} kills, {len(missing)} after sampling began; missing: mean "
         f"{sum(missing) / max(len(missing), 1):.2f} s, at most {max(missing, default=0):.2f} s; "
         f"{len(left)} chunks were left to the last start, {damaged:.0f} damaged")
    note(agentlab.check_books(profiles, HZ, lives=len(missing)))
    check(len(missing) >= len(lives) / 2, "too few lives got to sample")
    # The one in the making, and the one before it if it was just being written.
    in_time(max(missing) <= 2 * COLLECT + LATE, f"{max(missing):.2f} s are missing")
    check(sorted(missing)[len(missing) // 2] <= COLLECT + 1, "one collection is missing too often")
    names = os.listdir(f"{directory}/journal")
    equal([n for n in names if not n.endswith(".bad")], [], "left in the journal")
    equal([p for life in lives for p in life.problems if "journal" in p or "store" in p], [],
          "warnings")


@test("SIGTERM in mid-interval: nothing is missing, exit 0 within 5 s, nothing stays")
def terminate():
    directory = scratch.path("term")
    with load(), Agent(directory, hz=HZ, collect="60s", window="60s") as agent:
        ready = time.time()
        agent.wait_ready()
        time.sleep(3)
        ids, at = agent.bpf_ids(), time.time()
        status, took = agent.stop()
        equal(status, 0, "exit status")
        note(f"took {took:.2f} s")
        in_time(took <= 5, f"it took {took:.2f} s")
        check("stopped" in agent.log, agent.log)
    wait_for(lambda: not bpf_alive(ids), 10, "BPF programs and maps are gone")
    profiles = agentlab.stored(directory)
    agentlab.no_overlap(profiles)
    note(agentlab.check_books(profiles, HZ))
    check(profiles[0].start >= ready - 0.1 and profiles[-1].end >= at - 0.05,
          f"the last profile ends {at - profiles[-1].end:.3f} s before the signal")
    equal(os.listdir(f"{directory}/journal"), [], "left in the journal")


@test("two SIGTERMs, and one straight after the start: still exit 0 and no partial file")
def impatient():
    directory = scratch.path("twice")
    with load(), Agent(directory, hz=HZ, listen=False) as agent:
        agent.wait_ready()
        agent.process.send_signal(signal.SIGTERM)
        equal(agent.stop()[0], 0, "exit status after two signals")
    with Agent(directory, hz=HZ, listen=False) as agent:
        agent.wait_ready()
        equal(agent.stop()[0], 0, "exit status right after the start")
    check_disk(directory, shows="Command")
    equal(os.listdir(f"{directory}/journal"), [], "left in the journal")


@test("a second agent on the directory: one line, exit 1, and the first is not disturbed")
def second():
    directory = scratch.path("second")
    with Agent(directory, hz=HZ) as agent:
        agent.wait_ready()
        log = scratch.path("other.log")
        with open(log, "wb") as f:
            status = agentlab.subprocess.run(
                [lab.SONDE, "agent", "--dir", directory, "--listen", "off"], stderr=f, timeout=60)
        with open(log) as f:
            lines = f.read().splitlines()
        equal(status.returncode, 1, "exit status")
        equal(len(lines), 1, f"lines {lines}")
        check("another sonde agent" in lines[0] and directory in lines[0], lines[0])
        note(lines[0])
        agent.wait_metric("sonde_windows_total[cpu]", 1)
        equal(agent.problems() and [p for p in agent.problems() if directory in p], [], "problems")
        equal(agent.stop()[0], 0, "exit status of the first")


@test("a recording beside the agent does not disturb it")
def burst():
    directory = scratch.path("burst")
    with lab.Workload(lab.wl("split"), "-n", str(os.cpu_count())):
        with Agent(directory, hz=HZ) as agent:
            agent.wait_ready()
            r = lab.record("-a", "-F", 499, "-d", 2, out=scratch.path("burst.pb.gz"))
            agent.wait_metric("sonde_windows_total[cpu]", 1)
            equal(agent.stop()[0], 0, "exit status")
    note(agentlab.check_books(agentlab.stored(directory), HZ))
    check(r.fact("received") > 0.8 * r.fact("expected"), f"{r.facts}")


if __name__ == "__main__":
    run()
