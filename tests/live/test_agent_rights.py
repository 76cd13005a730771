#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent with less than it wants: privileges, limits, file systems, configuration (K-03, K-04)."""

import contextlib
import glob
import os
import re
import resource
import shutil
import signal
import socket
import subprocess

import agentlab
import lab
from agentlab import Agent, wait_for
from tap import check, equal, note, run, test

scratch = lab.Scratch()
SIX = ("bpf", "perfmon", "sys_ptrace", "dac_read_search", "checkpoint_restore", "syslog")
SIX_MASK = sum(1 << n for n in (38, 39, 19, 2, 40, 34))
PARANOID = "/proc/sys/kernel/perf_event_paranoid"
RUNS = 0
USUAL = []  # what the agent finds fault with on this machine with all rights


def next_dir():
    global RUNS
    RUNS += 1
    return scratch.path(f"d{RUNS}")


def only(*caps):
    """A prefix: root with no other capabilities than these."""
    return ("setpriv", "--bounding-set", ",".join(["-all", *(f"+{c}" for c in caps)]))


def in_mounts(script):
    """A prefix: a mount namespace in which `script` has run."""
    return ("unshare", "-m", "sh", "-c", f"set -e; {script}; exec \"$@\"", "sh")


def works(prefix=(), said=(), promised=True, **popen):
    """It runs, samples, answers and ends well; each pattern of `said` is one line of its log."""
    directory = next_dir()
    with lab.Workload(lab.wl("split"), "-n", str(os.cpu_count())) as load:
        with Agent(directory, prefix=prefix, collect="0.5s", window="1s",
                   **popen) as agent:
            agent.wait_ready()
            got = agent.wait_metric("sonde_windows_total[cpu]", 1)
            equal(agent.page("healthz"), "ok\n", "/healthz")
            check(got["sonde_samples_total[received]"] > 0, f"no samples: {agent.log}")
            equal(agent.stop()[0], 0, "exit status")
            problems = [p for p in agent.problems() if p not in USUAL]
    for line in problems:
        note(line)
    for pattern in said:
        equal(len([p for p in problems if re.search(pattern, p)]), 1, f"lines about {pattern}")
    if promised:
        check(any(p.cpu_of(load.pid) > 0 for p in agentlab.stored(directory)), "no load in the store")
    return problems


def refuses(pattern, prefix=(), **popen):
    """One line that matches, and exit status 1."""
    status, lines = agentlab.refused(next_dir(), prefix=prefix, **popen)
    for line in lines:
        note(line)
    equal(status, 1, "exit status")
    equal(len(lines), 1, "lines")
    check(re.search(pattern, lines[0]), f"the line does not say {pattern}")


@test("with all rights")
def usual():
    USUAL.extend(works())


@test("the six capabilities are enough, and nothing is missed")
def six():
    equal(works(only(*SIX)), [], "problems")


@test("each thread, also the one that reads files, has the six at most, the filter and no_new_privs")
def threads():
    with Agent(next_dir()) as agent:
        agent.wait_ready()
        # A collection is over: the reader has been at work.
        agent.wait_metric("sonde_files_read_total", 1)
        seen = 0
        for path in glob.glob(f"/proc/{agent.pid}/task/*/status"):
            with open(path) as f:
                status = dict(line.split(":\t", 1) for line in f.read().splitlines())
            for name in ("CapEff", "CapPrm", "CapBnd"):
                equal(int(status[name], 16) & ~SIX_MASK, 0, f"{name} beyond the six in {path}")
            equal((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"), f"confinement of {path}")
            seen += 1
        check(seen >= 2, f"{seen} threads")
        equal(agent.stop()[0], 0, "exit status")


@test("each capability dropped alone: one line names it; what can work works (K-03)")
def dropped():
    for cap in SIX:
        prefix = only(*(c for c in SIX if c != cap))
        if cap in ("bpf", "perfmon"):
            refuses(f"CAP_{cap.upper()}", prefix)
        else:
            lines = works(prefix, [rf"^CAP_{cap.upper()}: missing; .*names"])
            equal(len(lines), 1, f"lines {lines}")


@test("no privileges at all: one line, exit 1 (K-03)")
def nobody():
    refuses("CAP_BPF", only())


@test("RLIMIT_MEMLOCK 64 KiB and no right to raise it: no matter since 5.11 (K-03)")
def memlock():
    def small():
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
    equal(works(only(*SIX), preexec_fn=small), [], "problems")


@test("perf_event_paranoid=3: works with CAP_PERFMON")
def paranoid():
    with open(PARANOID) as f:
        before = f.read()
    try:
        with open(PARANOID, "w") as f:
            f.write("3")
        works(only(*SIX))
    finally:
        with open(PARANOID, "w") as f:
            f.write(before)


@test("RLIMIT_NOFILE 1024 and 64 work; 20 is refused with one line")
def files():
    def limit(n):
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))
    equal([p for p in works(preexec_fn=limit(1024)) if "open files" in p], [], "lines at 1024")
    works(said=["^limit of open files: 64"], preexec_fn=limit(64))
    refuses("open files", preexec_fn=limit(20))


@test("neither tracefs nor debugfs mounted (K-04)")
def tracefs():
    bare = "umount /sys/kernel/tracing /sys/kernel/debug/tracing /sys/kernel/debug 2>/dev/null || :"
    equal(works(in_mounts(bare)), [], "problems")


@test("/proc with hidepid=2, with and without the right to look through it")
def hidepid():
    hide = in_mounts("mount -t proc -o hidepid=2 proc /proc")
    equal(works(hide), [], "problems with all rights")
    works((*hide, *only(*(c for c in SIX if c != "sys_ptrace"))), ["^CAP_SYS_PTRACE: missing"])


@test("/proc not there at all: samples go on, and no false cause is named")
def no_proc():
    problems = works(in_mounts("mount -t tmpfs none /proc"), promised=False)
    wrong = [p for p in problems if re.match(r"CAP_\w+: missing", p)]
    equal(wrong, [], "privileges that root has are said to be missing")


@test("in another pid namespace: one line names it, and no process gets another's names (M-02)")
def pid_namespace():
    directory = next_dir()
    prefix = ("unshare", "--pid", "--fork", "--mount-proc")
    with lab.Workload(lab.wl("split"), "-n", str(os.cpu_count())) as load:
        with Agent(directory, prefix=prefix, collect="0.5s", window="1s") as agent:
            agent.wait_ready()
            agent.wait_metric("sonde_windows_total[cpu]", 1)
            with open(f"/proc/{agent.pid}/task/{agent.pid}/children") as f:
                os.kill(int(f.read()), signal.SIGTERM)
            wait_for(lambda: not agent.running(), 10, "the end")
            lines = [p for p in agent.problems() if p not in USUAL]
    equal(len(lines), 1, f"lines {lines}")
    check(re.search("^pid namespace: .*hostPID", lines[0]), lines[0])
    mine = [s.labels.get("comm") for p in agentlab.stored(directory) for s in p.profile.samples
            if s.labels.get("pid") == load.pid]
    note(f"{len(mine)} stacks of the load, under its number on the host")
    check(mine and set(mine) == {"split"}, f"the load's names: {set(mine)}")


@test("sonde record in another pid namespace: the machine yes, a process by its number no (M-02)")
def record_in_namespace():
    prefix = ["unshare", "--pid", "--fork", "--mount-proc", lab.SONDE, "record", "-q", "-o",
              scratch.path("ns.pb.gz")]
    for args, status in ((["-a", "-d", "0.3"], 0), (["-p", "1", "-d", "0.3"], 1),
                         (["--", "true"], 1)):
        p = subprocess.run([str(a) for a in [*prefix, *args]], capture_output=True, text=True,
                           timeout=60)
        note(p.stderr.strip())
        equal(p.returncode, status, f"exit status of {args}")
        equal(len(p.stderr.splitlines()), 1, "lines")
        check("pid namespace" in p.stderr and "hostPID" in p.stderr, "what to do is not said")


def config(text):
    path = scratch.path("sonde.yaml")
    with open(path, "w") as f:
        f.write(text)
    return path


@test("a bad configuration at the start: exit 2 and one line with file and line")
def bad_start():
    for text, line in (("freq: 19\nwindow: soon\n", 2), ("freq: [\n", 1), ("\n\ncolour: red\n", 3),
                       ("freq: 99\nfreq: 98\n", 2), ("freq: 0\n", 1)):
        path = config(text)
        p = subprocess.run([lab.SONDE, "agent", "--dir", next_dir(), "-c", path],
                           capture_output=True, text=True, timeout=30)
        note(p.stderr.strip())
        equal(p.returncode, 2, "exit status")
        equal(len(p.stderr.splitlines()), 1, "lines")
        check(f"{path}:{line}" in p.stderr, f"{path}:{line} is not in {p.stderr!r}")


@test("SIGHUP: a good configuration is taken over, a bad one is refused, counted, and changes nothing")
def reload():
    path = config("freq: 49\n")
    with Agent(next_dir(), "-c", path) as agent:
        agent.wait_ready()
        for text, good in (("cpu-budget: 50\nmax-age: 3d\n", True), ("max-age: [\n", False),
                           ("cpu-budget: much\n", False), ("log-level: debug\n", True)):
            config(text)
            before = agent.metrics()
            agent.process.send_signal(signal.SIGHUP)
            name = "sonde_reloads_total" if good else "sonde_reload_errors_total"
            after = agent.wait_metric(name, before[name] + 1)
            equal(after["sonde_frequency_hertz"], before["sonde_frequency_hertz"], "frequency")
        refusals = [p for p in agent.problems() if "refused" in p]
        equal(len(refusals), 2, f"lines {agent.problems()}")
        for line in refusals:
            note(line)
            check(f"{path}:1" in line or f"{path}:2" in line, "no file and line")
        os.unlink(path)
        agent.process.send_signal(signal.SIGHUP)
        agent.wait_metric("sonde_reload_errors_total", 3)
        equal(agent.stop()[0], 0, "exit status")


@test("texts of a configuration that was replaced twice are no longer used, under the sanitizer")
def reload_texts():
    folders = [scratch.path(f"debug{i}") for i in range(3)]
    path = config(f"debug-dir: {folders[0]}\nsymfs: {folders[0]}\n")
    sanitizer = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    with Agent(next_dir(), "-c", path, program=lab.SONDE + "-san", env=sanitizer) as agent:
        agent.wait_ready()
        for i in (1, 2):
            config(f"debug-dir: {folders[i]}\nsymfs: {folders[i]}\n")
            agent.process.send_signal(signal.SIGHUP)
            agent.wait_metric("sonde_reloads_total", i)
        lines = [p for p in agent.problems() if "debug-dir, symfs: change with a restart" in p]
        equal(len(lines), 2, f"lines {agent.problems()}")
        read = agent.metrics()["sonde_files_read_total"]
        with lab.Workload(shutil.copy(lab.wl("split"), scratch.path("new"))):
            agent.wait_metric("sonde_files_read_total", read + 1)
        equal(agent.stop()[0], 0, f"exit status: {agent.log}")


@test("whoever read the log has gone: the agent goes on")
def log_reader_gone():
    with Agent(next_dir(), stderr=subprocess.PIPE, text=True) as agent:
        check(any(agentlab.READY.search(line) for line in agent.process.stderr), "not ready")
        agent.process.stderr.close()
        for i in (1, 2):
            agent.process.send_signal(signal.SIGHUP)  # has a line in the log
            agent.wait_metric("sonde_reloads_total", i)
        equal(agent.stop()[0], 0, "exit status")


@test("promtool check metrics is clean, and /healthz and unknown pages answer")
def promtool():
    with Agent(next_dir()) as agent:
        agent.wait_ready()
        agent.wait_metric("sonde_collections_total", 2)
        page = agent.page()
        equal(agent.page("healthz"), "ok\n", "/healthz")
        equal(agent.stop()[0], 0, "exit status")
    check(page.count("# HELP") == page.count("# TYPE") > 20, "HELP and TYPE")
    p = subprocess.run([lab.need("promtool"), "check", "metrics"], input=page, text=True,
                       capture_output=True, timeout=60)
    equal((p.returncode, p.stdout + p.stderr), (0, ""), "promtool")


@test("a page that is asked for slowly, or by many, does not stop the sampling")
def slow_readers():
    with Agent(next_dir()) as agent, contextlib.ExitStack() as stack:
        agent.wait_ready()
        sockets = []
        for _ in range(64):
            s = socket.socket()
            stack.callback(s.close)
            s.setblocking(False)
            s.connect_ex(("127.0.0.1", agent.port))
            sockets.append(s)
        for s in sockets:
            with contextlib.suppress(OSError):  # those past the limit of connections
                s.send(b"GET /met")
        wait_for(lambda: len(agentlab.stored(agent.dir)) >= 2, 60, "two windows")
        equal(agent.stop()[0], 0, "exit status")


if __name__ == "__main__":
    run()
