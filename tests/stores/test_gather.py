#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Windows that are small go together (agent/export/gather.h)."""

import peer
import storelab
from storelab import agentlab, lab
from tap import check, equal, note, run, test


def check_form(form, name, series, want, until, late):
    """Of one kind: fewer requests than windows, no time twice, and the same samples, but for what a
    sink had no time for before the end."""
    spans = sorted({(s.time_ns, s.time_ns + s.duration_ns) for s in series})
    note(f"{form}: {len(until)} windows in {len(spans)} requests, of "
         f"{[round((end - start) / 1e9, 1) for start, end in spans]} s; {len(late)} wait")
    check(any(end - start > 3e9 for start, end in spans), "no windows went together")
    # Starts are by the time of day, durations by the monotonic clock: some nanoseconds.
    check(all(a[1] <= b[0] + 1e6 for a, b in zip(spans, spans[1:])), f"overlap: {spans}")
    check(all(end - start < 7e9 for start, end in spans), f"longer than asked for: {spans}")
    missing, more, unknown = storelab.compare_gathered(want, until, series, name, late)
    equal((missing, unknown), (0, 0), f"{form}: missing, unknown")
    check(late or not more, f"{form}: {more} too many")


def gathered(windows, kinds, *args):
    scratch = lab.Scratch()
    directory = scratch.path("gathered")
    with peer.Peer(lazy=True) as p, lab.Workload(lab.wl("split"), "-n", "1"):
        url = f"http://127.0.0.1:{p.port}"
        with agentlab.Agent(directory, "--send-spread", "0", "--send-gather", "5s", "--otlp", url,
                            "--parca", url, *args, collect="1s", window="1s", hz=19) as a:
            a.wait_ready()
            for sink in ("otlp", "parca"):
                a.wait_metric(f"sonde_sink_windows_total[{sink}]", windows)
            a.stop()
            equal(a.problems(), [], "warnings")
        p.look()
        equal(p.bad, [], "what the rules refuse")
        late = storelab.waiting(directory)
        for kind, value in kinds:
            want, until = storelab.sampled(directory, value, kind), storelab.ends(directory, kind)
            for form, name in (("otlp", "process.executable.name"), ("parca", "comm")):
                series = [s for s in p.series(form) if s.kind[0] == value]
                check_form(form, name, series, want, until, late)


@test("small windows go together: fewer requests, the same samples, each minute of them once")
def samples():
    gathered(12, [("cpu", "samples")], "--no-sched")


@test("so they do in turn with windows of the scheduler's accounts, which go together, too")
def with_accounts():
    gathered(24, [("cpu", "samples"), ("wall", "wall")])


if __name__ == "__main__":
    run()
