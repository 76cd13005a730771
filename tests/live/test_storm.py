#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""200 processes a second that live for a few milliseconds: none is without data, all are named."""

import os
import shutil
import subprocess

import lab
import peers
from tap import check, note, run, skip, test

scratch = lab.Scratch()
HZ = 499
# Of this run only: another test may storm on the same machine. 8 bytes, begins all commands' names.
PREFIX = "s" + os.urandom(4).hex()[:7]


def symbols_of(path):
    text = subprocess.run(["nm", path], text=True, stdout=subprocess.PIPE, check=True).stdout
    return {line.split()[-1] for line in text.splitlines() if line}


def is_child(sample):
    return str(sample.labels.get(lab.LABEL_COMM, "")).startswith(PREFIX)


def judge(r, burn, known):
    """
    User-mode samples of the children by what their first frame is: right (a function that the
    program has), wrong (a name that it has not), in a library with or without a name there
    (Debian's ld.so has no .symtab), other.
    """
    counts = dict(right=0, burn=0, wrong=0, library=0, nameless=0, other=0)
    examples = []
    i = r.profile.value_index(lab.TYPE_SAMPLES)
    for s in filter(lab.in_user_mode, filter(is_child, r.profile.samples)):
        f, n = lab.leaf(s), s.values[i]
        own = os.path.basename(f.module).startswith(PREFIX)
        if f.function in burn:
            counts["burn"] += n
        if own and f.function and (f.function in known or f.function.endswith("@plt")):
            counts["right"] += n
        elif own and f.function and not lab.is_marker(f):
            counts["wrong"] += n
            examples.append(f.text())
        elif f.module.endswith(".so") or ".so." in f.module or f.module == lab.MODULE_VDSO:
            counts["library" if f.function else "nameless"] += n
        else:
            counts["other"] += n
            examples.append(f.text())
    counts["all"] = sum(v for k, v in counts.items() if k != "burn")
    note(f"user samples of the children: {counts}")
    if examples:
        note(f"not right: {sorted(set(examples))[:8]}")
    return counts


def check_storm(r, truth, counts, least=0.99):
    note(f"launched {truth['launched']}, {truth['cpu_ns'] / 1e9:.2f} s of CPU; lost {r.lost()}")
    check(truth["failed"] == 0, f"{truth['failed']} children failed")
    check(counts["all"] > 100, "too few samples to judge")
    check(counts["wrong"] == 0, "a wrong name")
    mine = counts["all"] - counts["nameless"]
    named = counts["right"] + counts["library"]
    check(named >= least * mine, f"{100 * named / mine:.2f} % of the user samples are named")
    for name, n in r.facts.items():
        if name in ("no_state", "counts_full", "ring_full", "seen_full"):
            check(n == 0, f"{name} = {n}")
    for s in r.profile.samples:
        check(s.labels.get(lab.LABEL_COMM), f"a sample without a command: {s.labels} {s.frames}")


def child():
    """The known binary, under a name of this run."""
    path = scratch.path(PREFIX + "_child")
    if not os.path.exists(path):
        shutil.copy(lab.wl("storm_child"), path)
    return path


def run_storm(name, *args):
    """The storm runs from before to after the recording of all CPUs."""
    with lab.Workload(lab.wl("storm"), "-f", PREFIX, *args) as w:
        r = lab.record("-a", "-F", HZ, "-d", lab.seconds(4, 30), out=scratch.path(name + ".pb.gz"))
        return r, w.stop()


@test("storm of a known binary: at least 99 % of user samples named, none without process data")
def plain():
    r, truth = run_storm("plain", child())
    counts = judge(r, {"storm_burn"}, symbols_of(lab.wl("storm_child")))
    check_storm(r, truth, counts)
    check(counts["burn"] > 0.7 * counts["all"], "storm_burn is not where the time goes")


@test("storm as the command: children are followed, their CPU time is all there")
def as_command():
    r = lab.record("-F", HZ, out=scratch.path("command.pb.gz"),
                   command=[lab.wl("storm"), "-t", lab.seconds("3", "20"), child()])
    truth = lab.truth_in(r.stdout)
    counts = judge(r, {"storm_burn"}, symbols_of(lab.wl("storm_child")))
    check_storm(r, truth, counts)
    # Children before their exec still bear the parent's name; the parent itself burns little.
    ns = r.cpu_ns(s for s in r.profile.samples)
    note(f"sampled {ns / 1e9:.3f} s, children's own accounting {truth['cpu_ns'] / 1e9:.3f} s")
    check(ns > 0.93 * truth["cpu_ns"], "CPU time of children is missing")


@test("storm of binaries first seen during the storm (a new file each 20 runs)")
def fresh():
    files = lab.Scratch()
    r, truth = run_storm("fresh", "-m", "copies", "-d", files.name, child())
    counts = judge(r, {"storm_burn"}, symbols_of(lab.wl("storm_child")))
    note(f"{truth['files']} files were made during the storm")
    check_storm(r, truth, counts)


def rewritten(name, every):
    files = lab.Scratch()
    r, truth = run_storm(name, "-m", "rewrite", "-k", str(every), "-d", files.name,
                         lab.wl("storm_child_a"), lab.wl("storm_child_b"))
    known = symbols_of(lab.wl("storm_child_a")) | symbols_of(lab.wl("storm_child_b"))
    counts = judge(r, {"storm_burn_a", "storm_burn_b"}, known)
    wrong = right = 0
    for which, other in (("a", "b"), ("b", "a")):
        mine = r.select(thread=f"{PREFIX}-{which}")
        right += r.count(s for s in mine if lab.has(s, f"storm_burn_{which}"))
        wrong += r.count(s for s in mine if lab.has(s, f"storm_burn_{other}"))
    note(f"{truth['rewrites']} rewrites; by the threads' own names: {right} right, {wrong} wrong")
    check(wrong == 0, f"{wrong} samples have the name of the other content")
    return r, truth, counts


@test("storm of binaries rewritten in place, each content run 25 times: named, never wrong")
def rewrite():
    r, truth, counts = rewritten("rewrite", 25)
    check_storm(r, truth, counts)


@test("storm of binaries rewritten before each run: never the other content's name")
def rewrite_each():
    _r, _truth, counts = rewritten("each", 1)
    note(f"named although the content was gone soon: {counts['right']} of the program's "
         f"{counts['right'] + counts['other']} samples")


@test("peers on the same storm (full form: figures only)")
def beside():
    if not lab.FULL:
        skip("only with FULL=1")
    length = lab.seconds(10, 30)
    with lab.Workload(lab.wl("storm"), child()) as w:
        tools = (peers.Perf(scratch.path("perf.data"), HZ, "-a"),
                 peers.Bpftrace(HZ, length, PREFIX + "_child"), peers.BccProfile(HZ, length))
        r = lab.record("-a", "-F", HZ, "-d", length, out=scratch.path("beside.pb.gz"))
        tools[0].stop()
        bpftrace, bcc = tools[1].named("storm_burn"), tools[2].named(PREFIX, "storm_burn")
        truth = w.stop()
    stacks = [s for c, s, user in tools[0].stacks() if c.startswith(PREFIX) and user]
    peers.report("perf record -g", sum(s[0] == "storm_burn" for s in stacks), len(stacks))
    peers.report("bpftrace", *bpftrace)
    peers.report("profile-bpfcc", *bcc)
    counts = judge(r, {"storm_burn"}, symbols_of(lab.wl("storm_child")))
    peers.report("(sonde)", counts["burn"], counts["all"])
    check_storm(r, truth, counts)


if __name__ == "__main__":
    run()
