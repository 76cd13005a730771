#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The image's root file system, made of Debian packages, run by runc as the manifest says.

What deploy/Dockerfile puts into the image is made here by debootstrap (kept in build/image for a
week), with the packages of deploy/packages. Capabilities, mounts, arguments, user and namespaces
are read from deploy/kubernetes/daemonset.yaml. Needs root.
"""
import collections
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests/live"))

try:
    import bundles
except ImportError as why:
    print(f"1..0 # SKIP {why}: apt-get install python3-yaml")
    sys.exit()
import lab  # noqa: E402
import pprofread  # noqa: E402
import seccomp  # noqa: E402
from bundles import sh  # noqa: E402
from tap import check, equal, note, run, skip, test  # noqa: E402

if os.geteuid() != 0:
    print("1..0 # SKIP needs root")
    sys.exit()

DIR = os.path.join(lab.BUILD, "image")
WEEK = 7 * 86400
GO_HELM = "helm.sh/helm/v3/cmd/helm@v3.19.0"
state = {}


def packages():
    with open(os.path.join(ROOT, "deploy/packages"), encoding="ascii") as f:
        return sorted(line.strip() for line in f if line.strip() and line[0] != "#")


def mirror():
    """What this machine's apt uses for Debian 12."""
    shown = sh("apt-get", "indextargets", "--format", "$(REPO_URI)|$(RELEASE)", "Created-By: Packages")
    for line in shown.splitlines():
        uri, release = line.split("|")
        if release == "bookworm":
            return uri
    return skip("apt on this machine has no Debian 12 mirror")


def make_base():
    os.makedirs(DIR, exist_ok=True)
    tar, listed = os.path.join(DIR, "base.tar"), os.path.join(DIR, "base.packages")
    want = ",".join(packages())
    if os.path.exists(tar) and time.time() - os.path.getmtime(tar) < WEEK and \
            os.path.exists(listed) and open(listed, encoding="ascii").read() == want:
        return tar
    root = os.path.join(DIR, "debootstrap")
    shutil.rmtree(root, ignore_errors=True)
    sh(lab.need("debootstrap"), "--variant=minbase", f"--include={want}", "bookworm", root, mirror())
    sh("tar", "-C", root, "--exclude=./var/cache/apt/*", "--exclude=./var/lib/apt/lists/*",
       "--exclude=./dev/*", "-cf", tar + ".new", ".")
    os.rename(tar + ".new", tar)
    with open(listed, "w", encoding="ascii") as f:
        f.write(want)
    shutil.rmtree(root)
    return tar


@test("root file system of the image, from Debian packages")
def image():
    tar = make_base()
    root = os.path.join(DIR, "root")
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root)
    sh("tar", "-C", root, "-xf", tar)
    sh("make", "-C", ROOT, "install", "NO_SETUP=1", "PREFIX=/usr", f"DESTDIR={root}")
    for d in ("etc/sonde", "var/lib/sonde", "usr/lib/debug"):
        os.makedirs(os.path.join(root, d), exist_ok=True)
    shutil.copy(os.path.join(ROOT, "deploy/sonde.yaml"), os.path.join(root, "etc/sonde"))
    shown = sh("chroot", root, "ldd", "/usr/bin/sonde")
    missing = re.findall(r"(\S+) => not found", shown)
    equal(missing, [], "libraries whose packages deploy/packages should list")
    size = int(sh("du", "-sm", root).split()[0])
    note(f"{size} MiB unpacked")
    state["root"] = root


@test("deploy/Dockerfile, built by buildah on a base made here (FULL=1)")
def dockerfile():
    """No registry of images is asked: the base's names stand for what debootstrap made."""
    if not lab.FULL:
        skip("FULL=1: takes some minutes; the same steps are in the test above")
    store = os.path.join(DIR, "store")
    buildah = [lab.need("buildah"), "--storage-driver", "vfs", "--root", store, "--runroot",
               store + ".run"]
    os.makedirs(store, exist_ok=True)
    try:
        base = sh(*buildah, "from", "scratch").strip().split()[-1]
        sh(*buildah, "add", base, make_base(), "/")
        for name in ("debian:12", "debian:12-slim"):
            sh(*buildah, "commit", base, f"docker.io/library/{name}")
        sh(*buildah, "rm", base)
        sh(*buildah, "bud", "--pull-never", "--isolation", "chroot", "--format", "docker", "-f",
           os.path.join(ROOT, "deploy/Dockerfile"), "-t", "sonde", ROOT)
        made = sh(*buildah, "from", "--pull-never", "sonde").strip().split()[-1]
        shown = json.loads(sh(*buildah, "inspect", "--type", "image", "sonde"))["Docker"]["config"]
        equal((shown["User"], shown["Entrypoint"], shown["Cmd"]),
              ("0:0", ["/usr/bin/sonde"], ["agent", "--config", "/etc/sonde/sonde.yaml"]), "image")
        root = os.path.join(DIR, "root")
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(sh(*buildah, "mount", made).strip().split()[-1], root, symlinks=True)
        note(sh("chroot", root, "/usr/bin/sonde", "--version").strip())
        note(f"{int(sh('du', '-sm', root).split()[0])} MiB unpacked")
        state["root"] = root  # what follows runs this one
    finally:
        subprocess.run([*buildah, "rm", "-a"], check=False, stdout=subprocess.DEVNULL)
        shutil.rmtree(store, ignore_errors=True)
        shutil.rmtree(store + ".run", ignore_errors=True)


def healthz(pid):
    """As the kubelet asks it, from within the pod's network."""
    code = ("import urllib.request as u; "
            "print(u.urlopen('http://127.0.0.1:9464/healthz', timeout=10).status)")
    up = subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", "ip", "link", "set", "lo", "up"],
                        check=False, capture_output=True)
    note(f"lo: {up.returncode}")
    return sh("nsenter", f"--net=/proc/{pid}/ns/net", "python3", "-c", code).strip()


def short_lived(host_dir):
    """A program of the host that is gone before its file can be opened by its process. It has its
    CPU time however busy the machine is, so that most of it is not the start of programs."""
    path = os.path.join(host_dir, "brief")
    shutil.copy(lab.wl("split"), path)
    for _ in range(10):
        subprocess.run([path, "-c", "0.1"], stdout=subprocess.DEVNULL, check=True)


@test("from there, as the manifest says: the host's processes by name, another pod recognised")
def profiles_the_host():
    check("root" in state, "there is no image")
    scratch = lab.Scratch()
    data = scratch.path("data")
    bundle = scratch.path("agent")
    for d in (data, bundle):
        os.makedirs(d)
    bundles.runc_config(state["root"], bundle, data)
    other, ident = bundles.other_container(scratch)
    with bundles.Runc(scratch, other, "other") as inside, \
            lab.Workload(lab.wl("split"), stderr=subprocess.DEVNULL) as host:
        inside.wait(lambda: "ready" in inside.log, "ready")
        with bundles.Runc(scratch, bundle, "agent") as agent:
            agent.wait(lambda: re.search(r"INFO +sonde \S+: ", agent.log), "sampling")
            pid = agent.state()["pid"]
            status = read_status(pid)
            equal(healthz(pid), "200", "/healthz")
            short_lived(scratch.name)
            doctor = subprocess.run([*agent.argv, "exec", "agent", "/usr/bin/sonde", "doctor"],
                                    capture_output=True, text=True, check=False,
                                    stdin=subprocess.DEVNULL)
            agent.wait(lambda: len(glob.glob(f"{data}/profiles/*/*-cpu.pb.gz")) >= 2, "two windows")
        inside_pid = inside.state()["pid"]
    note(f"capabilities {status}")
    log_problems = re.findall(r"(?m)^\S+ (?:WARN|ERROR) +(.*)$", agent.log)
    note("\n".join(log_problems))
    check_profiles(data, host.pid, inside_pid, ident)
    equal(doctor.returncode, 0, f"doctor: {doctor.stdout}")
    check("FAIL" not in doctor.stdout, doctor.stdout)


@test("a runtime whose profile knows neither CAP_BPF nor CAP_PERFMON: refused, with the reason")
def old_profile():
    check("root" in state, "there is no image")
    if not os.path.exists(seccomp.PROFILE):
        skip(f"no {seccomp.PROFILE}: golang-github-containers-common")
    scratch = lab.Scratch()
    bundle, data = scratch.path("agent"), scratch.path("data")
    for d in (data, bundle):
        os.makedirs(d)
    bundles.runc_config(state["root"], bundle, data, smaller=False)
    with bundles.Runc(scratch, bundle, "old") as agent:
        status = agent.process.wait(60)
        note(agent.log)
    check(status != 0, "it runs: is the manifest's remark on other runtimes out of date?")
    errors = re.findall(r"(?m)^\S+ ERROR +(.*)$", agent.log)
    check(len(errors) == 1 and "seccomp" in errors[0], errors)


def read_status(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return dict(re.findall(r"(?m)^(Cap\w+|NoNewPrivs|Seccomp):\s+(\S+)$", f.read()))


def check_profiles(data, host_pid, inside_pid, ident):
    total = {"host": 0, "inside": 0, "kernel": 0, "brief": 0, "brief's file": 0}
    named = dict.fromkeys(total, 0)
    unnamed = collections.Counter()
    wrong = 0
    for path in glob.glob(f"{data}/profiles/*/*-cpu.pb.gz"):
        profile = pprofread.load(path)
        i = profile.value_index(lab.TYPE_SAMPLES)
        for s in profile.samples:
            n, pid = s.values[i], s.labels.get(lab.LABEL_PID)
            who = ("host" if pid == host_pid else "inside" if pid == inside_pid else
                   "brief" if s.labels.get(lab.LABEL_COMM) == "brief" else None)
            if who:
                total[who] += n
                good = lab.has(s, "hot_60", "hot_30", "hot_10")
                own = [f for f in s.frames if f.module.endswith("/brief")]
                total["brief's file"] += n * bool(own)
                named["brief's file"] += n * bool(own and all(f.function for f in own))
                named[who] += n * good
                unnamed[who, tuple(f.text() for f in s.frames)] += n * (not good)
                right = (ident, bundles.POD_OTHER) if who == "inside" else (None, None)
                wrong += n * ((s.labels.get("container_id"), s.labels.get("pod_uid")) != right)
            frames = [f for f in s.frames if f.module == "[kernel.kallsyms]"]
            total["kernel"] += n * bool(frames)
            named["kernel"] += n * bool(frames and all(f.function for f in frames))
    for (who, stack), n in unnamed.most_common(12):
        if n:  # mostly the start of programs
            note(f"elsewhere: {n} of {who}: {' < '.join(stack)[:200]}")
    note(f"samples {total}, with the right names {named}, of the wrong container {wrong}")
    for who, least in (("host", 0.9), ("inside", 0.9), ("kernel", 0.9), ("brief", 0.8),
                       ("brief's file", 0.95)):
        check(total[who] > 0 and named[who] >= least * total[who], f"names of {who}")
    equal(wrong, 0, "samples of the wrong container")


def make_helm():
    """helm is a Go program: built once, where Go and its modules can be had. Go keeps what it has
    compiled, so another clone on the same machine links it in some seconds; from nothing it is five
    minutes on two CPUs, and that much is waited for."""
    helm = os.environ.get("HELM") or shutil.which("helm") or os.path.join(lab.BUILD, "tools/helm")
    if os.path.exists(helm):
        return helm
    go = lab.need("go")
    try:
        done = subprocess.run([go, "install", GO_HELM], capture_output=True, text=True, check=False,
                              env={**os.environ, "GOBIN": os.path.join(lab.BUILD, "tools"),
                                   "GOFLAGS": "-buildvcs=false", "CGO_ENABLED": "0"}, timeout=360)
    except subprocess.TimeoutExpired:
        skip("helm was not built within six minutes; the next run goes on from there")
    if done.returncode:
        skip(f"helm cannot be built: {done.stderr.strip()[-200:]}")
    return helm


@test("the chart, rendered by helm: tests/golden/test_deploy.py")
def chart():
    env = {**os.environ, "HELM": make_helm(), "SONDE": lab.SONDE}
    done = subprocess.run([os.path.join(ROOT, "tests/golden/test_deploy.py")], env=env,
                          capture_output=True, text=True, check=False)
    note(done.stdout)
    equal(done.returncode, 0, "status")
    check("SKIP" not in done.stdout, "something was skipped")


if __name__ == "__main__":
    run()
