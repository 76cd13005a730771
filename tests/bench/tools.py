# SPDX-License-Identifier: Apache-2.0
"""The profilers to compare: how each records for some seconds, and how it gives names after."""

import os
import shutil


class Tool:
    """record(out, hz, seconds) and names(out) are argument lists; names may be None."""

    def __init__(self, name, program, record, names=None, to_stdout=False, env=None):
        self.name, self.program, self.record, self.names = name, program, record, names
        self.to_stdout, self.env = to_stdout, env

    def missing(self):
        return None if shutil.which(self.program) else f"{self.program} is not installed"


SONDE = os.environ.get("SONDE", "build/sonde")
LIBBPF_PROFILE = os.environ.get("LIBBPF_PROFILE", "profile")

BPFTRACE = ("profile:hz:{hz} {{ @[comm, pid, ustack, kstack] = count(); }} "
            "interval:s:{seconds} {{ exit(); }}")

TOOLS = [
    Tool("sonde", SONDE,
         lambda out, hz, s: [SONDE, "record", "-q", "-a", "-F", hz, "-d", s, "-o", out + ".pb.gz"],
         lambda out: [SONDE, "report", out + ".pb.gz"]),
    Tool("perf", "perf",
         lambda out, hz, s: ["perf", "record", "-q", "-F", hz, "-g", "-a", "-o", out,
                             "--", "sleep", s],
         lambda out: ["perf", "report", "--stdio", "--no-children", "-n", "-i", out]),
    Tool("perf-dwarf", "perf",
         lambda out, hz, s: ["perf", "record", "-q", "-F", hz, "--call-graph", "dwarf", "-a",
                             "-o", out, "--", "sleep", s],
         lambda out: ["perf", "report", "--stdio", "--no-children", "-n", "--no-inline",
                      "-i", out]),
    Tool("profile-bpfcc", "profile-bpfcc",
         lambda out, hz, s: ["profile-bpfcc", "-f", "-F", hz, "--stack-storage-size", "65536", s],
         to_stdout=True),
    Tool("libbpf-profile", LIBBPF_PROFILE,
         lambda out, hz, s: [LIBBPF_PROFILE, "-f", "-F", hz, "--stack-storage-size", "65536", s],
         to_stdout=True),
    Tool("bpftrace", "bpftrace",
         lambda out, hz, s: ["bpftrace", "-e", BPFTRACE.format(hz=hz, seconds=s)],
         to_stdout=True, env={"BPFTRACE_MAP_KEYS_MAX": "65536"}),
]


def chosen():
    """The tools to run, by $BENCH_TOOLS (default: all but perf-dwarf)."""
    default = " ".join(t.name for t in TOOLS if t.name != "perf-dwarf")
    wanted = os.environ.get("BENCH_TOOLS", default).split()
    return [t for t in TOOLS if t.name in wanted]
