#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Short-lived processes have whole stacks as often as long-lived ones."""

import os
import shutil

import lab
import roots
from tap import check, note, run, test

scratch = lab.Scratch()
HZ = 499
PREFIX = "u" + os.urandom(4).hex()[:7]  # of this run only: another test may storm here, too
NO_STACK = "[no user stack]"
SHARE = 0.995


class Ends:
    """Samples of some processes by how their user stacks end."""

    def __init__(self, recording, mine):
        self.whole = self.total = self.no_stack = self.bare = 0
        self.others = {}
        i = recording.profile.value_index(lab.TYPE_SAMPLES)
        for s in filter(mine, recording.profile.samples):
            self._add(lab.user_frames(s), s, s.values[i])

    def _add(self, frames, sample, n):
        if not frames:
            self.bare += n
            text = "bare: " + " < ".join(f.text() for f in sample.frames)
            self.others[text] = self.others.get(text, 0) + n
        elif frames[-1].function == NO_STACK:
            self.no_stack += n
        else:
            self.total += n
            good = not lab.is_marker(frames[-1]) and roots.is_root(frames[-1])
            self.whole += n * good
            if not good:
                text = " < ".join(f.text() for f in frames[-2:])
                self.others[text] = self.others.get(text, 0) + n

    def share(self):
        return self.whole / max(self.total, 1)

    def tell(self, name):
        note(f"{name}: {self.whole} of {self.total} samples with a user stack are whole, "
             f"{100 * self.share():.2f} %; {self.no_stack} in exec or exit are labelled, "
             f"{self.bare} are neither")
        for text, n in sorted(self.others.items(), key=lambda x: -x[1])[:6]:
            note(f"  {n}: {text}")


def beside(name, *args):
    """A storm and a long-lived program in one recording -> the ends of each."""
    child = scratch.path(PREFIX + "_child")
    if not os.path.exists(child):
        shutil.copy(lab.wl("storm_child"), child)
    with lab.Workload(lab.wl("deep_small"), "-t", "600") as deep, \
            lab.Workload(lab.wl("storm"), "-f", PREFIX, *args, child) as storm:
        r = lab.record("-a", "-F", HZ, "-d", lab.seconds(5, 60), out=scratch.path(name + ".pb.gz"))
        truth = storm.stop()
        long_pid = deep.pid
    note(f"{truth['launched']} processes, {truth['cpu_ns'] / 1e9:.2f} s of CPU")
    short = Ends(r, lambda s: str(s.labels.get(lab.LABEL_COMM, "")).startswith(PREFIX))
    long = Ends(r, lambda s: s.labels.get(lab.LABEL_PID) == long_pid)
    short.tell("short-lived")
    long.tell("long-lived")
    check(short.total > 300 and long.total > 30, "too few samples")
    check(short.bare == 0, "samples with neither a user stack nor a label")
    return short, long


@test("a storm of a known binary: 99.5 % of its samples with a user stack are whole")
def storm():
    short, long = beside("storm")
    check(short.share() >= SHARE, "stacks of short-lived processes are not whole")
    check(long.share() >= SHARE, "stacks of the long-lived program are not whole")


@test("a storm of new files: all but those whose table was on its way are whole")
def fresh():
    files = lab.Scratch()
    short, _long = beside("fresh", "-m", "copies", "-d", files.name)
    waiting = sum(n for text, n in short.others.items() if "unwind table not loaded yet" in text)
    note(f"{waiting} samples, {100 * waiting / short.total:.2f} %, came before the file's table")
    check(short.whole >= SHARE * (short.total - waiting), "stacks are not whole")


run()
