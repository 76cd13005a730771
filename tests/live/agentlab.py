# SPDX-License-Identifier: Apache-2.0
"""What the tests of `sonde agent` share: running one, and reading its pages, store and journal."""

import datetime
import glob
import json
import os
import re
import signal
import socket
import struct
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import zlib

import bpfstats
import lab
import pprofread
from tap import check

# ---- sonde's spelling ----

READY = re.compile(r"^(\S+) INFO +sonde \S+: \S+ at \d+ Hz on \d+ CPUs, into ", re.M)
PROBLEM = re.compile(r"^\S+ (?:WARN|ERROR) +(.*)$", re.M)
CHUNK_MAGIC, CHUNK_HEAD = b"sondejnl", struct.Struct("<8sIIQ")
SAMPLE = re.compile(r"^(sonde_\w+)(?:\{\w+=\"((?:[^\"\\]|\\.)*)\"\})? (\S+)$", re.M)


_logs = lab.Scratch()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Agent:
    """One run of the agent. Its stderr is in a file, so that nothing blocks it."""

    def __init__(self, directory, *args, prefix=(), collect="1s", window="3s", hz=99, listen=True,
                 program=lab.SONDE, **popen):
        self.dir = directory
        self.port = free_port()
        self.log_path = tempfile.mktemp(prefix="log", dir=_logs.name)
        argv = [*prefix, program, "agent", "--dir", directory, "-F", hz, "--collect", collect,
                "--window", window, "--listen", f"127.0.0.1:{self.port}" if listen else "off",
                *args]
        self._log = open(self.log_path, "w+b")
        self.began = time.time()
        self.process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL,
                                        **{"stdout": self._log, "stderr": self._log, **popen})
        self.pid = self.process.pid

    @property
    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def problems(self):
        return PROBLEM.findall(self.log)

    def running(self):
        return self.process.poll() is None

    def ready_at(self):
        """When it began to sample, by its own log; None: not yet."""
        m = READY.search(self.log)
        return m and datetime.datetime.fromisoformat(m.group(1).replace("Z", "+00:00")).timestamp()

    def is_ready(self):
        return self.ready_at() is not None

    def wait_ready(self, timeout=60):
        wait_for(lambda: self.is_ready() or not self.running(), timeout, "ready")
        check(self.running(), f"the agent ended with {self.process.returncode}: {self.log}")
        return self

    def wait_log(self, pattern, timeout=60):
        wait_for(lambda: re.search(pattern, self.log) or not self.running(), timeout, pattern,
                 lambda: self.log)
        m = re.search(pattern, self.log)
        check(m, f"the agent ended before {pattern!r}: {self.log}")
        return m

    def page(self, name="metrics", timeout=20):
        url = f"http://127.0.0.1:{self.port}/{name}"
        try:
            with urllib.request.urlopen(url, timeout=timeout) as answer:
                return answer.read().decode()
        except (urllib.error.URLError, OSError) as why:
            check(False, f"/{name}: {why}; log: {self.log}")

    def metrics(self):
        """name or name[label's value] -> number"""
        return {f"{n}[{label}]" if label else n: float(v)
                for n, label, v in SAMPLE.findall(self.page())}

    def wait_metric(self, name, at_least, timeout=60):
        got = {}

        def there():
            got.update(self.metrics())
            return got[name] >= at_least
        wait_for(there, timeout, f"{name} >= {at_least}", lambda: (got.get(name), self.log))
        return got

    def bpf_ids(self):
        """The BPF programs and maps that the process holds: {("prog", id), ("map", id)}."""
        return bpfstats.held_by(self.pid)

    def fds(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def kill(self):
        self.process.kill()
        return self.process.wait()

    def stop(self, number=signal.SIGTERM, timeout=60):
        """Sends a signal -> (exit status, seconds it took)."""
        at = time.monotonic()
        self.process.send_signal(number)
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            check(False, f"the agent did not end within {timeout} s: {self.log}")
        return status, time.monotonic() - at

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.running():
            self.process.send_signal(signal.SIGCONT)
            self.kill()
        self._log.close()


def wait_for(done, timeout, what, detail=lambda: ""):
    end = time.monotonic() + timeout
    while not done():
        check(time.monotonic() < end, f"not within {timeout} s: {what} {detail()}")
        time.sleep(0.05)


def bpf_alive(ids):
    """Those of the BPF ids that the kernel still has."""
    alive = set()
    for kind in ("prog", "map"):
        shown = subprocess.run([lab.need("bpftool"), "-j", kind, "show"], capture_output=True,
                               text=True, check=True).stdout
        alive |= {(kind, entry["id"]) for entry in json.loads(shown)}
    return alive & ids


def refused(directory, *args, prefix=(), timeout=60, **popen):
    """Runs an agent that must end by itself -> (status, its lines)."""
    with Agent(directory, *args, prefix=prefix, **popen) as agent:
        try:
            status = agent.process.wait(timeout)
        except subprocess.TimeoutExpired:
            check(False, f"the agent did not refuse to run: {agent.log}")
        return status, agent.log.splitlines()


# ---- the store and the journal ----

def facts_of(profile):
    return {m.group(1): int(m.group(2)) for c in profile.comments
            if (m := re.match(r"^sonde\.([^=]+)=(\d+)$", c))}


class Stored:
    """A profile of the store, or a chunk of the journal, strictly checked."""

    def __init__(self, path, profile):
        profile.check()
        self.path, self.profile, self.facts = path, profile, facts_of(profile)
        self.start, self.seconds = profile.time_ns / 1e9, profile.duration_ns / 1e9
        self.end = self.start + self.seconds
        self.samples = profile.total(profile.value_index(lab.TYPE_SAMPLES))
        self.cpu = profile.total(profile.value_index(lab.TYPE_CPU)) / 1e9

    def cpu_of(self, pid):
        """CPU seconds of one process."""
        i = self.profile.value_index(lab.TYPE_CPU)
        return self.profile.total(i, lambda s: s.labels.get(lab.LABEL_PID) == pid) / 1e9


def stored(directory, kind="cpu"):
    """All profiles of a type in the store, oldest first."""
    paths = sorted(glob.glob(f"{directory}/profiles/*/*-{kind}.pb.gz*"))
    return sorted((Stored(p, pprofread.load(p)) for p in paths), key=lambda s: s.start)


def chunk_profile(path):
    """What a chunk of a journal or a spool holds, of any kind."""
    with open(path, "rb") as f:
        data = f.read()
    if len(data) < CHUNK_HEAD.size:
        raise pprofread.Bad("chunk is cut in its header")
    magic, version, crc, length = CHUNK_HEAD.unpack(data[:CHUNK_HEAD.size])
    payload = data[CHUNK_HEAD.size:]
    whole = data[:12] + b"\0\0\0\0" + data[16:]
    if (magic, version, length) != (CHUNK_MAGIC, 1, len(payload)) or zlib.crc32(whole) != crc:
        raise pprofread.Bad("chunk is damaged")
    return pprofread.Profile(payload)


def read_chunk(path):
    return Stored(path, chunk_profile(path))


def chunks(directory):
    """The journal's good chunks; a damaged one under a good name is a failed test."""
    return [read_chunk(p) for p in sorted(glob.glob(f"{directory}/journal/*.chunk"))]


def report(directory, *args, status=0):
    p = subprocess.run([lab.SONDE, "report", *args, directory], capture_output=True, text=True,
                       errors="backslashreplace", timeout=120)
    check(p.returncode == status, f"sonde report {args}: status {p.returncode}: {p.stderr}")
    return p


def check_books(profiles, hz, cpus=None, allowed=0.03, lives=0):
    """
    The sums of profiles: what was kept, what was received, and what had to come. A collection's
    counters are read a drain later than its samples; the rest is in the next one, which is missing
    for `lives` that were killed. What waited for its names is in the profile that it was carried to.
    """
    total = {name: sum(p.facts.get(name, 0) for p in profiles) for name in profiles[0].facts}
    seconds = sum(p.seconds for p in profiles)
    carried = sum(p.facts.get("carried_out", 0) - p.facts.get("carried_in", 0) for p in profiles)
    kept = sum(p.samples for p in profiles) + carried
    lost = sum(total[name] for name in lab.LOST)
    unkept = sum(total[name] for name in lab.NOT_KEPT)
    want = seconds * hz * (cpus or os.cpu_count())
    line = (f"{len(profiles)} profiles, {seconds:.2f} s: expected {total['expected']} (time x "
            f"frequency x CPUs {want:.0f}), received {total['received']}, lost {lost}, kept {kept}")
    drain = lives * hz * os.cpu_count() * 0.1
    check(abs(kept + unkept - total["received"]) <= 0.001 * total["received"] + 1 + drain,
          f"kept + idle + filtered is not received: {line}")
    check(abs(total["received"] + lost - total["expected"]) <= 0.01 * total["expected"] + hz / 10,
          f"received + lost is not expected: {line}")
    check(abs(total["expected"] - want) <= allowed * want + hz / 5, f"expected is off: {line}")
    return line


def no_overlap(profiles, slack=0.05):
    """No moment is in two profiles: nothing was counted twice."""
    for a, b in zip(profiles, profiles[1:]):
        check(b.start >= a.end - slack, f"{b.path} begins {a.end - b.start:.2f} s before "
              f"{a.path} ends")
