#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""200 copies of one program: what crosses to user space does not grow with the copies."""

import contextlib
import os

import lab
from tap import check, note, run, test

scratch = lab.Scratch()
COPIES = 200
HOT = ("hot_60", "hot_30", "hot_10")


def record_copies(n):
    """All begin together, and niced: or sonde would get a hundredth of a CPU for its start."""
    argv = ["nice", "-n", "19", lab.wl("split"), "-g"]
    gate, let_go = os.pipe()
    with contextlib.ExitStack() as stack:
        copies = [stack.enter_context(lab.Workload(*argv, stdin=gate)) for _ in range(n)]
        os.close(gate)
        os.close(let_go)
        r = lab.record("-p", ",".join(str(w.pid) for w in copies), "-F", 997,
                       "-d", lab.seconds(3, 20), out=scratch.path(f"{n}.pb.gz"))
        for w in copies:
            w.process.terminate()
    samples = [s for s in r.profile.samples if lab.in_user_mode(s)]
    stacks = {s.location_ids for s in samples}
    seen = {s.labels[lab.LABEL_PID] for s in samples}
    sent = lab.SENT.search(r.stderr)
    check(sent, f"no stacks and files in the summary {r.stderr!r}")
    note(f"{n} copies: {r.count(samples)} samples of {len(seen)} processes, {len(stacks)} distinct "
         f"user stacks, {r.profile.size_bytes} bytes; {sent.group(0)})")
    return r, samples, stacks, seen, [int(x) for x in sent.groups()]


@test("200 copies (ASLR on): stacks and files are those of one copy")
def copies():
    with open("/proc/sys/kernel/randomize_va_space", encoding="ascii") as f:
        check(f.read().strip() != "0", "ASLR is off")
    _one, _samples, one_stacks, _seen, one_sent = record_copies(1)
    many, samples, stacks, seen, sent = record_copies(COPIES)
    check(len(seen) > 0.9 * COPIES, f"only {len(seen)} copies were sampled")
    # The three hot functions at a few instructions each, at any length of run.
    check(len(stacks) < 2 * len(one_stacks) + 20, f"{len(one_stacks)} stacks grew to {len(stacks)}")
    hot = many.count(s for s in samples if lab.has(s, *HOT))
    check(hot > 0.98 * many.count(samples), "copies are not named")
    # Stacks of timer interrupts are in these numbers: more of them for a longer CPU time.
    for what, before, after in zip(("stacks", "files"), one_sent, sent):
        check(after < 3 * before + 100, f"{before} {what} sent for one copy, {after} for {COPIES}")


@test("one location for one place in the code, whatever the process")
def locations():
    r, samples, _stacks, _seen, _sent = record_copies(8)
    places = {}
    for s in samples:
        for f in lab.user_frames(s):
            if f.function in HOT + ("take_turns", "worker_main"):
                places.setdefault(f.function, set()).add((f.module, f.address))
    for function, where in places.items():
        check(len({m for m, _ in where}) == 1, f"{function} is in {where}")
        check(all(a < 0x100000 for _, a in where), f"{function}: not ELF addresses: {where}")
    check("take_turns" in places, f"no callers in {places}")
    check(r.profile.mappings[1] is not None, "no mapping")


if __name__ == "__main__":
    run()
