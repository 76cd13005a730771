#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Profiles without names, named later or elsewhere: only by files of the same build-id (S-13)."""

import os
import shutil
import subprocess

import lab
import pprofread
from tap import check, equal, note, run, test

scratch = lab.Scratch()
HZ = 997
HOT = ("hot_60", "hot_30", "hot_10")


def symbolize(*args, status=0):
    done = subprocess.run([lab.SONDE, "symbolize", *args], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
                          check=False)
    note(done.stdout.strip()[-600:])
    equal(done.returncode, status, "exit status")
    return done.stdout


def read(path):
    with open(path, "rb") as f:
        return pprofread.Profile(f.read())


def functions(path):
    return {f.function for s in read(path).samples for f in s.frames if f.function}


def program(name):
    """A copy of the workload that this test may move about."""
    path = scratch.path(name)
    shutil.copy(lab.wl("split"), path)
    return path


def record_unnamed(path, out):
    r = lab.record("-F", HZ, "--no-symbols", out=out,
                   command=[path, "-t", str(lab.seconds(1.5, 10))])
    named = {n for n in functions(out) if not n.startswith("[")}
    equal(named, set(), "names in a profile without names")
    check(any("names are left out" in c for c in r.profile.comments), "the reason is not told")
    return r


def check_named(path, r):
    """The same weights as the program's own measure, by the names that were added."""
    truth = lab.truth_in(r.stdout)
    named = lab.Recording(path, r.status, r.stdout, r.stderr, r.took)
    lab.check_split(named, named.profile.samples, HOT, [truth["functions"][f] for f in HOT])
    return named.profile


@test("named later on the same machine: program, libraries, kernel, in place of the file")
def same_machine():
    out = scratch.path("same.pb.gz")
    r = record_unnamed(program("same"), out)
    symbolize(out)
    kernel = [f.function for s in check_named(out, r).samples for f in s.frames if lab.is_kernel(f)]
    named = sum(1 for f in kernel if f)
    note(f"{named} of {len(kernel)} kernel frames are named")
    check(not kernel or named > 0.9 * len(kernel), "kernel frames are not named")


@test("named on another machine: files below --symfs; the original is gone")
def other_machine():
    out, root = scratch.path("other.pb.gz"), scratch.path("symfs")
    path = program("other")
    r = record_unnamed(path, out)
    os.makedirs(root + os.path.dirname(path))
    shutil.move(path, root + path)
    symbolize("--symfs", root, "-o", scratch.path("named.pb.gz"), out)
    check_named(scratch.path("named.pb.gz"), r)
    check(not set(HOT) & functions(out), "the original was written to")


@test("a file of another build at the same path is not used")
def another_build():
    out, path = scratch.path("build.pb.gz"), program("build")
    record_unnamed(path, out)
    shutil.copy(lab.wl("storm"), path + ".new")
    os.rename(path + ".new", path)
    text = symbolize("-o", scratch.path("build2.pb.gz"), out)
    check("another build-id" in text, "the cause is not told")
    named = {f.function for s in read(scratch.path("build2.pb.gz")).samples
             for f in s.frames if f.module.endswith("/build") and f.function}
    equal(named, set(), "names from another build")


@test("a program that was stripped since is named by its debug file, of compressed sections (S-05)")
def debug_file():
    out, path, debug = scratch.path("debug.pb.gz"), program("debug"), scratch.path("debugdir")
    r = record_unnamed(path, out)
    notes = subprocess.run(["readelf", "-n", path], stdout=subprocess.PIPE, text=True, check=True)
    build_id = notes.stdout.split("Build ID: ")[1].split()[0]
    os.makedirs(f"{debug}/.build-id/{build_id[:2]}")
    subprocess.run(["objcopy", "--only-keep-debug", "--compress-debug-sections=zstd", path,
                    f"{debug}/.build-id/{build_id[:2]}/{build_id[2:]}.debug"], check=True)
    os.unlink(path)
    symbolize("--debug-dir", debug, out)
    check_named(out, r)


@test("hidden kernel addresses: no kernel names, and the reason (kptr_restrict)")
def hidden_kernel():
    with lab.Sysctl("kernel.kptr_restrict", 2):
        r = lab.record("-F", HZ, out=scratch.path("hidden.pb.gz"), command=[
            "dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=100000"])
    kernel = [f for s in r.profile.samples for f in s.frames if lab.is_kernel(f)]
    check(kernel, "no kernel frames")
    equal({f.function for f in kernel if f.function}, set(), "kernel names")
    check(any("kptr_restrict" in c for c in r.profile.comments), "the reason is not told")


@test("mistakes get one line and an exit status")
def mistakes():
    for args, status in (((), 2), (("x.txt",), 2), (("/nonexistent.pb.gz",), 1)):
        text = symbolize(*args, status=status)
        equal(len(text.strip().splitlines()), 1, f"lines for {args}")


if __name__ == "__main__":
    run()
