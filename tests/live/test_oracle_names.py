#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names at random addresses of real programs, beside readelf, objdump, Go's tools (short form)."""

import os
import subprocess

import lab
from tap import check, note, run, skip, test

RUN = os.path.join(lab.ROOT, "tests", "oracle_names", "run.py")
COUNT = "10000" if lab.FULL else "1000"


def oracle(*arguments):
    done = subprocess.run([RUN, "-n", COUNT, "--no-llvm", *arguments], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    note(done.stdout)
    check(done.returncode == 0, "some names differ, or some file cannot be read")


@test("installed programs and libraries: every name is one of the file's own for the address")
def installed():
    oracle("--no-go")


@test("Go programs: plain, PIE, with C, each also stripped: the names of `go tool nm`")
def go():
    if not any(os.access(os.path.join(p, "go"), os.X_OK) for p in os.environ["PATH"].split(":")):
        skip("no go here")
    oracle("--only-go", *[] if lab.FULL else ["--short"])


run()
