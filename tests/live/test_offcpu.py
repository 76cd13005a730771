#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Time off the CPU by stack, against programs that log their own waits (case O-04).

The programs' logs have in them what the calls themselves cost, and here also that their stacks were taken:
SLACK_US for each wait. Waits for a CPU are apart in both.
"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lab  # noqa: E402
from tap import check, equal, note, run, test  # noqa: E402

SECONDS = lab.seconds(3, 20)
SLACK_US, PARTS = 40, 0.02
COLUMN = "off_cpu"
STATE_COMMENT = re.compile(r"^sonde\.off\.ns\[(.*)/(.*)\]=(\d+)$")
scratch = lab.Scratch()


def record(name, *args, command):
    r = lab.record("--off-cpu", *args, out=scratch.path(name + ".pb.gz"), command=command)
    return r, json.loads([line for line in r.stdout.splitlines() if line.startswith("{")][-1])


def column(r, name):
    return r.profile.value_index(name)


def waits_of(r, function, state="blocked"):
    """Total, count and longest of what waited below a function."""
    at = [column(r, name) for name in (COLUMN, "waits", "longest")]
    found = [s for s in r.profile.samples if lab.has(s, function) and s.labels.get("state") == state]
    return (sum(s.values[at[0]] for s in found), sum(s.values[at[1]] for s in found),
            max((s.values[at[2]] for s in found), default=0))


def unknown(r):
    """Blocked without a whole stack: before a file's unwind table was there, or not captured."""
    at = column(r, COLUMN), column(r, "waits")
    found = [s for s in r.profile.samples if s.labels.get("state") == "blocked" and
             any(lab.is_marker(f) for f in s.frames)]
    return sum(s.values[at[0]] for s in found), sum(s.values[at[1]] for s in found)


def check_site(r, function, log):
    """Within 2 % of the log; what has no whole stack may be its, too, and is little where nothing else runs."""
    total, count, longest = waits_of(r, function)
    spare, spare_count = unknown(r)
    slack = SLACK_US * 1000
    note(f"{function}: {total / 1e6:.2f} ms in {count} waits, longest {longest / 1e6:.3f} ms; its log "
         f"{log['total'] / 1e6:.2f} ms, {log['count']}, {log['longest'] / 1e6:.3f} ms; without a whole "
         f"stack {spare / 1e6:.2f} ms, {spare_count}")
    allowed = PARTS * log["total"] + slack * log["count"]
    check(-allowed - spare <= total - log["total"] <= allowed, f"{function}: total")
    allowed = PARTS * log["count"] + 2
    check(-allowed - spare_count <= count - log["count"] <= allowed, f"{function}: count")
    check(abs(longest - log["longest"]) <= PARTS * log["longest"] + 2 * slack or spare > longest,
          f"{function}: longest")


def check_sums(r):
    """Each state sums up to the books of the accounting, to the nanosecond."""
    sums, books = {}, {}
    for s in r.profile.samples:
        key = s.labels["state"], s.labels.get("reason", "")
        sums[key] = sums.get(key, 0) + s.values[column(r, COLUMN)]
    for comment in r.profile.comments:
        m = STATE_COMMENT.match(comment)
        if m:
            books[m[1], m[2]] = int(m[3])
    equal(sums, books, "time by state and reason")
    equal(r.fact("off.errors") + r.fact("off.strata_refused") + r.fact("off.strata_full"), 0, "losses")


@test("a mutex held for 5 ms: who asked for it, how often, how long")
def mutex():
    r, truth = record("lock", command=[lab.wl("waits"), "lock", SECONDS])
    check_sums(r)
    check_site(r, "ask_for_lock", truth["sites"]["ask_for_lock"])
    text = subprocess.run([lab.SONDE, "sched", "report", "--lock", r.path], stdout=subprocess.PIPE,
                          text=True, check=True).stdout
    note(text)
    check(re.search(r"waits +pthread_mutex_lock +ask_for_lock", text), "the lock and its caller")


@test("sleeps of 1, 10 and 100 ms by turns")
def sleeps():
    r, truth = record("sleep", command=[lab.wl("waits"), "sleep", SECONDS])
    check_sums(r)
    for name in ("nap_1", "nap_10", "nap_100"):
        check_site(r, name, truth["sites"][name])


@test("the reader of a slow pipe")
def pipe():
    r, truth = record("pipe", command=[lab.wl("waits"), "pipe", SECONDS])
    check_sums(r)
    check_site(r, "read_slow_pipe", truth["sites"]["read_slow_pipe"])


def taken():
    """What interrupts and the hypervisor took of all CPUs so far, in ns: a wait to a program's own clock."""
    with open("/proc/stat") as f:
        return sum(int(n) for n in f.readline().split()[6:9]) * 1e9 / os.sysconf("SC_CLK_TCK")


@test("a program that waits for its pages")
def faults():
    data = scratch.path("data")
    with open(data, "wb") as f:
        f.write(os.urandom(1 << 20) * 64)
        os.fsync(f.fileno())
    before = taken()
    r, truth = record("fault", command=[lab.wl("schedmix"), "fault", SECONDS, data])
    check_sums(r)
    at = column(r, COLUMN)
    found = [s for s in r.profile.samples if s.labels.get("reason") == "page_fault"]
    total = sum(s.values[at] for s in found)
    named = sum(s.values[at] for s in found if lab.has(s, "faulter"))
    note(f"page faults: {total / 1e6:.2f} ms, its log {truth['waited'] / 1e6:.2f} ms; in its function "
         f"{100 * named / max(total, 1):.1f} %")
    allowed = PARTS * truth["waited"] + 10e6
    check(-allowed - (taken() - before) <= total - truth["waited"] <= allowed, "total")
    check(named + unknown(r)[0] >= 0.95 * total, "the stack names the function")


def shares_once(number):
    """The largest difference of a share; the part of the time that has no whole stack."""
    r, truth = record(f"mixed{number}", command=[lab.wl("waits"), "mixed", SECONDS])
    check_sums(r)
    captures, duration = r.fact("off.captures"), r.fact("off.duration_ns") / 1e9
    logged = {name: site["total"] for name, site in truth["sites"].items()}
    found = {name: waits_of(r, name)[0] for name in logged}
    off = max(abs(found[name] / sum(found.values()) - logged[name] / sum(logged.values()))
              for name in logged)
    note(", ".join(f"{name} {100 * found[name] / sum(found.values()):.1f} % (its log "
                   f"{100 * logged[name] / sum(logged.values()):.1f} %)" for name in logged) +
         f"; {captures} captures of {r.fact('off.departures')} departures in {duration:.1f} s")
    # Of two threads that leave the CPU often, and some more at the start.
    check(captures <= 2 * 150 * duration + 300, "captures over the budget")
    for name in ("long_a", "long_b"):
        check_site(r, name, truth["sites"][name])
    return off, sum(logged.values()) - sum(found.values())


@test("very many short waits beside six long ones: shares of their callers")
def shares():
    """
    Not yet within 5 points each time: a captured wait finds cold caches and may end in the stratum of
    another thread's longer ones.
    """
    runs = [shares_once(i) for i in range(10 if lab.FULL else 1)]
    note("largest difference by run, in points, and what is shared out to none, in ms: " +
         ", ".join(f"{100 * off:.1f} {lost / 1e6:.0f}" for off, lost in runs))
    note(f"{sum(off <= 0.05 for off, _ in runs)} of {len(runs)} runs within 5 points")
    check(sorted(off for off, _ in runs)[len(runs) // 2] <= 0.25, "more than 25 points off")


@test("the wall clock: what runs and what waits is all the time of a program's threads")
def wall():
    r = lab.record("--wall", out=scratch.path("wall.pb.gz"),
                   command=[lab.wl("split"), "-t", str(SECONDS), "-n", "2"])
    at = column(r, "wall")
    mine = r.select(comm="split")
    running = sum(s.values[at] for s in mine if s.labels.get("state", "on_cpu") == "on_cpu")
    waiting = sum(s.values[at] for s in mine if s.labels.get("state", "on_cpu") != "on_cpu")
    lived = 2 * float(SECONDS) # at least, and no longer than the recording
    note(f"on a CPU {running / 1e9:.3f} s, off it {waiting / 1e9:.3f} s, threads lived {lived:.1f} s")
    spare = 0.05 * lived + 2 * (r.took - float(SECONDS))
    check(-0.03 * lived <= (running + waiting) / 1e9 - lived <= spare, "the sum of both")
    check(any(lab.has(s, "hot_60") and "state" not in s.labels for s in mine), "hot_60 on a CPU")


@test("filters: shorter waits and other reasons are left out")
def filters():
    r, truth = record("filter", "--min-wait", "50ms", "--reason", "sleep",
                      command=[lab.wl("waits"), "sleep", SECONDS])
    check_site(r, "nap_100", truth["sites"]["nap_100"])
    equal({s.labels.get("reason") for s in r.profile.samples}, {"sleep"}, "reasons")
    equal(waits_of(r, "nap_10")[0], 0, "waits of 10 ms")


@test("waits of idle workers are hidden and counted")
def idle():
    script = "import select,time; select.poll().poll(2000)"
    r = lab.record("--off-cpu", out=scratch.path("idle.pb.gz"), command=["python3", "-c", script])
    hidden = [s for s in r.profile.samples if s.labels.get("idle") == "yes"]
    check(sum(s.values[column(r, COLUMN)] for s in hidden) > 1.5e9, "the poll is marked")
    shown = {}
    for option in ([], ["--idle"]):
        text = subprocess.run([lab.SONDE, "report", "--sort", "reason", *option, r.path],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        shown[bool(option)] = re.search(r"%.*\bpoll$", text, re.M) is not None
    equal(shown, {False: False, True: True}, "poll in the report")


@test("what does not go together is refused")
def refused():
    for options, word in ((["--off-cpu", "--wall"], "choose one"), (["--reason", "lock"], "with --off-cpu"),
                          (["--off-cpu", "--reason", "lunch"], "lunch")):
        r = lab.record(*options, "-d", "1", out=scratch.path("no.pb.gz"), status=None)
        check(r.status != 0 and word in r.stderr, f"{options}: {r.status}, {r.stderr}")


if os.geteuid():
    print("1..0 # SKIP needs root")
else:
    run()
