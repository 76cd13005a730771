# SPDX-License-Identifier: Apache-2.0
"""User stacks of one process as other profilers see them, all running at the same time as sonde.

Each class starts its tool when made; stacks() waits for it and gives a Counter of tuples of
function names, leaf first; `why` says what kept it from running.
"""

import collections
import re
import shutil
import subprocess

import lab
import peers
from tap import Skip


class Perf:
    def __init__(self, path, hz, pid, seconds, *graph):
        self.name = "perf record " + " ".join(graph)
        self.why = None if shutil.which("perf") else "not installed"
        self.perf = peers.Perf(path, hz, "-p", str(pid), "--", "sleep", str(seconds), graph=graph)

    def stacks(self):
        result = collections.Counter()
        if self.perf.process:
            self.perf.process.wait(600)
        for _comm, names, user in self.perf.stacks():
            if user:
                result[tuple(n or "[unknown]" for n in names)] += 1
        return result


class Bpftrace:
    """Its stacks are the kernel's: by frame pointers."""

    name = "bpftrace"

    def __init__(self, hz, pid, seconds):
        self.why, self.beside = None, None
        try:
            self.beside = lab.bpftrace(
                f'BEGIN {{ printf("begun\\n"); }} profile:hz:{hz} /pid == {pid}/ '
                f'{{ @[ustack(127)] = count(); }} interval:s:{int(seconds)} {{ exit(); }}', "begun")
        except Skip as why:
            self.why = str(why)

    def stacks(self):
        result = collections.Counter()
        if not self.beside:
            return result
        self.beside.process.wait(600)
        for body, count in re.findall(r"@\[([^\]]*)\]: (\d+)", self.beside.stop(), re.S):
            names = [re.sub(r"\+(0x)?[0-9a-f]+$", "", line.strip()) for line in body.splitlines()]
            result[tuple(n for n in names if n)] += int(count)
        return result


class BccProfile:
    """Needs kernel headers: docs/BENCH.md."""

    name = "profile-bpfcc"

    def __init__(self, hz, pid, seconds):
        self.why, self.process = None, None
        if not shutil.which("profile-bpfcc"):
            self.why = "not installed"
            return
        self.process = subprocess.Popen(
            ["profile-bpfcc", "-f", "-F", str(hz), "-U", "-p", str(pid), str(int(seconds))],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")

    def stacks(self):
        result = collections.Counter()
        if not self.process:
            return result
        text, errors = self.process.communicate(timeout=600)
        for line in text.splitlines():
            stack, _, count = line.rpartition(" ")
            if ";" in stack and count.isdigit():
                result[tuple(reversed(stack.split(";")[1:]))] += int(count)
        if not result:
            lines = errors.strip().splitlines()
            self.why = lines[-1] if lines else f"exit status {self.process.returncode}"
        return result
