# SPDX-License-Identifier: Apache-2.0
"""Workloads in runc containers and in namespaces of their own, for the live tests."""

import glob
import json
import os
import shutil
import subprocess

import lab
from tap import equal, skip


def only_child(pid):
    """The process id, in our namespace, of the one child of `pid`."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        children = f.read().split()
    equal(len(children), 1, f"children of {pid}")
    return int(children[0])


class Container:
    """
    A runc container on an overlay mount: `lower` files in the read-only layer, busybox beside.
    Runs argv; the workload inside has pid 1. with_host: sees the machine's /usr, /etc and /opt.
    """

    def __init__(self, name, lower, argv, in_upper=(), with_host=False):
        self.runc, self.dir = lab.need("runc"), lab.Scratch()
        self.name = name + "-" + os.path.basename(self.dir.name)
        self.id = (os.urandom(32).hex())
        for d in ("lower/bin", "lower/proc", "lower/tmp", "lower/dev", "upper/bin", "work", "root",
                  "state"):
            os.makedirs(self.dir.path(d))
        shutil.copy(lab.need("busybox"), self.dir.path("lower/bin/busybox"))
        for path in lower:
            shutil.copy(path, self.dir.path("lower/bin"))
        for path in in_upper:
            shutil.copy(path, self.dir.path("upper/bin"))
        mounted = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", ",".join(
            f"{k}dir={self.dir.path(k)}" for k in ("lower", "upper", "work")),
            self.dir.path("root")], stderr=subprocess.PIPE, text=True, check=False)
        if mounted.returncode:
            skip(f"no overlay mount here: {mounted.stderr.strip()}")
        self._write_config(argv, with_host)

    def _write_config(self, argv, with_host):
        bundle = self.dir.name
        subprocess.run([self.runc, "spec", "-b", bundle], check=True)
        with open(self.dir.path("config.json"), encoding="utf-8") as f:
            config = json.load(f)
        config["process"].update(terminal=False, args=argv)
        config["root"] = {"path": self.dir.path("root"), "readonly": False}
        if with_host:
            self._add_host(config["mounts"])
        config["linux"]["cgroupsPath"] = f"/sonde-live/{self.id}"
        with open(self.dir.path("config.json"), "w", encoding="utf-8") as f:
            json.dump(config, f)

    def _add_host(self, mounts):
        """The machine's programs and libraries, read-only, for workloads that need many."""
        for path in ("/usr", "/etc", "/opt"):
            mounts.append({"destination": path, "type": "bind", "source": path,
                           "options": ["rbind", "ro"]})
        for link in ("lib", "lib64", "sbin"):
            if os.path.islink("/" + link):
                os.symlink(os.readlink("/" + link), self.dir.path("root/" + link))

    def exec(self, *argv):
        """A further program in the running container."""
        return subprocess.run([self.runc, "--root", self.dir.path("state"), "exec", self.name,
                               *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, check=False)

    def run(self):
        """The workload; its runc stays in the foreground, as its parent."""
        w = lab.Workload(self.runc, "--root", self.dir.path("state"), "run", "-b", self.dir.name,
                         self.name, stdin=subprocess.DEVNULL)
        state = json.loads(subprocess.run(
            [self.runc, "--root", self.dir.path("state"), "state", self.name],
            stdout=subprocess.PIPE, check=True).stdout)
        w.pid = state["pid"]
        return w

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run([self.runc, "--root", self.dir.path("state"), "delete", "-f", self.name],
                       stderr=subprocess.DEVNULL, check=False)
        subprocess.run(["umount", self.dir.path("root")], check=False)
        parents = "/sys/fs/cgroup/sonde-live", "/sys/fs/cgroup/*/sonde-live"
        for where in glob.glob(parents[0]) + glob.glob(parents[1]):
            try:
                os.rmdir(where)
            except OSError:  # another run has a container there
                pass


def in_namespaces(script):
    """
    A shell script in new PID and mount namespaces, with a tmpfs of its own on /tmp; in the
    workloads' directory (by its descriptor, as it may itself be under /tmp).
    """
    w = lab.Workload("unshare", "--pid", "--mount", "--fork", "sh", "-c",
                     "mount -t tmpfs none /tmp && " + script, cwd=lab.WORKLOADS)
    w.pid = only_child(w.process.pid)
    return w
