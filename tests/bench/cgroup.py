# SPDX-License-Identifier: Apache-2.0
"""A memory cgroup for one process tree, so that BPF maps count too; version 1 or 2."""

import os
import threading
import time


def _mounts():
    with open("/proc/self/mounts", encoding="utf-8") as f:
        for line in f:
            _dev, where, kind, options = line.split()[:4]
            yield where, kind, options.split(",")


def _read(path):
    with open(path, encoding="ascii") as f:
        return f.read()


def _hierarchy():
    """(directory, version) of the hierarchy that has the memory controller."""
    for where, kind, options in _mounts():
        if kind == "cgroup" and "memory" in options:
            return where, 1
    for where, kind, _options in _mounts():
        if kind == "cgroup2" and "memory" in _read(where + "/cgroup.controllers").split():
            return where, 2
    return None, 0


class MemoryCgroup:
    """
    enter() is for the child before its exec. peak_bytes(): the highest use without page cache,
    which is read every 50 ms; peak_all_bytes(): with it, by the kernel's own mark.
    """

    def __init__(self, name):
        root, self.version = _hierarchy()
        self.dir = root and f"{root}/sonde-bench-{os.getpid()}-{name}"
        self._peak, self._done = 0, threading.Event()
        if not root:
            return
        if self.version == 2:
            with open(root + "/cgroup.subtree_control", "w", encoding="ascii") as f:
                f.write("+memory")
        os.mkdir(self.dir)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def enter(self):
        if self.dir:
            with open(self.dir + "/cgroup.procs", "w", encoding="ascii") as f:
                f.write(str(os.getpid()))

    def _now(self):
        names = {1: ("memory.usage_in_bytes", "total_cache"), 2: ("memory.current", "file")}
        usage, cache = names[self.version]
        used = int(_read(f"{self.dir}/{usage}"))
        stat = dict(line.split() for line in _read(self.dir + "/memory.stat").splitlines())
        return used - int(stat[cache])

    def _watch(self):
        while not self._done.wait(0.05):
            self._peak = max(self._peak, self._now())

    def peak_bytes(self):
        return self._peak if self.dir else None

    def peak_all_bytes(self):
        for name in ("memory.max_usage_in_bytes", "memory.peak"):
            if self.dir and os.path.exists(f"{self.dir}/{name}"):
                return int(_read(f"{self.dir}/{name}"))
        return None

    def close(self):
        if not self.dir:
            return
        self._done.set()
        self._thread.join()
        for _try in range(50):  # the last process may still be on its way out
            try:
                os.rmdir(self.dir)
                return
            except OSError:
                time.sleep(0.1)
