# SPDX-License-Identifier: Apache-2.0
"""Protobuf messages decoded by a .proto file, strictly: a field that the file does not name, a
wire type that does not fit, a scalar that comes twice, text that is not UTF-8: all are errors.
Shares no code with sonde. Reads the small part of the language that proto/schema/ uses."""

import re
import struct
import sys

sys.path.insert(0, __file__.rsplit("/", 2)[0] + "/live")
from wire import varint  # noqa: E402

WIRE = {"fixed64": 1, "string": 2, "bytes": 2}  # all other scalars: 0


class Bad(Exception):
    """The bytes are not such a message."""


class Message(dict):
    """Fields by name; what is absent has its default."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    __getattr__ = dict.__getitem__


def parse(path):
    """{message: {number: (name, type, repeated)}}"""
    with open(path) as f:
        text = re.sub(r"//.*", "", f.read())
    field = re.compile(r"(repeated\s+)?(\w+)\s+(\w+)\s*=\s*(\d+)\s*;")
    return {m[1]: {int(n): (name, kind, bool(repeated))
                   for repeated, kind, name, n in field.findall(m[2])}
            for m in re.finditer(r"message\s+(\w+)\s*\{([^}]*)\}", text)}


class Schema:
    def __init__(self, path):
        self.messages = parse(path)

    def _default(self, kind):
        if kind in self.messages:
            return None
        return {"string": "", "bytes": b"", "bool": False}.get(kind, 0)

    def _scalar(self, kind, raw):
        if kind == "string":
            try:
                return raw.decode("utf-8")
            except UnicodeDecodeError:
                raise Bad(f"text {raw!r} is not UTF-8") from None
        if kind == "bytes":
            return bytes(raw)
        if kind == "bool":
            return bool(raw)
        if kind in ("int32", "int64"):
            return raw - (1 << 64) if raw >> 63 else raw
        return raw

    def decode(self, data, kind):
        fields = self.messages[kind]
        m = Message(kind)
        for name, t, repeated in fields.values():
            m[name] = [] if repeated else self._default(t)
        seen, at = set(), 0
        while at < len(data):
            key, at = varint(data, at, Bad)
            number, wire = key >> 3, key & 7
            if number not in fields:
                raise Bad(f"{kind} has no field {number}")
            name, t, repeated = fields[number]
            value, at = self._value(data, at, wire)
            if not repeated and number in seen:
                raise Bad(f"{kind}.{name} comes twice")
            seen.add(number)
            want = 2 if t in self.messages else WIRE.get(t, 0)
            if t in self.messages and wire == 2:
                items = [self.decode(value, t)]
            elif wire == 2 and repeated and want == 0:
                items = [self._scalar(t, v) for v in unpack(value)]
            elif wire == want:
                items = [self._scalar(t, value)]
            else:
                raise Bad(f"{kind}.{name}: wire type {wire}")
            if repeated:
                m[name] += items
            else:
                m[name] = items[0]
        return m

    @staticmethod
    def _value(data, at, wire):
        if wire == 0:
            return varint(data, at, Bad)
        if wire == 1 and at + 8 <= len(data):
            return struct.unpack_from("<Q", data, at)[0], at + 8
        if wire == 2:
            length, at = varint(data, at, Bad)
            if at + length <= len(data):
                return data[at:at + length], at + length
        raise Bad(f"wire type {wire}, or cut")


def unpack(data):
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at, Bad)
        values.append(value)
    return values
