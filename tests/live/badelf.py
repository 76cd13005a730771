# SPDX-License-Identifier: Apache-2.0
"""ELF files that claim nonsense, made of the small good one that the workload churn writes."""

import os
import struct
import zlib

import lab

CODE = 0x1000   # where the code lies: the loader of these files runs it whatever the headers say
_SECTIONS, _SYMTAB, _SYMBOL, _STRTAB = 0x400, 0x400 + 2 * 64, 0x300 + 24, 0x400 + 3 * 64
_FORMAT = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}


def good(directory):
    """The bytes of a valid shared object with one function, churn_0000, at CODE."""
    with lab.Workload(lab.wl("churn"), "-f", "1", "-d", directory) as w:
        w.stop()
    with open(os.path.join(directory, "churn_0000.so"), "rb") as f:
        return f.read()


def _set(data, at, size, value):
    data[at:at + size] = struct.pack(_FORMAT[size], value)


def _bomb(data):
    """A compressed section of little that says it becomes 512 MiB."""
    at = _SECTIONS + 5 * 64
    data[0x2e0:0x2ee] = b".debug_frame\0\0"
    data[0x600:0x618] = struct.pack("<IIQQ", 1, 0, 512 << 20, 1)
    packed = zlib.compress(bytes(1 << 20), 9)
    data[0x618:0x618 + len(packed)] = packed
    data[at:at + 64] = struct.pack("<IIQQQQIIQQ", 0x60, 1, 0x800, 0, 0x600, 0x18 + len(packed), 0, 0,
                                   1, 0)
    _set(data, 0x3c, 2, 6)


# name -> [(offset, bytes, value)] or a function
MUTATIONS = {
    "sh_size of the symbols is huge": [(_SYMTAB + 32, 8, 0xFFFFFFFFFFFFFF00)],
    "sh_size of the symbols is 1 TiB": [(_SYMTAB + 32, 8, 1 << 40)],
    "sh_offset + sh_size wraps": [(_SYMTAB + 24, 8, 0xFFFFFFFFFFFFFFF0), (_SYMTAB + 32, 8, 0x30)],
    "sh_entsize is 0": [(_SYMTAB + 56, 8, 0)],
    "e_shentsize is 0": [(0x3a, 2, 0)],
    "e_shentsize is 65535": [(0x3a, 2, 65535)],
    "sh_link to itself": [(_SYMTAB + 40, 4, 2)],
    "sh_link out of range": [(_SYMTAB + 40, 4, 0xFFFFFFFF)],
    "e_shstrndx out of range": [(0x3e, 2, 0xFFF0)],
    "section table past the end": [(0x28, 8, 0x1FFFF0)],
    "strings past the end": [(_STRTAB + 24, 8, 0x10000)],
    "st_name past the strings": [(_SYMBOL, 4, 0xFFFFFFF0)],
    "st_size wraps": [(_SYMBOL + 16, 8, 0xFFFFFFFFFFFFFFFF)],
    "p_memsz about 2^64": [(0x40 + 40, 8, 0xFFFFFFFFFFFFFFFF)],
    "p_vaddr + p_memsz wraps": [(0x40 + 16, 8, 0xFFFFFFFFFFFFF000)],
    "e_phnum is 65535": [(0x38, 2, 65535)],
    "e_phentsize is 0": [(0x36, 2, 0)],
    "e_shnum 0, number in section 0 huge": [(0x3c, 2, 0), (_SECTIONS + 32, 8, 0xFFFFFFFFFFFFFF)],
    "512 MiB claimed by a little zlib": _bomb,
    "not ELF at all": [(0, 8, 0)],
}


def mutate(data, how):
    data = bytearray(data)
    if callable(how):
        how(data)
    else:
        for at, size, value in how:
            _set(data, at, size, value)
    return bytes(data)


def huge(path, data, symbols, hole):
    """The good file with `symbols` symbols far behind a hole of `hole` bytes, made sparse."""
    data = bytearray(data)
    names = b"\0" + b"".join(b"f%07x\0" % i for i in range(symbols))
    table = bytearray(24) + b"".join(
        struct.pack("<IBBHQQ", 1 + 9 * i, 0x12, 0, 1, 0x100000 + 16 * i, 16) for i in range(symbols))
    _set(data, _SYMTAB + 24, 8, hole)
    _set(data, _SYMTAB + 32, 8, len(table))
    _set(data, _STRTAB + 24, 8, hole + len(table))
    _set(data, _STRTAB + 32, 8, len(names))
    _set(data, 0x3e, 2, 0)
    with open(path, "wb") as f:
        f.write(data)
        f.seek(hole)
        f.write(table)
        f.write(names)
