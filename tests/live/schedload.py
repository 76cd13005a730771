#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What test_sched.py records: run as a command, so that all lives lie within the recording.

    schedload.py mix FILE SECONDS      all roles of schedmix at once
    schedload.py some FILE SECONDS     some of them
    schedload.py move FILE GROUP...    a process that changes its cgroup

Each writes what it knows of itself to FILE, as JSON.
"""
import json
import os
import signal
import subprocess
import sys
import threading
import time

import lab

S = 1e9
SECONDS = lab.seconds(15, 60)
QUOTA_US, PERIOD_US = 20000, 100000
V1, V2 = "/sys/fs/cgroup/cpu/sonde_quota", "/sys/fs/cgroup/sonde_quota"

# role, argument, nice level, what it mostly waits for
ROLES = [
    ("busy1", "", 0, None), ("busy2", "", 0, None), ("busy3", "", 0, None),
    ("busy_nice5", "", 5, None), ("busy_nice10", "", 10, None), ("busy_nice-5", "", -5, None),
    ("sleep1", "1", 0, "sleep"), ("sleep10", "10", 0, "sleep"), ("sleep100", "100", 0, "sleep"),
    ("read", "FILE", 0, "disk"), ("fault", "FILE", 0, "page_fault"), ("lock", "", 0, "lock"), ("pipe", "", 0, "pipe"),
    ("socket", "", 0, "socket"), ("pool", "", 0, "lock"), ("poll", "", 0, "poll"),
    ("child", "", 0, "child"), ("vfork", "", 0, "child"), ("rt", "", 0, "sleep"),
    ("sleep_stopped", "10", 0, "stopped"), ("busy_quota", "", 0, None),
]

SOME = ("busy1", "busy2", "busy3", "sleep1", "sleep10", "poll")  # of no more threads than one


def make_quota():
    """A cgroup with a quota: (its directory, file of its statistics), or None."""
    for path in (V1, V2):
        try:
            os.makedirs(path, exist_ok=True)
            if path == V1:
                for name, value in (("cfs_period_us", PERIOD_US), ("cfs_quota_us", QUOTA_US)):
                    with open(f"{path}/cpu.{name}", "w") as f:
                        f.write(str(value))
            else:
                with open(f"{path}/cpu.max", "w") as f:
                    f.write(f"{QUOTA_US} {PERIOD_US}")
            return path
        except OSError:
            continue
    return None


def throttled_ns(path):
    with open(f"{path}/cpu.stat") as f:
        stat = dict(line.split() for line in f)
    return int(stat["throttled_time"]) if "throttled_time" in stat else 1000 * int(stat["throttled_usec"])


def start_role(role, argument, nice, data, group):
    def prepare():
        if nice:
            os.setpriority(os.PRIO_PROCESS, 0, nice)
        if role == "busy_quota" and group:
            with open(f"{group}/cgroup.procs", "w") as f:
                f.write("0")

    argument = data if argument == "FILE" else argument
    return subprocess.Popen([lab.wl("schedmix"), role, str(SECONDS)] + [argument] * bool(argument),
                            stdout=subprocess.PIPE, text=True, preexec_fn=prepare)


def stop_for_a_while(process):
    """Stopped in the middle of its life; how long."""
    time.sleep(SECONDS / 4)
    os.kill(process.pid, signal.SIGSTOP)
    begin = time.monotonic()
    time.sleep(SECONDS / 2)
    stopped = time.monotonic() - begin
    os.kill(process.pid, signal.SIGCONT)
    return int(stopped * S)


def run_role(row, data, group, truth):
    """`outer` is what its life may be at most."""
    begin = time.monotonic()
    process = start_role(*row[:3], data, group)
    if row[0] == "sleep_stopped":
        truth["stopped"] = stop_for_a_while(process)
    out = process.stdout.read()
    _, process.returncode, usage = os.wait4(process.pid, 0)
    outer = time.monotonic() - begin
    truth["roles"][row[0]] = dict(json.loads(out), outer=int(outer * S),
                                  rusage=int((usage.ru_utime + usage.ru_stime) * S)) if out else None


def drive(path, roles):
    group = make_quota()
    data = path + ".data"
    with open(data, "wb") as f:
        f.write(os.urandom(1 << 20) * 64)
        os.fsync(f.fileno())
    truth = {"roles": {}}
    threads = [threading.Thread(target=run_role, args=(role, data, group, truth)) for role in roles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if group:
        truth["throttled"] = throttled_ns(group)
        os.rmdir(group)
    with open(path, "w") as f:
        json.dump(truth, f)


def move_between(groups, path):
    """Two busy threads for a while in each of the cgroups; the moments go to a file."""
    child = subprocess.Popen([lab.wl("schedmix"), "twins_moved", "3"], stdout=subprocess.DEVNULL)
    moments = []
    for group in groups:
        with open(f"{group}/cgroup.procs", "w") as f:
            moments.append(time.monotonic())
            f.write(str(child.pid))
            f.flush()
            moments.append(time.monotonic())
        time.sleep(0.7)
    child.wait()
    moments.append(time.monotonic())
    with open(path, "w") as f:
        json.dump({"pid": child.pid, "moments": moments}, f)


def main(what, path, *rest):
    global SECONDS
    if what == "move":
        move_between(rest, path)
        return
    SECONDS = float(rest[0])
    drive(path, ROLES if what == "mix" else [row for row in ROLES if row[0] in SOME])


if __name__ == "__main__":
    main(*sys.argv[1:])
