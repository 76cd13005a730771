# SPDX-License-Identifier: Apache-2.0
"""Other profilers beside sonde in the same run, for the figures in the log: perf, bpftrace, bcc.

None of their results decides a test; the tests print them as notes.
"""

import os
import re
import shutil
import signal
import subprocess
import time

from tap import note


class Perf:
    """perf record -g in the background; stacks() after stop()."""

    def __init__(self, path, hz, *target, graph=("-g",)):
        self.path, self.process = path, None
        if shutil.which("perf"):
            self.process = subprocess.Popen(
                ["perf", "record", "-q", "-F", str(hz), *graph, "-o", path, *target],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        if self.process:
            self.process.wait(60)

    def stacks(self):
        """[(comm, [symbol or None, leaf first], leaf is user)]"""
        if not self.process or not os.path.exists(self.path):
            return []
        text = subprocess.run(
            ["perf", "script", "--no-inline", "-i", self.path, "-F", "comm,ip,sym,dso"], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, errors="replace",
            check=False).stdout
        result, comm, frames = [], None, []
        for line in text.splitlines() + [""]:
            if not line.strip():
                if comm and frames:
                    user = not frames[0][1].startswith("([k")
                    result.append((comm, [f[0] for f in frames], user))
                comm, frames = None, []
            elif not line.startswith(("\t", "        ")):
                comm = line.strip().rstrip(":")
            else:
                m = re.match(r"\s+([0-9a-f]+) (.*?)(?:\+0x[0-9a-f]+)? (\(.*\))$", line)
                if m:
                    name = None if m.group(2) == "[unknown]" else m.group(2)
                    frames.append((name, m.group(3)))
        return result


class Bpftrace:
    """profile:hz of bpftrace with user stacks by comm, for `seconds`."""

    def __init__(self, hz, seconds, comm):
        self.process = None
        if shutil.which("bpftrace"):
            script = (f"profile:hz:{hz} /comm == \"{comm}\"/ {{ @[ustack(1)] = count(); }} "
                      f"interval:s:{int(seconds)} {{ exit(); }}")
            self.process = subprocess.Popen(["bpftrace", "-e", script], stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True)

    def named(self, function):
        """(samples with the function as leaf, all with a user stack)"""
        if not self.process:
            return 0, 0
        text = self.process.communicate(timeout=120)[0]
        right = total = 0
        for body, count in re.findall(r"@\[([^\]]*)\]: (\d+)", text, re.S):
            if body.strip():
                total += int(count)
                right += int(count) if function in body else 0
        return right, total


class BccProfile:
    """bcc's profile in folded form; needs kernel headers ($BCC_KERNEL_SOURCE)."""

    def __init__(self, hz, seconds):
        program = shutil.which("profile-bpfcc")
        self.process = program and subprocess.Popen(
            [program, "-f", "-F", str(hz), "-U", str(int(seconds))], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)

    def named(self, comm, function):
        if not self.process:
            return 0, 0
        text = self.process.communicate(timeout=180)[0]
        right = total = 0
        for line in text.splitlines():
            stack, _, count = line.rpartition(" ")
            if stack.startswith(comm) and count.isdigit():
                total += int(count)
                right += int(count) if stack.split(";")[-1].startswith(function) else 0
        return right, total


def report(name, right, total, took=None):
    if total:
        extra = f" ({took:.1f} s)" if took else ""
        note(f"peer {name}: {right} of {total} user samples named, "
             f"{100 * right / total:.1f} %{extra}")
    else:
        note(f"peer {name}: not available here")


def since(began):
    return time.monotonic() - began
