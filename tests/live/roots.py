# SPDX-License-Identifier: Apache-2.0
"""Where a whole stack begins: judged from the profile and the ELF files, not from what sonde says.

A root is a function that nothing calls: by name, by being the ELF entry, or by unwind data whose
return address is undefined there (read by binutils, not by sonde's code).
"""

import functools
import re
import struct
import subprocess

# libc, and what a thread begins with; Go's goroutines and the scheduler on a thread's own stack.
NAMES = {
    "_start", "__clone3", "clone3", "__clone", "clone", "_dl_start_user",
    "runtime.goexit.abi0", "runtime.goexit", "runtime.mstart", "runtime.mstart.abi0", "runtime.mcall",
    "runtime.rt0_go", "runtime.rt0_go.abi0", "_rt0_amd64_linux", "runtime.sigreturn__sigaction.abi0",
    # What a thread does that has put its goroutine aside, or is about to take another.
    "runtime.morestack", "runtime.morestack.abi0", "runtime.execute",
}
ENTRY_BYTES = 64


@functools.lru_cache(maxsize=None)
def entry_of(path):
    """The ELF entry's address, or None."""
    try:
        with open(path, "rb") as f:
            head = f.read(64)
    except OSError:
        return None
    return struct.unpack_from("<Q", head, 24)[0] if head[:5] == b"\x7fELF\x02" else None


@functools.lru_cache(maxsize=None)
def outermost_ranges(path):
    """[(start, end)] of the FDEs that have an undefined return address."""
    text = subprocess.run(["readelf", "--debug-dump=frames-interp", path], text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    ranges, fde, column = [], None, None
    for line in text.splitlines():
        m = re.search(r"FDE cie=\S+ pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
        if m:
            fde, column = (int(m.group(1), 16), int(m.group(2), 16)), None
        elif line.split()[:1] == ["LOC"]:
            column = line.split().index("ra") if "ra" in line.split() else None
        elif fde and column is not None and line.split()[column:column + 1] == ["u"]:
            if not ranges or ranges[-1] != fde:
                ranges.append(fde)
        elif not line.strip():
            column = None
    return ranges


def is_root(frame):
    """The outermost frame of a stack: whether it is where stacks begin."""
    if frame.function in NAMES:
        return True
    if not frame.module.startswith("/"):
        return False
    entry = entry_of(frame.module)
    if entry is not None and entry <= frame.address < entry + ENTRY_BYTES:
        return True
    return any(a <= frame.address < b for a, b in outermost_ranges(frame.module))
