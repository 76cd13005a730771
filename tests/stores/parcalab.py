# SPDX-License-Identifier: Apache-2.0
"""A real Parca for tests, and what its query API says."""

import base64
import collections
import json
import os
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import storelab
from storelab import agentlab, lab, pprofread
from tap import check, skip


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
            self.get("types")
            return True
        except OSError:
            return False

    def get(self, what, **parameters):
        url = f"http://127.0.0.1:{self.port}/api/profiles/{what}"
        query = urllib.parse.urlencode({k.replace("__", "."): v for k, v in parameters.items()})
        with urllib.request.urlopen(f"{url}?{query}", timeout=60) as answer:
            return json.load(answer)

    # ---- queries ----

    def types(self):
        return {":".join([t["name"], t["sampleType"], t["sampleUnit"], t["periodType"],
                          t["periodUnit"], *(["delta"] if t.get("delta") else [])])
                for t in self.get("types").get("types", [])}

    def values(self, label):
        return set(self.get(f"labels/{label}/values").get("labelValues", []))

    def merged(self, selector, start, end):
        """All profiles between two times, joined by Parca: as pprof."""
        answer = self.get("query", mode="MODE_MERGE", report_type="REPORT_TYPE_PPROF",
                          merge__query=selector, merge__start=start, merge__end=end)
        return pprofread.Profile(base64.b64decode(answer["pprof"]))

    def times(self, selector, start, end):
        """[(milliseconds, value)] of single profiles."""
        rows = collections.Counter()
        for series in self.get("query_range", query=selector, start=start, end=end).get("series", []):
            for s in series.get("samples", []):
                rows[s["timestamp"]] += int(s.get("value", 0))
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
