#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Captures stacks of many programs and compares sonde's walker with libdw on them: one table.

usage: run.py [-n SAMPLES] [-m PERCENT] [-k DIRECTORY] [NAME...]

Needs root and `make workloads`. Without names, all programs that are installed. -k keeps the
captures (64 KB a stack). Ends with 1 if one has less than PERCENT (99.5) of its stacks equal.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
WL = os.path.join(BUILD, "workloads")
ORACLE = os.path.join(BUILD, "oracle")
sys.path.insert(0, os.path.join(ROOT, "tests", "workloads"))

import programs  # noqa: E402

# Workloads of our own, which are odd on purpose; the programs of all days are in programs.py.
OWN = {
    "split": [f"{WL}/split"],
    "deep_small": [f"{WL}/deep_small"],
    "deep_large": [f"{WL}/deep_large"],
    **{f"u_{s}": [f"{WL}/shapes", s] for s in (
        "noreturn", "mixed", "plt", "resolve", "asm", "asm_bare", "thread", "clone", "broken")},
    "u_vfork": [f"{WL}/shapes", "vfork", "-t", "5"],
    "u_plt_nocet": [f"{WL}/shapes_nocet", "plt"],
    **{f"u_signal_{s}": [f"{WL}/signals_plain", s] for s in ("plain", "alt", "nested")},
}
PROGRAMS = {**{n: programs.Program("", argv) for n, argv in OWN.items()}, **programs.PROGRAMS}


def capture(name, folder, keep, samples):
    """The capture's path, or None if the program cannot be run here."""
    program = PROGRAMS[name]
    argv = None if program.missing() else program.prepared(folder)
    if argv is None:
        return None
    path = os.path.join(keep, name)
    done = subprocess.run([f"{ORACLE}/capture", "-o", path, "-F", "299", "-n", str(samples), "-d",
                           "20" if program.says_ready else "8", *argv],
                          check=False, cwd=folder, text=True, env=programs.environment(),
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, errors="replace")
    if done.returncode:
        print(f"{name}: capture failed: {done.stderr.strip()[-200:]}")
        return None
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=1000)
    parser.add_argument("-m", type=float, default=99.5)
    parser.add_argument("-k")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    os.environ["PATH"] = programs.environment()["PATH"]
    low = []
    with tempfile.TemporaryDirectory(dir=BUILD) as folder, \
            tempfile.TemporaryDirectory(dir=BUILD) as captures:
        os.chmod(folder, 0o755)
        print(f"{'program':<16} {'stacks':>7} {'equal':>9} {'whole':>9} {'frames':>7} {'by fp':>7} "
              f"files table_KB failed", flush=True)
        for name in args.names or PROGRAMS:
            path = capture(name, folder, args.k or captures, args.n)
            if not path:
                print(f"{name:<16} cannot be run here", flush=True)
                continue
            done = subprocess.run([f"{ORACLE}/compare", path], stdout=subprocess.PIPE, text=True,
                                  check=False)
            print(done.stdout or f"{name:<16} compare failed: {done.returncode}\n", end="",
                  flush=True)
            equal = re.search(r"([\d.]+)%", done.stdout)
            if not equal or float(equal.group(1)) < args.m:
                low.append(name)
            if not args.k:
                os.unlink(path)
    if low:
        print(f"below {args.m} %: {', '.join(low)}")
    return 1 if low else 0


sys.exit(main())
