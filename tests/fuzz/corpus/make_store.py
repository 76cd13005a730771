#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of fuzz_journal and fuzz_store_facts, from those of fuzz_pprof."""
import pathlib
import struct
import subprocess
import zlib

HERE = pathlib.Path(__file__).parent


def chunk(payload):
    head = b"sondejnl" + struct.pack("<I", 1)
    length = struct.pack("<Q", len(payload))
    crc = zlib.crc32(head + bytes(4) + length + payload)
    return head + struct.pack("<I", crc) + length + payload


def main():
    journal, facts = HERE / "journal", HERE / "store_facts"
    journal.mkdir(exist_ok=True)
    facts.mkdir(exist_ok=True)
    for name in "packed", "sparse":
        plain = (HERE / "pprof" / name).read_bytes()
        (journal / name).write_bytes(plain)
        payload = subprocess.run(["zstd", "-c"], input=plain, check=True, capture_output=True).stdout
        (journal / f"{name}.payload").write_bytes(payload)
        (journal / f"{name}.chunk").write_bytes(chunk(payload))
    for name in "packed", "gzip", "zstd":
        (facts / name).write_bytes((HERE / "pprof" / name).read_bytes())


main()
