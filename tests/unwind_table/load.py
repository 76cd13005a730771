# SPDX-License-Identifier: Apache-2.0
"""A program under load in a cgroup of its own, and a recording of that cgroup with its cost."""

import os
import signal
import subprocess
import time

import bpfstats
import lab

STATS = "/proc/sys/kernel/bpf_stats_enabled"


def cgroup_root():
    """Where cgroup v2 is mounted, or None."""
    with open("/proc/self/mounts", encoding="utf-8") as f:
        for line in f:
            _dev, where, kind = line.split()[:3]
            if kind == "cgroup2":
                return where
    return None


class Cgroup:
    """A directory of the v2 hierarchy; everything in it is killed at the end."""

    def __init__(self, name):
        self.path = f"{cgroup_root()}/sonde-table-{os.getpid()}-{name}"
        os.mkdir(self.path)

    def _read(self, file):
        with open(os.path.join(self.path, file), encoding="ascii") as f:
            return f.read()

    def enter(self):
        """For the child before its exec."""
        with open(self.path + "/cgroup.procs", "w", encoding="ascii") as f:
            f.write(str(os.getpid()))

    def cpu_seconds(self):
        """CPU time of the processes that are in it, with that of their waited-for children."""
        ticks = 0
        for pid in self._read("cgroup.procs").split():
            try:
                with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                    ticks += sum(map(int, f.read().rpartition(")")[2].split()[11:15]))
            except OSError:
                pass
        return ticks / os.sysconf("SC_CLK_TCK")

    def pids(self):
        return [int(p) for p in self._read("cgroup.procs").split()]

    def close(self):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            for pid in self.pids():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                os.rmdir(self.path)
                return
            except OSError:
                time.sleep(0.02)


class Running:
    """The program, running and warm: it said so, or has used some CPU time."""

    def __init__(self, name, argv, folder, env, says_ready, warm=1.0):
        self.cgroup = Cgroup(name)
        self.log = open(os.path.join(folder, name + ".log"), "wb")
        self.process = subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, env=env,
                                        stdout=self.log, stderr=subprocess.STDOUT,
                                        start_new_session=True, preexec_fn=self.cgroup.enter)
        end = time.monotonic() + 60
        while self.process.poll() is None and time.monotonic() < end:
            if says_ready and "ready" in self.output().splitlines() or \
                    not says_ready and self.cgroup.cpu_seconds() >= warm:
                break
            time.sleep(0.05)

    def output(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as f:
            return f.read()

    def failure(self):
        """Why there is nothing to record, or None."""
        if self.process.poll() is None:
            return None
        return f"ended with status {self.process.returncode}: {self.output().strip()[-200:]}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cgroup.close()
        self.process.wait()
        self.log.close()


class Measured:
    """A recording of a cgroup: the profile, and runs and ns of its BPF programs."""

    def __init__(self, cgroup, hz, seconds, out):
        with lab.Sysctl("kernel.bpf_stats_enabled", 1):
            began = time.monotonic()
            process = lab.start("-F", hz, "--cgroup", cgroup.path, "-d", seconds, out=out)
            self.runs = self.ns = 0
            while process.poll() is None:
                if time.monotonic() - began > 0.6:  # later looks only: one costs 20 ms
                    self.runs, self.ns = max((self.runs, self.ns), bpfstats.runs_of(process.pid))
                time.sleep(0.25)
            self.recording = lab.finish(process, out, began, 120)
        lab.check(self.recording.status == 0, f"sonde: {self.recording.stderr.strip()[-300:]}")

    def ns_per_kept(self, filtered_ns):
        """ns of a sample that was kept; the others, filtered or idle, cost `filtered_ns` each."""
        received, kept = self.recording.fact("received"), self.recording.fact("kept")
        if not self.runs or not kept:
            return None
        share = kept / received
        return (self.ns / self.runs - (1 - share) * filtered_ns) / share


def filtered_cost(hz, out):
    """ns of a run that ends at the filter: by recording an empty cgroup."""
    empty = Cgroup("empty")
    try:
        m = Measured(empty, hz, 2, out)
        return m.ns / m.runs if m.runs else 0
    finally:
        empty.close()
