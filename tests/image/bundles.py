# SPDX-License-Identifier: Apache-2.0
"""Bundles for runc: the manifest's pod, and a container of somebody else's."""

import json
import os
import shutil
import subprocess
import time

import lab
import seccomp
import yaml
from tap import check, equal, note

POD_AGENT = "11111111-2222-4333-8444-555555555555"
POD_OTHER = "5c1a6e7b-0d2f-4c3e-9a8b-7f6e5d4c3b2a"


def sh(*argv, **popen):
    done = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, stdin=subprocess.DEVNULL, **popen)
    check(done.returncode == 0, f"{argv[0]}: {done.stdout.strip()[-1500:]}")
    return done.stdout


def manifest():
    with open(os.path.join(lab.ROOT, "deploy/kubernetes/daemonset.yaml"), encoding="utf-8") as f:
        return {o["kind"]: o for o in yaml.safe_load_all(f)}


def runc_config(root, bundle, data, smaller=True):
    """The manifest's pod as a runtime would run it, its default seccomp profile included."""
    objects = manifest()
    pod = objects["DaemonSet"]["spec"]["template"]["spec"]
    c = pod["containers"][0]
    security = c["securityContext"]
    sh(lab.need("runc"), "spec", "-b", bundle)
    path = os.path.join(bundle, "config.json")
    with open(path, encoding="utf-8") as f:
        config = json.load(f)
    equal(security["capabilities"]["drop"], ["ALL"], "dropped capabilities")
    caps = [f"CAP_{name}" for name in security["capabilities"]["add"]]
    args = list(c["args"])
    # Time is short here: what a window and a collection last is all that is not the manifest's.
    args += ["--collect", "1s", "--window", "3s", "-F", "199"]
    process = config["process"]
    process.update(
        terminal=False, args=["/usr/bin/sonde", *args],
        user={"uid": security["runAsUser"], "gid": 0},
        noNewPrivileges=not security["allowPrivilegeEscalation"],
        capabilities={k: caps for k in ("bounding", "effective", "permitted")})
    equal(security["seccompProfile"], {"type": "RuntimeDefault"}, "seccomp profile")
    if os.path.exists(seccomp.PROFILE):
        config["linux"]["seccomp"] = seccomp.profile_of(caps, smaller)
    else:
        note(f"warning: without a seccomp profile: no {seccomp.PROFILE}")
    process["env"] += [f"{e['name']}=node-a" for e in c["env"]]
    config["root"] = {"path": root, "readonly": security["readOnlyRootFilesystem"]}
    sources = {}
    for v in pod["volumes"]:
        if "configMap" in v:
            sources[v["name"]] = os.path.join(bundle, "config")
            os.makedirs(sources[v["name"]])
            for name, text in objects["ConfigMap"]["data"].items():
                with open(os.path.join(sources[v["name"]], name), "w", encoding="utf-8") as f:
                    f.write(text)
        else:
            sources[v["name"]] = v["hostPath"]["path"]
    sources["data"] = data
    for m in c["volumeMounts"]:
        source = sources[m["name"]]
        os.makedirs(source, exist_ok=True)
        config["mounts"].append({
            "destination": m["mountPath"], "source": source, "type": "bind",
            "options": ["rbind", "ro" if m.get("readOnly") else "rw"]})
    kinds = {"mount", "uts", "ipc", "network", "cgroup"} | (set() if pod.get("hostPID") else {"pid"}) \
        - ({"network"} if pod.get("hostNetwork") else set())
    config["linux"]["namespaces"] = [{"type": k} for k in sorted(kinds)]
    config["linux"]["cgroupsPath"] = "/kubepods/burstable/pod" + POD_AGENT + "/" + "a" * 64
    # The resources limits of the manifest: memory, where the controller is on v1 as runc wants it.
    limit = c["resources"]["limits"]["memory"]
    config["linux"]["resources"]["memory"] = {"limit": int(limit.removesuffix("Mi")) << 20}
    with open(path, "w", encoding="utf-8") as f:
        json.dump(config, f)
    return c


class Runc:
    """A container in the foreground, its output in a file."""

    def __init__(self, scratch, bundle, name):
        self.argv = [lab.need("runc"), "--root", scratch.path("state")]
        self.name, self.log_path = name, scratch.path(name + ".log")
        self.log_file = open(self.log_path, "wb")
        self.process = subprocess.Popen([*self.argv, "run", "-b", bundle, name],
                                        stdin=subprocess.DEVNULL, stdout=self.log_file,
                                        stderr=self.log_file)

    @property
    def log(self):
        with open(self.log_path, errors="replace", encoding="utf-8") as f:
            return f.read()

    def state(self):
        shown = subprocess.run([*self.argv, "state", self.name], capture_output=True, text=True,
                               check=False)
        return json.loads(shown.stdout) if shown.returncode == 0 else {}

    def wait(self, done, what, timeout=120):
        end = time.monotonic() + timeout
        while not done():
            check(self.process.poll() is None, f"{self.name} ended: {self.log}")
            check(time.monotonic() < end, f"{self.name}: not within {timeout} s: {what}: {self.log}")
            time.sleep(0.1)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run([*self.argv, "kill", self.name, "TERM"], stderr=subprocess.DEVNULL,
                       check=False)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            pass
        subprocess.run([*self.argv, "delete", "-f", self.name], stderr=subprocess.DEVNULL,
                       check=False)
        self.process.wait()
        self.log_file.close()


def other_container(scratch):
    """A container of somebody else's pod that runs a known program -> (bundle, id)."""
    ident = os.urandom(32).hex()
    bundle = scratch.path("other")
    for d in ("root/bin", "root/proc", "root/dev", "root/sys"):
        os.makedirs(os.path.join(bundle, d))
    shutil.copy(lab.wl("split-static"), os.path.join(bundle, "root/bin/inside"))
    sh(lab.need("runc"), "spec", "-b", bundle)
    path = os.path.join(bundle, "config.json")
    with open(path, encoding="utf-8") as f:
        config = json.load(f)
    config["process"].update(terminal=False, args=["/bin/inside"])
    config["root"] = {"path": os.path.join(bundle, "root"), "readonly": True}
    config["linux"]["cgroupsPath"] = f"/kubepods/besteffort/pod{POD_OTHER}/{ident}"
    with open(path, "w", encoding="utf-8") as f:
        json.dump(config, f)
    return bundle, ident
