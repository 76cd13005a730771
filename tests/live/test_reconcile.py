#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Received + counted losses = expected, alone and beside other BPF programs."""

import contextlib
import os
import re
import subprocess

import lab
from tap import check, equal, near, note, run, test

scratch = lab.Scratch()
HZ = 997

# A tracepoint program that runs long and often: while it runs on a CPU, the kernel skips (and does
# not count) perf-event programs there.
TRACER = """
BEGIN { printf("tracing\\n"); }
tracepoint:exceptions:page_fault_user { @n++; @s[kstack(16), comm] = count(); @h = hist(nsecs); }
tracepoint:sched:sched_switch { @w[kstack(16), comm] = count(); }
profile:hz:499 { @u[ustack(16)] = count(); }
END { printf("page faults seen: %d\\n", @n); clear(@n); clear(@s); clear(@h); clear(@w); clear(@u); }
"""


# The same, so long that a good part of the CPU time is spent in it.
HEAVY_TRACER = """
BEGIN { printf("tracing\\n"); }
tracepoint:raw_syscalls:sys_enter { unroll(12) { @s[kstack(64), ustack(32), comm] = count(); } }
END { clear(@s); }
"""


def books(r):
    expected = r.fact("expected")
    equal(r.fact("received") + r.fact("missed") + r.fact("missed_idle"), expected,
          "received + missed + missed_idle")
    note(f"expected {expected}, received {r.fact('received')} (idle {r.fact('idle')}), missed "
         f"{r.fact('missed')}, missed_idle {r.fact('missed_idle')}")
    return expected


def reconcile(r):
    expected, received, lost = books(r), r.fact("received"), r.lost()
    # What did not come is a difference, so it can hide a fault: it must be small in itself.
    check(lost["missed"] < 0.05 * expected, f"{lost['missed']} of {expected} samples were missed")
    busy = os.cpu_count() * r.profile.duration_ns / 1e9 * HZ
    near(expected - r.fact("late"), busy, 0.02 * busy + 0.1 * HZ, "expected against time x frequency x CPUs")
    kept = r.count(r.profile.samples)
    shown = kept + sum(r.fact(name) for name in lab.NOT_KEPT)
    near(shown, received, 0.001 * received, "samples in the profile against received")
    for number in (expected, received):
        check(re.search(rf"\b{number}\b", r.stderr.replace(",", "")),
              f"{number} is not in the summary: {r.stderr!r}")
    return expected, received


@test("received + lost = expected within 1 %, all CPUs busy")
def alone():
    with lab.Workload(lab.wl("split"), "-n", str(2 * os.cpu_count())):
        r = lab.record("-a", "-F", HZ, "-d", lab.seconds(3, 30), out=scratch.path("alone.pb.gz"))
    reconcile(r)


@test("the same while another tool's BPF programs run on the same CPUs")
def beside_bpf():
    # Many page faults, so that the tracepoint program runs often; and nothing idle.
    with contextlib.ExitStack() as stack:
        for _ in range(2 * os.cpu_count()):
            stack.enter_context(lab.Workload(lab.wl("faults")))
        tracer = stack.enter_context(lab.bpftrace(TRACER, sign="tracing"))
        r = lab.record("-a", "-F", HZ, "-d", lab.seconds(3, 30), out=scratch.path("beside.pb.gz"))
        counts = tracer.stop()
    seen = re.search(r"page faults seen: (\d+)", counts)
    check(seen and int(seen.group(1)) > 10000, f"the tracer saw little: {counts[-300:]}")
    expected, received = reconcile(r)
    note(f"{100 * (expected - received) / expected:.2f} % of the samples were skipped")


@test("samples that an idle CPU did not send are not taken for lost: no CPU, one, all of them busy")
def idle_cpus():
    for busy in (0, 1, 2 * os.cpu_count()):
        with contextlib.ExitStack() as stack:
            for _ in range(busy):
                stack.enter_context(lab.Workload(lab.wl("split")))
            r = lab.record("-a", "-F", 99, "-d", lab.seconds(4, 20),
                           out=scratch.path(f"busy{busy}.pb.gz"))
        note(f"{busy} busy programs:")
        expected = books(r)
        check(r.fact("missed") < 0.03 * expected, f"{r.fact('missed')} of {expected} missed")
        # By time alone a busy CPU would be allowed none; a tick's resolution is forgiven.
        if busy > 1:
            check(r.fact("missed_idle") < 0.02 * expected, f"{r.fact('missed_idle')} idle, all busy")


@test("samples that the kernel skips for another tool's programs are missed, not idle")
def skipped():
    with contextlib.ExitStack() as stack:
        for _ in range(2 * os.cpu_count()):
            dd = subprocess.Popen(["dd", "if=/dev/zero", "of=/dev/null", "bs=1"],
                                  stderr=subprocess.DEVNULL)
            stack.callback(dd.wait)
            stack.callback(dd.kill)
        tracer = stack.enter_context(lab.bpftrace(HEAVY_TRACER, sign="tracing"))
        r = lab.record("-a", "-F", HZ, "-d", lab.seconds(3, 30), out=scratch.path("heavy.pb.gz"))
        tracer.stop()
    expected = books(r)
    check(r.fact("missed") > 0.05 * expected, f"only {r.fact('missed')} of {expected} were missed")
    check(r.fact("missed_idle") < 0.1 * r.fact("missed"), "a loss was taken for idle time")


@test("a recording of one process: expected follows the process, not the machine")
def one_process():
    r = lab.record("-F", HZ, out=scratch.path("one.pb.gz"),
                   command=[lab.wl("split"), "-t", lab.seconds("3", "20")])
    received, kept = r.fact("received"), r.count(r.profile.samples)
    books(r)
    near(kept + sum(r.fact(name) for name in lab.NOT_KEPT), received, 0.001 * received,
         "kept + filtered + idle")


@test("a truncated or unresolved share is in the summary by reason")
def reasons():
    with lab.Workload(lab.wl("split_stripped")) as w:
        r = lab.record("-F", HZ, "-p", w.pid, "-d", 2, out=scratch.path("reasons.pb.gz"))
    i = r.profile.value_index(lab.TYPE_SAMPLES)
    unnamed = sum(s.values[i] for s in r.profile.samples
                  if lab.in_user_mode(s) and "!sub_" in (lab.leaf(s).function or "!sub_"))
    note(f"{unnamed} of {r.count(r.profile.samples)} samples have an unnamed leaf; summary:")
    note(r.stderr)
    check(unnamed > 0.9 * r.count(r.profile.samples), "a stripped program is not unnamed")
    reasons = {k: n for k, n in r.facts.items() if k.startswith(lab.UNNAMED_PREFIX) and
               "named" not in k}
    check(max(reasons.values(), default=0) >= unnamed, f"reasons in the profile: {reasons}")
    check(re.search(r"only the function's start", r.stderr), "the summary does not say why")


if __name__ == "__main__":
    run()
