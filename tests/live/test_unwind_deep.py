#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""30 functions without frame pointers: every one in order up to main and _start. With FULL=1 the
other profilers watch the same process at the same time, and sonde also with BPF programs by the newest
clang that is installed.
"""

import collections
import os
import shutil
import subprocess

import lab
import peer_stacks
from tap import check, note, run, skip, test

scratch = lab.Scratch()
SHARE = 0.999
PEER_HZ = 199


def is_whole(stack):
    """Every function in order, from where it was sampled up to main and _start."""
    if "main" not in stack or stack[-1] != "_start":
        return False
    main = stack.index("main")
    deep = [f for f in stack[:main] if f.startswith("deep_")]
    if not deep:
        return True  # sampled in main itself, or in the clock that it reads
    low = int(deep[0][5:])
    return stack[:main] == tuple(f"deep_{i:02}" for i in range(low, 31))


def tell(name, stacks):
    """Notes the share of whole stacks -> (whole, all)."""
    total = sum(stacks.values())
    whole = sum(n for s, n in stacks.items() if is_whole(s))
    frames = sum(len(s) * n for s, n in stacks.items()) / max(total, 1)
    note(f"{name}: {whole} of {total} stacks in order up to main and _start, "
         f"{100 * whole / max(total, 1):.2f} %; {frames:.1f} frames")
    return whole, total


def stacks_of(r):
    result, i = collections.Counter(), r.profile.value_index(lab.TYPE_SAMPLES)
    for s in r.profile.samples:
        stack = tuple(f.function or f"[{os.path.basename(f.module)}]" for f in lab.user_frames(s))
        if stack and stack != ("[no user stack]",):
            result[stack] += s.values[i]
    return result


def judge(name, r):
    stacks = stacks_of(r)
    whole, total = tell(name, stacks)
    for s, n in sorted(((s, n) for s, n in stacks.items() if not is_whole(s)), key=lambda x: -x[1])[:4]:
        note(f"  {n} not so: {' < '.join(s)}")
    note(f"  {r.fact('frames_by_table')} frames by table, {r.fact('frames_by_pointer')} by pointer")
    check(total > 500, "too few samples")
    check(whole >= SHARE * total, f"{name}: want {100 * SHARE:.1f} %")


def deep(variant):
    with lab.Workload(lab.wl(variant), "-t", "600") as w:
        judge(variant, lab.record("-F", 997, "-p", w.pid, "-d", lab.seconds(10, 60),
                                  out=scratch.path(f"{variant}.pb.gz")))


@test("30 functions without frame pointers, small frames: 99.9 % in order up to _start")
def small():
    deep("deep_small")


@test("30 functions without frame pointers, 512-byte frames: 99.9 % in order up to _start")
def large():
    deep("deep_large")


def beside(variant):
    seconds = 20
    with lab.Workload(lab.wl(variant), "-t", "600") as w:
        others = [peer_stacks.BccProfile(PEER_HZ, w.pid, seconds), peer_stacks.Bpftrace(PEER_HZ, w.pid, seconds)]
        others += [peer_stacks.Perf(scratch.path(f"{variant}.{i}"), PEER_HZ, w.pid, seconds, *graph)
                   for i, graph in enumerate((["-g"], ["--call-graph", "dwarf"], ["--call-graph", "dwarf,65528"]))]
        r = lab.record("-F", PEER_HZ, "-p", w.pid, "-d", seconds, out=scratch.path(f"{variant}_peers.pb.gz"))
        found = [(p, p.stacks()) for p in others]
    for peer, stacks in found:
        if stacks:
            tell(peer.name, stacks)
        else:
            note(f"{peer.name}: did not run: {peer.why or 'no stacks'}")
    judge(f"sonde, {variant}", r)


@test("the same beside perf by frame pointers and by DWARF, bpftrace and bcc's profile")
def peers_beside():
    if not lab.FULL:
        skip("FULL=1 only")
    for variant in ("deep_small", "deep_large"):
        beside(variant)


@test("the same with BPF programs by the newest clang here")
def newest_clang():
    if not lab.FULL:
        skip("FULL=1 only")
    clang = next((c for c in (f"clang-{v}" for v in range(30, 14, -1)) if shutil.which(c)), None)
    if not clang:
        skip("no clang newer than 14 is installed (tools/setup compilers)")
    build = os.path.join(lab.BUILD, "compilers", clang)
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS")}
    program = os.path.join(build, "sonde")
    subprocess.run(["make", "-C", lab.ROOT, "NO_SETUP=1", f"CLANG={clang}", f"BUILD={build}", program], check=True,
                   stdout=subprocess.DEVNULL, env=env)
    for variant in ("deep_small", "deep_large"):
        with lab.Workload(lab.wl(variant), "-t", "600") as w:
            path = scratch.path(f"{variant}_{clang}.pb.gz")
            subprocess.run([program, "record", "-q", "-F", "997", "-p", str(w.pid), "-d", "10", "-o", path], check=True,
                           stdout=subprocess.DEVNULL)
        judge(f"{clang}, {variant}", lab.Recording(path, 0, "", "", 0))


run()
