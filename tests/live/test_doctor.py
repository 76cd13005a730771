#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde doctor: what it finds agrees with what sonde record can do (K-03, K-04, M-02)."""

import contextlib
import json
import os
import re
import subprocess
import time

import lab
from tap import check, equal, note, run, skip, test

scratch = lab.Scratch()
os.chmod(scratch.name, 0o777)  # some tests record as another user
SIX = {
    # capability: whether nothing can be recorded without it
    "bpf": True, "perfmon": True, "sys_ptrace": False, "dac_read_search": False,
    "checkpoint_restore": False, "syslog": False,
}
UNIT = os.path.join(lab.ROOT, "deploy", "sonde-agent.service")


def call(*argv, before=(), **popen):
    return subprocess.run([*before, *map(str, argv)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=60, check=False, **popen)


def doctor(*argv, before=()):
    """Findings by id; checks what must hold of each answer."""
    r = call(lab.SONDE, "doctor", "--json", *argv, before=before)
    equal(r.stderr, "", "standard error")
    answer = json.loads(r.stdout)
    found = {f["id"]: f for f in answer["checks"]}
    equal(len(found), len(answer["checks"]), "different ids")
    for f in found.values():
        check(f["found"] and bool(f["lost"]) == bool(f["cure"]) == (f["status"] != "ok"), f"odd: {f}")
    fatal = [i for i, f in found.items() if f["status"] == "fail"]
    equal(answer["can_record"], not fatal, f"can_record with {fatal}")
    equal(r.returncode, 1 if fatal else 0, "exit status")
    return found, not fatal


def record(before=()):
    out = scratch.path("r.pb.gz")
    r = call(lab.SONDE, "record", "-q", "-a", "-d", "0.3", "-o", out, before=before)
    if r.returncode:
        equal(len(r.stderr.strip().splitlines()), 1, f"lines of {r.stderr!r}")
        check(not os.path.exists(out), "a file was written")
    else:
        os.unlink(out)
    return r


def agree(before):
    """doctor's verdict is what record then does."""
    found, can = doctor(before=before)
    r = record(before=before)
    check(can == (r.returncode == 0), f"doctor: {can}; record: {r.returncode} {r.stderr}")
    return found, r


def limited(*caps):
    lab.need("setpriv")
    wanted = ",".join(["-all", *(f"+{c}" for c in caps)])
    return ["setpriv", f"--bounding-set={wanted}", "--inh-caps=-all"]


@contextlib.contextmanager
def sysctl(name, value):
    path = "/proc/sys/" + name.replace(".", "/")
    with open(path, encoding="ascii") as f:
        old = f.read().strip()
    try:
        with open(path, "w", encoding="ascii") as f:
            f.write(str(value))
        yield
    finally:
        with open(path, "w", encoding="ascii") as f:
            f.write(old)


@test("as root: nothing fatal, and the table says the same as the JSON")
def as_root():
    found, can = doctor()
    check(can, [f for f in found.values() if f["status"] == "fail"])
    r = call(lab.SONDE, "doctor")
    equal(r.returncode, 0, "exit status")
    lines = [line for line in r.stdout.splitlines() if re.match(r"(ok|note|warn|fail)  ", line)]
    equal([line.split()[0] for line in lines], [f["status"] for f in found.values()], "statuses")
    for line, f in zip(lines, found.values()):
        check(f["title"] in line and f["found"] in line, f"{line!r} is not {f}")
    equal(r.stdout.count("\n      lost: "), r.stdout.count("\n      cure: "), "lost and cure lines")
    check(r.stdout.rstrip().splitlines()[-1].startswith("sonde can record here: "), "no last line")


@test("the six capabilities are enough: all found, and recording works")
def the_six():
    found, r = agree(limited(*SIX))
    equal(r.returncode, 0, "record's exit status")
    for cap in SIX:
        equal(found[f"cap_{cap}"]["status"], "ok", cap)


def without(cap):
    found, r = agree(limited(*(c for c in SIX if c != cap)))
    for other, fatal in SIX.items():
        want = "ok" if other != cap else "fail" if fatal else "warn"
        equal(found[f"cap_{other}"]["status"], want, other)
    check(cap.upper() in found[f"cap_{cap}"]["cure"], found[f"cap_{cap}"])
    equal(r.returncode, 1 if SIX[cap] else 0, "record's exit status")
    note(f"without {cap}: {found[f'cap_{cap}']['lost']}")


for _cap in SIX:
    test(f"without CAP_{_cap.upper()} alone: named, with what is lost")(lambda cap=_cap: without(cap))


@test("without CAP_SYS_RESOURCE alone nothing is lost (K-03)")
def no_sys_resource():
    found, r = agree(["setpriv", "--bounding-set=-sys_resource"])
    equal(found["memlock"]["status"], "ok", "memlock")
    equal(r.returncode, 0, "record's exit status")


@test("as a plain user: refused, each cause named")
def plain_user():
    found, r = agree(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
    check("CAP_BPF" in r.stderr, r.stderr)
    for name in ("bpf", "cap_bpf", "cap_perfmon", "perf_events"):
        equal(found[name]["status"], "fail", name)


@test("as the unit runs it: a user with the unit's capabilities records all")
def as_the_unit():
    with open(UNIT, encoding="utf-8") as f:
        settings = dict(line.strip().split("=", 1) for line in f if re.match(r"[A-Z]\w+=", line))
    for name in ("AmbientCapabilities", "CapabilityBoundingSet"):
        equal(set(settings[name].split()), {f"CAP_{c.upper()}" for c in SIX}, name)
    wanted = ",".join(["-all", *(f"+{c}" for c in SIX)])
    found, r = agree(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                      f"--bounding-set={wanted}", f"--inh-caps={wanted}", f"--ambient-caps={wanted}",
                      "--no-new-privs"])
    equal(r.returncode, 0, f"record's exit status ({r.stderr})")
    equal(found["kernel_names"]["status"], "ok", "kernel names")


@test("perf_event_paranoid=3: the verdict is what the kernel does")
def paranoid():
    with sysctl("kernel.perf_event_paranoid", 3):
        found, r = agree([])
        check("3" in found["perf_event_paranoid"]["found"], found["perf_event_paranoid"])
        note(f"as root: {found['perf_event_paranoid']['found']}; record: {r.returncode}")
        found, r = agree(limited(*(c for c in SIX if c != "perfmon")))
        equal(found["perf_event_paranoid"]["status"], "warn", "without CAP_PERFMON")
        equal(r.returncode, 1, "record's exit status")


@test("kptr_restrict=2: kernel functions have no names, the rest works")
def kptr_restrict():
    with sysctl("kernel.kptr_restrict", 2):
        found, r = agree([])
        equal(found["kernel_names"]["status"], "warn", "kernel names")
        check("kptr_restrict=1" in found["kernel_names"]["cure"], found["kernel_names"])
        equal(r.returncode, 0, "record's exit status")


@test("the limit of open files: what doctor asks for is enough, what it calls fatal is")
def open_files():
    lab.need("prlimit")
    found, _ = doctor()
    needed = int(re.search(r"about (\d+) are needed", found["open_files"]["found"])[1])
    _, r = agree(["prlimit", f"--nofile={needed}:{needed}"])
    equal(r.returncode, 0, f"record's exit status with {needed} files ({r.stderr})")
    found, r = agree(["prlimit", f"--nofile={needed - 8}:{needed - 8}"])
    equal(found["open_files"]["status"], "warn", "fewer open files")
    found, r = agree(["prlimit", "--nofile=12:12"])
    equal(found["open_files"]["status"], "fail", "12 open files")


@test("without tracefs recording works (K-04)")
def no_tracefs():
    lab.need("unshare")
    umount = "umount -l /sys/kernel/tracing /sys/kernel/debug 2>/dev/null; exec \"$@\""
    found, r = agree(["unshare", "-m", "sh", "-c", umount, "sh"])
    check("not mounted" in found["tracefs"]["found"], found["tracefs"])
    equal(r.returncode, 0, "record's exit status")


@test("in another pid namespace: named (M-02)")
def pid_namespace():
    lab.need("unshare")
    found, _ = doctor(before=["unshare", "--pid", "--fork", "--mount-proc"])
    equal(found["pid_namespace"]["status"], "warn", found["pid_namespace"])
    check("hostPID" in found["pid_namespace"]["cure"], found["pid_namespace"])


def hint_of(what, ident, argv, env=None):
    """The finding about JIT runtimes while `argv` runs, and whether it names that process."""
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, cwd=scratch.name,
                               env={**os.environ, **(env or {})})
    try:
        check(process.stdout.readline() == b"ready\n", f"{what} did not start")
        found, _ = doctor()
    finally:
        process.kill()
        process.wait()
    return str(process.pid) in re.findall(r"\d+", found[ident]["found"]), found[ident]


@test("Node.js without --perf-basic-prof is named, with it not")
def node():
    program, script = lab.need("node"), "console.log('ready'); setInterval(() => {}, 1000)"
    named, finding = hint_of("node", "jit_node", [program, "-e", script])
    check(named and finding["status"] == "note", finding)
    for argv, env in (([program, "--perf-basic-prof", "-e", script], {}),
                      ([program, "-e", script], {"NODE_OPTIONS": "--perf-basic-prof"})):
        named, finding = hint_of("node", "jit_node", argv, env)
        check(not named, finding)


@test("Java without frame pointers is named, with them not")
def java():
    program = lab.need("java")
    path = scratch.path("Wait.java")
    with open(path, "w", encoding="ascii") as f:
        f.write('class Wait { public static void main(String[] a) throws Exception {\n'
                'System.out.print("ready\\n"); System.out.flush(); Thread.sleep(60000); } }\n')
    if call(program, "--version").returncode:
        skip("this Java is older than 11")
    named, finding = hint_of("java", "jit_java", [program, path])
    check(named and finding["status"] == "note", finding)
    named, finding = hint_of("java", "jit_java", [program, "-XX:+PreserveFramePointer", path])
    check(not named, finding)


@test("it takes less than a second, and changes nothing")
def quick():
    began = time.monotonic()
    doctor()
    took = time.monotonic() - began
    note(f"{took:.3f} s")
    check(took < 1.5, f"took {took:.2f} s")


@test("mistakes: status 2; an output that cannot be written: status 1")
def mistakes():
    for argv in (["--nonsense"], ["extra"]):
        r = call(lab.SONDE, "doctor", *argv)
        equal(r.returncode, 2, f"status of {argv}")
        equal(len(r.stderr.splitlines()), 1, f"lines of {r.stderr!r}")
    for argv in ([], ["--json"]):
        with open("/dev/full", "w", encoding="ascii") as full:
            r = subprocess.run([lab.SONDE, "doctor", *argv], stdout=full, stderr=subprocess.PIPE,
                               text=True, check=False)
        equal(r.returncode, 1, f"status of {argv} into a full device")
        check("No space left" in r.stderr, r.stderr)


run()
