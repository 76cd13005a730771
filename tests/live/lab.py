# SPDX-License-Identifier: Apache-2.0
"""What the live tests share: running sonde, workloads and helpers, and reading what came out.

All that depends on how sonde spells things (labels, comments, marker frames) is in the first
section, and nowhere else.
"""

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pprofread
from tap import check, note, skip

# ---- sonde's spelling ----

LABEL_COMM, LABEL_THREAD, LABEL_CGROUP, LABEL_PID = "comm", "thread", "cgroup", "pid"
TYPE_SAMPLES, TYPE_CPU = "samples", "cpu"
COMMENT = re.compile(r"^sonde\.([^=]+)=(.*)$")
# Never reached the profile. All other counters tell of samples that are in it, shortened or not.
LOST = ("missed", "missed_idle", "no_state", "lost_no_memory")
NOT_KEPT = ("idle", "filtered", "late")
UNNAMED_PREFIX = "frames["
SENT = re.compile(r"\((\d+) stacks, (\d+) files")  # in the summary: what crossed to user space
MODULE_VDSO, MODULE_JIT = "[vdso]", ("[jit]", "[anon]", "")
MARKER = re.compile(r"^\[(truncated.*|no user stack|no mapping|vma busy|stack lost|no stack|"
                    r"overflow|unknown file)\]$")


def is_marker(frame):
    return bool(frame.function and MARKER.match(frame.function))


def is_kernel(frame):
    return (frame.module.startswith("[") and frame.module != MODULE_VDSO and
            frame.module not in MODULE_JIT and not is_marker(frame))


def escaped(raw):
    """How sonde shows foreign bytes: text that is clean stays, the rest becomes \\xNN."""
    out = ""
    for char in raw.decode("utf-8", "surrogateescape"):
        code = ord(char)
        if 0xDC80 <= code <= 0xDCFF:
            out += f"\\x{code - 0xDC00:02x}"
        elif code < 0x20 or code == 0x7F:
            out += f"\\x{code:02x}"
        else:
            out += char
    return out


# ---- where things are, how long they run ----

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
SONDE = os.path.abspath(os.environ.get("SONDE", os.path.join(BUILD, "sonde")))
WORKLOADS = os.path.abspath(os.environ.get("WORKLOADS", os.path.join(BUILD, "workloads")))
FULL = os.environ.get("FULL", "0") == "1"
os.environ["XDG_CACHE_HOME"] = os.path.abspath(os.path.join(BUILD, "live", "cache"))  # not the user's


def seconds(short, full):
    """How long to record: a short form for `make test`, the full one with FULL=1."""
    if "LIVE_SECONDS" in os.environ:
        return float(os.environ["LIVE_SECONDS"])
    return full if FULL else short


def wl(name):
    path = os.path.join(WORKLOADS, name)
    check(os.path.exists(path), f"{path} is missing: make workloads")
    return path


def need(program):
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin:/usr/local/go/bin")
    if not path:
        skip(f"{program} is not installed")
    return path


class Scratch(tempfile.TemporaryDirectory):
    """A directory on a real file system (not /tmp, which may be a tmpfs), gone afterwards."""

    def __init__(self):
        base = os.path.join(BUILD, "live")
        os.makedirs(base, exist_ok=True)
        super().__init__(prefix="t", dir=base)

    def path(self, name):
        return os.path.join(self.name, name)


# ---- running ----

class Workload:
    """A workload that has said "ready". stop() ends it and returns its truth."""

    def __init__(self, *argv, **popen):
        self.process = subprocess.Popen(list(argv), stdout=subprocess.PIPE, text=True, **popen)
        self.ready = self._read("ready")
        self.pid = self.ready["pid"]

    def _read(self, event):
        for line in self.process.stdout:
            if line.startswith("{"):
                message = json.loads(line)
                if message["event"] == event:
                    return message
        check(False, f"workload {self.process.args} ended without its {event} line, "
              f"status {self.process.wait()}")

    def stop(self, pid=None):
        """SIGTERM (to `pid` if the workload is not the direct child), then the last line."""
        try:
            os.kill(pid or self.process.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        return self.wait()

    def wait(self):
        truth = self._read("truth")
        self.process.wait()
        self.process.stdout.close()
        return truth

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()


def truth_in(text):
    """The truth line in the output of a workload that sonde ran as its command."""
    for line in text.splitlines():
        if line.startswith("{") and '"truth"' in line:
            return json.loads(line)
    check(False, f"no truth line in {text!r}")


class Recording:
    def __init__(self, path, status, stdout, stderr, took):
        self.path, self.status, self.took = path, status, took
        self.stdout, self.stderr = stdout, stderr
        self._profile = None

    @property
    def profile(self):
        """The profile, checked strictly."""
        if self._profile is None:
            check(os.path.exists(self.path), f"no file was written; stderr: {self.stderr}")
            self._profile = pprofread.load(self.path)
            try:
                self._profile.check()
            except pprofread.Bad as why:
                check(False, f"{self.path}: {why}")
        return self._profile

    @property
    def facts(self):
        """The counters in the profile's comments: name -> number, or text."""
        result = {}
        for comment in self.profile.comments:
            m = COMMENT.match(comment)
            if m:
                text = m.group(2)
                result[m.group(1)] = int(text) if re.fullmatch(r"-?\d+", text) else text
        return result

    def fact(self, name):
        check(name in self.facts, f"no comment sonde.{name}; there are {sorted(self.facts)}")
        return self.facts[name]

    def lost(self):
        return {name: self.fact(name) for name in LOST}

    def select(self, comm=None, thread=None, pid=None):
        return [s for s in self.profile.samples
                if (comm is None or s.labels.get(LABEL_COMM) == comm) and
                (thread is None or s.labels.get(LABEL_THREAD) == thread) and
                (pid is None or s.labels.get(LABEL_PID) == pid)]

    def count(self, samples):
        i = self.profile.value_index(TYPE_SAMPLES)
        return sum(s.values[i] for s in samples)

    def cpu_ns(self, samples):
        i = self.profile.value_index(TYPE_CPU)
        return sum(s.values[i] for s in samples)


def sonde_argv(args, out, command):
    argv = [SONDE, "record", *map(str, args)]
    if out:
        argv += ["-o", out]
    return argv + (["--", *map(str, command)] if command else [])


def start(*args, out=None, command=None, **popen):
    """sonde record, running. Ends by its -d, its command's end, or a signal."""
    check(os.access(SONDE, os.X_OK), f"{SONDE} is not there")
    popen = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
    return subprocess.Popen(sonde_argv(args, out, command), stdin=subprocess.DEVNULL, text=True,
                            errors="surrogateescape", **popen)


def finish(process, out, began, timeout=120):
    try:
        stdout, stderr = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        check(False, f"sonde did not end within {timeout} s of its time")
    return Recording(out, process.returncode, stdout, stderr, time.monotonic() - began)


def record(*args, out, command=None, status=0, timeout=None, **popen):
    """Runs sonde record to its end; fails unless it exits with `status` (None: any)."""
    began = time.monotonic()
    process = start(*args, out=out, command=command, **popen)
    r = finish(process, out, began, timeout or 120 + 2 * seconds(10, 120))
    if status is not None:
        check(r.status == status, f"exit status {r.status}, want {status}: {r.stderr.strip()}")
    return r


# ---- looking at samples ----

def leaf(sample):
    return sample.frames[0] if sample.frames else None


def user_frames(sample):
    return [f for f in sample.frames if not is_kernel(f)]


def in_user_mode(sample):
    """The sample interrupted user code that has a stack."""
    f = leaf(sample)
    return f is not None and not is_kernel(f) and f.function != "[no user stack]"


def has(sample, *functions):
    return any(f.function in functions for f in sample.frames)


def shares_of(recording, samples, functions):
    """Samples by which of `functions` is on the stack -> (shares, number of samples)."""
    counts = [recording.count(s for s in samples if has(s, f)) for f in functions]
    total = sum(counts)
    check(total > 0, f"none of {functions} was sampled")
    return [c / total for c in counts], total


def tolerance(share, samples, sigmas=4):
    """What a fair coin may be off: `sigmas` standard deviations of a share, and 0.3 points."""
    return sigmas * math.sqrt(share * (1 - share) / samples) + 0.003


def check_split(recording, samples, functions, truth_ns, fixed=None):
    """Each function's share against the program's own measure."""
    total = sum(truth_ns)
    got, n = shares_of(recording, samples, functions)
    for name, share, ns in zip(functions, got, truth_ns):
        want, allowed = ns / total, fixed or tolerance(ns / total, n)
        note(f"{name}: {100 * share:.2f} % of {n} samples, own measure {100 * want:.2f} %, "
             f"allowed {100 * allowed:.2f} points")
        check(abs(share - want) <= allowed, f"{name} is {100 * abs(share - want):.2f} points off")


def wrong_names(recording, samples, prefix):
    """
    Samples of threads that are named after what they run: how many have, as their first frame
    with `prefix`, another function than the thread's name says -> (right, wrong, examples).
    """
    right = wrong = 0
    examples = []
    i = recording.profile.value_index(TYPE_SAMPLES)
    for s in samples:
        names = [f.function for f in s.frames if f.function and f.function.startswith(prefix)]
        if not names:
            continue
        if names[0] == s.labels.get(LABEL_THREAD):
            right += s.values[i]
        else:
            wrong += s.values[i]
            examples.append(f"{s.labels.get(LABEL_THREAD)} shown in {names[0]}")
    return right, wrong, examples[:5]


# ---- sysctls and helpers that run beside ----

class Sysctl:
    """Sets a /proc/sys value for the time of a `with`."""

    def __init__(self, name, value):
        self.path, self.value = "/proc/sys/" + name.replace(".", "/"), str(value)

    def __enter__(self):
        with open(self.path, encoding="ascii") as f:
            self.old = f.read().strip()
        with open(self.path, "w", encoding="ascii") as f:
            f.write(self.value)

    def __exit__(self, *_):
        with open(self.path, "w", encoding="ascii") as f:
            f.write(self.old)


class Beside:
    """A helper that is known to run once it has printed `sign`; ended by SIGINT."""

    def __init__(self, *argv, sign, **popen):
        self.process = subprocess.Popen(list(argv), stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, errors="replace",
                                        **popen)
        self.text = ""
        for line in self.process.stdout:
            self.text += line
            if sign in line:
                return
        skip(f"{argv[0]} does not run here: {self.text.strip()[-200:]}")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.text += self.process.communicate(timeout=180)[0] or ""
        return self.text

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()


def bpftrace(script, sign):
    """bpftrace beside, with a tracefs of its own where none is mounted."""
    need("bpftrace")
    mounts = ("mount -t debugfs none /sys/kernel/debug 2>/dev/null; "
              "mount -t tracefs none /sys/kernel/tracing 2>/dev/null; ")
    return Beside("unshare", "-m", "sh", "-c", mounts + 'exec bpftrace -e "$0"', script, sign=sign)


def main_path_first():
    """PATH of root shells without /usr/sbin would hide bpftrace and runc."""
    os.environ["PATH"] += ":/usr/sbin:/sbin:/usr/local/go/bin"
    sys.stdout.reconfigure(errors="backslashreplace")


main_path_first()
