#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Right names, never another binary's: exec, PID reuse, odd names, files that go or change."""

import os
import shutil
import subprocess

import lab
from tap import check, equal, note, run, skip, test

scratch = lab.Scratch()
HZ = 997
FUNCTIONS = ("hot_60", "hot_30", "hot_10")


def never_mixed(r, pairs):
    """pairs: (command, its function, the other's): samples of a command in the wrong function."""
    for comm, mine, other in pairs:
        samples = r.select(comm=comm)
        right = r.count(s for s in samples if lab.has(s, mine))
        wrong = r.count(s for s in samples if lab.has(s, other))
        user = r.count(s for s in samples if lab.in_user_mode(s))
        note(f"{comm}: {right} samples in {mine}, {wrong} in {other}, {user} in user mode")
        equal(wrong, 0, f"samples of {comm} with a name of the other program")
        check(right > 100, f"too few samples of {comm}")
        check(right > 0.9 * user, f"{comm} is not in {mine}")


@test("exec in place: A burns, execs B, execs A, ... (S-15)")
def exec_in_place():
    r = lab.record("-F", HZ, out=scratch.path("exec.pb.gz"),
                   command=[lab.wl("exec_a"), "100", lab.seconds("20", "200"), lab.wl("exec_b")])
    never_mixed(r, [("exec_a", "burn_in_a", "burn_in_b"), ("exec_b", "burn_in_b", "burn_in_a")])
    pids = {s.labels.get(lab.LABEL_PID) for s in r.select(comm="exec_a") + r.select(comm="exec_b")}
    equal(len(pids), 1, "process ids of one process")


@test("PID reuse: two programs in turn, each under one and the same PID (S-15)")
def pid_reuse():
    r = lab.record("-F", HZ, out=scratch.path("reuse.pb.gz"), command=[
        lab.wl("pidreuse"), "-t", lab.seconds("3", "20"), lab.wl("exec_a"), lab.wl("exec_b")])
    truth = lab.truth_in(r.stdout)
    note(f"pid {truth['child_pid']}: {truth['runs_a']} runs of a, {truth['runs_b']} of b, "
         f"{truth['refused']} times the number was taken")
    check(truth["runs_a"] > 20, "the process id could not be reused")
    never_mixed(r, [("exec_a", "burn_in_a", "burn_in_b"), ("exec_b", "burn_in_b", "burn_in_a")])


@test("thread names with blanks, quotes, newlines, semicolons, bytes that are not UTF-8")
def thread_names():
    names = [b"two words", b"it's \"quoted\"", b"line\nbreak", b"semi;colon", b"\xff\xfe\xe9",
             "gr\u00fc\u00df".encode(), b"tab\tand\x01", b"-rf * $(x)", b"fifteen bytes!!"]
    r = lab.record("-F", HZ, out=scratch.path("names.pb.gz"),
                   command=[lab.wl("threadnames"), "300", *(n.hex() for n in names)])
    for name in names:
        mine = r.select(thread=lab.escaped(name))
        n = r.count(s for s in mine if lab.has(s, "odd_name_burn"))
        check(n > 100, f"{name!r}: {n} samples; threads seen: "
              f"{sorted({s.labels.get(lab.LABEL_THREAD) for s in r.profile.samples})}")


@test("the same names in folded text: one line a stack, no broken line")
def folded_names():
    out = scratch.path("names.folded")
    lab.record("-F", HZ, out=out, command=[
        lab.wl("threadnames"), "200", b"semi;colon".hex(), b"line\nbreak".hex(), b"a b".hex()])
    with open(out, encoding="utf-8") as f:
        lines = f.read().splitlines()
    total = 0
    for line in lines:
        stack, _, value = line.rpartition(" ")
        check(stack and value.isdigit(), f"not a folded line: {line!r}")
        check(stack.split(";")[0] in ("threadnames", "sonde"), f"not the command first: {line!r}")
        total += int(value)
    check(any(";odd_name_burn" in line for line in lines), f"no odd_name_burn in {lines[:3]}")
    check(total > 100, f"only {total} samples")


def split_of_file(name, path, after_start=None, prefix=()):
    """Records split (or what lies at `path`) by pid; returns the recording and its truth."""
    argv = [*prefix, path]
    with lab.Workload(*argv) as w:
        if after_start:
            after_start()
        r = lab.record("-F", HZ, "-p", w.pid, "-d", lab.seconds(1.5, 10),
                       out=scratch.path(name + ".pb.gz"))
        truth = w.stop(w.pid)
    lab.check_split(r, r.profile.samples, FUNCTIONS, [truth["functions"][f] for f in FUNCTIONS])
    return r


def modules_of(r):
    return {f.module for s in r.profile.samples for f in s.frames if f.function in FUNCTIONS}


@test("a deleted binary keeps its names; the file name has no marker text (S-13)")
def deleted():
    path = scratch.path("deleted_prog")
    shutil.copy(lab.wl("split"), path)
    r = split_of_file("deleted", path, after_start=lambda: os.unlink(path))
    for module in modules_of(r):
        check("deleted)" not in module, f"module {module!r}")


@test("a binary replaced on disk while it runs: names of the running image (S-13)")
def replaced():
    path, new = scratch.path("replaced_prog"), scratch.path("new_prog")
    shutil.copy(lab.wl("split"), path)
    shutil.copy(lab.wl("churn"), new)
    r = split_of_file("replaced", path, after_start=lambda: os.rename(new, path))
    strange = {f.function for s in r.profile.samples for f in s.frames
               if f.function and f.function.startswith(("churn_", "runner_", "run_file"))}
    equal(strange, set(), "names of the new file")


@test("a memfd executable (S-13)")
def memfd():
    r = split_of_file("memfd", lab.wl("split"), prefix=[lab.wl("memfdexec")])
    note(f"modules {modules_of(r)}")
    for module in modules_of(r):
        check("deleted)" not in module, f"module {module!r}")


@test("file names with a newline, blank, '#' and bytes that are not UTF-8 (S-13)")
def odd_paths():
    for i, raw in enumerate((b"new\nline", b"blank # hash", b"\xffbytes;", b"quote\"'")):
        path = os.path.join(os.fsencode(scratch.name), raw)
        shutil.copy(lab.wl("split"), path)
        r = split_of_file(f"path{i}", path)
        os.unlink(path)
        want = lab.escaped(raw)
        check(any(m.endswith(want) for m in modules_of(r)), f"{modules_of(r)} for {want!r}")


@test("the group leader has exited, a thread lives on (S-16)")
def leader_exited():
    with lab.Workload(lab.wl("leaderexit")) as w:
        r = lab.record("-F", HZ, "-a", "-d", lab.seconds(1.5, 10), out=scratch.path("leader.pb.gz"))
        w.stop()
    samples = [s for s in r.select(pid=w.pid) if lab.in_user_mode(s)]
    good = r.count(s for s in samples if lab.has(s, "orphan_burn"))
    note(f"{good} of {r.count(samples)} user samples in orphan_burn; "
         f"commands {({s.labels.get(lab.LABEL_COMM) for s in samples})}")
    check(r.count(samples) > 30, "too few samples of the process")
    check(good >= 0.98 * r.count(samples), "names are missing")


@test("dlopen, dlclose, dlopen of another library at the same address (S-18)")
def dlopen_swap():
    r = lab.record("-F", HZ, out=scratch.path("dl.pb.gz"), command=[
        lab.wl("dlswap"), "-t", lab.seconds("3", "20"), "-m", "50", lab.wl("swap_a.so"),
        lab.wl("swap_b.so")])
    check_swap(r)


@test("a library overwritten in place while it is mapped: names follow the content (S-13)")
def overwritten():
    r = lab.record("-F", HZ, out=scratch.path("inplace.pb.gz"), command=[
        lab.wl("dlswap"), "-t", lab.seconds("3", "20"), "-m", "200", "-i",
        scratch.path("inplace.so"), lab.wl("swap_a.so"), lab.wl("swap_b.so")])
    check_swap(r, least=0.9)


def check_swap(r, least=0.97):
    truth = lab.truth_in(r.stdout)
    equal(truth["other_address"], 0, "turns at another address")
    right, wrong, examples = lab.wrong_names(r, r.profile.samples, "swap_in_")
    named = ("swap_in_a", "swap_in_b")
    burning = [s for n in named for s in r.select(thread=n) if lab.in_user_mode(s)]
    total = r.count(burning)
    note(f"{truth['turns']} turns; {right} right, {wrong} wrong of {total} samples; {examples}")
    equal(wrong, 0, "samples with the other library's name")
    check(right >= least * total, f"only {100 * right / total:.1f} % are named")


@test("dd: kernel-heavy, with the user stack below and kernel symbols")
def dd():
    argv = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=100000000"]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as child:
        r = lab.record("-F", HZ, "-p", child.pid, "-d", lab.seconds(1.5, 10),
                       out=scratch.path("dd.pb.gz"))
        child.kill()
    samples = r.select(comm="dd")
    total = r.count(samples)
    kernel = [s for s in samples if lab.is_kernel(lab.leaf(s))]
    named = [s for s in kernel if lab.leaf(s).function]
    both = [s for s in kernel if any(not lab.is_marker(f) for f in lab.user_frames(s))]
    note(f"{total} samples, {r.count(kernel)} in the kernel, {r.count(named)} of these named, "
         f"{r.count(both)} with a user stack")
    check(total > 100 and r.count(kernel) > 0.7 * total, "dd is not kernel-heavy here")
    check(r.count(named) >= 0.99 * r.count(kernel), "kernel symbols are missing")
    check(r.count(both) >= 0.98 * r.count(kernel), "user stacks are missing")
    equal({f.module for s in samples for f in lab.user_frames(s)} &
          {"[kernel.kallsyms]"}, set(), "user frames in the kernel")


@test("a 32-bit process: its vDSO is not named out of the 64-bit one")
def vdso_of_32_bits():
    try:
        child = subprocess.Popen([lab.wl("vdso32")])
    except OSError as e:
        skip(f"this kernel runs no 32-bit programs: {e}")
    with child:
        r = lab.record("-F", HZ, "-p", child.pid, "-d", lab.seconds(1.5, 10),
                       out=scratch.path("vdso32.pb.gz"))
        child.kill()
    samples = r.profile.samples
    frames = {(f.module, f.function) for s in samples for f in lab.user_frames(s)}
    note(f"{r.count(samples)} samples; user frames {frames}")
    check(r.count(samples) > 100, "too few samples")
    check("[vdso]" not in {module for module, _ in frames}, "named out of another image")


@test("two processes as targets: only these, each with its own functions")
def two_targets():
    with lab.Workload(lab.wl("split")) as a, lab.Workload(lab.wl("busy2of10")) as b:
        r = lab.record("-F", HZ, "-p", f"{a.pid},{b.pid}", "-d", lab.seconds(1.5, 10),
                       out=scratch.path("two.pb.gz"))
    equal({s.labels.get(lab.LABEL_PID) for s in r.profile.samples}, {a.pid, b.pid}, "processes")
    for pid, wrong in ((a.pid, ("busy_2ms",)), (b.pid, FUNCTIONS)):
        mixed = r.count(s for s in r.select(pid=pid) if lab.has(s, *wrong))
        equal(mixed, 0, "samples of one process with a function of the other")


if __name__ == "__main__":
    run()
