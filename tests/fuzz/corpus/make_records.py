#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of fuzz_records, one for each type of record of bpf/abi.h. usage: make_records.py"""
import os
import struct

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'records')
FILE_ID = 1 << 63 | 42


def write(name, kind, body):
    """A record: type, size, id, and what its type says."""
    with open(os.path.join(FOLDER, name), 'wb') as f:
        f.write(struct.pack('<IIQ', kind, 16 + len(body), 77) + body)


def names(*parts):
    return b''.join(p.encode() + b'\0' for p in parts)


frames = [(FILE_ID, 0x1234), (2, 0x7F0012345678), (3, 0x700), (1, 2)]
write('user_stack', 1, struct.pack('<II', len(frames), 0) + b''.join(struct.pack('<QQ', *f) for f in frames))
addrs = [0xFFFFFFFF81000010, 0xFFFFFFFF81000020]
write('kernel_stack', 2, struct.pack('<II', len(addrs), 0) + struct.pack('<2Q', *addrs))
write('process', 3, struct.pack('<IIQQIIII16s', 100, 1, 123456789, FILE_ID, 7, 1000, 105, 0, b'proc'))
write('thread_name', 4, b'worker'.ljust(16, b'\0'))
path = names('a.service', 'system.slice', '') + names('0123', 'docker', '')
write('cgroup', 5, struct.pack('<IIII', 3, 3, len(path), 0) + path)
path = names('libc.so.6', 'x86_64-linux-gnu', 'lib', 'usr')
write('file', 6, struct.pack('<QQQqQQQIIII', 254 << 20, 4711, 1, 1700000000, 5, 0x7F0000000000, 0x7F0000100000,
                             100, 105, 4, len(path)) + path)
