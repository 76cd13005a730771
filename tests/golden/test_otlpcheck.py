#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""tests/stores/otlpcheck.py finds nothing wrong in the golden OTLP request, and each kind of fault in
requests that were made wrong."""

import copy
import os
import struct
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [f"{ROOT}/tests/stores", f"{ROOT}/tests/live"]
import otlpcheck  # noqa: E402
from tap import check, equal, run, test  # noqa: E402
from wire import to_varint  # noqa: E402

with open(f"{ROOT}/tests/golden/otlp/node.bin", "rb") as golden:
    GOOD = golden.read()


# ---- trees back to bytes ----

def delimited(number, raw):
    return to_varint(number << 3 | 2) + to_varint(len(raw)) + raw


def field(number, kind, value):
    if kind in otlpcheck.MESSAGES:
        return delimited(number, encode(value, kind))
    if kind in ("string", "bytes"):
        return delimited(number, value.encode() if isinstance(value, str) else value)
    if kind in otlpcheck.FIXED:
        return to_varint(number << 3 | 1) + struct.pack(otlpcheck.FIXED[kind], value)
    return to_varint(number << 3) + to_varint(value)


def encode(tree, name):
    out = b""
    for number, (key, kind) in otlpcheck.MESSAGES[name].items():
        if isinstance(kind, list):
            out += b"".join(field(number, kind[0], v) for v in tree[key])
        elif tree[key] or key in tree["?"] and tree[key] is not None:
            out += field(number, kind, tree[key])
    return out


# ---- faults ----

def first(tree):
    return tree["resource_profiles"][0]["scope_profiles"][0]["profiles"][0]


def change(path, value):
    """Sets what a path of keys and indices leads to; 'p' and 's' stand for the first profile and
    sample, 'd' for the dictionary."""
    def fault(tree):
        at = {"p": first(tree), "s": first(tree)["samples"][0], "d": tree["dictionary"],
              "r": tree["resource_profiles"][0]}[path[0]]
        for key in path[1:-1]:
            at = at[key]
        at[path[-1]] = value(at[path[-1]]) if callable(value) else value
    return fault


def twice(rows):
    return rows + [copy.deepcopy(rows[-1])]


FAULTS = {
    "no dictionary": (lambda t: t.update(dictionary=None), "no dictionary"),
    "a table without element 0": (change(("d", "link_table"), []), "link_table is empty"),
    "ids of 16 zeros": (change(("d", "link_table", 0, "trace_id"), bytes(16)), "not the zero value"),
    "string 0": (change(("d", "string_table", 0), "x"), "string_table[0]"),
    "a string twice": (change(("d", "string_table"), twice), "string_table has duplicates"),
    "a stack twice": (change(("d", "stack_table"), twice), "stack_table has duplicates"),
    "an orphan": (change(("d", "string_table"), lambda rows: rows + ["nobody's"]), "orphans"),
    "stack out of range": (change(("s", "stack_index"), 99999), "out of range"),
    "negative index": (change(("s", "stack_index"), -1), "out of range"),
    "link out of range": (change(("s", "link_index"), 7), "link_table[7]"),
    "attribute out of range": (change(("s", "attribute_indices"), [4711]), "out of range"),
    "attribute 0": (change(("s", "attribute_indices"), [0]), "index 0 of attribute_table"),
    "an attribute twice": (change(("s", "attribute_indices"), [1, 1]), "attribute keys"),
    "no values": (change(("s", "values"), []), "neither values nor timestamps"),
    "two values": (change(("s", "values"), [1, 2]), "2 values"),
    "value 0": (change(("s", "values"), [0]), "values [0]"),
    "times without": (change(("s", "timestamps_unix_nano"), [1]), "outside"),
    "one identity": (change(("p", "samples"), twice), "one identity"),
    "no samples": (change(("p", "samples"), []), "without samples"),
    "no sample type": (change(("p", "sample_type"), None), "sample_type is absent"),
    "no period type": (change(("p", "period_type"), None), "period_type is absent"),
    "no time": (change(("p", "time_unix_nano"), 0), "time_unix_nano"),
    "no duration": (change(("p", "duration_nano"), 0), "duration_nano"),
    "id of 15 bytes": (change(("p", "profile_id"), b"x" * 15), "id "),
    "a profile twice": (change(("r", "scope_profiles", 0, "profiles"), twice), "comes twice"),
    "payload without format": (change(("p", "original_payload"), b"x"), "payload"),
    "no scope": (change(("r", "scope_profiles", 0, "scope"), None), "scope is absent"),
    "no resource": (change(("r", "resource"), None), "resource is absent"),
    "a key twice": (change(("r", "resource", "attributes"), twice), "keys"),
    "mapping upside down": (change(("d", "mapping_table", 1, "memory_start"), 1 << 60), "a mapping"),
    "function without names": (change(("d", "function_table", 1), lambda row: {
        **row, "name_strindex": 0, "system_name_strindex": 0, "filename_strindex": 0}), "without name"),
    "location 0": (change(("d", "stack_table", 1, "location_indices"), [0]),
                   "index 0 of location_table"),
}

RAW = {
    "cut": (GOOD[:-1], "are left"),
    "an unknown field": (GOOD + delimited(9, b""), "no field 9"),
    "the dictionary twice": (GOOD + delimited(2, b""), "comes twice"),
    "a wrong wire type": (GOOD + to_varint(1 << 3) + b"\1", "wire type 0"),
    "no UTF-8": (delimited(2, delimited(5, b"\xff")), "not UTF-8"),
    "an index of 33 bits": (delimited(2, delimited(7, delimited(1, to_varint(1 << 32)))), "no int32"),
}


@test("the golden request has no fault, as it is and written anew; nor has one without profiles")
def good():
    equal(otlpcheck.check(GOOD), [], "golden request")
    equal(otlpcheck.check(encode(otlpcheck.message(GOOD, "Data"), "Data")), [], "written anew")
    tables = {name: [] for name, _ in otlpcheck.MESSAGES["Dictionary"].values()}
    empty = {"resource_profiles": [], "?": set(), "dictionary": {
        **tables, "?": set(), **{name: [otlpcheck.message(b"", kind[0])] if kind[0] != "string"
                                 else [""] for name, kind in
                                 otlpcheck.MESSAGES["Dictionary"].values()}}}
    equal(otlpcheck.check(encode(empty, "Data")), [], "empty request")


@test(f"each of {len(FAULTS)} faults of content is found")
def content():
    for what, (fault, says) in FAULTS.items():
        tree = otlpcheck.message(GOOD, "Data")
        fault(tree)
        problems = otlpcheck.check(encode(tree, "Data"))
        check(any(says in line for line in problems), f"{what}: {says!r} is not among {problems}")


@test(f"each of {len(RAW)} faults of form is found")
def form():
    for what, (data, says) in RAW.items():
        problems = otlpcheck.check(data)
        check(any(says in line for line in problems), f"{what}: {says!r} is not among {problems}")


if __name__ == "__main__":
    run(needs_root=False)
