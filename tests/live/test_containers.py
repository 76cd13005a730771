#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Many containers at once, under every layout of cgroups that can be made here (M-01)."""

import collections
import glob
import json
import os
import shutil
import signal
import subprocess
import time

import lab
from tap import check, equal, note, run, skip, test

scratch = lab.Scratch()
HZ = 997
POD = "5c1a6e7b-0d2f-4c3e-9a8b-7f6e5d4c3b2a"
POD_ = POD.replace("-", "_")
NODE = "0123456789abcdef" * 4
BRIEF = f"brief-{os.getpid()}"  # a name that nobody else's process has
LABEL_CONTAINER, LABEL_POD, LABEL_UNIT = "container_id", "pod_uid", "systemd_unit"

# cgroup path, with the pod it stands for; {} is the container's id. As runtimes name them.
LAYOUTS = {
    "docker, cgroupfs": ("/docker/{}", None),
    "docker, systemd": ("/system.slice/docker-{}.scope", None),
    "Kubernetes, cgroupfs": (f"/kubepods/burstable/pod{POD}/{{}}", POD),
    "Kubernetes, systemd": (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{POD_}"
                            ".slice/cri-containerd-{}.scope", POD),
    "CRI-O": (f"/kubepods.slice/kubepods-pod{POD_}.slice/crio-{{}}.scope", POD),
    "drivers that do not agree": (f"/system.slice/containerd.service/kubepods-besteffort-pod{POD_}"
                                  ".slice:cri-containerd:{}", POD),
    "kind": (f"/docker/{NODE}/kubelet/kubepods/besteffort/pod{POD}/{{}}", POD),
    "podman": ("/machine.slice/libpod-{}.scope/container", None),
    "a parent of one's own": ("/sonde-live/of/my/own/{}", None),
}


class Bundle:
    """One root file system (read-only) with a workload for all containers of a test."""

    def __init__(self):
        self.runc, self.dir = lab.need("runc"), lab.Scratch()
        for d in ("root/bin", "root/proc", "root/dev", "root/sys", "root/tmp", "state"):
            os.makedirs(self.dir.path(d))
        shutil.copy(lab.wl("split-static"), self.dir.path("root/bin/split"))
        os.link(self.dir.path("root/bin/split"), self.dir.path(f"root/bin/{BRIEF}"))
        subprocess.run([self.runc, "spec", "-b", self.dir.name], check=True)
        with open(self.dir.path("config.json"), encoding="utf-8") as f:
            self.config = json.load(f)
        self.names = []
        self.groups_before = groups()

    def argv(self, *args):
        return [self.runc, "--root", self.dir.path("state"), *args]

    def prepare(self, path, argv):
        """A container of its own bundle -> its id."""
        ident = os.urandom(32).hex()
        where = self.dir.path(ident[:12])
        os.mkdir(where)
        config = json.loads(json.dumps(self.config))
        config["process"].update(terminal=False, args=argv)
        config["root"] = {"path": self.dir.path("root"), "readonly": True}
        config["linux"]["cgroupsPath"] = path.format(ident)
        with open(os.path.join(where, "config.json"), "w", encoding="utf-8") as f:
            json.dump(config, f)
        self.names.append(ident)
        return ident

    def start(self, ident):
        """Detached, as a runtime does it. Not by a pipe: the container keeps it open."""
        errors = self.dir.path("errors")
        with open(errors, "w+", encoding="utf-8") as f:
            done = subprocess.run(self.argv("run", "-d", "-b", self.dir.path(ident[:12]), ident),
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=f,
                                  check=False)
            f.seek(0)
            why = f.read().strip()[-200:]
        if done.returncode and "cgroup" in why:
            skip(f"runc cannot make this layout here: {why}")
        equal(done.returncode, 0, f"runc run: {why}")

    def start_foreground(self, ident):
        return subprocess.Popen(self.argv("run", "-b", self.dir.path(ident[:12]), ident),
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def pid(self, ident):
        return json.loads(subprocess.run(self.argv("state", ident), stdout=subprocess.PIPE,
                                         check=True).stdout)["pid"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(self.argv("delete", "-f", name), stderr=subprocess.DEVNULL, check=False)
        for group in sorted(groups() - self.groups_before, key=len, reverse=True):
            try:
                os.rmdir(group)
            except OSError:  # somebody else's by now
                pass


def groups():
    roots = ["/sys/fs/cgroup"]
    return {d for root in roots for d, _, _ in os.walk(root)}


def who(sample):
    return tuple(sample.labels.get(name) for name in (LABEL_CONTAINER, LABEL_POD))


def check_owner(r, samples, want, allowed=0.001):
    """At least 99.9 % of the samples say whose they are."""
    seen = collections.Counter()
    for s in samples:
        seen[who(s)] += r.count([s])
    total = sum(seen.values())
    note(f"{seen[want]} of {total} samples are right; others: "
         f"{[(k, v) for k, v in seen.items() if k != want][:3]}")
    check(total > 100, f"only {total} samples")
    check(total - seen[want] <= allowed * total, "samples of the wrong container")


def layout(name):
    path, pod = LAYOUTS[name]

    @test(f"layout of {name}: container and pod on every sample (M-01)")
    def one():
        with Bundle() as b:
            ident = b.prepare(path, ["/bin/split"])
            b.start(ident)
            pid = b.pid(ident)
            r = lab.record("-a", "-F", HZ, "-d", lab.seconds(1, 10), out=scratch.path("l.pb.gz"))
        samples = [s for s in r.profile.samples if s.labels.get(lab.LABEL_PID) == pid]
        check_owner(r, samples, (ident, pod))
        check(not any(LABEL_UNIT in s.labels for s in samples), "a unit in a container")
        cgroups = {s.labels[lab.LABEL_CGROUP] for s in samples}
        equal(cgroups, {path.format(ident)}, "cgroup")


for layout_name in LAYOUTS:
    layout(layout_name)


@test("a service of the host, moved under v1 and v2: its unit")
def unit():
    made = []
    try:
        for root in ["/sys/fs/cgroup", *glob.glob("/sys/fs/cgroup/*")]:
            group = f"{root}/system.slice/sonde-live.service"
            if os.path.exists(f"{root}/cgroup.procs"):
                os.makedirs(group, exist_ok=True)
                made.append(group)
        check(made, "no cgroups")
        with lab.Workload(lab.wl("split")) as w:
            for group in made:
                try:
                    with open(f"{group}/cgroup.procs", "w", encoding="ascii") as f:
                        f.write(str(w.pid))
                except OSError as why:  # cpuset without CPUs
                    note(f"{group}: {why}")
            r = lab.record("-a", "-F", HZ, "-d", 1, out=scratch.path("unit.pb.gz"))
            w.stop()
        samples = r.select(pid=w.pid)
        check_owner(r, samples, (None, None))
        equal({s.labels.get(LABEL_UNIT) for s in samples}, {"sonde-live.service"}, "unit")
    finally:
        for group in made:
            for d in (group, os.path.dirname(group)):
                try:
                    os.rmdir(d)
                except OSError:
                    pass


@test("50 containers at once: each has its own samples, and no others")
def fifty():
    right = wrong = rounds = 0
    seen = set()
    with Bundle() as b:
        idents = [b.prepare("/sonde-live/{}", ["/bin/split"]) for _ in range(50)]
        for ident in idents:
            b.start(ident)
        owner = {b.pid(i): i for i in idents}
        # On an overloaded machine some may not have had a CPU yet.
        while rounds < 5 and not (set(idents) <= seen and right > 1000):
            rounds += 1
            r = lab.record("-a", "-F", HZ, "-d", lab.seconds(4, 30), out=scratch.path("50.pb.gz"))
            for s in r.profile.samples:
                n, ident = r.count([s]), s.labels.get(LABEL_CONTAINER)
                want = owner.get(s.labels.get(lab.LABEL_PID))
                seen.add(ident)
                right += n * (want is not None and ident == want)
                wrong += n * (ident != want and (want is not None or ident in idents))
    note(f"{right} samples right, {wrong} wrong; {len(seen & set(idents))} containers seen in "
         f"{rounds} recordings")
    check(right > 1000 and wrong <= 0.001 * right, "samples of the wrong container")
    equal(set(idents) - seen, set(), "containers without a sample")


def short_lived(rounds, collected):
    """Containers that burn for 200 ms and are gone, one after the other -> their ids."""
    with Bundle() as b:
        idents = [b.prepare("/docker/{}", [f"/bin/{BRIEF}", "-t", "0.2"]) for _ in range(rounds)]
        r = lab.start("-a", "-F", HZ, "-o", collected)
        wait_ready(r)
        for ident in idents:
            p = b.start_foreground(ident)
            equal(p.wait(60), 0, "runc")
        r.send_signal(signal.SIGINT)
        return idents, lab.finish(r, collected, 0)


def wait_ready(process):
    """The recording samples: it has its perf events, and its warm-up of half a second is over."""
    def has_events():
        try:
            fds = os.listdir(f"/proc/{process.pid}/fd")
            return any("perf_event" in os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in fds)
        except FileNotFoundError:
            return False
    end = time.monotonic() + 60
    while not has_events():
        check(time.monotonic() < end and process.poll() is None, "the recording did not start")
        time.sleep(0.02)
    subprocess.run([lab.wl("split"), "-t", "1"], stdout=subprocess.DEVNULL, check=True)


@test("containers that live 200 ms: right although gone, and not named after runc init")
def gone():
    idents, r = short_lived(20, scratch.path("short.pb.gz"))
    hot = [s for s in r.profile.samples if lab.has(s, "hot_60", "hot_30", "hot_10")]
    everything = [s for s in hot if s.labels.get(lab.LABEL_COMM) == BRIEF]
    samples = [s for s in hot if s.labels.get(LABEL_CONTAINER) in idents]
    per = collections.Counter()
    for s in samples:
        per[s.labels[LABEL_CONTAINER]] += r.count([s])
    total = r.count(samples)
    note(f"{len(per)} of {len(idents)} containers, {total} of {r.count(everything)} samples, "
         f"{min(per.values())} to {max(per.values())} each; commands "
         f"{ {s.labels[lab.LABEL_COMM] for s in samples} }")
    equal(set(idents), set(per), "containers")
    equal({s.labels[lab.LABEL_COMM] for s in samples}, {BRIEF}, "commands")
    check(r.count(everything) - total <= 0.001 * total, "samples without their container")


@test("runc init is still the host's, what it becomes is the container's")
def init_moves():
    with Bundle() as b:
        idents = [b.prepare("/docker/{}", ["/bin/split", "-t", "0.2"]) for _ in range(10)]
        out = scratch.path("init.pb.gz")
        r = lab.start("-a", "-F", 9973, "-o", out)
        wait_ready(r)
        for ident in idents:
            equal(b.start_foreground(ident).wait(60), 0, "runc")
        r.send_signal(signal.SIGINT)
        r = lab.finish(r, out, 0)
    inside = collections.Counter()
    for s in r.profile.samples:
        comm = s.labels.get(lab.LABEL_COMM, "")
        inside[(comm.startswith("runc"), bool(s.labels.get(LABEL_CONTAINER)))] += r.count([s])
    note(f"(runc, in a container): {dict(inside)}")
    check(inside[True, False] > 0, "no sample of runc outside")
    hot = [s for s in r.profile.samples if lab.has(s, "hot_60") and s.labels[lab.LABEL_COMM] == "split"
           and s.labels.get(LABEL_CONTAINER)]
    pids = {s.labels[lab.LABEL_PID] for s in hot}
    # The same process, before its exec and after it.
    before = {s.labels[lab.LABEL_PID] for s in r.profile.samples
              if s.labels.get(lab.LABEL_COMM, "").startswith("runc")}
    note(f"{len(pids)} workloads, {len(pids & before)} of them also seen as runc")
    check(pids & before, "no process was seen both as runc init and as the workload")


@test("record --container: the first digits of an id; one that comes later; nothing else")
def by_container():
    with Bundle() as b:
        other, first = [b.prepare("/docker/{}", ["/bin/split"]) for _ in range(2)]
        later = b.prepare("/docker/{}", ["/bin/split"])
        b.start(other)
        b.start(first)
        out = scratch.path("by.pb.gz")
        r = lab.start("--container", f"{first[:12]},{later[:16]}", "-F", HZ, "-o", out)
        wait_ready(r)
        b.start(later)
        time.sleep(2)  # of recording: what is measured, not waited for
        r.send_signal(signal.SIGINT)
        r = lab.finish(r, out, 0)
    equal(r.status, 0, f"exit status ({r.stderr.strip()})")
    equal({who(s)[0] for s in r.profile.samples}, {first, later}, "containers")
    kept = r.count(r.profile.samples)
    equal(kept + r.fact("filtered") + r.fact("idle"), r.fact("received"), "books")
    note(f"kept {kept}, filtered {r.fact('filtered')}, received {r.fact('received')}")


@test("record --pod-uid, report --pod-uid, --container, --unit and --sort")
def by_pod():
    with Bundle() as b:
        a = b.prepare(LAYOUTS["Kubernetes, systemd"][0], ["/bin/split"])
        c = b.prepare("/docker/{}", ["/bin/split"])
        b.start(a)
        b.start(c)
        r = lab.record("--pod-uid", POD, "-F", HZ, "-d", 1, out=scratch.path("pod.pb.gz"))
        everything = lab.record("-a", "-F", HZ, "-d", 1, out=scratch.path("pod2.pb.gz"))
    equal({who(s) for s in r.profile.samples}, {(a, POD)}, "pods")
    for args, inside, outside in ((("--pod-uid", POD), a, c), (("--container", c[:12]), c, a)):
        text = subprocess.run([lab.SONDE, "report", "--sort", "container,pod,unit", *args,
                               everything.path], capture_output=True, text=True, check=True).stdout
        check(inside in text and outside not in text, f"report {args}: {text}")


@test("--container that nothing fits: one line, status 1; an empty one is a mistake")
def nobody():
    r = lab.record("--container", "ffffffffffff", "-d", 1, "-q", out=scratch.path("no.pb.gz"),
                   status=1)
    equal(len(r.stderr.strip().splitlines()), 1, "lines")
    check("ffffffffffff" in r.stderr, r.stderr)
    for bad in ("", ",", "a,", ",a", "a,,b"):
        r = lab.record("--container", bad, "-d", 1, out=scratch.path("no2.pb.gz"), status=2)
        check("--container" in r.stderr, r.stderr)
    lab.record("--container", "a", "-a", "-d", 1, out=scratch.path("no2.pb.gz"), status=2)


@test("agent in a cgroup namespace, itself in a nested group: paths from the first root all the same")
def in_namespace():
    with Bundle() as b:
        ident = b.prepare(LAYOUTS["Kubernetes, cgroupfs"][0], ["/bin/split"])
        b.start(ident)
        pid = b.pid(ident)
        out = scratch.path("ns.pb.gz")
        nest = []
        for root in ["/sys/fs/cgroup", *glob.glob("/sys/fs/cgroup/*")]:
            if os.path.exists(f"{root}/cgroup.procs") and "cpuset" not in root:
                os.makedirs(f"{root}/sonde-live/agent", exist_ok=True)
                nest.append(f"{root}/sonde-live/agent/cgroup.procs")
        enter = "".join(f"echo $$ > {path} 2>/dev/null; " for path in nest)
        done = subprocess.run(
            ["sh", "-c", enter + 'exec unshare --cgroup "$@"', "sh",
             *lab.sonde_argv(["-a", "-F", HZ, "-d", 1], out, None)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        equal(done.returncode, 0, f"exit status ({done.stderr.strip()})")
        r = lab.Recording(out, 0, "", done.stderr, 0)
        check_owner(r, r.select(pid=pid), (ident, POD))


if __name__ == "__main__":
    run()
