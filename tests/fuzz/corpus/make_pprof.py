#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of fuzz_pprof: one small valid profile in several forms."""
import gzip
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "live"))
from wire import to_varint  # noqa: E402  pylint: disable=wrong-import-position


def number(field, n):
    return to_varint(field << 3) + to_varint(n)


def blob(field, data):
    return to_varint(field << 3 | 2) + to_varint(len(data)) + data


STRINGS = [b"", b"samples", b"count", b"cpu", b"nanoseconds", b"main", b"hot;one", b"/bin/app",
           b"00ff", b"comm", b"app", b"pid", b"a\nb\xff", b"app.c"]


def profile(packed, first_id):
    ids = [first_id, first_id + 1]
    if packed:
        stack = blob(1, to_varint(ids[0]) + to_varint(ids[1]))
        values = blob(2, to_varint(3) + to_varint(30000000))
    else:
        stack = number(1, ids[0]) + number(1, ids[1])
        values = number(2, 3) + number(2, 30000000)
    labels = blob(3, number(1, 9) + number(2, 10)) + blob(3, number(1, 11) + number(3, 42))
    line = number(1, first_id) + number(2, 7)
    return b"".join([
        blob(1, number(1, 1) + number(2, 2)), blob(1, number(1, 3) + number(2, 4)),
        blob(2, stack + values + labels),
        blob(3, number(1, first_id) + number(5, 7) + number(6, 8) + number(7, 1)),
        blob(4, number(1, ids[0]) + number(2, first_id) + number(3, 0x1234)),
        blob(4, number(1, ids[1]) + number(3, 0x2000) + blob(4, line) + blob(4, line)),
        blob(5, number(1, first_id) + number(2, 6) + number(4, 13)),
        *[blob(6, s) for s in STRINGS],
        number(9, 1700000000), number(10, 1000000000), blob(11, number(1, 3) + number(2, 4)),
        number(12, 10000000), blob(13, to_varint(12) + to_varint(5)), number(14, 1),
    ])


def main():
    to = pathlib.Path(__file__).parent / "pprof"
    to.mkdir(parents=True, exist_ok=True)
    plain = profile(True, 1)
    (to / "packed").write_bytes(plain)
    (to / "sparse").write_bytes(profile(False, 70000))
    (to / "joined").write_bytes(plain + plain)
    (to / "gzip").write_bytes(gzip.compress(plain, mtime=0))
    (to / "zstd").write_bytes(subprocess.run(["zstd", "-c"], input=plain, check=True,
                                             stdout=subprocess.PIPE).stdout)


if __name__ == "__main__":
    main()
