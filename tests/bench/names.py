# SPDX-License-Identifier: Apache-2.0
"""
How long names take: perf and sonde record the same BENCH_SECONDS (60) of a busy machine at once;
then perf report, llvm-symbolizer and sonde turn their records into names, one after the other.
Each runs twice, the second run counts (files are in the page cache); both are printed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "live"))
import pprofread  # noqa: E402  pylint: disable=wrong-import-position

SECONDS = os.environ.get("BENCH_SECONDS", "60")
HZ = os.environ.get("BENCH_HZ", "99")
BUILD = os.environ.get("BUILD", "build")
SONDE = os.environ.get("SONDE", os.path.join(BUILD, "sonde"))


def measured(argv, stdin=None, stdout=subprocess.DEVNULL):
    """(wall seconds, CPU seconds, peak MB) of a program."""
    began = time.monotonic()
    with open(stdin or os.devnull, "rb") as source:
        process = subprocess.Popen(argv, stdin=source, stdout=stdout, stderr=subprocess.DEVNULL)
        _pid, status, usage = os.wait4(process.pid, 0)
    took = time.monotonic() - began
    if status:
        print(f"# {argv[0]} {argv[1]}: status {status}")
    return took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3


def row(name, commands, stdin=None):
    """Runs the commands twice; prints both runs; the second one's wall and CPU seconds."""
    best = None
    for turn in ("first", "second"):
        runs = [measured(c, stdin) for c in commands]
        best = sum(r[0] for r in runs), sum(r[1] for r in runs), max(r[2] for r in runs)
        print(f"{name:34} {turn:7} {best[0]:8.2f} s  CPU {best[1]:8.2f} s  peak {best[2]:8.1f} MB",
              flush=True)
    return best


def record(scratch):
    """The same seconds by perf and by sonde, without names."""
    unnamed, data = scratch + "/unnamed.pb.gz", scratch + "/perf.data"
    load = subprocess.Popen([os.path.join(HERE, "mix.sh"), scratch, os.path.join(BUILD, "workloads")],
                            stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        load.stdout.readline()
        perf = subprocess.Popen(["perf", "record", "-q", "-F", HZ, "-g", "-a", "-o", data, "--",
                                 "sleep", SECONDS], stderr=subprocess.DEVNULL)
        subprocess.run([SONDE, "record", "-q", "-a", "-F", HZ, "-d", SECONDS, "--no-symbols", "-o",
                        unnamed], check=True)
        perf.wait()
    finally:
        os.killpg(load.pid, 15)
        load.wait()
    return unnamed, data


def addresses(profile, path):
    """The distinct (file, address) pairs of a profile, as llvm-symbolizer's input."""
    pairs = {(f.module, f.address) for s in profile.samples for f in s.frames
             if f.module.startswith("/") and os.path.exists(f.module)}
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as out:
        for module, address in sorted(pairs):
            out.write(f'CODE "{module}" 0x{address:x}\n')
    return len(pairs), sorted({m for m, _ in pairs})


def main():
    for program in ("perf", "llvm-symbolizer"):
        if not shutil.which(program):
            print(f"{program} is not installed; names are not compared")
            return 1
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="names") as scratch:
        unnamed, data = record(scratch)
        named = scratch + "/named.pb.gz"
        with open(unnamed, "rb") as f:
            profile = pprofread.Profile(f.read())
        count, files = addresses(profile, scratch + "/addresses")
        print(f"{SECONDS} s at {HZ} Hz: {len(profile.samples)} distinct stacks, {count} distinct "
              f"addresses of {len(files)} files; perf.data {os.path.getsize(data) / 1e6:.1f} MB")
        ours = row("sonde symbolize + report", [[SONDE, "symbolize", "-q", "-o", named, unnamed],
                                                [SONDE, "report", named]])
        inline = row("sonde report, named in recording", [[SONDE, "report", named]])
        row("sonde symbolize (cold start)", [[SONDE, "symbolize", "-q", "-o", named, unnamed]])
        row("llvm-symbolizer, no inlines", [["llvm-symbolizer", "--no-inlines"]],
            scratch + "/addresses")
        perf = row("perf report", [["perf", "report", "--stdio", "--no-children", "-n", "-i", data]])
        for what, one in (("sonde symbolize + report", ours), ("sonde report", inline)):
            print(f"perf report takes {perf[0] / one[0]:.1f} times as long as {what}, "
                  f"{perf[1] / one[1]:.1f} times the CPU")
        subprocess.run([os.path.join(BUILD, "tools/lookups"), *files], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
