#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Windows that are small go together (agent/export/gather.h)."""

import collections

import peer
import storelab
from storelab import agent, lab
from tap import check, equal, note, run, test


@test("small windows go together: fewer requests, the same samples, each minute of them once")
def gathered():
    scratch = lab.Scratch()
    directory = scratch.path("gathered")
    with peer.Peer() as p, lab.Workload(lab.wl("split"), "-n", "1"):
        url = f"http://127.0.0.1:{p.port}"
        with agent(directory, "--otlp", url, "--parca", url, "--send-gather", "5s", window="1s",
                   hz=19) as a:
            a.wait_ready()
            for sink in ("otlp", "parca"):
                a.wait_metric(f"sonde_sink_windows_total[{sink}]", 12)
            a.stop()
            equal(a.problems(), [], "warnings")
        equal(p.bad, [], "what the rules refuse")
        want = storelab.sampled(directory)
        windows = len({start for start, _ in want})
        for form, name in (("otlp", "process.executable.name"), ("parca", "comm")):
            series = [s for s in p.series(form) if s.kind[0] == "samples"]
            spans = sorted({(s.time_ns, s.time_ns + s.duration_ns) for s in series})
            note(f"{form}: {windows} windows in {len(spans)} requests, of "
                 f"{[round((end - start) / 1e9, 1) for start, end in spans]} s")
            check(len(spans) < windows, "no windows went together")
            # Starts are by the time of day, durations by the monotonic clock: some nanoseconds.
            check(all(a[1] <= b[0] + 1e6 for a, b in zip(spans, spans[1:])), f"overlap: {spans}")
            check(all(end - start < 7e9 for start, end in spans), f"longer than asked for: {spans}")
            programs = {program for _, program in want}
            for program in programs:
                rows, got = collections.Counter(), collections.Counter()
                for (_, who), more in want.items():
                    rows.update(more if who == program else {})
                for s in series:
                    got.update(s.rows if s.labels.get(name, "") == program else {})
                equal(got, rows, f"{form}: samples of {program}")


if __name__ == "__main__":
    run()
