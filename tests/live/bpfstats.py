# SPDX-License-Identifier: Apache-2.0
"""The BPF programs and maps of a process, and what the kernel's statistics say of the programs."""

import glob
import json
import re
import subprocess


def held_by(pid):
    """What a process holds by descriptors: {("prog", id), ("map", id)}."""
    found = set()
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        try:
            with open(path, encoding="ascii", errors="replace") as f:
                found.update(re.findall(r"^(prog|map)_id:\s*(\d+)$", f.read(), re.M))
        except OSError:
            continue
    return {(kind, int(i)) for kind, i in found}


def runs_of(pid):
    """(runs, ns) of the perf-event programs that a process holds; needs kernel.bpf_stats_enabled."""
    held = held_by(pid)
    text = subprocess.run(["bpftool", "prog", "show", "-j"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False).stdout
    mine = [p for p in json.loads(text or "[]")
            if p.get("type") == "perf_event" and ("prog", p["id"]) in held]
    return sum(p.get("run_cnt", 0) for p in mine), sum(p.get("run_time_ns", 0) for p in mine)
