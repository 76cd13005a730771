# SPDX-License-Identifier: Apache-2.0
"""A real Parca for tests, and what its query API says."""

import collections
import json
import os
import re
import struct
import subprocess
import urllib.request

import schema
import storelab
from storelab import agentlab, lab, pprofread
from tap import check, skip


SCHEMA = schema.Schema(os.path.join(lab.ROOT, "tests/stores/parca_query.proto"))
MODE_MERGE, REPORT_PPROF = 2, 1


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number, value):
    """A number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def between(number, start, end):
    """Two timestamps."""
    return field(number, field(1, int(start))) + field(number + 1, field(1, int(end)))


# Else it leaves out what interpreters of Python and Ruby do.
ALL_FRAMES = field(1, 1) + field(2, 1)


class Parca:
    """Everything in memory; symbols are asked of nobody."""

    def __init__(self, scratch):
        if not lab.FULL:
            skip("FULL=1: building Parca takes many minutes")
        built = subprocess.run([os.path.join(lab.ROOT, "tests/stores/parca.sh")],
                               capture_output=True, text=True)
        if built.returncode:
            skip("no Parca: " + built.stderr.strip().split("\n")[-1])
        self.port, config = agentlab.free_port(), scratch.path("parca.yaml")
        with open(config, "w") as f:
            json.dump({"object_storage": {"bucket": {
                "type": "FILESYSTEM", "config": {"directory": scratch.path("bucket")}}}}, f)
        self.log = open(scratch.path("parca.log"), "w+")
        self.process = subprocess.Popen(
            [built.stdout.strip(), "--config-path", config, "--log-level", "debug",
             "--http-address", f"127.0.0.1:{self.port}", "--http-read-timeout", "2m",
             "--debuginfo-cache-dir", scratch.path("debuginfo"),
             "--debuginfod-upstream-servers", "http://127.0.0.1:9",
             "--storage-path", scratch.path("data")], stdout=self.log, stderr=self.log,
            cwd=scratch.name)
        agentlab.wait_for(self.answers, 60, "Parca answers", self.text)

    def text(self):
        self.log.flush()
        with open(self.log.name) as f:
            return f.read()[-2000:]

    def answers(self):
        check(self.process.poll() is None, f"Parca ended: {self.text()}")
        try:
            self.types()
            return True
        except OSError:
            return False

    def ask(self, method, answer, request=b""):
        """A call in gRPC-Web: its REST paths are not to be had in this version."""
        url = f"http://127.0.0.1:{self.port}/parca.query.v1alpha1.QueryService/{method}"
        call = urllib.request.Request(url, b"\0" + struct.pack(">I", len(request)) + request,
                                      {"Content-Type": "application/grpc-web+proto"})
        with urllib.request.urlopen(call, timeout=60) as response:
            status, body = response.headers.get("grpc-status"), response.read()
        frames = {}
        while body:
            flag, length = struct.unpack(">BI", body[:5])
            frames[flag], body = body[5:5 + length], body[5 + length:]
        words = frames.get(0x80, b"").decode().lower() or f"grpc-status: {status}"
        check(re.search(r"grpc-status: ?0\b", words), f"{method}: {words}, {response.headers}")
        return SCHEMA.decode(frames.get(0, b""), answer)

    # ---- queries ----

    def types(self):
        return {":".join([t.name, t.sample_type, t.sample_unit, t.period_type, t.period_unit,
                          *(["delta"] if t.delta else [])])
                for t in self.ask("ProfileTypes", "ProfileTypesResponse").types}

    def values(self, label):
        return set(self.ask("Values", "ValuesResponse", field(1, label.encode())).label_values)

    def merged(self, selector, start, end):
        """All profiles between two times in s, joined by Parca: as pprof."""
        merge = field(1, selector.encode()) + between(2, start, end)
        answer = self.ask("Query", "QueryResponse",
                          field(1, MODE_MERGE) + field(3, merge) + field(5, REPORT_PPROF)
                          + field(10, ALL_FRAMES))
        return pprofread.Profile(answer.pprof)

    def times(self, selector, start, end):
        """[(ns, value)] of single profiles."""
        rows = collections.Counter()
        for series in self.ask("QueryRange", "QueryRangeResponse",
                               field(1, selector.encode()) + between(2, start, end)).series:
            for s in series.samples:
                rows[s.timestamp.seconds * 10**9 + s.timestamp.nanos] += s.value
        return sorted(rows.items())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def rows_of(profile, index=0):
    """{stack: value} in the words of storelab.sampled()."""
    rows = collections.Counter()
    for s in profile.samples:
        rows[storelab.texts_of(s)] += s.values[index]
    return rows
