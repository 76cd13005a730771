#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Real programs under load: how many of their user stacks end where stacks begin. One table.

usage: run.py [-d SECONDS] [-F HZ] [-m PERCENT] [--why] [--keep DIRECTORY] [NAME...]

`proper`: of the samples with a user stack, those whose last frame is a root (see roots.py); the
columns behind it are the shares of the markers that the others end with, `no root` is an end
without a marker in something that is no root. `fp`: frames by the frame pointer. `ns`: of the
kernel's BPF statistics, for each sample that was kept. `no user` are samples in exec or exit, which
have no user stack, of all. --why: where the walks ended that are not proper.

UNWIND_SECONDS is the default of -d (60). Ends with 1 if a program has less than PERCENT (99) proper,
without those that are whole but for being deeper than is kept (`depth`). JIT code that has neither
frame pointers nor unwind data is known to have less (plain java, php with its regular expressions
compiled), and is judged by having a marker.
"""

import argparse
import collections
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "live"), os.path.join(HERE, "..", "workloads")]

import lab  # noqa: E402
import load  # noqa: E402
import programs  # noqa: E402
import roots  # noqa: E402
from tap import Failure, Skip  # noqa: E402

DEEP = "[truncated: too deep]"
MARKS = (("table", "[truncated: unwind table not loaded yet]"), ("bare", "[truncated: no unwind data]"),
         ("frame", "[truncated: broken frame]"),
         ("rule", "[truncated: unwind rule]"), ("reg", "[truncated: register lost]"),
         ("code", "[truncated: not code]"), ("read", "[truncated: stack not readable]"),
         ("stuck", "[truncated: stack does not move]"), ("depth", DEEP),
         ("busy", "[vma busy]"), ("no map", "[no mapping]"))
NO_ROOT = "no root"
# HotSpot's JIT code uses the frame pointer for other things unless it is told not to, PCRE's always.
MARKED_ONLY = {"java", "php_jit"}


class Ends:
    """How the user stacks of a recording end, by samples."""

    def __init__(self, recording):
        self.kinds, self.why = collections.Counter(), collections.Counter()
        self.total = self.frames = self.no_user = 0
        i = recording.profile.value_index(lab.TYPE_SAMPLES)
        for s in recording.profile.samples:
            self._add(lab.user_frames(s), s.values[i])

    def _add(self, frames, n):
        if not frames or frames[-1].function == "[no user stack]":
            self.no_user += n
            return
        last = frames[-1]
        marked = lab.is_marker(last)
        self.total += n
        self.frames += n * (len(frames) - marked)
        kind = last.function if marked else ("proper" if roots.is_root(last) else NO_ROOT)
        self.kinds[kind] += n
        if kind != "proper":
            place = frames[-2] if marked and len(frames) > 1 else last
            self.why[kind, os.path.basename(place.module or "[jit]"),
                     place.function or f"{place.address:#x}"] += n

    def share(self, kind):
        return 100 * self.kinds[kind] / max(self.total, 1)


def header():
    return (f"{'program':<12} {'samples':>7} {'proper':>7} {NO_ROOT:>7} " +
            " ".join(f"{name:>6}" for name, _ in MARKS) + f" {'no user':>7} {'frames':>6} {'fp':>5} {'ns':>6}")


def percent(value, width):
    return f"{'.' if value == 0 else f'{value:.2f}':>{width}}"


def row(name, ends, recording, ns):
    by_table, by_fp = recording.fact("frames_by_table"), recording.fact("frames_by_pointer")
    return (f"{name:<12} {ends.total:>7} {ends.share('proper'):>7.2f} {percent(ends.share(NO_ROOT), 7)} " +
            " ".join(percent(ends.share(text), 6) for _, text in MARKS) +
            f" {percent(100 * ends.no_user / max(ends.total + ends.no_user, 1), 7)}"
            f" {ends.frames / max(ends.total, 1):>6.1f} {100 * by_fp / max(by_fp + by_table, 1):>4.0f}%"
            f" {'-' if ns is None else round(ns):>6}")


def one(name, args, folder, keep, filtered_ns):
    """Prints the program's row; whether it is as it should be. None: it cannot be run."""
    program = programs.PROGRAMS[name]
    why_not = program.missing()
    argv = None if why_not else program.prepared(folder)
    if argv is None:
        print(f"{name:<12} cannot be run here: {why_not or 'its build failed'}", flush=True)
        return None
    with load.Running(name, argv, folder, programs.environment(),
                      program.says_ready) as running:
        if running.failure():
            print(f"{name:<12} cannot be run here: {running.failure()}", flush=True)
            return None
        m = load.Measured(running.cgroup, args.F, args.d, os.path.join(keep, name + ".pb.gz"))
    ends = Ends(m.recording)
    print(row(name, ends, m.recording, m.ns_per_kept(filtered_ns)), flush=True)
    if args.why:
        for (kind, module, function), n in ends.why.most_common(12):
            print(f"    {n:>6} {100 * n / max(ends.total, 1):>6.2f} %  {kind} after {module} {function}",
                  flush=True)
    judged = ends.total - ends.kinds[DEEP]
    good = judged - ends.kinds[NO_ROOT] if name in MARKED_ONLY else ends.kinds["proper"]
    return judged > 0 and good >= args.m / 100 * judged


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-d", type=float, default=float(os.environ.get("UNWIND_SECONDS", "60")))
    parser.add_argument("-F", type=int, default=997)
    parser.add_argument("-m", type=float, default=99)
    parser.add_argument("--why", action="store_true")
    parser.add_argument("--keep")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if not load.cgroup_root():
        sys.exit("unwind-table: no cgroup v2 is mounted; nothing can be recorded")
    os.environ.update(PATH=programs.environment()["PATH"])
    unknown = [n for n in args.names if n not in programs.PROGRAMS]
    if unknown:
        sys.exit(f"unwind-table: no program {', '.join(unknown)}; there are {', '.join(programs.PROGRAMS)}")
    low = []
    base = os.path.join(lab.BUILD, "live")
    os.makedirs(base, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="table", dir=base) as folder:
        os.chmod(folder, 0o755)
        filtered_ns = load.filtered_cost(args.F, os.path.join(folder, "empty.pb.gz"))
        print(f"{args.d:g} s each at {args.F} Hz; a filtered run costs {filtered_ns:.0f} ns")
        print(header(), flush=True)
        for name in args.names or programs.PROGRAMS:
            try:
                if one(name, args, folder, args.keep or folder, filtered_ns) is False:
                    low.append(name)
            except (Failure, Skip) as why:
                print(f"{name:<12} failed: {why}", flush=True)
                low.append(name)
    if low:
        print(f"not as wanted ({args.m:g} %): {', '.join(low)}")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
