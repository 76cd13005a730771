# SPDX-License-Identifier: Apache-2.0
"""A reader of pprof files that shares no code with sonde, and a strict checker.

Field numbers: profile.proto of google/pprof. The checker refuses all that some reader refuses
or silently drops: go tool pprof, Parca (ids 1..n) and Pyroscope.
"""

import ctypes
import ctypes.util
import gzip
import struct

from wire import varint


class Bad(Exception):
    """The file is not a valid profile."""


class Frame:
    """One name of a stack; `function` is None for an address without a name."""
    __slots__ = ("function", "system_name", "module", "build_id", "address", "line")

    def __init__(self, function, system_name, module, build_id, address, line):
        self.function, self.system_name, self.module = function, system_name, module
        self.build_id, self.address, self.line = build_id, address, line

    def text(self):
        return self.function or f"{self.module or '?'}+{self.address:#x}"

    __repr__ = text


class Sample:
    """frames: leaf first, inlined ones in their place. labels: key -> str or int."""
    __slots__ = ("frames", "values", "labels", "location_ids")

    def __init__(self, frames, values, labels, location_ids):
        self.frames, self.values = frames, values
        self.labels, self.location_ids = labels, location_ids


def _fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at, Bad)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at, Bad)
        elif wire == 2:
            size, at = varint(data, at, Bad)
            if at + size > len(data):
                raise Bad("field goes past its message")
            value, at = data[at:at + size], at + size
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            if at + size > len(data):
                raise Bad("field goes past its message")
            value = struct.unpack("<Q" if wire == 1 else "<I", data[at:at + size])[0]
            at += size
        else:
            raise Bad(f"wire type {wire}")
        yield number, value


def _signed(value):
    return value - (1 << 64) if value >> 63 else value


def _message(data):
    """All fields: number -> list of raw values."""
    result = {}
    for number, value in _fields(data):
        result.setdefault(number, []).append(value)
    return result


def _ints(message, number):
    """A repeated integer, packed or not."""
    result = []
    for value in message.get(number, ()):
        if isinstance(value, int):
            result.append(_signed(value))
            continue
        at = 0
        while at < len(value):
            one, at = varint(value, at, Bad)
            result.append(_signed(one))
    return result


def _one(message, number):
    values = _ints(message, number)
    return values[-1] if values else 0


class _ZstdBuffer(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t), ("pos", ctypes.c_size_t)]


def _unzstd(data):
    """By libzstd itself: Python's own library has no zstd, and the tool may be missing."""
    lib = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    lib.ZSTD_createDStream.restype = ctypes.c_void_p
    lib.ZSTD_decompressStream.restype = ctypes.c_size_t
    lib.ZSTD_decompressStream.argtypes = [ctypes.c_void_p] * 3
    stream, room = lib.ZSTD_createDStream(), ctypes.create_string_buffer(1 << 20)
    source = ctypes.create_string_buffer(data, len(data))
    taken, result, left = _ZstdBuffer(ctypes.addressof(source), len(data), 0), b"", 1
    while left:
        made = _ZstdBuffer(ctypes.addressof(room), len(room), 0)
        before = taken.pos
        left = lib.ZSTD_decompressStream(stream, ctypes.byref(made), ctypes.byref(taken))
        if lib.ZSTD_isError(ctypes.c_size_t(left)) or (not made.pos and taken.pos == before):
            raise Bad("damaged or cut zstd")
        result += room.raw[:made.pos]
    lib.ZSTD_freeDStream(ctypes.c_void_p(stream))
    return result


def unpack(data):
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    if data[:4] == b"\x28\xb5\x2f\xfd":
        return _unzstd(data)
    return data


class Profile:
    """types: [(type, unit)]; samples; comments; period; and what `problems` found."""

    def __init__(self, data):
        self.size_bytes = len(data)
        top = _message(unpack(data))
        raw_strings = top.get(6, [])
        self.strings = [s.decode("utf-8", "surrogateescape") for s in raw_strings]
        self.problems = []
        if not raw_strings or raw_strings[0]:
            self._problem("string 0 is not empty")
        for s in raw_strings:
            try:
                s.decode("utf-8")
            except UnicodeDecodeError:
                self._problem(f"string {s!r} is not UTF-8")
        self._read_head(top)
        self.mappings = self._table(top, 3, "mapping")
        self.functions = self._table(top, 5, "function")
        self.locations = self._table(top, 4, "location")
        self._frames = {i: self._location_frames(m) for i, m in self.locations.items()}
        self.samples = [self._sample(_message(s)) for s in top.get(2, [])]

    def _problem(self, text):
        if len(self.problems) < 20:
            self.problems.append(text)

    def _string(self, index):
        if not 0 <= index < len(self.strings):
            self._problem(f"string index {index} out of range")
            return ""
        return self.strings[index]

    def _type(self, data):
        m = _message(data)
        return self._string(_one(m, 1)), self._string(_one(m, 2))

    def _read_head(self, top):
        self.types = [self._type(t) for t in top.get(1, [])]
        self.comments = [self._string(i) for i in _ints(top, 13)]
        self.time_ns, self.duration_ns = _one(top, 9), _one(top, 10)
        self.period_type = self._type(top[11][-1]) if 11 in top else ("", "")
        self.period = _one(top, 12)
        self.default_type = self._string(_one(top, 14))
        if self.duration_ns <= 0:
            self._problem(f"duration {self.duration_ns}")
        if self.period <= 0:
            self._problem(f"period {self.period}")

    def _table(self, top, number, what):
        result = {}
        for i, data in enumerate(top.get(number, []), 1):
            m = _message(data)
            if _one(m, 1) != i:
                self._problem(f"{what} {i} has id {_one(m, 1)}")
            result[_one(m, 1)] = m
        return result

    def _location_frames(self, m):
        mapping = self.mappings.get(_one(m, 2))
        if mapping is None and _one(m, 2):
            self._problem(f"location {_one(m, 1)}: no mapping {_one(m, 2)}")
        module = self._string(_one(mapping, 5)) if mapping else ""
        build_id = self._string(_one(mapping, 6)) if mapping else ""
        address = _one(m, 3) & (1 << 64) - 1
        frames = []
        for data in m.get(4, []):
            line = _message(data)
            function = self.functions.get(_one(line, 1))
            if function is None:
                self._problem(f"location {_one(m, 1)}: no function {_one(line, 1)}")
                continue
            frames.append(Frame(self._string(_one(function, 2)), self._string(_one(function, 3)),
                                module, build_id, address, _one(line, 2)))
        return frames or [Frame(None, None, module, build_id, address, 0)]

    def _sample(self, m):
        ids, values, labels = _ints(m, 1), _ints(m, 2), {}
        if len(values) != len(self.types):
            self._problem(f"{len(values)} values for {len(self.types)} types")
        if any(v < 0 for v in values) or not any(values):
            self._problem(f"values {values}")
        for data in m.get(3, []):
            label = _message(data)
            key, text = self._string(_one(label, 1)), self._string(_one(label, 2))
            if key in labels:
                self._problem(f"label {key} twice in one sample")
            if not key or text and _one(label, 3):
                self._problem(f"label {key!r} has text and number, or no name")
            labels[key] = text if text else _one(label, 3)
        frames = []
        for i in ids:
            if i not in self._frames:
                self._problem(f"sample names location {i}")
            frames += self._frames.get(i, [])
        return Sample(frames, values, labels, tuple(ids))

    # ---- what tests ask ----

    def value_index(self, name):
        for i, (kind, _unit) in enumerate(self.types):
            if kind == name:
                return i
        raise Bad(f"no sample type {name}: {self.types}")

    def total(self, index, keep=lambda s: True):
        return sum(s.values[index] for s in self.samples if keep(s))

    def check(self):
        """Raises Bad on anything a reader might refuse or drop."""
        if not self.types:
            self._problem("no sample types")
        if self.problems:
            raise Bad("; ".join(self.problems))


def load(path):
    with open(path, "rb") as f:
        data = f.read()
    if not data:
        raise Bad("the file is empty")
    return Profile(data)
