#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Containers: overlay root, own mount and PID namespaces, cgroups; JIT maps inside (S-12, S-14)."""

import os

import lab
from containers import Container, in_namespaces
from tap import check, equal, note, run, skip, test

scratch = lab.Scratch()
HZ = 997
HOT = ("hot_60", "hot_30", "hot_10")


def check_container(r, c, truth, comm):
    samples = [s for s in r.profile.samples if lab.has(s, *HOT) and s.labels["pid"] == c.host_pid]
    lab.check_split(r, samples, HOT, [truth["functions"][f] for f in HOT])
    equal({s.labels.get(lab.LABEL_COMM) for s in samples}, {comm}, "commands")
    cgroups = {s.labels.get(lab.LABEL_CGROUP) for s in samples}
    modules = {f.module for s in samples for f in s.frames if f.function in HOT}
    note(f"cgroup {cgroups}, module {modules}")
    check(all(c.id in str(g) for g in cgroups), f"the container's id {c.id} is not in {cgroups}")
    check(all(m.endswith("/bin/" + comm) for m in modules), f"modules {modules}")


@test("overlay container, program in the lower layer, recorded from before its start (S-14)")
def lower_layer():
    program = lab.wl("split-static")
    with Container("lower", [program], ["/bin/split-static"]) as c:
        out = scratch.path("lower.pb.gz")
        r = lab.start("-a", "-F", HZ, "-d", lab.seconds(3, 15), out=out)
        with c.run() as w:
            c.host_pid = w.pid
            r = lab.finish(r, out, 0)
            truth = w.stop(w.pid)
        equal(r.status, 0, f"exit status ({r.stderr.strip()})")
        check_container(r, c, truth, "split-static")


@test("overlay container, program in the upper layer")
def upper_layer():
    program = lab.wl("split-static")
    with Container("upper", [], ["/bin/split-static"], in_upper=[program]) as c:
        with c.run() as w:
            c.host_pid = w.pid
            r = lab.record("-a", "-F", HZ, "-d", lab.seconds(1.5, 15),
                           out=scratch.path("upper.pb.gz"))
            truth = w.stop(w.pid)
        check_container(r, c, truth, "split-static")


def cgroup_dir(path):
    """The directory of a cgroup in the version 2 hierarchy, wherever that is mounted."""
    with open("/proc/self/mounts", encoding="utf-8") as f:
        for line in f:
            _dev, where, kind = line.split()[:3]
            if kind == "cgroup2":
                return where + path
    skip("no cgroup2 mount")


@test("--cgroup: only the container's processes, also in a child cgroup of the target")
def by_cgroup():
    program = lab.wl("split-static")
    with Container("cgroup", [program], ["/bin/split-static"]) as c, \
            lab.Workload(lab.wl("split")) as outside:
        with c.run() as w:
            parent = cgroup_dir("/sonde-live")
            check(os.path.isdir(f"{parent}/{c.id}"), f"no {parent}/{c.id}")
            r = lab.record("--cgroup", f"{parent}/{c.id}", "-F", HZ, "-d", lab.seconds(1.5, 10),
                           out=scratch.path("cg1.pb.gz"))
            r2 = lab.record("--cgroup", parent, "-F", HZ, "-d", 1, out=scratch.path("cg2.pb.gz"))
            w.stop(w.pid)
        outside.stop()
    for one in (r, r2):
        equal({s.labels.get(lab.LABEL_COMM) for s in one.profile.samples}, {"split-static"},
              "commands in the cgroup")
        check(one.count(one.profile.samples) > 50, "too few samples")


@test("JIT code with a perf map inside PID and mount namespaces (S-12)")
def jit_map():
    with in_namespaces("exec ./jit") as w:
        equal(w.ready["pid"], 1, "pid inside")
        r = lab.record("-F", HZ, "-p", w.pid, "-d", lab.seconds(1.5, 10),
                       out=scratch.path("jit.pb.gz"))
        truth = w.stop(w.pid)
    names = sorted(truth["functions"])
    lab.check_split(r, r.profile.samples, names, [truth["functions"][n] for n in names])


@test("two processes that are both pid 1 inside, one without a map: no name crosses over (S-12)")
def jit_two():
    with in_namespaces("exec ./jit") as a, in_namespaces("exec ./jit -n") as b:
        r = lab.record("-F", HZ, "-p", f"{a.pid},{b.pid}", "-d", lab.seconds(1.5, 10),
                       out=scratch.path("jit2.pb.gz"))
        names = list(a.stop(a.pid)["functions"])
        b.stop(b.pid)
    named_a = r.count(s for s in r.select(pid=a.pid) if lab.has(s, *names))
    named_b = r.count(s for s in r.select(pid=b.pid) if lab.has(s, *names))
    note(f"with a map: {named_a} samples named; without: {named_b}")
    check(named_a > 0.9 * r.count(r.select(pid=a.pid)), "the map was not used")
    equal(named_b, 0, "names in the process that has no map")


@test("a FIFO or a link in place of the perf map neither hangs nor misleads (S-12)")
def hostile_map():
    for prepare in ("mkfifo /tmp/perf-1.map", "ln -s /proc/kallsyms /tmp/perf-1.map",
                    "mkdir /tmp/perf-1.map", "head -c 200000 /dev/urandom > /tmp/perf-1.map"):
        with in_namespaces(f"{prepare} && exec ./jit -n") as w:
            r = lab.record("-F", HZ, "-p", w.pid, "-d", 1, out=scratch.path("fifo.pb.gz"),
                           timeout=20)
            w.stop(w.pid)
        names = {lab.leaf(s).function for s in r.profile.samples if lab.in_user_mode(s) and
                 lab.leaf(s).module in lab.MODULE_JIT}
        note(f"{prepare}: {names}")
        check(r.count(r.profile.samples) > 50, "too few samples")
        check(all(n is None or n.startswith("[") for n in names), f"made-up names {names}")


@test("node --perf-basic-prof in a container's namespaces (S-12)")
def node():
    program = lab.need("node")
    script = ("function burn_in_js(n) { let x = 1; for (let i = 0; i < n; i++)"
              " x = (x * 31 + i) % 1000003; return x; } burn_in_js(5e7);"
              "console.log(JSON.stringify({event: `ready`, pid: process.pid}));"
              "const end = Date.now() + 60000; while (Date.now() < end) burn_in_js(1e6);")
    with in_namespaces(f"exec {program} --perf-basic-prof -e '{script}'") as w:
        r = lab.record("-F", HZ, "-p", w.pid, "-d", lab.seconds(1.5, 10),
                       out=scratch.path("node.pb.gz"))
    total = r.count(s for s in r.profile.samples if lab.in_user_mode(s))
    named = r.count(s for s in r.profile.samples
                    if any("burn_in_js" in str(f.function) for f in s.frames))
    note(f"{named} of {total} user samples name burn_in_js")
    check(named > 0.8 * total, "JavaScript is not named")


if __name__ == "__main__":
    run()
