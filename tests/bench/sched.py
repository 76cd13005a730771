#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What scheduler accounting costs where it costs most: `perf bench sched pipe` on one CPU.

Pairs, without and with a tracer, the tracers taking turns: CPU time of the benchmark with over
without. Then the run time of sonde's programs by the kernel's BPF statistics, which add
two readings of the clock to each run. Last, a program that only computes, beside another that makes 20,000
switches a second on the same CPU: its time with sonde over that without.
Settings: BENCH_PAIRS=7 BENCH_LOOPS=150000 BENCH_TOOLS="sonde bpftrace perf-sched ..."
"""
import json
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SONDE = os.environ.get("SONDE", "build/sonde")
SCHEDMIX = os.path.join(os.environ.get("BUILD", "build"), "workloads", "schedmix")
STEPS = "200"  # millions: about a tenth of a second
PAIRS = int(os.environ.get("BENCH_PAIRS", "7"))
LOOPS = os.environ.get("BENCH_LOOPS", "150000")
STATS = "/proc/sys/kernel/bpf_stats_enabled"
RUNQLAT = ("tracepoint:sched:sched_wakeup, tracepoint:sched:sched_wakeup_new { @q[args->pid] = nsecs; } "
           "tracepoint:sched:sched_switch { if (args->prev_state == 0) { @q[args->prev_pid] = nsecs; } "
           "$ns = @q[args->next_pid]; if ($ns) { @us = hist((nsecs - $ns) / 1000); } "
           "delete(@q[args->next_pid]); }")


def tools(folder):
    """name: (command, seconds until it traces)"""
    return {
        "sonde": ([SONDE, "sched", "record", "-q", "-o", f"{folder}/s.pb.gz"], 1),
        "sonde-off-cpu": ([SONDE, "record", "--off-cpu", "-a", "-q", "-o", f"{folder}/o.pb.gz"], 2),
        "sonde-wall": ([SONDE, "record", "--wall", "-a", "-q", "-o", f"{folder}/w.pb.gz"], 2),
        "runqlat-bpfcc": (["runqlat-bpfcc", "999", "1"], 6),
        "offcputime-bpfcc": (["offcputime-bpfcc", "999"], 6),
        "bpftrace-runqlat": (["bpftrace", "-e", RUNQLAT], 3),
        "perf-sched": (["perf", "sched", "record", "-o", f"{folder}/p.data"], 1),
    }


def pipe():
    """CPU seconds of one benchmark."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["taskset", "-c", "1", "perf", "bench", "sched", "pipe", "-l", LOOPS], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Tracer:
    def __init__(self, command, warm_up):
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(warm_up)
        self.alive = self.process.poll() is None

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def ratios(todo):
    result = {name: [] for name in todo}
    for _ in range(PAIRS):
        for name, (command, warm_up) in todo.items():
            base = pipe()
            tracer = Tracer(command, warm_up)
            if tracer.alive:
                result[name].append((pipe() / base, base))
            tracer.stop()
    return result


def bpf_ns(command, warm_up):
    """Mean run time of each of sonde's programs over one benchmark."""
    with open(STATS) as f:
        before = f.read()
    with open(STATS, "w") as f:
        f.write("1")
    try:
        tracer = Tracer(command, warm_up)
        pipe()
        text = subprocess.run(["bpftool", "prog", "show"], stdout=subprocess.PIPE, text=True).stdout
        tracer.stop()
    finally:
        with open(STATS, "w") as f:
            f.write(before)
    return [(m[1], int(m[2]) / int(m[3])) for m in
            re.finditer(r"name (sonde_(?:sched|off)_(?:switch|wakeup)) .*run_time_ns (\d+) run_cnt (\d+)", text)]


def work():
    """Seconds of a program that computes on CPU 1; of eight tries the best, since a machine has other work."""
    run = ["taskset", "-c", "1", SCHEDMIX, "work", "0", STEPS]
    return min(json.loads(subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True).stdout)["elapsed"]
               for _ in range(8)) / 1e9


def switches():
    with open("/proc/stat") as f:
        return int(re.search(r"^ctxt (\d+)", f.read(), re.M).group(1))


def beside(command, warm_up):
    pace = subprocess.Popen(["taskset", "-c", "1", "chrt", "-f", "1", SCHEDMIX, "pace", "100000", "100"], stdout=subprocess.DEVNULL)
    found, rates = [], []
    try:
        for _ in range(2 * PAIRS):
            base = work()
            tracer = Tracer(command, warm_up)
            before, began = switches(), time.monotonic()
            found.append(work() / base)
            rates.append((switches() - before) / (time.monotonic() - began))
            tracer.stop()
    finally:
        pace.kill()
        pace.wait()
    found.sort()
    print(f"{'beside a load':18} time x {statistics.median(found):.3f} [{found[0]:.3f} .. {found[-1]:.3f}], "
          f"{len(found)} pairs, {statistics.median(rates):.0f} switches/s")


def main():
    if not shutil.which("perf"):
        sys.exit("perf is not installed")
    with tempfile.TemporaryDirectory() as folder:
        known = tools(folder)
        wanted = os.environ.get("BENCH_TOOLS", " ".join(known)).split()
        todo = {n: c for n, c in known.items() if n in wanted and shutil.which(c[0][0])}
        for name, pairs in ratios(todo).items():
            if not pairs:
                print(f"{name:18} does not run here")
                continue
            all_ = sorted(r for r, _ in pairs)
            print(f"{name:18} CPU x {statistics.median(all_):.2f} [{all_[0]:.2f} .. {all_[-1]:.2f}], "
                  f"{len(pairs)} pairs, untraced {statistics.median(b for _, b in pairs):.2f} s")
        for name in ("sonde", "sonde-off-cpu"):
            if name in todo:
                for program, ns in bpf_ns(*known[name]):
                    print(f"{program:18} {ns:.0f} ns a run")
                beside(*known[name])


main()
