#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""A checker of OTLP profiles in bytes, written from the published rules of the data model (package
opentelemetry.proto.profiles.v1development, 1.11), in the manner of its own checker `profcheck`,
which cannot be had here. It knows all messages, by field numbers of its own, and shares nothing
with sonde, its schema or rules.py.

otlpcheck.py FILE...: prints what is wrong with each request; status 1 if anything is."""

import gzip
import struct
import sys

# message: {number: (name, type)}; [type] is repeated, and packed where it is a number.
MESSAGES = {
    "Data": {1: ("resource_profiles", ["ResourceProfiles"]), 2: ("dictionary", "Dictionary")},
    "Dictionary": {
        1: ("mapping_table", ["Mapping"]), 2: ("location_table", ["Location"]),
        3: ("function_table", ["Function"]), 4: ("link_table", ["Link"]),
        5: ("string_table", ["string"]), 6: ("attribute_table", ["KeyValueAndUnit"]),
        7: ("stack_table", ["Stack"])},
    "ResourceProfiles": {1: ("resource", "Resource"), 2: ("scope_profiles", ["ScopeProfiles"]),
                         3: ("schema_url", "string")},
    "ScopeProfiles": {1: ("scope", "Scope"), 2: ("profiles", ["Profile"]),
                      3: ("schema_url", "string")},
    "Profile": {
        1: ("sample_type", "ValueType"), 2: ("samples", ["Sample"]),
        3: ("time_unix_nano", "fixed64"), 4: ("duration_nano", "uint64"),
        5: ("period_type", "ValueType"), 6: ("period", "int64"), 7: ("profile_id", "bytes"),
        8: ("dropped_attributes_count", "uint32"), 9: ("original_payload_format", "string"),
        10: ("original_payload", "bytes"), 11: ("attribute_indices", ["int32"])},
    "Sample": {1: ("stack_index", "int32"), 2: ("attribute_indices", ["int32"]),
               3: ("link_index", "int32"), 4: ("values", ["int64"]),
               5: ("timestamps_unix_nano", ["fixed64"])},
    "ValueType": {1: ("type_strindex", "int32"), 2: ("unit_strindex", "int32")},
    "Mapping": {1: ("memory_start", "uint64"), 2: ("memory_limit", "uint64"),
                3: ("file_offset", "uint64"), 4: ("filename_strindex", "int32"),
                5: ("attribute_indices", ["int32"])},
    "Stack": {1: ("location_indices", ["int32"])},
    "Location": {1: ("mapping_index", "int32"), 2: ("address", "uint64"), 3: ("lines", ["Line"]),
                 4: ("attribute_indices", ["int32"])},
    "Line": {1: ("function_index", "int32"), 2: ("line", "int64"), 3: ("column", "int64")},
    "Function": {1: ("name_strindex", "int32"), 2: ("system_name_strindex", "int32"),
                 3: ("filename_strindex", "int32"), 4: ("start_line", "int64")},
    "Link": {1: ("trace_id", "bytes"), 2: ("span_id", "bytes")},
    "KeyValueAndUnit": {1: ("key_strindex", "int32"), 2: ("value", "AnyValue"),
                        3: ("unit_strindex", "int32")},
    "Resource": {1: ("attributes", ["KeyValue"]), 2: ("dropped_attributes_count", "uint32")},
    "Scope": {1: ("name", "string"), 2: ("version", "string"), 3: ("attributes", ["KeyValue"]),
              4: ("dropped_attributes_count", "uint32")},
    "KeyValue": {1: ("key", "string"), 2: ("value", "AnyValue"), 3: ("key_strindex", "int32")},
    "AnyValue": {1: ("string_value", "string"), 2: ("bool_value", "bool"),
                 3: ("int_value", "int64"), 4: ("double_value", "double"),
                 5: ("array_value", "bytes"), 6: ("kvlist_value", "bytes"),
                 7: ("bytes_value", "bytes"), 8: ("string_value_strindex", "int32")},
}
ZERO = {"string": "", "bytes": b""}
FIXED = {"fixed64": "<Q", "double": "<d"}
MIN_INT32, MAX_INT32 = -1 << 31, (1 << 31) - 1


class Wrong(Exception):
    """The bytes are no such message."""


# ---- bytes to trees: a message is a dict with all its fields, and "?" for which were there ----

def varint(data, at):
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            if value >> 64:
                break
            return value, at
    raise Wrong("a varint is cut or too long")


def scalar(kind, value, where):
    if kind in ("int32", "int64"):
        value -= value >> 63 << 64
    if kind == "int32" and not MIN_INT32 <= value <= MAX_INT32 or \
            kind == "uint32" and value >> 32 or kind == "bool" and value > 1:
        raise Wrong(f"{where}: {value} is no {kind}")
    return value


def one(kind, wire, raw, where):
    """A field's value that is not packed."""
    if kind in MESSAGES and wire == 2:
        return message(raw, kind)
    if kind == "string" and wire == 2:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise Wrong(f"{where}: {raw[:40]!r} is not UTF-8") from None
    if kind == "bytes" and wire == 2:
        return raw
    if kind in FIXED and wire == 1:
        return struct.unpack(FIXED[kind], raw)[0]
    if wire == 0 and kind not in MESSAGES and kind not in ("string", "bytes", *FIXED):
        return scalar(kind, raw, where)
    raise Wrong(f"{where}: wire type {wire} for {kind}")


def packed(kind, raw, where):
    if kind in FIXED:
        if len(raw) % 8:
            raise Wrong(f"{where}: {len(raw)} bytes of {kind}")
        return [v for v, in struct.iter_unpack(FIXED[kind], raw)]
    values, at = [], 0
    while at < len(raw):
        value, at = varint(raw, at)
        values.append(scalar(kind, value, where))
    return values


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            raw, at = varint(data, at)
        else:
            size = 8
            if wire == 2:
                size, at = varint(data, at)
            elif wire != 1:
                raise Wrong(f"field {number}: wire type {wire}")
            if size > len(data) - at:
                raise Wrong(f"field {number}: {size} bytes, {len(data) - at} are left")
            raw, at = bytes(data[at:at + size]), at + size
        yield number, wire, raw


def message(data, name):
    known, tree = MESSAGES[name], {"?": set()}
    for field, kind in known.values():
        tree[field] = [] if isinstance(kind, list) else \
            None if kind in MESSAGES else ZERO.get(kind, 0)
    for number, wire, raw in fields(data):
        if number not in known:
            raise Wrong(f"{name} has no field {number}")
        field, kind = known[number]
        where = f"{name}.{field}"
        if isinstance(kind, list):
            number_kind = kind[0] not in MESSAGES and kind[0] not in ("string", "bytes")
            tree[field] += packed(kind[0], raw, where) if number_kind and wire == 2 else \
                [one(kind[0], wire, raw, where)]
        elif field in tree["?"]:
            raise Wrong(f"{where} comes twice")
        else:
            tree[field] = one(kind, wire, raw, where)
        tree["?"].add(field)
    return tree


def plain(value):
    """Without the notes of what was there: equal for equal messages."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k != "?"}
    return [plain(v) for v in value] if isinstance(value, list) else value


def is_zero(row):
    return not any(plain(row).values()) if isinstance(row, dict) else not row


# ---- the rules ----

class Checker:
    """Collects what is wrong, at most a few of a kind."""

    def __init__(self, data):
        self.problems, self.data, self.ids = [], message(data, "Data"), set()
        d = self.data["dictionary"]
        self.tables = {name: d[name] for name, _ in MESSAGES["Dictionary"].values()} if d else {}
        self.used = {name: {0} for name in self.tables}

    def say(self, good, text):
        if not good and len(self.problems) < 50:
            self.problems.append(text)
        return good

    def look(self, table, index, where, none=True):
        """The row of an index; 0 stands for "not set", which some places do not allow."""
        if not self.say(0 <= index < len(self.tables[table]), f"{where}: {table}[{index}]: out of "
                        "range"):
            return self.tables[table][0]
        self.say(index or none, f"{where}: index 0 of {table}")
        self.used[table].add(index)
        return self.tables[table][index]

    def run(self):
        if not self.say(self.tables, "no dictionary"):
            return self.problems
        for name, table in self.tables.items():
            if not self.say(table, f"{name} is empty: element 0 is missing"):
                return self.problems
            self.say(is_zero(table[0]), f"{name}[0] is not the zero value")
            self.say(len({repr(plain(r)) for r in table}) == len(table), f"{name} has duplicates")
        for rp in self.data["resource_profiles"]:
            self.resource(rp)
        for name, table in self.tables.items():
            orphans = set(range(len(table))) - self.used[name]
            self.say(not orphans, f"{name} has orphans: {sorted(orphans)[:5]}")
        return self.problems

    def resource(self, rp):
        if self.say(rp["resource"] is not None, "resource is absent"):
            self.key_values(rp["resource"]["attributes"], "resource")
        self.say(rp["scope_profiles"], "a resource without scopes")
        for sp in rp["scope_profiles"]:
            if self.say(sp["scope"] is not None, "scope is absent"):
                self.key_values(sp["scope"]["attributes"], "scope")
            self.say(sp["profiles"], "a scope without profiles")
            for p in sp["profiles"]:
                self.profile(p)

    def key_values(self, rows, where):
        keys = [r["key"] for r in rows]
        self.say(all(keys) and len(set(keys)) == len(keys), f"{where}: keys {keys}")
        for r in rows:
            self.say(not r["key_strindex"], f"{where}: key_strindex")
            self.any_value(r["value"], f"{where}: {r['key']}")

    def any_value(self, value, where):
        if self.say(value is not None, f"{where} has no value"):
            self.say(len(value["?"]) <= 1, f"{where}: values {value['?']}")
            if "string_value_strindex" in value["?"]:
                self.look("string_table", value["string_value_strindex"], where)

    def attributes(self, indices, where):
        keys = []
        for i in indices:
            row = self.look("attribute_table", i, where, none=False)
            keys.append(self.look("string_table", row["key_strindex"], where, none=False))
            self.look("string_table", row["unit_strindex"], where)
            if i:
                self.any_value(row["value"], f"{where}: attribute {keys[-1]}")
        self.say(len(set(keys)) == len(keys), f"{where}: attribute keys {keys}")

    def value_type(self, t, where):
        if not self.say(t is not None, f"{where} is absent"):
            return "", ""
        return tuple(self.look("string_table", t[k], where)
                     for k in ("type_strindex", "unit_strindex"))

    def profile(self, p):
        kind = self.value_type(p["sample_type"], "sample_type")
        self.say(all(kind), f"sample_type {kind}")
        period = self.value_type(p["period_type"], "period_type")
        self.say(p["period"] >= 0 and bool(p["period"]) <= bool(period[0]), f"period of {period}")
        self.say(p["time_unix_nano"] > 0, "time_unix_nano is 0")
        self.say(p["duration_nano"] > 0, "duration_nano is 0")
        self.say(len(p["profile_id"]) == 16 and any(p["profile_id"]), f"id {p['profile_id'].hex()}")
        self.say(p["profile_id"] not in self.ids, f"id {p['profile_id'].hex()} comes twice")
        self.ids.add(p["profile_id"])
        self.attributes(p["attribute_indices"], "profile")
        self.say(bool(p["original_payload"]) == bool(p["original_payload_format"]), "payload")
        self.say(p["samples"], "a profile without samples")
        shapes, identities = set(), set()
        for s in p["samples"]:
            shapes.add((bool(s["values"]), bool(s["timestamps_unix_nano"])))
            identity = s["stack_index"], frozenset(s["attribute_indices"]), s["link_index"]
            self.say(identity not in identities, f"two samples of one identity {identity}")
            identities.add(identity)
            self.sample(s, p)
        self.say(len(shapes) <= 1, f"samples of several shapes {shapes}")

    def sample(self, s, p):
        values, times = s["values"], s["timestamps_unix_nano"]
        self.say(values or times, "a sample with neither values nor timestamps")
        self.say(not times or not values or len(times) == len(values),
                 f"{len(values)} values, {len(times)} timestamps")
        self.say(times or len(values) == 1, f"{len(values)} values of one sample without times")
        end = p["time_unix_nano"] + p["duration_nano"]
        self.say(all(p["time_unix_nano"] <= t < end for t in times), "a timestamp is outside")
        self.say(all(v > 0 for v in values), f"values {values}")
        self.attributes(s["attribute_indices"], "sample")
        self.look("link_table", s["link_index"], "sample")
        for i in self.look("stack_table", s["stack_index"], "sample")["location_indices"]:
            self.location(self.look("location_table", i, "stack", none=False))

    def location(self, row):
        mapping = self.look("mapping_table", row["mapping_index"], "location")
        self.attributes(row["attribute_indices"], "location")
        start, limit = mapping["memory_start"], mapping["memory_limit"]
        self.say(start < limit or start == limit == 0, f"a mapping of {start:#x} to {limit:#x}")
        self.look("string_table", mapping["filename_strindex"], "mapping")
        self.attributes(mapping["attribute_indices"], "mapping")
        for line in row["lines"]:
            f = self.look("function_table", line["function_index"], "line", none=False)
            names = [self.look("string_table", f[k], "function")
                     for k in ("name_strindex", "system_name_strindex", "filename_strindex")]
            self.say(any(names), "a function without name, system name and file name")
            self.say(line["line"] >= 0 and line["column"] >= 0 and f["start_line"] >= 0, "a line < 0")


def check(data):
    """What is wrong with a request's bytes: a list of lines."""
    try:
        return Checker(data).run()
    except Wrong as why:
        return [str(why)]


def main(paths):
    bad = False
    for path in paths:
        with open(path, "rb") as f:
            data = f.read()
        for line in check(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data):
            print(f"{path}: {line}")
            bad = True
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
