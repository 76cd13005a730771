#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captured stacks: sonde's walker, compiled for the host, against libdw, frame by frame."""

import os
import re
import subprocess

import lab
from tap import check, note, run, skip, test

RUN = os.path.join(lab.ROOT, "tests", "oracle", "run.py")
SAMPLES = "3000" if lab.FULL else "300"


def oracle(name, percent):
    check(os.path.exists(os.path.join(lab.BUILD, "oracle", "compare")), "missing: make oracle")
    done = subprocess.run([RUN, "-n", SAMPLES, "-m", str(percent), name], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if "cannot be run here" in done.stdout:
        skip(f"{name} cannot be run here")
    note(done.stdout)
    stacks = re.search(rf"^{name} +(\d+)", done.stdout, re.M)
    check(stacks and int(stacks.group(1)) >= 50, "too few stacks were captured")
    check(done.returncode == 0, f"fewer than {percent} % of the stacks are equal")


def define(name, percent=99.5):
    @test(f"{name}: {percent} % of captured stacks are equal to libdw's")
    def _():
        oracle(name, percent)


for program in ("split", "deep_small", "deep_large", "u_noreturn", "u_mixed", "u_plt", "u_plt_nocet",
                "u_asm", "u_asm_bare", "u_thread", "u_clone", "u_broken", "u_signal_plain",
                "u_signal_nested", "python3", "openssl", "gcc", "rust"):
    define(program)
define("u_resolve")
if lab.FULL:
    for program in ("node", "clang", "rust_abort", "rustc", "java", "java_fp", "sqlite3", "git_gc", "perl",
                    "ruby", "php", "go_build"):
        define(program)
    # libdw is lost where Go code of no frame is in the middle of its prologue; see README.md.
    define("go", 99)

run()
