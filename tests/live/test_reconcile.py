#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Received + counted losses = expected, alone and beside other BPF programs."""

import contextlib
import os
import re

import lab
from tap import check, near, note, run, test

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


def reconcile(r):
    expected, received = r.fact("expected"), r.fact("received")
    lost = r.lost()
    note(f"expected {expected}, received {received}, lost {lost}")
    near(received + sum(lost.values()), expected, 0.01 * expected, "received + lost")
    # What did not come is a difference, so it can hide a fault: it must be small in itself.
    check(lost["missed"] < 0.05 * expected, f"{lost['missed']} of {expected} samples were missed")
    busy = os.cpu_count() * r.profile.duration_ns / 1e9 * HZ
    near(expected, busy, 0.02 * busy + 0.1 * HZ, "expected against time x frequency x CPUs")
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


@test("a recording of one process: expected follows the process, not the machine")
def one_process():
    r = lab.record("-F", HZ, out=scratch.path("one.pb.gz"),
                   command=[lab.wl("split"), "-t", lab.seconds("3", "20")])
    expected, received = r.fact("expected"), r.fact("received")
    kept = r.count(r.profile.samples)
    note(f"expected {expected}, received {received}, kept {kept}, lost {r.lost()}")
    near(received + sum(r.lost().values()), expected, 0.01 * expected, "received + lost")
    near(kept + sum(r.fact(name) for name in lab.NOT_KEPT), received, 0.001 * received,
         "kept + filtered + idle")


@test("a truncated or unresolved share is in the summary by reason")
def reasons():
    with lab.Workload(lab.wl("split_stripped")) as w:
        r = lab.record("-F", HZ, "-p", w.pid, "-d", 2, out=scratch.path("reasons.pb.gz"))
    i = r.profile.value_index(lab.TYPE_SAMPLES)
    unnamed = sum(s.values[i] for s in r.profile.samples
                  if lab.in_user_mode(s) and lab.leaf(s).function is None)
    note(f"{unnamed} of {r.count(r.profile.samples)} samples have an unnamed leaf; summary:")
    note(r.stderr)
    check(unnamed > 0.9 * r.count(r.profile.samples), "a stripped program is not unnamed")
    reasons = {k: n for k, n in r.facts.items() if k.startswith(lab.UNNAMED_PREFIX) and
               "named" not in k}
    check(max(reasons.values(), default=0) >= unnamed, f"reasons in the profile: {reasons}")
    check(re.search(r"no symbols", r.stderr), "the summary does not say why")


if __name__ == "__main__":
    run()
