#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles of a known program to a real Parca, and back out of it by its query API."""

import collections
import os
import time

import parcalab
import storelab
from storelab import agent, lab
from tap import check, equal, note, run, test

PROGRAM = "split"
TYPE = "process_cpu:{}:cpu:nanoseconds:delta"
KINDS = {"samples": "samples:count", "cpu": "cpu:nanoseconds"}
HZ = 99
# Samples whose period is CPU time are multiplied by it: Parca tells all of them in nanoseconds.
TOLD_IN = {"samples": 10**9 // HZ, "cpu": 1}


@test("a real Parca: what its query API gives back equals what was sampled")
def queried_back():
    scratch = lab.Scratch()
    directory, start = scratch.path("agent"), time.time() - 60
    with parcalab.Parca(scratch) as p, lab.Workload(lab.wl(PROGRAM), "-n", str(os.cpu_count())):
        with agent(directory, "--parca", f"http://127.0.0.1:{p.port}", "--node", "node-7",
                   "--labels", "env=test", hz=HZ) as a:
            a.wait_ready()
            a.wait_metric("sonde_sink_windows_total[parca]", 3)
            a.stop()
            equal(a.problems(), [], "warnings")
        equal(storelab.waiting(directory), set(), "windows that were not sent")
        end = time.time() + 60
        equal(p.types(), {TYPE.format(k) for k in KINDS.values()}, "profile types")
        equal(p.values("node"), {"node-7"}, "values of node")
        equal(p.values("env"), {"test"}, "values of a label of the user")
        for kind, name in KINDS.items():
            check_kind(p, storelab.sampled(directory, kind), TYPE.format(name), TOLD_IN[kind],
                       start, end)
        found = p.merged(f'{TYPE.format(KINDS["cpu"])}{{comm="{PROGRAM}"}}', start, end)
    path = os.path.realpath(lab.wl(PROGRAM))
    ids = {p.build_id for s in found.samples for p in s.frames if p.module == path}
    equal(ids, {storelab.build_id_of(path)}, f"build ids of {path}")


def check_kind(p, want, kind, unit, start, end):
    programs = {program for _, program in want}
    equal(p.values("comm"), programs, "values of comm")
    values = 0
    for program in sorted(programs):
        selector = f'{kind}{{comm="{program}"}}'
        rows = collections.Counter()
        for (_, who), more in want.items():
            rows.update({stack: n * unit for stack, n in more.items()} if who == program else {})
        got = parcalab.rows_of(p.merged(selector, start, end))
        equal((got - rows, rows - got), ({}, {}), f"{selector}: too much, too little")
        times = p.times(selector, start, end)
        equal(sum(value for _, value in times), sum(rows.values()), f"{selector}: over time")
        values += sum(rows.values())
    note(f"{kind}: {len(programs)} programs, {len(want)} windows and programs, {values} in all")
    check(PROGRAM in programs, f"{PROGRAM} is not among them")


if __name__ == "__main__":
    run()
