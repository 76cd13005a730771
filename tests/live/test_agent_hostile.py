#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent beside programs that wish it ill: R-01 to R-04, M-02, M-04."""

import contextlib
import os
import re
import resource
import shutil
import subprocess
import sys
import time

import agentlab
import badelf
import lab
from agentlab import Agent
from tap import check, equal, note, run, skip, test

scratch = lab.Scratch()
HZ = 997
MEMORY = "/sys/fs/cgroup/memory"


def status_kib(pid, field):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(rf"^{field}:\s*(\d+)", f.read(), re.M).group(1))


def cpu_spent(metrics):
    return sum(metrics[f"sonde_cpu_seconds_total[{mode}]"] for mode in ("user", "system"))


def one_more_collection(agent):
    """Everything that ran until now has been seen by the agent afterwards."""
    return agent.wait_metric("sonde_collections_total",
                             agent.metrics()["sonde_collections_total"] + 2)


# ---- many short processes ----

def binaries(count):
    """Copies of one program, a tenth damaged where the kernel does not look, each another file."""
    with open(lab.wl("storm_child"), "rb") as f:
        program = f.read()
    paths = []
    for i in range(count):
        data = bytearray(program)
        if i % 10 == 9:
            data[0x28:0x30] = (len(data) - 100).to_bytes(8, "little")  # the section table
            data[0x3a:0x40] = os.urandom(6)
        paths.append(scratch.path(f"short{i:02d}"))
        with open(paths[-1], "wb") as f:
            f.write(data + i.to_bytes(4, "little"))
        os.chmod(paths[-1], 0o755)
    return paths


def storm_of(paths, runs):
    """Runs them in turn, a tenth removed as soon as they run; 16 at a time."""
    live = []
    for i in range(runs):
        path = paths[i % len(paths)]
        if i % 10 == 3:
            gone = scratch.path(f"gone{i}")
            shutil.copy(path, gone)
            live.append(subprocess.Popen([gone, "3000000"]))
            os.unlink(gone)
        else:
            live.append(subprocess.Popen([path, "3000000"]))
        if len(live) >= 16:
            live.pop(0).wait()
    for process in live:
        process.wait()


AT_ANY_COST = ("--cpu-budget", 100)  # the governor would lower the rate, by which the books are judged


@test("short processes of 50 binaries, a tenth damaged, a tenth deleted: no fd more (R-01)")
def fd_leak():
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    runs, paths = int(lab.seconds(600, 20000)), binaries(50)
    with Agent(scratch.path("fds"), *AT_ANY_COST, hz=HZ, preexec_fn=limit) as agent:
        agent.wait_ready()
        storm_of(paths[:5], 50)
        before = one_more_collection(agent)["sonde_open_fds"]
        storm_of(paths, runs)
        after = one_more_collection(agent)
        problems = [p for p in agent.problems() if "open files" not in p]
        equal(agent.stop()[0], 0, "exit status")
    note(f"{before:.0f} fds before, {after['sonde_open_fds']:.0f} after {runs} processes; "
         f"{after['sonde_files_read_total']:.0f} files read, "
         f"{after['sonde_files_failed_total']:.0f} could not be")
    check(after["sonde_open_fds"] <= before + 8, "file descriptors were lost")
    check(len(problems) < 20, f"{len(problems)} lines, such as {problems[:3]}")
    profiles = agentlab.stored(agent.dir)
    note(agentlab.check_books(profiles, HZ))


@test("a storm of short processes beside a steady one: that one is unharmed (R-03)")
def churn():
    with contextlib.ExitStack() as stack:
        steady = stack.enter_context(lab.Workload(lab.wl("split"), "-n", str(os.cpu_count())))
        agent = stack.enter_context(Agent(scratch.path("churn"), *AT_ANY_COST, hz=HZ))
        agent.wait_ready()
        stack.enter_context(lab.Workload(lab.wl("storm"), "-r", "400", lab.wl("storm_child")))
        time.sleep(lab.seconds(4, 120))
        got = one_more_collection(agent)
        equal(agent.stop()[0], 0, "exit status")
        steady.stop()
    profiles = agentlab.stored(agent.dir)
    note(agentlab.check_books(profiles, HZ))
    mine = [s for p in profiles for s in p.profile.samples
            if s.labels.get(lab.LABEL_PID) == steady.pid and lab.in_user_mode(s)]
    right = sum(s.values[0] for s in mine if lab.has(s, "hot_60", "hot_30", "hot_10"))
    total = sum(s.values[0] for s in mine)
    note(f"steady: {right} of {total} samples by name; agent {cpu_spent(got):.2f} s CPU; "
         f"{got['sonde_samples_unknown_process_total']:.0f} of unknown processes")
    check(right > 0.95 * total > 100, "the steady program has no names")
    equal(got["sonde_samples_unknown_process_total"], 0, "samples of unknown processes")


# ---- files ----

def run_mapped(agent, paths, ms):
    # A name for this agent to see each as a file of its own.
    with lab.Workload(lab.wl("maprun"), "-m", str(ms), *paths) as w:
        equal(w.wait()["files"], len(paths), "files run")
    return one_more_collection(agent)


@test("a binary of 1.5 GB with very many symbols, under a memory limit (R-02)")
def huge_file():
    symbols = int(lab.seconds(400000, 2000000))
    path, data = scratch.path("huge.so"), badelf.good(scratch.name)
    badelf.huge(path, data, symbols, 3 << 29)
    group = f"{MEMORY}/sonde_test_{os.getpid()}"
    if not os.path.exists(f"{MEMORY}/memory.limit_in_bytes"):
        skip("no memory cgroup of version 1 here")
    os.mkdir(group)
    try:
        with open(f"{group}/memory.limit_in_bytes", "w") as f:
            f.write(str(256 << 20))

        def enter():
            with open(f"{group}/tasks", "w") as f:
                f.write(str(os.getpid()))
        with Agent(scratch.path("big"), hz=HZ, preexec_fn=enter) as agent:
            agent.wait_ready()
            before = one_more_collection(agent)
            got = run_mapped(agent, [path], 500)
            peak = status_kib(agent.pid, "VmHWM") >> 10
            with open(f"{group}/memory.max_usage_in_bytes") as f:
                group_peak = int(f.read()) >> 20
            equal(agent.stop()[0], 0, "exit status")
    finally:
        os.rmdir(group)
        os.unlink(path)
    note(f"{symbols} symbols: peak RSS {peak} MiB, cgroup with page cache {group_peak} MiB, CPU "
         f"{cpu_spent(got) - cpu_spent(before):.2f} s, longest stall "
         f"{got['sonde_loop_longest_stall_seconds']:.2f} s; symbols kept "
         f"{got['sonde_symbol_bytes'] / 1048576:.1f} MiB")
    check(peak <= 256, f"peak RSS {peak} MiB")
    mine = [s for p in agentlab.stored(agent.dir) for s in p.profile.samples
            if s.labels.get(lab.LABEL_COMM, "").startswith(("mapped", "maprun"))]
    equal({lab.leaf(s).function for s in mine if lab.leaf(s).module.endswith("huge.so")} - {
        None, "churn_0000"}, set(), "names in code without a symbol")


@test("files with one field of nonsense each: no crash, little memory and time, no wrong name (R-04)")
def mutations():
    data, paths = badelf.good(scratch.name), []
    for i, how in enumerate(badelf.MUTATIONS.values()):
        paths.append(scratch.path(f"bad{i:02d}.so"))
        with open(paths[-1], "wb") as f:
            f.write(badelf.mutate(data, how))
    with Agent(scratch.path("bad"), "--thread-names", hz=HZ) as agent:
        agent.wait_ready()
        before = one_more_collection(agent)
        after = run_mapped(agent, paths, 60)
        peak = (status_kib(agent.pid, "VmHWM") << 10) - before["sonde_memory_bytes[resident]"]
        equal(agent.stop()[0], 0, "exit status")
    spent = cpu_spent(after) - cpu_spent(before)
    note(f"{len(paths)} files: {spent:.2f} s CPU, peak {peak / 1048576:.1f} MiB more")
    check(peak <= 64 << 20, "memory")
    check(spent <= 0.2 * len(paths), "CPU time")
    seen = {}
    for p in agentlab.stored(agent.dir):
        for s in p.profile.samples:
            m = re.match(r"mapped_(\d\d)", s.labels.get(lab.LABEL_THREAD, ""))
            if m and lab.in_user_mode(s) and re.search(r"bad\d\d", lab.leaf(s).module or ""):
                seen.setdefault(int(m.group(1)), set()).add(lab.leaf(s).function)
    for i, name in enumerate(badelf.MUTATIONS):
        note(f"{name}: {sorted(map(str, seen.get(i, ['not sampled'])))}")
    check(len(seen) >= len(paths) * 0.7, f"only {len(seen)} of {len(paths)} files were sampled")
    wrong = {i: f for i, f in seen.items() if f - {None, "churn_0000"}}
    equal(wrong, {}, "names that are in no file")


# ---- M-02, M-04: who it is ----

RENAMES = """
import ctypes, time
for name in (b"first-name", b"second-name"):
    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        pass
"""


@test("a process that renames itself: its comm follows, without thread names too (M-04)")
def renamed_process():
    with Agent(scratch.path("comm"), hz=HZ) as agent:
        agent.wait_ready()
        subprocess.run([sys.executable, "-c", RENAMES], check=True)
        equal(agent.stop()[0], 0, "exit status")
    seen = {s.labels.get(lab.LABEL_COMM) for p in agentlab.stored(agent.dir)
            for s in p.profile.samples}
    check({"first-name", "second-name"} <= seen, f"names seen: {sorted(map(str, seen))}")


@test("names that a thread gives itself while it runs are seen (M-04)")
def renamed():
    with lab.Workload(lab.wl("dlswap"), lab.wl("swap_a.so"), lab.wl("swap_b.so")):
        with Agent(scratch.path("names"), "--thread-names", hz=HZ) as agent:
            agent.wait_ready()
            agent.wait_metric("sonde_windows_total[cpu]", 1)
            equal(agent.stop()[0], 0, "exit status")
    right = wrong = 0
    for p in agentlab.stored(agent.dir):
        for s in p.profile.samples:
            name = s.labels.get(lab.LABEL_THREAD)
            if name in ("swap_in_a", "swap_in_b") and lab.in_user_mode(s):
                other = {"swap_in_a": "swap_in_b", "swap_in_b": "swap_in_a"}[name]
                right += s.values[0] if lab.has(s, name) else 0
                wrong += s.values[0] if lab.has(s, other) else 0
    note(f"{right} samples with the name that the thread had, {wrong} with the other")
    check(right > 50, "too few samples")
    equal(wrong, 0, "samples with the other name")


IN_NAMESPACE = """
{split} -t 600 >/dev/null &
unshare --pid --fork --mount-proc {exec_a} 100000000 100000 {exec_b} >/dev/null &
exec "$@"
"""


@test("the agent in a pid namespace: never a wrong name, inside or outside of it (M-02)")
def pid_namespace():
    script = IN_NAMESPACE.format(**{n: lab.wl(n) for n in ("split", "exec_a", "exec_b")})
    out = scratch.path("ns.pb.gz")
    # Ends with its first process, so all that runs inside ends too.
    with lab.Workload(lab.wl("jit")):
        p = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c",
                            script, "sh", lab.SONDE, "record", "-a", "-F", str(HZ), "-d",
                            lab.seconds("2", "10"), "-o", out], capture_output=True, text=True,
                           timeout=120)
    equal(p.returncode, 0, f"exit status: {p.stderr}")
    r = lab.Recording(out, 0, p.stdout, p.stderr, 0)
    for comm, mine in (("split", {"hot_60", "hot_30", "hot_10"}), ("exec_a", {"burn_in_a"}),
                       ("jit", {"jit_hot_60 app.js:10", "LJit;::hot_30(int)", "jit_hot_10"})):
        named = {f.function for s in r.select(comm=comm) if lab.in_user_mode(s)
                 for f in s.frames[:1] if f.function and not lab.is_marker(f)}
        hot = {n for n in named if n.startswith(("hot_", "burn_in", "jit_", "LJit", "storm"))}
        samples, pids = r.count(r.select(comm=comm)), {s.labels["pid"] for s in r.select(comm=comm)}
        note(f"{comm}: {samples} samples of pid {pids}, hot functions {sorted(hot)}")
        check(hot <= mine, f"{comm} is said to run {hot - mine}")
        if comm != "jit":  # its perf map is found by its number, which is another one in here
            check(samples and hot, f"{comm} has no names")
    note("the pids are those of the first namespace, also where the agent sees others: a limit")


if __name__ == "__main__":
    run()
