#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stores, the network, the disk and the clock misbehave in turn, and the agent is killed again and
again: each window that reached the journal arrives at least once. What was sampled (by the
agent's own store) is compared with what the stores hold, stack by stack. Four minutes; half an hour
with FULL=1. SEED for another order."""

import os
import random
import signal
import subprocess
import time

import peer
import storelab
from storelab import agentlab, lab
from tap import Failure, check, equal, note, run, test

SECONDS = lab.seconds(240, 1800)
PHASE, PAUSE, LIFE = 9.0, 1.5, 60.0 if lab.FULL else 40.0
# Windows of 2 s go together in sixes, but for those that an outage or a kill left, which go at once.
GATHER = 12
HOST = "store.sonde.test"
# An agent's resident memory and descriptors, whatever happens to it.
RSS_MIB, RSS_GROWTH_MIB, FDS = 160, 24, 80


class World:
    """Two stores that misbehave, one that does not, and an agent between them on a small disk."""

    def __init__(self, scratch):
        self.scratch, self.rng = scratch, random.Random(os.environ.get("SEED", "1"))
        self.dir, self.hosts, self.clock = (scratch.path(n) for n in ("disk", "hosts", "clock"))
        os.mkdir(self.dir)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", self.dir], check=True)
        self.good = storelab.certificate(scratch, "good", host=f"DNS:{HOST}")
        self.wrong = storelab.certificate(scratch, "wrong", host="DNS:elsewhere")
        self.otlp = peer.Peer(tls=peer.tls_context(*self.good), lazy=True)
        self.pyroscope, self.parca = peer.Peer(lazy=True), peer.Peer(lazy=True)
        self.name(True)
        self.jump(0)
        self.agent, self.lives, self.marks = None, 0, []

    def close(self):
        if self.agent:
            self.agent.kill()
        for p in self.peers():
            p.stop()
        subprocess.run(["umount", "-l", self.dir], check=False)

    def peers(self):
        return self.otlp, self.pyroscope, self.parca

    # ---- the agent ----

    def start(self):
        in_namespace = ["unshare", "-m", "sh", "-c",
                        f'mount --bind {self.hosts} /etc/hosts && exec "$@"', "sh"]
        env = {**os.environ, "LD_PRELOAD": lab.wl("shim_clock.so"), "SHIM_CLOCK": self.clock}
        self.agent = storelab.agent(
            self.dir, "--otlp", f"https://{HOST}:{self.otlp.port}", "--tls-ca", self.good[0],
            "--pyroscope", f"http://127.0.0.1:{self.pyroscope.port}",
            "--parca", f"http://127.0.0.1:{self.parca.port}", "--send-timeout", "5s",
            "--send-retry-max", "1s", "--send-gather", f"{GATHER}s", "--max-size", "40", "--spool-size", "32",
            prefix=in_namespace, env=env, window="2s", collect="1s", hz=49)
        self.lives += 1
        self.began, self.looked, self.first = time.monotonic(), 0, None

    def look(self):
        """Memory without symbol tables, which grow with what runs here, and descriptors."""
        if time.monotonic() - self.looked < 4:
            return
        self.looked = time.monotonic()
        try:
            m = self.agent.metrics()
        except Failure:
            return  # not up yet
        own = (m["sonde_memory_bytes[resident]"] - m["sonde_symbol_bytes"]) / (1 << 20)
        if self.looked - self.began > 12:
            self.first = self.first or own
            self.marks.append((m["sonde_memory_bytes[resident]"] / (1 << 20), own - self.first,
                               m["sonde_open_fds"]))

    def kill_when_due(self):
        check(self.agent.running(), f"the agent ended by itself: {self.agent.log}")
        if time.monotonic() - self.began > LIFE:
            self.agent.kill()
            self.start()

    def live(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.kill_when_due()
            self.look()
            time.sleep(min(0.5, max(0, end - time.monotonic())))

    # ---- the faults that are not answers ----

    def name(self, there):
        with open(self.hosts, "w") as f:
            f.write("127.0.0.1 localhost\n" + (f"127.0.0.1 {HOST}\n" if there else ""))

    def jump(self, seconds):
        with open(self.clock, "wb") as f:
            f.write(int(seconds * 1e9).to_bytes(8, "little", signed=True))

    def restart(self, p):
        p.stop()
        yield
        p.start()

    def faulty(self, p, fault):
        p.fault = fault
        yield
        p.fault = None

    def wrong_certificate(self):
        self.otlp.tls = peer.tls_context(*self.wrong)
        self.otlp.stop()  # and with it the connections
        self.otlp.start()
        yield
        self.otlp.tls = peer.tls_context(*self.good)

    def no_name(self):
        """Names and connections go; the agent is killed, since it may remember the address."""
        self.name(False)
        self.agent.kill()
        self.start()
        yield
        self.name(True)

    def full_disk(self):
        path = f"{self.dir}/filler"
        try:
            with open(path, "wb") as f:
                while True:
                    f.write(bytes(1 << 16))
        except OSError:
            pass
        yield
        os.unlink(path)

    def clock_jump(self):
        # In place: the agent has the file mapped.
        with open(self.clock, "r+b") as f:
            f.write(int(self.rng.choice([-30, -5, 5, 30]) * 1e9).to_bytes(8, "little", signed=True))
        yield

    def phases(self):
        """Name and generator: it begins the fault, yields, and ends it."""
        rows = [("wrong certificate", self.wrong_certificate), ("no name", self.no_name),
                ("full disk", self.full_disk), ("clock jump", self.clock_jump)]
        answers = [("413", peer.too_large(24 << 10)), ("429", peer.status(429)),
                   ("429, 2 s", peer.status(429, Retry_After="2")),
                   ("429, a date", peer.retry_date(2)), ("500", peer.status(500)),
                   ("503", peer.status(503)), ("garbage", peer.garbage),
                   ("endless", peer.endless), ("slow-loris", peer.slow_loris),
                   ("half-open", peer.half_open), ("reset", peer.cut),
                   ("kept, but reset", peer.kept_but_cut)]
        for p, who in ((self.otlp, "otlp"), (self.pyroscope, "pyroscope")):
            rows.append((f"{who}: restart", lambda p=p: self.restart(p)))
            rows += [(f"{who}: {what}", lambda p=p, f=f: self.faulty(p, f)) for what, f in answers]
        self.rng.shuffle(rows)
        return rows


def misbehave(world):
    """Two faults at a time, each for a phase, until the time is over; all have their turn."""
    rows, done, end = world.phases(), [], time.monotonic() + SECONDS
    phase = min(PHASE, 2 * SECONDS / len(rows) - PAUSE)
    while len(done) < len(rows) or time.monotonic() < end:
        pair = [rows[(len(done) + i) % len(rows)] for i in range(2)]
        faults = [make() for _, make in pair]
        for f in faults:
            next(f)
        world.live(phase)
        for f in faults:
            next(f, None)
        done += [name for name, _ in pair]
        world.live(PAUSE)
        note(f"{SECONDS - end + time.monotonic():.0f} s: {' and '.join(done[-2:])}; life "
             f"{world.lives}, taken {[len(p.raw) for p in world.peers()]}")
    return done


def settle(world):
    """All is well: what waits is sent, but for what waits for company."""
    world.live(1)

    def sent():
        m = world.agent.metrics()
        return all(m[f"sonde_sink_waiting_windows[{s}]"] <= GATHER // 2 + 1
                   for s in ("otlp", "pyroscope", "parca"))
    agentlab.wait_for(sent, 180, "the backlog is sent",
                      lambda: (world.agent.metrics(), world.agent.log))
    world.agent.stop(signal.SIGTERM)


def dead_samples(directory, sink):
    folder = f"{directory}/spool/dead"
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sum(storelab.pprofread.load(f"{folder}/{n}").total(0)
               for n in names if f"-{sink}." in n)


def check_sink(world, sink, p, label):
    p.look()
    want = storelab.sampled(world.dir)
    series = [s for s in p.series(sink) if s.kind[0] == "samples"]
    late = storelab.waiting(world.dir)
    missing, more, unknown = storelab.compare_gathered(want, storelab.ends(world.dir), series,
                                                       label, late)
    profiles = {(s.time_ns, s.duration_ns) for s in series}
    dead = dead_samples(world.dir, sink)
    windows = len({key[0] for key in want})
    note(f"{sink}: {windows} windows, {storelab.total(want)} samples; arrived "
         f"{sum(sum(s.rows.values()) for s in series)} in {len(profiles)} stretches of time, "
         f"{unknown} of them unknown; twice {more}; missing {missing}, set aside {dead}; "
         f"{len(late)} windows wait; {p.requests} requests")
    # An empty request asks a store in doubt whether it is well; Pyroscope's own word for it is this.
    bad = [why for why in p.bad if why != "pyroscope: no profiles received"]
    note(f"{sink}: {len(p.bad) - len(bad)} empty requests")
    equal(bad, [], f"{sink}: what the rules refuse")
    check(missing <= dead, f"{sink}: {missing} samples are missing, {dead} were set aside")
    check(any(s.duration_ns > 5e9 for s in series), f"{sink}: no windows went together")
    check(dead <= storelab.total(want) * 0.01, f"{sink}: {dead} samples were set aside")
    return more


@test("every window arrives at least once, whatever happens; memory and descriptors stay flat")
def chaos():
    world = World(lab.Scratch())
    try:
        with lab.Workload(lab.wl("split"), "-n", "1"), \
                lab.Workload(lab.wl("storm"), "-r", "20", lab.wl("storm_child")):
            world.start()
            world.agent.wait_ready()
            done = misbehave(world)
            settle(world)
        note(f"{len(done)} faults in {SECONDS:.0f} s, {world.lives} lives: "
             + ", ".join(sorted(set(done))))
        note("the last life's words:\n" + world.agent.log)
        rss, growth, fds = (max(column) for column in zip(*world.marks))
        note(f"resident memory at most {rss:.0f} MiB; without symbol tables at most {growth:.0f} MiB "
             f"more than when warm; descriptors at most {fds:.0f}")
        check_sink(world, "otlp", world.otlp, "process.executable.name")
        check_sink(world, "pyroscope", world.pyroscope, "comm")
        check_sink(world, "parca", world.parca, "comm")
        check(rss < RSS_MIB and growth < RSS_GROWTH_MIB, "memory grows")
        check(fds < FDS, "descriptors grow")
    finally:
        world.close()


if __name__ == "__main__":
    run()
