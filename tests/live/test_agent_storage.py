#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent's directory full, read-only and gone; the clock stepped (E-03); the agent stopped (R-05)."""

import contextlib
import os
import shutil
import signal
import struct
import subprocess
import time

import agentlab
import lab
from agentlab import Agent
from tap import check, equal, near, note, run, test

scratch = lab.Scratch()
HZ = 99
DAY = 86400


@contextlib.contextmanager
def tmpfs(name, size):
    path = scratch.path(name)
    os.mkdir(path)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def fill(path):
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as f:
        while f.write(b"x" * 4096):
            pass


def busy():
    return lab.Workload(lab.wl("split"), "-n", str(os.cpu_count()))


def through_fault(directory, fault, cure, pattern):
    """
    The agent runs, the disk fails for some collections, then works again: the log says so at each
    try with one line, it is counted, and the samples of that time are there afterwards.
    """
    with busy(), Agent(directory, hz=HZ, window="2s") as agent:
        agent.wait_ready()
        agent.wait_metric("sonde_collections_total", 2)
        fault()
        agent.wait_log(pattern)
        got = agent.wait_metric("sonde_journal_errors_total", 3)
        equal(agent.page("healthz"), "ok\n", "/healthz")
        cure()
        errors = got["sonde_journal_errors_total"] + got["sonde_store_errors_total"]
        agent.wait_metric("sonde_windows_total[cpu]", got["sonde_windows_total[cpu]"] + 2)
        last = agent.metrics()
        at = time.time()
        equal(agent.stop()[0], 0, "exit status")
        problems = [p for p in agent.problems() if directory in p]
    note(problems[0])
    check(len(problems) <= errors + 4, f"{len(problems)} lines for {errors} failures")
    equal(last["sonde_samples_lost_storage_total"], 0, "samples lost")
    profiles = agentlab.stored(directory)
    agentlab.no_overlap(profiles)
    check(profiles[-1].end >= at - 0.05, "the end is missing")
    equal(os.listdir(f"{directory}/journal"), [], "left in the journal")
    return profiles


def check_whole(profiles):
    """From its first sample to its last without a hole."""
    note(agentlab.check_books(profiles, HZ))
    hole = profiles[-1].end - profiles[0].start - sum(p.seconds for p in profiles)
    check(hole < 0.3, f"{hole:.2f} s are in no profile")


@test("disk full for a while: said, counted, nothing lost")
def full():
    with tmpfs("full", "2m") as mount:
        check_whole(through_fault(f"{mount}/store", lambda: fill(f"{mount}/fill"),
                                  lambda: os.unlink(f"{mount}/fill"), "No space left on device"))


@test("directory read-only for a while: said, counted, nothing lost")
def read_only():
    with tmpfs("ro", "16m") as mount:
        # A second, read-only mount over the first: a file that is open for writing is no hindrance.
        def cover():
            subprocess.run(["mount", "--bind", mount, mount], check=True)
            subprocess.run(["mount", "-o", "remount,bind,ro", mount], check=True)

        def uncover():
            subprocess.run(["umount", "-l", mount], check=True)
        check_whole(through_fault(f"{mount}/store", cover, uncover, "Read-only file system"))
        subprocess.run(["mount", "-o", "remount,ro", mount], check=True)
        status, lines = agentlab.refused(f"{mount}/new")
        note(lines[-1] if lines else "")
        equal((status, len(lines)), (1, 1), "status and lines at a start")


@test("directory taken away: what was in it is gone, what comes is kept, and it is locked again")
def vanished():
    directory = scratch.path("vanish")
    with busy(), Agent(directory, hz=HZ, window="2s") as agent:
        agent.wait_ready()
        got = agent.wait_metric("sonde_windows_total[cpu]", 1)
        gone = time.time()
        shutil.rmtree(directory)
        agent.wait_metric("sonde_windows_total[cpu]", got["sonde_windows_total[cpu]"] + 2)
        status, lines = agentlab.refused(directory, hz=HZ, listen=False)
        equal((status, len(lines)), (1, 1), f"a second agent: {lines}")
        at = time.time()
        equal(agent.stop()[0], 0, "exit status")
        for line in agent.problems():
            note(line)
    profiles = agentlab.stored(directory)
    note(agentlab.check_books(profiles, HZ, lives=1))
    # What was in the journal went with the directory: no more than a window and a collection.
    check(profiles[0].start <= gone + 3 + 3, f"the first begins {profiles[0].start - gone:.1f} s later")
    check(profiles[-1].end >= at - 0.05, "the end is missing")
    agentlab.report(directory, "--since", "1h")


@test("directory taken away with its parent: the log says so, and it goes on when it is back")
def vanished_parent():
    parent = scratch.path("parent")
    os.mkdir(parent)
    with busy(), Agent(f"{parent}/store", hz=HZ) as agent:
        agent.wait_ready()
        agent.wait_metric("sonde_collections_total", 2)
        shutil.rmtree(parent)
        agent.wait_metric("sonde_journal_errors_total", 2)
        os.mkdir(parent)
        agent.wait_metric("sonde_windows_total[cpu]",
                          agent.metrics()["sonde_windows_total[cpu]"] + 2)
        equal(agent.stop()[0], 0, "exit status")
        note(agent.problems()[0])
        check(any("No such file or directory" in p for p in agent.problems()), agent.problems())
    agentlab.check_books(agentlab.stored(f"{parent}/store"), HZ, lives=1)


# ---- clocks ----

class Clock:
    """An offset to CLOCK_REALTIME, in force for processes with the shim."""

    def __init__(self, name):
        self.path = scratch.path(name)
        self.steps = []  # (monotonic, offset in seconds)
        self.step(0)
        self.env = {**os.environ, "LD_PRELOAD": lab.wl("shim_clock.so"), "SHIM_CLOCK": self.path}

    def step(self, seconds):
        with open(self.path, "r+b" if self.steps else "w+b") as f:
            f.write(struct.pack("<q", int(seconds * 1e9)))
        self.steps.append((time.monotonic(), seconds))


@test("clock stepped by a day, forward and back: each profile's time is true, and none is lost (E-03)")
def clock_steps():
    directory, clock = scratch.path("clock"), Clock("clock.offset")
    with busy(), Agent(directory, hz=HZ, window="2s", env=clock.env) as agent:
        agent.wait_ready()
        for offset in (DAY, 0, -DAY, 3600, 0):
            windows = agent.metrics()["sonde_windows_total[cpu]"]
            agent.wait_metric("sonde_windows_total[cpu]", windows + 1)
            clock.step(offset)
        windows = agent.metrics()["sonde_windows_total[cpu]"]
        agent.wait_metric("sonde_windows_total[cpu]", windows + 2)
        equal(agent.stop()[0], 0, "exit status")
        ended = time.monotonic()
        equal([p for p in agent.problems() if directory in p], [], "problems")
    profiles = agentlab.stored(directory)
    for p in profiles:
        note(f"{p.path.removeprefix(directory)} {p.seconds:.2f} s, {p.samples} samples")
    note(agentlab.check_books(profiles, HZ))
    check_times(profiles, clock, ended)


def check_times(profiles, clock, ended):
    """Back on the monotonic clock, the profiles must lie side by side without a hole."""
    to_mono = time.monotonic() - time.time()
    ends = [at for at, _ in clock.steps[1:]] + [ended]
    placed = []
    for p in profiles:
        # The offset in force when it began: the one that puts its start into its own time.
        fits = [p.start - offset + to_mono for (at, offset), end in zip(clock.steps, ends)
                if at - 2 <= p.start - offset + to_mono <= end + 2]
        check(fits, f"{p.path}: its start is in no moment of this run")
        placed.append((fits[0], p))
    placed.sort(key=lambda x: x[0])
    for (a, p), (b, q) in zip(placed, placed[1:]):
        near(b, a + p.seconds, 2.0, f"start of {q.path} after the end of {p.path}")
    total = sum(p.seconds for p in profiles)
    near(total, placed[-1][0] + placed[-1][1].seconds - placed[0][0], 0.5, "seconds in profiles")


@test("stopped for a while by SIGSTOP: goes on; loss counted = expected - received within 2 % (R-05)")
def suspended():
    pause = lab.seconds(5, 30)
    directory = scratch.path("stop")
    with busy(), Agent(directory, hz=999) as agent:
        agent.wait_ready()
        agent.wait_metric("sonde_collections_total", 1)
        agent.process.send_signal(signal.SIGSTOP)
        time.sleep(pause)
        agent.process.send_signal(signal.SIGCONT)
        got = agent.wait_metric("sonde_collections_total", 4)
        equal(agent.page("healthz"), "ok\n", "/healthz")
        equal(agent.stop()[0], 0, "exit status")
    expected, received = got["sonde_samples_expected_total"], got["sonde_samples_total[received]"]
    lost = (got["sonde_samples_missed_total"] + got["sonde_samples_missed_idle_total"] +
            got["sonde_samples_total[no_state]"])
    note(f"expected {expected:.0f}, received {received:.0f}, counted as lost {lost:.0f}; longest "
         f"stall {got['sonde_loop_longest_stall_seconds']:.2f} s, "
         f"late {got['sonde_collections_late_total']:.0f}")
    near(lost, expected - received, 0.02 * expected, "loss counter")
    near(got["sonde_loop_longest_stall_seconds"], pause, 3, "longest stall")
    check(got["sonde_collections_late_total"] >= 1, "no collection counts as late")
    profiles = agentlab.stored(directory)
    note(agentlab.check_books(profiles, 999))
    hole = profiles[-1].end - profiles[0].start - sum(p.seconds for p in profiles)
    check(hole < 0.3, f"{hole:.2f} s are in no profile")


@test("an idle agent wakes up fewer than 20 times a second (R-05)")
def idle_wakeups():
    with Agent(scratch.path("idle"), hz=19, collect="10s", window="60s", listen=False) as agent:
        agent.wait_ready()
        time.sleep(1)

        def switches():
            total = 0
            for tid in os.listdir(f"/proc/{agent.pid}/task"):
                with open(f"/proc/{agent.pid}/task/{tid}/status") as f:
                    total += int(f.read().split("voluntary_ctxt_switches:")[1].split()[0])
            return total
        # The quietest span: at its start the agent reads the files of what runs here.
        rates = []
        while len(rates) < 8 and (not rates or min(rates) >= 20):
            before, at = switches(), time.monotonic()
            time.sleep(2)
            rates.append((switches() - before) / (time.monotonic() - at))
        rate = min(rates)
    note(f"{rate:.1f} wake-ups a second")
    check(rate < 20, f"{rate:.1f} wake-ups a second")


if __name__ == "__main__":
    run()
