# SPDX-License-Identifier: Apache-2.0
"""What the tests of delivery share: a collector, what was sampled and what arrived as plain rows,
certificates, and files of the spool."""

import collections
import glob
import json
import os
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
import agentlab  # noqa: E402
import lab  # noqa: E402
import pprofread  # noqa: E402
import rules  # noqa: E402
from tap import check, skip  # noqa: E402


# ---- what was sampled, by the agent's own store ----

def texts_of(sample):
    return tuple(rules.frame_text(f.function or f.system_name, f.module, f.address)
                 for f in sample.frames)


def sampled(directory, value="samples", kind="cpu"):
    """{(window's start in ns, program): {stack: value}} of the profiles of a kind in the store."""
    found = {}
    for path in glob.glob(f"{directory}/profiles/*/*-{kind}.pb.gz"):
        p = pprofread.load(path)
        i = p.value_index(value)
        for s in p.samples:
            rows = found.setdefault((p.time_ns, s.labels.get("comm", "")), collections.Counter())
            rows[texts_of(s)] += s.values[i]
    return found


def arrived(series, kind, program):
    """The same of series that a store took; `program` is the label's name there."""
    found = {}
    for s in series:
        if s.kind[0] == kind:
            rows = found.setdefault((s.time_ns, s.labels.get(program, "")), collections.Counter())
            rows.update(s.rows)
    return found


def waiting(directory):
    """Starts in ns of the windows that are still in the spool: late, but not lost."""
    return {agentlab.chunk_profile(path).time_ns
            for path in glob.glob(f"{directory}/spool/*.chunk")}


def compare(want, got, without=()):
    """Values that are missing, and those that came too often: sums over all stacks, without the
    windows that began at some times."""
    missing = more = 0
    want = {key: rows for key, rows in want.items() if key[0] not in without}
    got = {key: rows for key, rows in got.items() if key[0] not in without}
    for key, rows in want.items():
        have = got.get(key, {})
        for stack, value in rows.items():
            missing += max(0, value - have.get(stack, 0))
    for key, rows in got.items():
        have = want.get(key, {})
        for stack, value in rows.items():
            more += max(0, value - have.get(stack, 0))
    return missing, more


def ends(directory, kind="cpu"):
    """When the windows of a kind in the store ended, by their starts, in ns."""
    found = {}
    for path in glob.glob(f"{directory}/profiles/*/*-{kind}.pb.gz"):
        p = pprofread.load(path)
        found[p.time_ns] = p.time_ns + p.duration_ns
    return found


def windows_of(span, until):
    """Starts of the windows that went together as one profile over that time, or None. Each begins
    where the last one ends: the clock may have shown the same time twice."""
    found, end = [span[0]], until.get(span[0])
    while end is not None and abs(end - span[1]) > 1e6:
        start = min(until, key=lambda s: abs(s - end))
        if end > span[1] or start in found or abs(start - end) > 1e9:
            return None
        found.append(start)
        end = until[start]
    return found if end is not None else None


def compare_gathered(want, until, series, program, without=()):
    """As compare(), where small windows may have gone together, and more than once, each time with
    others. What counts as there is in a profile that holds all that its windows have together."""
    held, profiles = (collections.defaultdict(collections.Counter) for _ in range(2))
    for (start, who), rows in want.items():
        held[start].update({(who, stack): n for stack, n in rows.items()})
    for s in series:
        rows = profiles[s.time_ns, s.time_ns + s.duration_ns]
        rows.update({(s.labels.get(program, ""), stack): n for stack, n in s.rows.items()})
    there, came, unknown = set(), 0, 0
    for span, rows in profiles.items():
        windows = windows_of(span, until)
        if windows is None:
            unknown += 1
            continue
        came += sum(rows.values())
        whole = sum((held[start] for start in windows), collections.Counter())
        there |= {(start, cell) for start in windows for cell in held[start]
                  if rows[cell] >= whole[cell]}
    cells = {(start, cell): n for start, rows in held.items() if start not in without
             for cell, n in rows.items()}
    missing = sum(n for key, n in cells.items() if key not in there)
    return missing, max(0, came - sum(cells.values()) + missing), unknown


def build_id_of(path):
    text = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
    return text.split("Build ID:")[1].split()[0]


def total(found):
    return sum(sum(rows.values()) for rows in found.values())


# ---- the collector ----

class Collector:
    """A real OpenTelemetry Collector that writes what it took to a file, one request a line."""

    def __init__(self, scratch):
        builder = os.path.join(lab.ROOT, "tests/stores/collector.sh")
        built = subprocess.run([builder], capture_output=True, text=True)
        if built.returncode:
            why = "no collector: " + built.stderr.strip().split("\n")[-1]
            check(not os.environ.get("CI"), why)
            skip(why)
        self.out, self.port = scratch.path("collector.json"), agentlab.free_port()
        config = scratch.path("collector.yaml")
        with open(config, "w") as f:
            json.dump({
                "receivers": {"otlp": {"protocols": {"http": {
                    "endpoint": f"127.0.0.1:{self.port}"}}}},
                "exporters": {"file": {"path": self.out, "flush_interval": "100ms"}},
                "service": {
                    "telemetry": {"metrics": {"level": "none"}},
                    "pipelines": {"profiles": {"receivers": ["otlp"], "exporters": ["file"]}}},
            }, f)  # JSON is YAML
        self.log = open(scratch.path("collector.log"), "w+")
        self.process = subprocess.Popen(
            [built.stdout.strip(), "--config", config,
             "--feature-gates=+service.profilesSupport"], stdout=self.log, stderr=self.log)
        agentlab.wait_for(self.answers, 60, "the collector answers", self.text)

    def text(self):
        self.log.flush()
        with open(self.log.name) as f:
            return f.read()[-2000:]

    def answers(self):
        check(self.process.poll() is None, f"the collector ended: {self.text()}")
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1development/profiles",
                                         data=b"", method="POST",
                                         headers={"Content-Type": "application/x-protobuf"})
        try:
            with urllib.request.urlopen(request, timeout=5):
                return True
        except OSError:
            return False

    def requests(self):
        """All that it took; ends it, since it writes with a delay."""
        self.stop()
        with open(self.out) as f:
            return [json.loads(line) for line in f if line.endswith("\n")]

    def stop(self):
        self.process.terminate()
        self.process.wait(30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.log.close()


class Json:
    """A request in the collector's JSON, whose indices are those of its own dictionary."""

    def __init__(self, request):
        self.request, self.d = request, request["dictionary"]

    def string(self, index):
        return self.d["stringTable"][index]

    def value(self, any_value):
        if "stringValueStrindex" in any_value:
            return self.string(any_value["stringValueStrindex"])
        return any_value.get("stringValue", "")

    def attributes(self, rows):
        return {r.get("key") or self.string(r.get("keyStrindex", 0)): self.value(r["value"])
                for r in rows}

    def indexed(self, indices):
        return self.attributes(self.d["attributeTable"][i] for i in indices)

    def location(self, index):
        row = self.d["locationTable"][index]
        mapping = self.d["mappingTable"][row.get("mappingIndex", 0)]
        module = self.string(mapping.get("filenameStrindex", 0))
        address = int(row.get("address", 0))
        frames = []
        for line in row.get("lines", []):
            f = self.d["functionTable"][line["functionIndex"]]
            name = self.string(f.get("nameStrindex", 0)) or \
                self.string(f.get("systemNameStrindex", 0))
            frames.append(rules.frame_text(name, module, address))
        return frames or [rules.frame_text(None, module, address)]

    def stack(self, index):
        texts = []
        for i in self.d["stackTable"][index].get("locationIndices", []):
            texts += self.location(i)
        return tuple(texts)

    def build_ids(self):
        """file -> build id"""
        found = {}
        for m in self.d["mappingTable"]:
            build_id = self.indexed(m.get("attributeIndices", [])).get(
                "process.executable.build_id.gnu")
            if build_id:
                found[self.string(m.get("filenameStrindex", 0))] = build_id
        return found

    def series(self):
        for rp in self.request["resourceProfiles"]:
            labels = self.attributes(rp["resource"].get("attributes", []))
            for sp in rp["scopeProfiles"]:
                for p in sp["profiles"]:
                    yield self._one(labels, p)

    def _one(self, labels, p):
        kind = tuple(self.string(p["sampleType"].get(k, 0))
                     for k in ("typeStrindex", "unitStrindex"))
        rows = collections.Counter()
        for s in p["samples"]:
            rows[self.stack(s.get("stackIndex", 0))] += int(s["values"][0])
        return rules.Series(labels, kind, int(p["timeUnixNano"]), int(p["durationNano"]),
                            int(p.get("period", 0)), rows, p["profileId"])


# ---- certificates ----

CA = """[ca]
default_ca = d
[d]
database = {0}/index
new_certs_dir = {0}
serial = {0}/serial
default_md = sha256
policy = p
x509_extensions = e
[p]
commonName = supplied
[e]
subjectAltName = {1}
"""


def certificate(scratch, name, host="DNS:localhost,IP:127.0.0.1", year=None):
    """A certificate signed by itself, of some year or of now: its file, its key."""
    folder = scratch.path(f"ca-{name}")
    crt, key, config = (f"{folder}/{f}" for f in ("crt", "key", "config"))
    os.mkdir(folder)
    for file, text in (("index", ""), ("serial", "01\n"), ("config", CA.format(folder, host))):
        with open(f"{folder}/{file}", "w") as f:
            f.write(text)

    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True)
    year = year or time.gmtime().tm_year
    openssl("req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out",
            f"{folder}/request", "-subj", f"/CN={name}")
    openssl("ca", "-batch", "-selfsign", "-config", config, "-keyfile", key, "-in",
            f"{folder}/request", "-out", crt, "-notext", "-startdate", f"{year}0101000000Z",
            "-enddate", f"{year + 1}1231000000Z")
    return crt, key


def agent(directory, *args, **more):
    """An agent with short windows of samples that sends each at once and tries again soon."""
    more.setdefault("collect", "1s")
    more.setdefault("window", "2s")
    return agentlab.Agent(directory, "--no-sched", "--send-spread", "0", "--send-gather", "0",
                          "--send-retry-max", "2s", *args, **more)
