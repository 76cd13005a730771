#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""What idle containers cost on the wire: 50 containers by runc, three services each (redis, a server of
four Python processes that tick once a second, a probe that asks redis every ten seconds), under
one agent at 19 Hz with windows of 60 s. Of each window the containers' own rows go through the
real encoders (build/stores/volume), samples and the scheduler's accounts apart. Root; MINUTES=20,
CONTAINERS=50. Not a test."""

import glob
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "live"))
import agentlab  # noqa: E402
import lab  # noqa: E402

MINUTES = int(os.environ.get("MINUTES", "20"))
CONTAINERS = int(os.environ.get("CONTAINERS", "50"))
GROUP = "/sonde-idle-fleet/"

SERVER = """
import json, os, time
for _ in range(3):
    if os.fork() == 0:
        break
state = {str(i): i for i in range(100)}
while True:
    time.sleep(1)
    json.loads(json.dumps(state))
"""

START = """
redis-server --save '' --port 0 --unixsocket /tmp/redis >/dev/null &
python3 /tmp/server.py &
while sleep 10; do redis-cli -s /tmp/redis ping >/dev/null; done
"""


def start(scratch, n):
    """One container over the host's own programs, with a /tmp of its own."""
    bundle = scratch.path(f"c{n}")
    for d in ("root/proc", "root/dev", "root/sys", "root/tmp", "root/etc", "tmp",
              *(f"root/{x}" for x in ("usr", "bin", "lib", "lib64"))):
        os.makedirs(os.path.join(bundle, d))
    with open(f"{bundle}/tmp/server.py", "w") as f:
        f.write(SERVER)
    subprocess.run([lab.need("runc"), "spec", "-b", bundle], check=True)
    with open(f"{bundle}/config.json") as f:
        config = json.load(f)
    config["process"].update(terminal=False, args=["/bin/sh", "-c", START])
    config["process"]["env"] = ["PATH=/usr/bin:/bin"]
    config["root"] = {"path": f"{bundle}/root", "readonly": True}
    config["linux"]["cgroupsPath"] = GROUP + os.urandom(32).hex()
    binds = [(os.path.realpath(f"/{d}"), f"/{d}", "ro") for d in ("usr", "bin", "lib", "lib64")]
    for source, target, mode in [*binds, (f"{bundle}/tmp", "/tmp", "rw")]:
        config["mounts"].append({"destination": target, "source": source, "type": "bind",
                                 "options": ["rbind", mode]})
    with open(f"{bundle}/config.json", "w") as f:
        json.dump(config, f)
    name = f"idle-{os.getpid()}-{n}"
    with open(f"{bundle}/log", "w") as log:
        subprocess.run([lab.need("runc"), "--root", scratch.path("state"), "run", "-d", "-b", bundle,
                        name], check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    return name


def main():
    scratch, names = lab.Scratch(), []
    directory = scratch.path("agent")
    try:
        for n in range(CONTAINERS):
            names.append(start(scratch, n))
        with agentlab.Agent(directory, hz=19, collect="10s", window="60s") as a:
            a.wait_ready()
            time.sleep(60 * MINUTES + 60)
            a.stop()
        for kind, what in (("cpu", "samples"), ("wall", "scheduler's accounts")):
            paths = sorted(glob.glob(f"{directory}/profiles/*/*-{kind}.pb.gz"))[1:-1]  # whole ones
            print(f"{what}: {CONTAINERS} containers, {len(paths)} windows of a minute", flush=True)
            subprocess.run([f"{lab.BUILD}/stores/volume", GROUP, *paths], check=True)
    finally:
        for name in names:
            subprocess.run([lab.need("runc"), "--root", scratch.path("state"), "delete", "-f", name],
                           stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
