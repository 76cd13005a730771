#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The golden OTLP request (made by unit/test_otlp.c, compared there byte by byte) is a valid one, and
says what it should. UPDATE=1 writes the text anew."""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{ROOT}/tests/stores")
import peer  # noqa: E402
import rules  # noqa: E402

FOLDER = f"{ROOT}/tests/golden/otlp"


def text_of(request):
    lines = []
    for s in rules.check_otlp(request):
        lines.append(f"{s.labels} {s.kind} {s.time_ns} {s.duration_ns} {s.period} {s.key}")
        lines += [f"  {value} {' '.join(stack)}" for stack, value in sorted(s.rows.items())]
    d = request.dictionary
    for name in rules.Dictionary.TABLES:
        lines.append(f"{name} {len(d[name])}")
    for row in d.attribute_table[1:]:
        lines.append(f"  {d.string_table[row.key_strindex]}={row.value.string_value}")
    return "\n".join(lines) + "\n"


def main():
    print("1..2")
    with open(f"{FOLDER}/node.bin", "rb") as f:
        request = peer.OTLP.decode(f.read(), "ExportProfilesServiceRequest")
    try:
        got = text_of(request)
        print("ok 1 - the golden request keeps all rules")
    except rules.Bad as why:
        print(f"not ok 1 - the golden request keeps all rules\n# {why}")
        return 1
    if os.environ.get("UPDATE"):
        with open(f"{FOLDER}/node.txt", "w") as f:
            f.write(got)
    with open(f"{FOLDER}/node.txt") as f:
        good = f.read() == got
    print(f"{'ok' if good else 'not ok'} 2 - it says what it should")
    if not good:
        print("\n".join("# " + line for line in got.splitlines()))
    return not good


if __name__ == "__main__":
    sys.exit(main())
