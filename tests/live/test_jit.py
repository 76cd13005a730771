#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""
JIT code of node, of Java, and of a writer of jitdumps and perf maps of our own: on the machine, and
in a runc container with PID and mount namespaces of its own (S-12). Addresses that are used again
while they are sampled give no wrong name.
"""

import os
import re
import shutil
import struct
import subprocess
import tempfile

import agentlab
import lab
from containers import Container, in_namespaces
from tap import check, equal, note, run, skip, test

scratch = lab.Scratch()
HZ = 997
TURN_MS = 2500
MOVE_BYTES = 64  # of a jitdump's record of a move
NODE_SCRIPT = (
    "function burn_in_js(n) { let x = 1; for (let i = 0; i < n; i++) x = (x * 31 + i) % 1000003;"
    " return x; }"
    "burn_in_js(5e7);"
    "console.log(JSON.stringify({event: `ready`, pid: process.pid}));"
    "const end = Date.now() + 60000; while (Date.now() < end) burn_in_js(1e6);")
NODE_FLAGS = {"--perf-basic-prof": ["--perf-basic-prof"],
              "--interpreted-frames-native-stack": ["--perf-basic-prof",
                                                    "--interpreted-frames-native-stack"],
              "--no-opt": ["--perf-basic-prof", "--interpreted-frames-native-stack", "--no-opt",
                           "--no-sparkplug"]}


def named_share(r, name, pid):
    """What part of the user-mode samples of `pid` has a frame with `name` in its function."""
    samples = [s for s in r.select(pid=pid) if lab.in_user_mode(s)]
    total = r.count(samples)
    check(total > 50, f"only {total} samples in user mode: {r.stderr.strip()}")
    named = r.count(s for s in samples if any(name in str(f.function) for f in s.frames))
    note(f"{named} of {total} samples in user mode name {name}")
    return named / total


def record(name, pid, short=1.5, full=10):
    return lab.record("-F", HZ, "-p", pid, "-d", lab.seconds(short, full),
                      out=scratch.path(name + ".pb.gz"))


def check_node(pid, flags):
    """
    A handler of the interpreter that made no frame of its own hides the function that it runs
    for: frame pointers lead past it. So with --no-opt it is the frames that are counted.
    """
    r = record("node" + flags, pid)
    share = named_share(r, "burn_in_js", pid)
    frames = [(f, s.values[0]) for s in r.select(pid=pid) for f in s.frames
              if f.module in ("[jit]", "[anon]")]
    total, unnamed = (sum(n for f, n in frames if all_ or not f.function) for all_ in (1, 0))
    note(f"{unnamed} of {total} frames of JIT code have no name")
    check(total > 50 and unnamed <= 0.01 * total, "JIT frames are not named")
    check(share > (0.2 if flags == "--no-opt" else 0.9), "JavaScript is not named")


def node_argv(flags):
    return [lab.need("node"), *NODE_FLAGS[flags], "-e", NODE_SCRIPT]


def node_on_the_machine(flags):
    with lab.Workload(*node_argv(flags), cwd=scratch.name) as w:  # node leaves a log there
        check_node(w.pid, flags)
    for path in (f"/tmp/perf-{w.pid}.map",):
        if os.path.exists(path):
            os.unlink(path)


def node_in_a_container(flags):
    with Container("node", [], node_argv(flags), with_host=True) as c, c.run() as w:
        equal(w.ready["pid"], 1, "pid inside")
        check_node(w.pid, flags)


for flag in NODE_FLAGS:
    test(f"node {flag}: JavaScript is named")(lambda f=flag: node_on_the_machine(f))
    test(f"node {flag} in a container")(lambda f=flag: node_in_a_container(f))


def java_classes():
    """A directory that any container can be given, with Burn.class."""
    lab.need("java")
    javac = lab.need("javac")
    subprocess.run([javac, "-d", scratch.name, "tests/workloads/Burn.java"], cwd=lab.ROOT, check=True)
    return scratch.name


def check_java(pid):
    r = record("java", pid)
    check(named_share(r, "Burn.burnInJava", pid) > 0.9, "Java is not named")
    names = {f.function for s in r.select(pid=pid) for f in s.frames
             if "burnInJava" in str(f.function)}
    note(f"as {names}")


@test("java: named by the perf map that jcmd wrote")
def java():
    jcmd = lab.need("jcmd")
    with lab.Workload(lab.need("java"), "-cp", java_classes(), "-XX:-UseOnStackReplacement",
                      "Burn") as w:
        done = subprocess.run([jcmd, str(w.pid), "Compiler.perfmap"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        if done.returncode:
            skip(f"jcmd Compiler.perfmap: {done.stdout.strip()[-100:]}")
        check_java(w.pid)
    if os.path.exists(f"/tmp/perf-{w.pid}.map"):
        os.unlink(f"/tmp/perf-{w.pid}.map")


@test("java in a container: named by the perf map that jcmd wrote inside")
def java_in_a_container():
    java_classes()
    jcmd = lab.need("jcmd")
    argv = [lab.need("java"), "-cp", "/bin", "-XX:-UseOnStackReplacement", "Burn"]
    with Container("java", [scratch.path("Burn.class")], argv, with_host=True) as c, c.run() as w:
        done = c.exec(jcmd, "1", "Compiler.perfmap")
        check(done.returncode == 0, f"jcmd inside: {done.stdout.strip()[-200:]}")
        check_java(w.pid)


def check_shares(pid, truth_of):
    r = record("jitdump", pid)
    truth = truth_of()
    names = sorted(truth["functions"])
    lab.check_split(r, r.profile.samples, names, [truth["functions"][n] for n in names])
    check(not any(lab.has(s, "jd_gone") for s in r.profile.samples), "a name of code that is gone")


@test("jitdump: loads, reuse and moves are named, in the shares that they run")
def jitdump():
    with tempfile.TemporaryDirectory() as where, \
            lab.Workload(lab.wl("jitdump"), "-d", where) as w:
        check_shares(w.pid, w.stop)


@test("jitdump in a container, its file in a directory of the container")
def jitdump_in_a_container():
    argv = ["/bin/jitdump", "-d", "/var/lib"]
    with Container("jitdump", [lab.wl("jitdump")], argv, with_host=True) as c:
        os.makedirs(c.dir.path("root/var/lib"))
        with c.run() as w:
            equal(w.ready["pid"], 1, "pid inside")
            check_shares(w.pid, lambda: w.stop(w.pid))


@test("two jitdumps of processes that are both pid 1 inside: no name crosses over")
def jitdump_two():
    with in_namespaces("exec ./jitdump -d /tmp") as a, in_namespaces("exec ./jit -n") as b:
        r = lab.record("-F", HZ, "-p", f"{a.pid},{b.pid}", "-d", lab.seconds(1.5, 10),
                       out=scratch.path("two.pb.gz"))
        names = list(a.stop(a.pid)["functions"])
        b.stop(b.pid)
    equal(r.count(s for s in r.select(pid=b.pid) if lab.has(s, *names)), 0, "crossed over")
    check(r.count(s for s in r.select(pid=a.pid) if lab.has(s, *names)) > 100, "not named")


def check_turns(options, least):
    """One place for ever new functions: each sample has the name of its time or none."""
    with tempfile.TemporaryDirectory() as where, \
            lab.Workload(lab.wl("jitdump"), "-d", where, "-c", str(TURN_MS), *options) as w:
        r = record("turns" + "".join(options), w.pid, short=7, full=60)
        w.stop()
    right, wrong, examples = lab.wrong_names(r, r.profile.samples, "turn_")
    burning = r.count(s for s in r.profile.samples
                      if str(s.labels.get(lab.LABEL_THREAD)).startswith("turn_") and
                      lab.in_user_mode(s))
    note(f"{right} right, {wrong} wrong of {burning} samples; {examples}")
    equal(wrong, 0, "samples with the name of another turn")
    check(right >= least * burning, f"only {100 * right / burning:.1f} % are named")


@test("one address, ever new functions by jitdump: no wrong name")
def turns_by_jitdump():
    check_turns([], 0.2)


@test("one address, ever new functions by a growing perf map: no wrong name")
def turns_by_map():
    check_turns(["-m"], 0.2)


@test("one address, ever new functions by a perf map that is written anew: no wrong name")
def turns_by_new_maps():
    check_turns(["-m", "-w"], 0.2)


@test("perf maps of 10 GB and of control bytes harm nothing")
def hostile_maps():
    for prepare in ("truncate -s 10G /tmp/perf-1.map",
                    "printf '7f00 10 a\\033[2Jb\\n\\001\\n' > /tmp/perf-1.map"):
        if not shutil.which("truncate"):
            skip("no truncate")
        with in_namespaces(f"{prepare} && exec ./jit -n") as w:
            r = record("hostile", w.pid, short=1)
            w.stop(w.pid)
        check(r.count(r.profile.samples) > 50, "too few samples")
        check(not any("\x1b" in str(f.function) for s in r.profile.samples for f in s.frames),
              "control bytes in a name")
        if "printf" in prepare:
            equal(r.fact("perf_map_bad_lines"), 1, "bad lines in the comments")
            check(re.search(r"perf map lines +1 .*left out", r.stderr), f"summary: {r.stderr}")


def append_no_record(path):
    """Behind all that the workload writes: its last record is a move."""
    def is_written():
        with open(path, "rb") as f:
            return struct.unpack("<II", f.read()[-MOVE_BYTES:][:8]) == (1, MOVE_BYTES)
    agentlab.wait_for(is_written, 60, "the move")
    with open(path, "ab") as f:
        f.write(bytes(MOVE_BYTES))


@test("what is bad in a jitdump and in a perf map is counted, by the recording and by the agent")
def bad_parts():
    with tempfile.TemporaryDirectory() as where, agentlab.Agent(scratch.path("agent")) as agent, \
            lab.Workload(lab.wl("jitdump"), "-d", where) as dump, \
            in_namespaces("printf 'no line\\nneither\\n' > /tmp/perf-1.map && exec ./jit -n") as jit:
        append_no_record(f"{where}/jit-{dump.pid}.dump")
        r = record("bad", f"{dump.pid},{jit.pid}", short=1)
        agent.wait_ready()
        agent.wait_metric("sonde_jitdump_bad_records_total", 1)
        got = agent.wait_metric("sonde_perf_map_bad_lines_total", 2)
        jit.stop(jit.pid)
    equal((r.fact("jitdump_bad_records"), r.fact("perf_map_bad_lines")), (1, 2), "in the comments")
    check(re.search(r"jitdump records +1 .*left out", r.stderr), f"summary: {r.stderr}")
    equal((got["sonde_jitdump_bad_records_total"], got["sonde_perf_map_bad_lines_total"]), (1, 2),
          "in /metrics")


if __name__ == "__main__":
    run()
