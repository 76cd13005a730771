#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pyroscope's push protocol spoken to a real Connect server (connect-node), which hands on what it
decoded to the rules of Pyroscope's push path: ten minutes of a mixed load, with FULL=1."""

import os
import shutil
import subprocess

import peer
import storelab
from storelab import agent, lab
from tap import check, equal, note, run, skip, test

HERE = os.path.dirname(os.path.abspath(__file__))
WINDOWS = 295  # of two seconds


def server(judge, scratch):
    """(process, port)"""
    if not lab.FULL:
        skip("FULL=1: ten minutes, and modules by npm")
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        skip("no node and npm")
    where = os.path.join(lab.BUILD, "stores/connect")
    shutil.copytree(f"{HERE}/connect", where, dirs_exist_ok=True)
    if not os.path.exists(f"{where}/node_modules/@connectrpc/connect-node"):
        done = subprocess.run([npm, "install", "--no-audit", "--no-fund", "--ignore-scripts"],
                              cwd=where, capture_output=True, text=True)
        if done.returncode:
            skip("connect-node cannot be had: " + done.stderr.strip().split("\n")[0])
    p = subprocess.Popen([node, f"{where}/server.mjs", judge], stdout=subprocess.PIPE, text=True,
                         stderr=open(scratch.path("node.log"), "w"), cwd=where)
    line = p.stdout.readline().strip()
    check(line.isdigit(), f"the server did not start: {open(scratch.path('node.log')).read()}")
    return p, int(line)


def mixed_load():
    """Native code, short processes, an interpreter and a JIT."""
    busy = "import json\nwhile True: json.loads(json.dumps(list(range(500))))"
    script = "for (;;) JSON.parse(JSON.stringify([...Array(500).keys()]))"
    loads = [lab.Workload(lab.wl("split"), "-n", "1"),
             lab.Workload(lab.wl("storm"), "-r", "20", lab.wl("storm_child"))]
    others = [subprocess.Popen(argv, stdout=subprocess.DEVNULL) for argv in
              (["nice", "python3", "-c", busy], ["nice", "node", "-e", script])]
    return loads, others


@test("a real Connect server takes every profile of a mixed load, and the rules accept them all")
def connect():
    scratch = lab.Scratch()
    directory = scratch.path("agent")
    with peer.Peer() as judge:
        node, port = server(f"http://127.0.0.1:{judge.port}", scratch)
        loads, others = mixed_load()
        try:
            with loads[0], loads[1], agent(directory, "--pyroscope", f"http://127.0.0.1:{port}",
                                           "--thread-names") as a:
                a.wait_ready()
                a.wait_metric("sonde_sink_windows_total[pyroscope]", WINDOWS, 120 + 4 * WINDOWS)
                totals = a.metrics()
                a.stop()
                equal(a.problems(), [], "warnings")
        finally:
            for p in (*others, node):
                p.kill()
                p.wait()
        equal(judge.bad, [], "what the rules refuse")
        for kind in ("samples", "cpu"):
            want = storelab.sampled(directory, kind)
            got = storelab.arrived(judge.series("pyroscope"), kind, "comm")
            note(f"{kind}: {storelab.total(want)} sampled, {storelab.total(got)} arrived, in "
                 f"{len(want)} windows and programs, {judge.requests} requests")
            equal(storelab.compare(want, got, storelab.waiting(directory)), (0, 0),
                  f"{kind}: missing and more than sampled")
        programs = {program for _, program in want}
        check({"split", "python3", "node"} <= programs, f"programs: {sorted(programs)}")
        equal(totals["sonde_sink_refused_total[pyroscope]"], 0, "refused")


if __name__ == "__main__":
    run()
