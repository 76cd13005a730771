#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The agent beside a mixed load for a long time: `make soak`, SOAK_SECONDS=1800. Its memory and its fds
must be flat in the second half, no collection late, and no sample without a reason for its loss.
HZ=99 samples a second; KEEP=dir keeps the store and the series of measurements.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))

import agentlab  # noqa: E402
import lab  # noqa: E402
from agentlab import Agent  # noqa: E402
from tap import check, equal, note, run, skip, test  # noqa: E402

SECONDS = float(os.environ.get("SOAK_SECONDS", 1800))
HZ = int(os.environ.get("HZ", 99))
THREADS, MAPPINGS = 20000, 5000
V1 = "/sys/fs/cgroup/memory"
V2 = next((p for p in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
           if os.path.exists(f"{p}/cgroup.controllers")), None)
MIB = 1 << 20
scratch = lab.Scratch()


# ---- the load ----

def as_many_threads():
    """Half of the thread numbers that are left, since other people want some too."""
    with open("/proc/sys/kernel/pid_max") as f:
        most = int(f.read())
    with open("/proc/loadavg") as f:
        used = int(f.read().split()[3].split("/")[1])
    return min(THREADS, (most - used) // 2)


class Part:
    """A load of load.py as a process of its own, until it is killed."""

    def __init__(self, name, directory):
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "load.py")
        self.process = subprocess.Popen([sys.executable, program, name, directory],
                                        stdin=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def mixed_load():
    copies, maps = scratch.path("copies"), scratch.path("maps")
    os.mkdir(copies)
    os.mkdir(maps)
    threads = as_many_threads()
    with contextlib.ExitStack() as stack:
        def start(name, *args):
            stack.enter_context(lab.Workload(lab.wl(name), *map(str, args)))
        start("crowd", "-n", threads, "-m", MAPPINGS, "-p", 10000, "-f", scratch.path("crowd.so"))
        start("storm", "-r", 100, lab.wl("storm_child"))
        start("storm", "-r", 50, "-m", "copies", "-k", 20, "-d", copies, lab.wl("storm_child"))
        start("churn", "-f", 64, "-d", maps)
        start("dlswap", lab.wl("swap_a.so"), lab.wl("swap_b.so"))
        start("split", "-n", os.cpu_count())
        stack.enter_context(Part("compiler", lab.ROOT))
        stack.enter_context(Part("database", scratch.name))
        note(f"load: {threads} threads, {MAPPINGS} mappings, gcc, sqlite, forks, mmap, dlopen")
        yield


# ---- measuring ----

class Group:
    """A memory cgroup for the agent alone: what it and its BPF maps are charged for."""

    def __init__(self):
        if os.path.exists(f"{V1}/memory.kmem.usage_in_bytes"):
            self.path, self.v1 = f"{V1}/sonde_soak_{os.getpid()}", True
        elif V2:
            self.path, self.v1 = f"{V2}/sonde_soak_{os.getpid()}", False
        else:
            skip("no memory cgroup")
        os.mkdir(self.path)
        if not os.path.exists(f"{self.path}/memory.stat"):
            os.rmdir(self.path)
            skip("the memory controller is not enabled in the top cgroup")

    def enter(self):
        with open(f"{self.path}/cgroup.procs", "w") as f:
            f.write(str(os.getpid()))

    def _read(self, name):
        with open(f"{self.path}/{name}") as f:
            return f.read()

    def bytes(self):
        """Without the page cache of the files it wrote, which the kernel takes back at will."""
        stat = dict(line.split() for line in self._read("memory.stat").splitlines())
        if self.v1:
            return int(stat["total_rss"]) + int(self._read("memory.kmem.usage_in_bytes"))
        return int(stat["anon"]) + int(stat.get("kernel", stat.get("slab", 0)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            os.rmdir(self.path)


def watch(agent, group):
    """One row a second: time, bytes, fds, and what the agent says of itself every ten."""
    rows, end = [], time.monotonic() + SECONDS
    while time.monotonic() < end:
        check(agent.running(), f"the agent ended: {agent.log}")
        row = {"at": time.monotonic(), "bytes": group.bytes(), "fds": agent.fds()}
        if len(rows) % 10 == 0:
            row["metrics"] = metrics = agent.metrics()
        row["rest"] = row["bytes"] - metrics["sonde_symbol_bytes"]
        rows.append(row)
        time.sleep(max(0, 1 - (time.monotonic() - row["at"])))
    return rows


def growth(rows, name):
    """By how much the line through the second half rises over it, and its mean."""
    half = rows[len(rows) // 2:]
    xs, ys = [r["at"] for r in half], [r[name] for r in half]
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = (sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / sum((x - mx) ** 2 for x in xs))
    return slope * (xs[-1] - xs[0]), my


result = {}


@test("runs to its end beside the mixed load")
def soak():
    directory = scratch.path("store")
    with Group() as group, mixed_load():
        with Agent(directory, hz=HZ, collect="10s", window="60s", preexec_fn=group.enter) as agent:
            agent.wait_ready(120)
            rows = watch(agent, group)
            last, at = agent.metrics(), time.time()
            status, took = agent.stop()
            result.update(rows=rows, last=last, log=agent.log, problems=agent.problems(), end=at)
    equal(status, 0, "exit status")
    result["profiles"] = agentlab.stored(directory)
    if os.environ.get("KEEP"):
        shutil.copytree(directory, os.path.join(os.environ["KEEP"], "store"), dirs_exist_ok=True)
        with open(os.path.join(os.environ["KEEP"], "rows.json"), "w") as f:
            json.dump(rows, f)
    seconds = rows[-1]["at"] - rows[0]["at"]
    for line in result["log"].splitlines():
        note(line)
    cpu = {m: last[f"sonde_cpu_seconds_total[{m}]"] for m in ("user", "system", "bpf")}
    note(f"{seconds:.0f} s, end took {took:.2f} s; CPU " + ", ".join(
        f"{m} {c:.2f} s" for m, c in cpu.items()) +
        f" = {100 * sum(cpu.values()) / seconds:.2f} % of one core")
    disk = sum(os.path.getsize(p.path) for p in result["profiles"])
    note(f"disk {disk / MIB:.2f} MiB, {disk / MIB * 3600 / seconds:.1f} MiB an hour; files read "
         f"{last['sonde_files_read_total']:.0f}, failed {last['sonde_files_failed_total']:.0f}")


def need_result():
    if "profiles" not in result:
        skip("it did not run to its end")


@test("memory of its cgroup is flat in the second half")
def memory():
    need_result()
    # Symbol tables fill up to their bound with each new program seen, for longer than a short run.
    whole = SECONDS >= 1800
    rise, mean = growth(result["rows"], "bytes" if whole else "rest")
    note("all of it" if whole else "without symbol tables, since the run is shorter than 1800 s")
    most = max(r["bytes"] for r in result["rows"])
    note(f"mean {mean / MIB:.1f} MiB, rise over the second half {rise / MIB:+.2f} MiB, most "
         f"{most / MIB:.1f} MiB; of it BPF maps {result['last']['sonde_memory_bytes[bpf_maps]'] / MIB:.1f}")
    every = max(1, len(result["rows"]) // 12)
    note("MiB over time: " + " ".join(f"{r['bytes'] / MIB:.1f}" for r in result["rows"][::every]))
    check(rise <= max(3 * MIB, 0.04 * mean), f"memory rises by {rise / MIB:.1f} MiB")


@test("file descriptors are flat in the second half")
def descriptors():
    need_result()
    rise, mean = growth(result["rows"], "fds")
    note(f"mean {mean:.1f}, rise {rise:+.2f}, most {max(r['fds'] for r in result['rows'])}")
    check(rise <= 1, f"fds rise by {rise:.1f}")


@test("no collection was late, and the loop never stood for an interval")
def punctual():
    need_result()
    last = result["last"]
    note(f"{last['sonde_collections_total']:.0f} collections; longest stall "
         f"{last['sonde_loop_longest_stall_seconds']:.2f} s; mean drain "
         f"{1000 * last['sonde_drain_seconds_total'] / max(last['sonde_drains_total'], 1):.1f} ms")
    equal(last["sonde_collections_late_total"], 0, "late collections")
    check(last["sonde_loop_longest_stall_seconds"] < 10, "the loop stood still")


@test("nothing is lost without being counted")
def books():
    need_result()
    profiles, last = result["profiles"], result["last"]
    note(agentlab.check_books(profiles, HZ) if not last["sonde_governor_steps_total[down]"] else
         f"governor steps down: {last['sonde_governor_steps_total[down]']:.0f}")
    outcomes = {k.split("[")[1][:-1]: v for k, v in last.items()
                if k.startswith("sonde_samples_total[")}
    note({k: int(v) for k, v in outcomes.items() if v})
    received, kept = (sum(p.facts[n] for p in profiles) for n in ("received", "kept"))
    filed = sum(p.samples for p in profiles)
    unkept = sum(p.facts[n] for p in profiles for n in lab.NOT_KEPT)
    note(f"received {received}, kept {kept}, in the profiles {filed}, idle or filtered {unkept}")
    equal(filed + unkept, received, "samples in profiles + idle + filtered = received")
    for name in ("sonde_samples_lost_storage_total", "sonde_journal_errors_total",
                 "sonde_samples_unknown_process_total", "sonde_records_bad_total",
                 "sonde_drain_errors_total"):
        note(f"{name} {last[name]:.0f}")
    agentlab.no_overlap(profiles)
    hole = profiles[-1].end - profiles[0].start - sum(p.seconds for p in profiles)
    check(hole < 1, f"{hole:.2f} s are in no profile")


if __name__ == "__main__":
    run()
