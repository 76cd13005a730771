# SPDX-License-Identifier: Apache-2.0
"""
Runs the profilers of tools.py in turn, several rounds, over one busy machine, and prints one table
of what each cost. How to read it: docs/BENCH.md.
"""

import glob
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import cgroup
import tools

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
import bpfstats  # noqa: E402  pylint: disable=wrong-import-position

SECONDS = int(os.environ.get("BENCH_SECONDS", "60"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
HZ = os.environ.get("BENCH_HZ", "99")
MIX = os.environ.get("BENCH_MIX", "")
BUILD = os.environ.get("BUILD", "build")
WORKLOADS = os.environ.get("WORKLOADS", os.path.join(BUILD, "workloads"))
COLUMNS = [  # key, head, format
    ("record_cpu", "record CPU s/min", "{:.2f}"),
    ("names_cpu", "names CPU s", "{:.2f}"),
    ("memory", "peak MB", "{:.1f}"),
    ("memory_all", "with cache", "{:.1f}"),
    ("rss", "RSS MB", "{:.1f}"),
    ("bytes", "MB/min", "{:.3f}"),
    ("bpf_ns", "BPF ns/sample", "{:.0f}"),
    ("busy", "busy %", "{:.0f}"),
]


def cpu_busy():
    """Busy and total time of the machine so far, in ticks."""
    with open("/proc/stat", encoding="ascii") as f:
        n = [int(x) for x in f.readline().split()[1:9]]
    return sum(n) - n[3] - n[4], sum(n)


def run_measured(argv, stdout, env, name):
    """Runs a program in a memory cgroup of its own -> (status, rusage, cgroup, seconds)."""
    group = cgroup.MemoryCgroup(name)
    began = time.monotonic()
    process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=stdout,
                               stderr=subprocess.PIPE, env=dict(os.environ, **(env or {})),
                               preexec_fn=group.enter)
    stderr = process.stderr.read()
    _pid, status, usage = os.wait4(process.pid, 0)
    took = time.monotonic() - began
    return os.waitstatus_to_exitcode(status), usage, group, took, stderr.decode(errors="replace")


def cpu_seconds(usage):
    return usage.ru_utime + usage.ru_stime


def output_bytes(out):
    return sum(os.path.getsize(p) for p in glob.glob(glob.escape(out) + "*"))


def one_run(tool, scratch, seconds=SECONDS):
    """What one recording of one tool cost; or a text that says why it did not run."""
    out = os.path.join(scratch, tool.name)
    for old in glob.glob(glob.escape(out) + "*"):
        os.unlink(old)
    before = cpu_busy()
    stdout = open(out + ".txt", "wb") if tool.to_stdout else subprocess.DEVNULL
    status, usage, group, took, stderr = run_measured(
        tool.record(out, HZ, str(seconds)), stdout, tool.env, tool.name)
    memory, memory_all = group.peak_bytes(), group.peak_all_bytes()
    group.close()
    if tool.to_stdout:
        stdout.close()
    after = cpu_busy()
    if status or not output_bytes(out):
        return (stderr.strip().splitlines() or [f"exit status {status}"])[-1][:100]
    result = {
        "record_cpu": cpu_seconds(usage) * 60 / seconds,
        "memory": memory and memory / 1e6,
        "memory_all": memory_all and memory_all / 1e6,
        "rss": usage.ru_maxrss / 1e3,
        "bytes": output_bytes(out) / 1e6 * 60 / seconds,
        "busy": 100 * (after[0] - before[0]) / (after[1] - before[1]),
        "took": took,
    }
    if tool.names:
        status, usage, group, _took, stderr = run_measured(
            tool.names(out), subprocess.DEVNULL, tool.env, tool.name + "-names")
        group.close()
        result["names_cpu"] = cpu_seconds(usage)
    return result


def bpf_cost(tool, scratch):
    """ns per run of the tool's perf-event programs, in a run of its own with statistics on."""
    path, length = "/proc/sys/kernel/bpf_stats_enabled", 10
    with open(path, "w", encoding="ascii") as f:
        f.write("1")
    try:
        out = os.path.join(scratch, "bpf-" + tool.name)
        argv = [str(a) for a in tool.record(out, HZ, str(length))]
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL,
                                   env=dict(os.environ, **(tool.env or {})))
        last = (0, 0)
        while process.poll() is None:  # the programs are gone when the tool is: keep the last look
            last = max(last, bpfstats.runs_of(process.pid))
            time.sleep(0.2)
    finally:
        with open(path, "w", encoding="ascii") as f:
            f.write("0")
    return last[1] / last[0] if last[0] else None


def start_mix(scratch):
    mix = subprocess.Popen(["tests/bench/mix.sh", scratch, WORKLOADS, MIX], stdout=subprocess.PIPE,
                           text=True, start_new_session=True)
    if mix.stdout.readline().strip() != "ready":
        sys.exit("bench: the mix of programs did not start")
    return mix


def middle(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def cell(values, form):
    values = [v for v in values if v is not None]
    if not values:
        return "-"
    if len(values) == 1 or form.format(min(values)) == form.format(max(values)):
        return form.format(statistics.median(values))
    return (form + " [" + form + "-" + form + "]").format(
        statistics.median(values), min(values), max(values))


def print_table(runs):
    rows = [["tool"] + [head for _key, head, _form in COLUMNS]]
    for name, results in runs.items():
        good = [r for r in results if isinstance(r, dict)]
        if good:
            rows.append([name] + [cell([r.get(key) for r in good], form)
                                  for key, _head, form in COLUMNS])
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for i, r in enumerate(rows):
        print("| " + " | ".join(c.ljust(w) for c, w in zip(r, widths)) + " |")
        if i == 0:
            print("|" + "|".join("-" * (w + 2) for w in widths) + "|")
    for name, results in runs.items():
        for why in {r for r in results if isinstance(r, str)}:
            print(f"{name}: did not run: {why}")


def total_cpu(results):
    return middle([r["record_cpu"] + r.get("names_cpu", 0) for r in results if isinstance(r, dict)])


def print_ratios(runs):
    def medians(name, key):
        return middle([r.get(key) for r in runs.get(name, []) if isinstance(r, dict)])

    for peer in ("perf", "perf-dwarf"):
        if medians("sonde", "record_cpu") is None or medians(peer, "record_cpu") is None:
            continue
        print("\nsonde against {}: CPU of record {:.2f}, with names {:.3f}, bytes {:.4f}".format(
            peer, medians("sonde", "record_cpu") / medians(peer, "record_cpu"),
            total_cpu(runs["sonde"]) / total_cpu(runs[peer]),
            medians("sonde", "bytes") / medians(peer, "bytes")))


def main():
    if os.geteuid():
        sys.exit("bench: needs root")
    runs = {}
    with tempfile.TemporaryDirectory(prefix="bench", dir=BUILD) as scratch:
        mix = start_mix(scratch)
        try:
            usable = []
            for tool in tools.chosen():
                why = tool.missing()
                runs[tool.name] = [why] if why else []
                usable += [] if why else [tool]
            for number in range(ROUNDS):
                for tool in usable:
                    print(f"round {number + 1} of {ROUNDS}: {tool.name}", file=sys.stderr)
                    runs[tool.name].append(one_run(tool, scratch))
            for tool in usable:
                ns = bpf_cost(tool, scratch)
                for r in runs[tool.name]:
                    if isinstance(r, dict):
                        r["bpf_ns"] = ns
        finally:
            os.killpg(mix.pid, signal.SIGKILL)
            mix.wait()
    print(f"{ROUNDS} rounds of {SECONDS} s each at {HZ} Hz, {os.cpu_count()} CPUs, "
          f"kernel {os.uname().release}{', ' + MIX + ' alone' if MIX else ''}; median [lowest-highest]\n")
    print_table(runs)
    print_ratios(runs)


if __name__ == "__main__":
    main()
