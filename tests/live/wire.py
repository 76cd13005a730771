# SPDX-License-Identifier: Apache-2.0
"""Numbers as protobuf has them, read and written."""


def varint(data, at, error):
    """The number at an offset -> (number, offset behind it); raises `error` unless it has 64 bits."""
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
    raise error("a varint is cut or too long")


def to_varint(value):
    """Its bytes; a negative one as the 64 bits that it is."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))
