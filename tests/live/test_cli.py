#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""sonde record as a command: how it ends, what it says, what it falls back to (C-01, K-05)."""

import errno
import os
import pty
import re
import signal
import subprocess
import time

import lab
import pprofread
from tap import check, equal, near, note, run, skip, test

scratch = lab.Scratch()
HZ = 997


class OnTerminal:
    """sonde record with its messages on a terminal, where it tells its progress."""

    def __init__(self, *args, out, command=None):
        self.out, self.text = out, ""
        self.terminal, slave = pty.openpty()
        self.process = lab.start(*args, out=out, command=command, stderr=slave)
        os.close(slave)

    def _read(self):
        try:
            return os.read(self.terminal, 4096).decode(errors="replace")
        except OSError:  # what a terminal says when its other end is gone
            return ""

    def wait_samples(self, least):
        """Until so many samples are told."""
        while True:
            told = [int(n) for n in re.findall(r"(\d+) samples; Ctrl-C", self.text)]
            if told and told[-1] >= least:
                return
            more = self._read()
            check(more, f"sonde ended: {self.text!r}")
            self.text += more

    def finish(self, began):
        r = lab.finish(self.process, self.out, began, timeout=15)
        while more := self._read():
            self.text += more
        os.close(self.terminal)
        r.stderr = self.text
        return r


def one_line(text):
    return len([line for line in text.splitlines() if line.strip()]) == 1


@test("the command's exit status is kept")
def exit_status():
    for want in (0, 7):
        r = lab.record("-F", HZ, out=scratch.path("status.pb.gz"), status=want,
                       command=[lab.wl("split"), "-t", "0.5", "-x", want])
        check(r.count(r.profile.samples) > 50, "no samples of the command")


@test("a command killed by a signal: 128 + its number, and a valid file")
def killed_command():
    r = lab.record("-F", HZ, out=scratch.path("killed.pb.gz"), status=128 + signal.SIGTERM,
                   command=["sh", "-c", "kill -TERM $$"])
    r.profile.check()


@test("a command that does not exist: one line, status 127, no file")
def no_command():
    out = scratch.path("none.pb.gz")
    r = lab.record(out=out, status=None, command=["/nowhere/to/be/found"])
    equal(r.status, 127, "exit status")
    check(one_line(r.stderr) and "/nowhere/to/be/found" in r.stderr, f"said {r.stderr!r}")
    check(not os.path.exists(out), "a file was written")


def interrupted(sig, *args, command=None):
    with lab.Workload(lab.wl("split")):
        recording = OnTerminal(*args, "-F", HZ, out=scratch.path("int.pb.gz"), command=command)
        recording.wait_samples(300)
        began = time.monotonic()
        recording.process.send_signal(sig)
        r = recording.finish(began)
    note(f"status {r.status}, {r.took:.2f} s to end, {r.count(r.profile.samples)} samples")
    check(r.took < 5, "it took too long to end")
    equal(r.status, 0, f"exit status ({r.stderr.strip()})")
    check(r.count(r.profile.samples) >= 300, "samples that were told are missing")
    return r


@test("Ctrl-C ends a recording without a duration with a valid file")
def ctrl_c():
    interrupted(signal.SIGINT, "-a")


@test("Ctrl-C while a command runs: the command is ended too, the file is whole")
def ctrl_c_command():
    r = interrupted(signal.SIGINT, command=[lab.wl("split"), "-t", "60"])
    check(r.count(s for s in r.profile.samples if lab.has(s, "hot_60")) > 100, "no samples")
    lab.truth_in(r.stdout)  # split ended by itself, on the signal


@test("SIGTERM the same")
def sigterm():
    interrupted(signal.SIGTERM, "-a")


@test("a reader of the summary: samples, expected, received, size of the file")
def summary():
    out = scratch.path("summary.pb.gz")
    with lab.Workload(lab.wl("split")) as w:
        r = lab.record("-F", HZ, "-p", w.pid, "-d", 1, out=out)
    note(r.stderr)
    equal(r.stdout, "", "text on stdout")
    for word in ("samples", "expected", "received", os.path.basename(out)):
        check(word in r.stderr, f"the summary does not say {word}")
    check(re.search(r"\d+(\.\d+)? ?(B|bytes|KB|KiB|MB|MiB|kB)", r.stderr), "no size")


@test("a killed recording leaves no broken file")
def sigkill():
    out = scratch.path("kill9.pb.gz")
    with lab.Workload(lab.wl("split")):
        recording = OnTerminal("-a", "-F", HZ, out=out)
        recording.wait_samples(100)
    recording.process.kill()
    recording.process.communicate()
    os.close(recording.terminal)
    if os.path.exists(out):
        pprofread.load(out).check()


@test("a process that ends during its recording: its samples are there and named, sonde ends")
def target_ends():
    out = scratch.path("ends.pb.gz")
    with lab.Workload(lab.wl("split")) as w:
        recording = OnTerminal("-p", w.pid, "-F", HZ, "-d", 60, out=out)
        recording.wait_samples(200)
        w.stop()
    r = recording.finish(time.monotonic())
    equal(r.status, 0, f"exit status ({r.stderr.strip()})")
    named = r.count(s for s in r.profile.samples if lab.has(s, "take_turns"))
    note(f"{named} of {r.count(r.profile.samples)} samples named")
    check(r.count(r.profile.samples) >= 200, "samples are missing")
    check(named > 0.98 * r.count(r.profile.samples), "names are missing")


@test("errors are one line with the cause, and a status that is not 0")
def errors():
    cases = [
        (["-p", "4194304"], "4194304"),
        (["-F", "0", "-a"], "0"),
        (["-F", "many", "-a"], "many"),
        (["--cgroup", "/nowhere/cgroup"], "/nowhere/cgroup"),
        (["--no-such-option"], "no-such-option"),
        (["-a", "-d", "soon"], "soon"),
    ]
    for args, word in cases:
        out = scratch.path("error.pb.gz")
        r = lab.record(*args, *([] if "-d" in args else ["-d", "1"]), out=out, status=None)
        check(r.status != 0, f"{args}: status 0")
        check(word in r.stderr and one_line(r.stderr), f"{args}: said {r.stderr!r}")
        check(not os.path.exists(out), f"{args}: a file was written")
    r = lab.record("-a", "-d", "1", out="/nowhere/at/all.pb.gz", status=None)
    check(r.status != 0 and "/nowhere/at/all.pb.gz" in r.stderr, f"said {r.stderr!r}")
    check(r.took < 0.9, "an output that cannot be written was found out only at the end")


@test("perf_event_max_sample_rate below the asked rate is said, and so is throttling (C-01)")
def clamp():
    length = lab.seconds(3, 10)
    with lab.Sysctl("kernel.perf_event_max_sample_rate", 50), \
            lab.Workload(lab.wl("split"), "-n", str(2 * os.cpu_count())):
        r = lab.record("-F", 99, "-a", "-d", length, status=None, out=scratch.path("clamp.pb.gz"))
    note(r.stderr)
    check("perf_event_max_sample_rate" in r.stderr, "the limit is not said")
    if r.status != 0:
        check(one_line(r.stderr), "more than one line")
        return
    near(r.profile.period, 1e9 / 50, 1e6, "period")
    want = 50 * os.cpu_count() * r.profile.duration_ns / 1e9
    near(r.fact("expected"), want, 0.03 * want + 2, "expected samples at 50 Hz")
    near(r.count(r.profile.samples) + sum(r.lost().values()), want, 0.03 * want + 2,
         "samples and what is said to be lost")


def is_static(path):
    text = subprocess.run(["readelf", "-l", path], text=True, stdout=subprocess.PIPE,
                          check=False).stdout
    return "INTERP" not in text


def without_pmu(number):
    with lab.Workload(lab.wl("split")) as w:
        env = dict(os.environ, LD_PRELOAD=lab.wl("shim_perf.so"), SHIM_ERRNO=str(number))
        r = lab.record("-F", HZ, "-p", w.pid, "-d", 1.5, out=scratch.path("shim.pb.gz"), env=env)
        truth = w.stop()
    name = errno.errorcode[number]
    check("shim_perf: refused" in r.stderr, f"{name}: the shim was not asked: {r.stderr!r}")
    said = [c for c in r.profile.comments if "cpu-clock" in c or "cpu_clock" in c]
    note(f"{name}: {said}; {r.stderr.splitlines()[0]}")
    check(said, f"{name}: the profile does not say cpu-clock: {r.profile.comments}")
    check("cpu-clock" in r.stderr, f"{name}: the summary does not say cpu-clock: {r.stderr!r}")
    lab.check_split(r, r.profile.samples, ("hot_60", "hot_30", "hot_10"),
                    [truth["functions"][f] for f in ("hot_60", "hot_30", "hot_10")])


@test("no PMU: ENOENT, ENODEV, ENXIO, EOPNOTSUPP all fall back to cpu-clock, and say so (K-05)")
def no_pmu():
    if is_static(lab.SONDE):
        skip("a static program has no shim")
    for number in (errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.EOPNOTSUPP):
        without_pmu(number)


if __name__ == "__main__":
    run()
