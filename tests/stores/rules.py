# SPDX-License-Identifier: Apache-2.0
"""What stores refuse, as checks of decoded requests. OTLP: the invariants of its data model, which
its checker `profcheck` looks at too: element 0 of each table empty, no doubles, nothing that
nobody uses, every index in range. Pyroscope and Parca: the limits and rules of their push paths.
All raise Bad. Each request is turned into the same plain series, to be compared."""

import re
import struct
import sys
import time

sys.path.insert(0, __file__.rsplit("/", 2)[0] + "/live")
import pprofread  # noqa: E402
from schema import Bad  # noqa: E402

NAME = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_]*$")
BUILD_ID = re.compile(r"^([0-9a-f]{3,}|)$")
# Parca: of one message. Pyroscope: what its tenants may send at once, above which it says 429.
MAX_MESSAGE, BURST = 64 << 20, 2 << 20


class Series:
    """labels; type; start and duration in ns; rows {stack: value}, stack: texts, leaf first."""

    def __init__(self, labels, kind, time_ns, duration_ns, period, rows, key):
        self.labels, self.kind, self.time_ns, self.duration_ns = labels, kind, time_ns, duration_ns
        self.period, self.rows, self.key = period, rows, key

    @property
    def total(self):
        return sum(self.rows.values())


def need(good, text):
    if not good:
        raise Bad(text)


def frame_text(function, module, address):
    return function or f"{module or '?'}+{address:#x}"


# ---- OTLP ----

class Dictionary:
    TABLES = ("mapping_table", "location_table", "function_table", "link_table", "string_table",
              "attribute_table", "stack_table")

    def __init__(self, d):
        self.d, self.used = d, {name: {0} for name in self.TABLES}
        for name in self.TABLES:
            table = d[name]
            need(table, f"{name} is empty")
            need(not any(table[0].values()) if name != "string_table" else table[0] == "",
                 f"{name}[0] is not the zero value: {table[0]}")
            keys = [repr(row) for row in table]
            need(len(set(keys)) == len(keys), f"{name} has doubles")

    def get(self, table, index):
        need(0 <= index < len(self.d[table]), f"{table}[{index}] is out of range")
        self.used[table].add(index)
        return self.d[table][index]

    def string(self, index):
        return self.get("string_table", index)

    def attributes(self, indices):
        found = {}
        for i in indices:
            need(i, "an attribute index is 0")
            row = self.get("attribute_table", i)
            key = self.string(row.key_strindex)
            need(key and key not in found, f"attribute key {key!r} is empty or comes twice")
            need(row.value is not None, f"attribute {key} has no value")
            found[key] = row.value.string_value
            self.string(row.unit_strindex)
        return found

    def location(self, index):
        """Frames of a location, innermost inlined first."""
        need(index, "a location index is 0")
        row = self.get("location_table", index)
        mapping = self.get("mapping_table", row.mapping_index)
        need(mapping.memory_start < mapping.memory_limit or
             not (mapping.memory_start or mapping.memory_limit), "a mapping without length")
        module = self.string(mapping.filename_strindex)
        self.attributes(mapping.attribute_indices)
        self.attributes(row.attribute_indices)
        texts = []
        for line in row.lines:
            need(line.function_index, "a line without function")
            f = self.get("function_table", line.function_index)
            names = [self.string(i) for i in
                     (f.name_strindex, f.system_name_strindex, f.filename_strindex)]
            need(any(names), "a function without any name")
            texts.append(frame_text(names[0] or names[1], module, row.address))
        return texts or [frame_text(None, module, row.address)]

    def stack(self, index):
        texts = []
        for i in self.get("stack_table", index).location_indices:
            texts += self.location(i)
        return tuple(texts)

    def check_orphans(self):
        for name in self.TABLES:
            unused = set(range(len(self.d[name]))) - self.used[name]
            need(not unused, f"{name}: nobody uses {sorted(unused)[:5]}: "
                 f"{[self.d[name][i] for i in sorted(unused)[:5]]}")


def value_type(d, t, what):
    need(t is not None, f"{what} is absent")
    return d.string(t.type_strindex), d.string(t.unit_strindex)


def otlp_profile(d, labels, p):
    kind = value_type(d, p.sample_type, "sample_type")
    need(all(kind) and NAME.match(kind[0]), f"sample type {kind}")
    value_type(d, p.period_type, "period_type")
    need(p.samples, "a profile without samples")
    need(len(p.profile_id) == 16 and any(p.profile_id), "profile id")
    need(p.time_unix_nano and p.duration_nano, "no time or duration")
    rows, seen = {}, set()
    for s in p.samples:
        identity = s.stack_index, tuple(sorted(s.attribute_indices))
        need(identity not in seen, "two samples with one identity")
        seen.add(identity)
        need(len(s["values"]) == 1 and s["values"][0] > 0, f"values {s['values']}")
        d.attributes(s.attribute_indices)
        stack = d.stack(s.stack_index)
        rows[stack] = rows.get(stack, 0) + s["values"][0]
    return Series(labels, kind, p.time_unix_nano, p.duration_nano, p.period, rows,
                  p.profile_id.hex())


def check_otlp(request):
    need(request.dictionary is not None, "no dictionary")
    d, found = Dictionary(request.dictionary), []
    for rp in request.resource_profiles:
        need(rp.resource is not None, "no resource")
        labels = {a.key: a.value.string_value for a in rp.resource.attributes}
        need(len(labels) == len(rp.resource.attributes), "a resource's keys are not unique")
        need(labels.get("service.name") and labels.get("host.name"), f"resource {labels}")
        need(len(labels) <= 30, "more attributes than Pyroscope takes")
        for sp in rp.scope_profiles:
            need(sp.scope is not None and sp.scope.name, "no scope")
            found += [otlp_profile(d, labels, p) for p in sp.profiles]
    d.check_orphans()
    return found


# ---- Pyroscope and Parca ----

def labels_of(pairs):
    labels = {p.name: p.value for p in pairs}
    need(len(labels) == len(pairs), "label names are not unique")
    for name, text in labels.items():
        need(NAME.match(name), f"label name {name!r}")
        need(len(name) <= 1024 and len(text.encode()) <= 2048 and text, f"label {name} {text!r}")
    need(labels.get("__name__"), "no __name__")
    return labels


def read_pprof(raw):
    try:
        p = pprofread.Profile(raw)
        p.check()
    except pprofread.Bad as why:
        raise Bad(f"pprof: {why}") from None
    for kind, unit in (*p.types, p.period_type):  # without a period type Pyroscope's code ends
        need(NAME.match(kind) and NAME.match(unit), f"type {kind!r} {unit!r}")
    need(p.time_ns > 0, "no time")
    need(len(set(p.types)) == len(p.types), f"types {p.types}")
    need(max(map(len, p.strings)) <= 65535, "a string that Pyroscope cuts")
    for s in p.samples:
        need(s.location_ids and all(s.location_ids), f"a stack of {s.location_ids}")
        need(len(s.location_ids) <= 1000, "a stack that Pyroscope cuts")
    check_mappings(p)
    return p


def check_mappings(p):
    """A mapping may say that it is wholly named only if it is: Pyroscope then drops its addresses.
    Addresses are the file's own, so a mapping has no place of its own."""
    whole = {}
    for location in p.locations.values():
        i = one(location, 2)
        need(i in p.mappings or i == 0, f"no mapping {i}")
        whole[i] = whole.get(i, True) and bool(location.get(4))
        need(location.get(4) or one(location, 3), "a location with neither name nor address")
    for i, m in p.mappings.items():
        need(BUILD_ID.match(p.strings[one(m, 6)]), f"build id {p.strings[one(m, 6)]!r}")
        need(not one(m, 7) or whole.get(i), f"mapping {i} is marked as wholly named and is not")
        need(not (one(m, 2) or one(m, 3) or one(m, 4)), f"mapping {i} has a place")


def one(message, number):
    values = message.get(number, [0])
    need(len(values) == 1, f"field {number} comes {len(values)} times")
    return values[0]


def profile_series(labels, p, key):
    need(p.samples, "a profile without samples")
    for i, kind in enumerate(p.types):
        rows = {}
        for s in p.samples:
            need(not s.labels, f"labels of samples would become series: {s.labels}")
            stack = tuple(frame_text(f.function or f.system_name, f.module, f.address)
                          for f in s.frames)
            rows[stack] = rows.get(stack, 0) + s.values[i]
        yield Series(labels, kind, p.time_ns, p.duration_ns, p.period, rows, key)


def check_pyroscope(request, now=None):
    found, seen = [], set()
    now = now or time.time()
    need(request.series, "no profiles received")
    for n, series in enumerate(request.series):
        labels = labels_of(series.labels)
        need(len(labels) <= 30, f"{len(labels)} labels")
        need(labels.get("service_name"), "no service_name")
        need([k for k in labels if k.startswith("__")] == ["__name__"], f"private labels {labels}")
        need(not any(k.startswith("service_") for k in labels if k != "service_name"),
             "a label that would become part of the build ids")
        need(len(series.samples) == 1, f"{len(series.samples)} profiles of one series")
        for sample in series.samples:
            plain = pprofread.unpack(sample.raw_profile)
            need(len(plain) <= 4 << 20, f"profile of {len(plain)} bytes")
            p = read_pprof(sample.raw_profile)
            need(len(p.samples) <= 16000, f"{len(p.samples)} samples")
            need(now - 3600 <= p.time_ns / 1e9 <= now + 600, f"time {p.time_ns}")
            need(len(plain) + sum(len(k) + len(v) for k, v in labels.items()) <= BURST,
                 f"{len(plain)} bytes can never pass the rate limit")
            identity = p.time_ns, frozenset(labels.items())
            # Halves of one series come in one request only if the whole is over a limit.
            need(identity not in seen or len(plain) > 8 << 10, f"two of {labels}")
            seen.add(identity)
            found += profile_series(labels, p, f"{n}")
    return found


def selector(labels, p, kind):
    """The name under which Parca files a type; it parses it as a selector."""
    text = ":".join((labels["__name__"], *kind, *p.period_type, "delta"))
    need(re.match(r"^[a-zA-Z_]\w*(:[a-zA-Z_]\w*){4}:delta$", text), f"profile type {text}")


def check_parca(request, size=0):
    found = []
    need(size <= MAX_MESSAGE, f"a message of {size} bytes")
    for n, series in enumerate(request.series):
        need(series.labels is not None, "labels are absent: this ends the server")
        labels = labels_of(series.labels.labels)
        for sample in series.samples:
            p = read_pprof(sample.raw_profile)  # ids from 1, in order, too
            need(p.duration_ns > 0, "no duration: not a delta profile")
            for kind in p.types:
                selector(labels, p, kind)
            found += profile_series(labels, p, f"{n}")
    return found


def grpc_web_message(body):
    """The one message of a gRPC-Web request."""
    need(len(body) >= 5 and body[0] == 0, "no data frame")
    length = struct.unpack(">I", body[1:5])[0]
    need(len(body) == 5 + length, f"frame of {length} in {len(body)} bytes")
    return body[5:]
