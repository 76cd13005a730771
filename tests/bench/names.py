# SPDX-License-Identifier: Apache-2.0
"""
How long names take: perf and sonde record the same BENCH_SECONDS (60) of a busy machine at once;
then perf report, llvm-symbolizer and sonde turn their records into names, one after the other.
Each runs seven times: the first (files may not be in the page cache) and the medians are printed.
BENCH_MIX=large: with programs that have many symbols. sonde has kept the kernel's symbols while it
recorded, as perf has; what it takes without them is a row of its own.
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
TURNS = 7
HZ = os.environ.get("BENCH_HZ", "99")
BUILD = os.environ.get("BUILD", "build")
SONDE = os.environ.get("SONDE", os.path.join(BUILD, "sonde"))


def measured(argv, stdin=None, stdout=subprocess.DEVNULL):
    """(wall seconds, CPU seconds, peak MB) of a program."""
    # The peak of a child begins with that of its parent, so the parent is a small one.
    timed = ["/usr/bin/time", "-f", "%e %U %S %M", *argv]
    began = time.monotonic()
    with open(stdin or os.devnull, "rb") as source:
        done = subprocess.run(timed, stdin=source, stdout=stdout, stderr=subprocess.PIPE, text=True,
                              errors="replace", check=False)
    took = time.monotonic() - began
    if done.returncode:
        print(f"# {argv[0]} {argv[1]}: status {done.returncode}")
    _wall, user, system, peak = done.stderr.strip().splitlines()[-1].split()
    return took, float(user) + float(system), float(peak) / 1e3


def row(name, commands, stdin=None):
    """Runs the commands TURNS times; prints the first and the medians, which it returns."""
    turns = []
    for _ in range(TURNS):
        runs = [measured(c, stdin) for c in commands]
        turns.append((sum(r[0] for r in runs), sum(r[1] for r in runs), max(r[2] for r in runs)))
    medians = [sorted(column)[TURNS // 2] for column in zip(*turns)]
    print(f"{name:38} first {turns[0][0]:6.3f} s, median {medians[0]:6.3f} s  CPU "
          f"{medians[1]:6.2f} s  peak {medians[2]:6.1f} MB", flush=True)
    return medians


def record(scratch):
    """The same seconds by perf and by sonde, without names."""
    unnamed, data = scratch + "/unnamed.pb.gz", scratch + "/perf.data"
    load = subprocess.Popen([os.path.join(HERE, "mix.sh"), scratch, os.path.join(BUILD, "workloads"),
                             os.environ.get("BENCH_MIX", "")],
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
    for program in ("perf", "llvm-symbolizer", "/usr/bin/time"):
        if not shutil.which(program):
            print(f"{program} is not installed; names are not compared")
            return 1
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="names") as scratch:
        os.environ["XDG_CACHE_HOME"] = scratch
        unnamed, data = record(scratch)
        named = scratch + "/named.pb.gz"
        with open(unnamed, "rb") as f:
            profile = pprofread.Profile(f.read())
        count, files = addresses(profile, scratch + "/addresses")
        print(f"{SECONDS} s at {HZ} Hz: {len(profile.samples)} distinct stacks, {count} distinct "
              f"addresses of {len(files)} files; perf.data {os.path.getsize(data) / 1e6:.1f} MB")
        at_once = row("sonde report --symbolize", [[SONDE, "report", "--symbolize", unnamed]])
        from_nothing = row("sonde report --symbolize, nothing kept",
                           [["env", "-u", "HOME", "-u", "XDG_CACHE_HOME", SONDE, "report",
                             "--symbolize", unnamed]])
        ours = row("sonde symbolize + report", [[SONDE, "symbolize", "-q", "-o", named, unnamed],
                                                [SONDE, "report", named]])
        inline = row("sonde report, named in recording", [[SONDE, "report", named]])
        row("sonde symbolize (cold start)", [[SONDE, "symbolize", "-q", "-o", named, unnamed]])
        row("llvm-symbolizer, no inlines", [["llvm-symbolizer", "--no-inlines"]],
            scratch + "/addresses")
        perf = row("perf report", [["perf", "report", "--stdio", "--no-children", "-n", "-i", data]])
        row("perf report --no-inline", [["perf", "report", "--no-inline", "--stdio",
                                         "--no-children", "-n", "-i", data]])
        for what, one in (("sonde report --symbolize", at_once),
                          ("the same with nothing kept", from_nothing), ("sonde symbolize + report", ours),
                          ("sonde report of a named one", inline)):
            print(f"perf report takes {perf[0] / one[0]:.1f} times as long as {what}, "
                  f"{perf[1] / one[1]:.1f} times the CPU")
        subprocess.run([os.path.join(BUILD, "tools/lookups"), *files], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
