#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole stacks without frame pointers, and the odd shapes of stacks (U-01 to U-06, U-09, U-10)."""

import collections
import os
import shutil
import subprocess

import lab
from tap import check, note, run, skip, test

scratch = lab.Scratch()
HZ = 997
# The first samples of a recording come before the tables are loaded.
SHARE = 0.99
ROOTS = ("_start", "__clone3", "clone3", "__clone", "clone", "[truncated: too deep]")


def names(sample):
    """Functions of the user stack, leaf first; what has no name is its module."""
    return [f.function or f"[{os.path.basename(f.module)}]" for f in lab.user_frames(sample)]


def record(name, *argv, seconds=None, **options):
    seconds = seconds or lab.seconds(4, 60)
    with lab.Workload(*argv, "-t", str(seconds + 4)) as w:
        r = lab.record("-F", HZ, "-p", w.pid, "-d", seconds, out=scratch.path(f"{name}.pb.gz"),
                       **options)
        w.process.terminate()
    return r


class Stacks:
    """Stacks with their numbers of samples; those that do not fit are kept as examples."""

    def __init__(self, r, samples=None):
        i = r.profile.value_index(lab.TYPE_SAMPLES)
        self.stacks = collections.Counter()
        for s in r.profile.samples if samples is None else samples:
            stack = tuple(names(s))
            if stack and stack != ("[no user stack]",):
                self.stacks[stack] += s.values[i]
        self.total = sum(self.stacks.values())

    def having(self, function):
        return [(s, n) for s, n in self.stacks.items() if function in s]

    def check(self, what, fits, share, at_least=200, among=None):
        stacks = self.stacks.items() if among is None else self.having(among)
        total = sum(n for _, n in stacks)
        good = sum(n for s, n in stacks if fits(s))
        note(f"{what}: {good} of {total} stacks, {100 * good / max(total, 1):.2f} %")
        for s, n in sorted((x for x in stacks if not fits(x[0])), key=lambda x: -x[1])[:4]:
            note(f"  {n} not so: {' < '.join(s[:14])}")
        check(total >= at_least, f"{what}: only {total} samples")
        check(good >= share * total, f"{what}: {100 * good / total:.2f} %, want {100 * share:.1f} %")


def runs(stack, chain):
    """Whether `chain` stands in the stack without anything between."""
    n = len(chain)
    return any(stack[i:i + n] == tuple(chain) for i in range(len(stack) - n + 1))


def rooted(stack):
    return stack[-1] in ROOTS


def shape(name, program="shapes"):
    return Stacks(record(f"{program}_{name}", lab.wl(program), name))


@test("U-01: the call that does not return is the last instruction of its function")
def noreturn():
    s = shape("noreturn")
    s.check("shape_burn < noreturn_spin < noreturn_caller", lambda s: rooted(s) and runs(
        s, ["shape_burn", "noreturn_spin", "noreturn_caller"]), SHARE, among="shape_burn")
    check(not s.having("noreturn_neighbour"), "the neighbour is shown")


@test("U-02: functions without tables but with frame pointers, mixed with others, both directions")
def mixed():
    shape("mixed").check("tables and pointers in turn", lambda s: rooted(s) and runs(
        s, ["shape_burn", "table_inner", "fp_inner", "fp_outer", "table_middle", "fp_inner",
            "fp_outer", "table_outer"]), SHARE, among="shape_burn")


@test("U-02: Rust with panic=abort, without unwind tables")
def rust_abort():
    rustc = shutil.which("rustc")
    if not rustc:
        skip("rustc is not installed")
    source, program = scratch.path("abort.rs"), scratch.path("abort")
    with open(source, "w", encoding="ascii") as f:
        f.write("use std::hint::black_box;\n"
                "#[inline(never)] #[no_mangle] pub fn rust_leaf(n: u64) -> u64 {\n"
                "  let mut x = n; for i in 0..50000u64 { x = black_box(x * 31 + i); } x }\n"
                "#[inline(never)] #[no_mangle] pub fn rust_middle(n: u64) -> u64 "
                "{ black_box(rust_leaf(black_box(n))) + 1 }\n"
                "#[inline(never)] #[no_mangle] pub fn rust_outer(n: u64) -> u64 "
                "{ black_box(rust_middle(black_box(n))) + 1 }\n"
                "fn main() { let mut n = 0; for _ in 0..60000 { n = rust_outer(n) & 255; } "
                "std::process::exit(n as i32 & 1); }\n")
    built = subprocess.run([rustc, "-O", "-C", "panic=abort", "-C", "force-unwind-tables=no", "-C",
                            "force-frame-pointers=yes", "-C", "overflow-checks=no", "-o", program,
                            source], capture_output=True, text=True, check=False)
    if built.returncode:
        skip(f"rustc: {built.stderr.strip()[-200:]}")
    r = lab.record("-F", HZ, out=scratch.path("rust.pb.gz"), command=[program], status=None)
    Stacks(r, r.select(comm="abort")).check(
        "rust_leaf < rust_middle < rust_outer", lambda s: rooted(s) and runs(
            s, ["rust_leaf", "rust_middle", "rust_outer"]), SHARE, among="rust_leaf")


def plt(program):
    s = shape("plt", program)
    s.check(f"{program}: plt and main on the stack of all", lambda s: rooted(s) and runs(
        s, ["plt", "main"]), SHARE)
    inside = sum(n for stack, n in s.having("plt_loop")
                 if stack[0] not in ("shape_tiny", "plt_loop") and stack[1] == "plt_loop")
    note(f"{inside} samples of {s.total} in the PLT itself")
    check(inside > 0, "the PLT itself was never sampled")


@test("U-03: in the PLT, with and without -fcf-protection")
def plt_entries():
    plt("shapes")
    plt("shapes_nocet")


@test("U-03: in the dynamic linker's resolver: whole or marked")
def resolver():
    s = shape("resolve")
    s.check("whole", lambda s: rooted(s) and runs(s, ["resolve", "main"]), 0.85)
    s.check("whole or marked",
            lambda s: rooted(s) or s[-1].startswith("[truncated"), 0.998)


def signals(program, kind, rooted_too):
    r = record(f"{program}_{kind}", lab.wl(program), kind)
    chain = ["signal_burn", "signal_work"]
    s = Stacks(r)

    def fits(stack):
        if not runs(stack, chain) or (rooted_too and not rooted(stack)):
            return False
        rest = list(stack[stack.index("signal_work") + 1:])
        if kind == "nested":
            # on_inner, the restorer, raise and what it calls, on_outer
            if not rest or rest[0] != "on_inner":
                return False
            if "on_outer" not in rest:  # musl: no unwind data for what raise() was doing
                return not rooted_too and rest[-1].startswith("[truncated")
            rest = rest[rest.index("on_outer"):]
        # on_outer, the restorer under whatever name, and what was interrupted
        return (rest[:1] == ["on_outer"] and "main" in rest[2:] and
                any(f in ("signal_interrupted", "signal_base") for f in rest[2:4]))

    s.check(f"{program} {kind}: handler < restorer < interrupted < main", fits, SHARE,
            among="signal_burn")


@test("U-04: signal handlers, on the same stack, on an alternative one, nested there")
def signal_handlers():
    for kind in ("plain", "alt", "nested"):
        signals("signals_plain", kind, True)


@test("U-04: the same in a static musl program")
def signal_handlers_musl():
    if not os.path.exists(os.path.join(lab.WORKLOADS, "signals_musl")):
        skip("musl-gcc was not installed when the workloads were built")
    for kind in ("plain", "alt", "nested"):
        signals("signals_musl", kind, False)


@test("U-05: a function without unwind data among others: by its frame pointer")
def asm_framed():
    shape("asm").check("asm_framed between C functions", lambda s: rooted(s) and runs(
        s, ["shape_burn", "table_inner", "asm_framed", "asm_caller", "asm_frames", "main"]), SHARE,
        among="shape_burn")


@test("U-05: one that has no frame pointer either: marked, and nothing wrong before it")
def asm_bare():
    def fits(s):
        return runs(s, ["shape_burn", "table_inner", "asm_bare"]) and (
            s[-1].startswith("[truncated") and len(s) == 4 or
            runs(s, ["asm_bare", "asm_caller_bare", "asm_bare_frames", "main"]))
    shape("asm_bare").check("marked behind asm_bare", fits, SHARE, among="shape_burn")


@test("U-06: stacks of a pthread and of a raw clone() end at the thread's start")
def thread_ends():
    for name, start in (("thread", "thread_main"), ("clone", "clone_main")):
        def fits(s, start=start):
            return runs(s, ["shape_burn", "table_inner", start]) and not s[-1].startswith("[")
        shape(name).check(f"{name}: {start}, then the thread's start, unmarked", fits, SHARE,
                          among="shape_burn")


@test("U-06: a stack with an overwritten frame is marked, without a frame outside code")
def broken():
    def fits(s):
        return s == ("shape_burn", "table_inner", "broken_frame", "[truncated: not code]")
    shape("broken").check("ends behind broken_frame", fits, SHARE, among="shape_burn")


# Where Go's stacks begin: goroutines, and the scheduler on a thread's own stack.
# What runs on behalf of a thread that has put its goroutine aside begins in morestack or execute.
GO_ROOTS = ("runtime.goexit", "runtime.mcall", "runtime.mstart", "runtime.rt0_go", "_rt0_amd64_linux",
            "runtime.morestack", "runtime.execute")

GO_SOURCE = """
package main
import ("runtime"; "time")
var sink []*[64]byte
//go:noinline
func clockLoop(n int) (t int64) { for i := 0; i < n; i++ { t += time.Now().UnixNano() }; return }
//go:noinline
func collect() { for i := 0; i < 2000; i++ { sink = append(sink, new([64]byte)) }; sink = nil; runtime.GC() }
func main() { end := time.Now().Add(SECONDS * time.Second)
 for time.Now().Before(end) { clockLoop(20000); collect() } }
"""


# Each new goroutine outgrows its stack again and again.
GO_GROW = """
package main
import "time"
//go:noinline
func growA(n int) int { var pad [200]byte; pad[n&127] = 1; if n == 0 { return int(pad[0]) }
 return growB(n-1) + int(pad[n&127]) }
//go:noinline
func growB(n int) int { var pad [300]byte; pad[n&127] = 1; if n == 0 { return int(pad[0]) }
 return growA(n-1) + int(pad[n&127]) }
func main() { end := time.Now().Add(SECONDS * time.Second); done := make(chan int)
 for time.Now().Before(end) { go func() { done <- growA(100) }(); <-done } }
"""


def go_record(name, text, *flags):
    go = lab.need("go")
    source, program = scratch.path(name + ".go"), scratch.path(name)
    with open(source, "w", encoding="ascii") as f:
        f.write(text.replace("SECONDS", str(int(lab.seconds(4, 30)))))
    built = subprocess.run([go, "build", *flags, "-o", program, source], capture_output=True, text=True,
                           check=False, env={**os.environ, "GO111MODULE": "off",
                                             "GOFLAGS": "", "GOTOOLCHAIN": "local"})
    if built.returncode:
        skip(f"go build: {built.stderr.strip()[-200:]}")
    r = lab.record("-F", HZ, out=scratch.path(name + ".pb.gz"), command=[program])
    return Stacks(r, r.select(comm=name))


def go_clock(name, *flags):
    s = go_record(name, GO_SOURCE, *flags)
    s.check("Go: main.main above clockLoop", lambda s: "main.main" in s, SHARE,
            among="main.clockLoop")
    clock = {x: n for x, n in s.stacks.items() if x[0].startswith(("__vdso", "[[vdso]")) or
             "time.now" in x or "runtime.nanotime1" in x}
    for what, stacks, share in (("in the clock", clock, 0.99), ("in all", s.stacks, 0.98)):
        bad = [(x, n) for x, n in stacks.items() if x[-1] not in GO_ROOTS]
        total = sum(stacks.values())
        whole = total - sum(n for _, n in bad)
        note(f"Go: {whole} of {total} {what} end in a root")
        for x, n in bad[:8]:
            note(f"  {n} end elsewhere: {' < '.join(x)}")
        check(total > 100, f"too few samples {what}")
        check(whole >= share * total, f"stacks {what} do not reach a root")


@test("U-09: Go: roots are reached from time.Now in the vDSO and across systemstack")
def go_ordinary():
    go_clock("clock")


@test("U-09: the same in a stripped program")
def go_stripped():
    go_clock("clock_bare", "-ldflags=-s -w")


def grow_fits(stack):
    """Behind morestack growA and growB take turns, without one missing, down to the goroutine's start."""
    rest = stack[stack.index("runtime.morestack") + 1:]
    turns = [f for f in rest if f.startswith("main.grow")]
    return (rest[-2:] == ("main.main.func1", "runtime.goexit") and rest[:-2] == tuple(turns) and
            turns[-1:] == ["main.growA"] and all(a != b for a, b in zip(turns, turns[1:])))


def go_grow(name, *flags):
    s = go_record(name, GO_GROW, *flags)
    growing = {x: n for x, n in s.having("runtime.newstack") if "runtime.copystack" in x}
    total = sum(growing.values())
    whole = sum(n for x, n in growing.items() if "runtime.morestack" in x and grow_fits(x))
    marked = sum(n for x, n in growing.items() if x[-1].startswith("[truncated"))
    note(f"{name}: {whole} of {total} stacks in copystack lead to the goroutine's start, {marked} are marked")
    for x, n in growing.items():
        if x[-1] in GO_ROOTS and not grow_fits(x):
            note(f"  {n} wrong: {' < '.join(x)}")
    check(total > 50, "too few samples in copystack")
    check(whole + marked == total, "stacks that are wrong")
    check(whole >= 0.98 * total, "stacks that are marked")


@test("U-09: while a goroutine's stack is being replaced: whole, nothing missing; also stripped")
def go_growing():
    go_grow("grow")
    go_grow("grow_bare", "-ldflags=-s -w")


@test("U-10: a vfork child resolves by the shared mappings; after exec the new program's")
def vfork():
    r = lab.record(
        "-F", HZ, out=scratch.path("vfork.pb.gz"),
        command=[lab.wl("shapes"), "vfork", "-t", lab.seconds("4", "20")])
    s = Stacks(r, r.select(comm="shapes"))
    for burn, caller in (("vfork_burn", "vfork_child"), ("parent_burn", "vfork_child"),
                         ("exec_burn", "main")):
        s.check(f"{burn} < {caller}", lambda x, b=burn, c=caller: rooted(x) and runs(
            x, [b, c]), SHARE, at_least=100, among=burn)


run()
