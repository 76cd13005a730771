# SPDX-License-Identifier: Apache-2.0
"""What other tools know of a file: the truths that run.py compares with."""
import bisect
import os
import re
import shutil
import struct
import subprocess

CODE_TYPES = ('FUNC', 'IFUNC', 'NOTYPE')
GO_PADDING = 64  # the most that functions are aligned to
FOREVER = 1 << 64


def output(*argv, **kwargs):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                          universal_newlines=True, errors='replace', **kwargs).stdout


def code_sections(path):
    """Number -> (address, size, name) of the sections with code."""
    sections = {}
    for line in output('readelf', '-SW', path).splitlines():
        part = line.replace('[', ' ').replace(']', ' ').split()
        if len(part) >= 10 and part[0].isdigit() and 'X' in part[7] and 'A' in part[7]:
            sections[part[0]] = (int(part[3], 16), int(part[5], 16), part[1])
    return sections


def merged(spans):
    result = []
    for start, end in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1][1] = max(end, result[-1][1])
        else:
            result.append([start, end])
    return result


def covers(spans, addr):
    i = bisect.bisect_right(spans, [addr, FOREVER]) - 1
    return i >= 0 and addr < spans[i][1]


class Symbols:
    """Symbols by readelf, which reads the same tables with none of sonde's code."""

    padding = 0

    def __init__(self, path, debug_file=None):
        self.sections = code_sections(path)
        self.by_start, spans = {}, []
        for line in output('readelf', '-sW', *filter(None, [path, debug_file])).splitlines():
            part = line.replace('<OS specific>: 10', 'IFUNC').split(None, 7)
            if len(part) < 8 or part[3] not in CODE_TYPES or part[6] not in self.sections:
                continue
            start, size = int(part[1], 16), int(part[2], 0)
            first, length, _ = self.sections[part[6]]
            if not first <= start < first + length:
                continue
            name = re.sub(r'@.*', '', part[7].split(' [')[0]) if '@plt' not in part[7] else part[7]
            self.add(start, name, size, first + length)
            if size:
                spans.append((start, start + size))
        self.starts = sorted(self.by_start)
        self.covered = merged(spans)

    def add(self, start, name, size, limit):
        self.by_start.setdefault(start, []).append((name, size, limit))

    def next_start(self, start):
        i = bisect.bisect_right(self.starts, start)
        return self.starts[i] if i < len(self.starts) else FOREVER

    def explains(self, addr, start, name):
        """Whether `name` at `start` may be said to cover addr."""
        for known, size, limit in self.by_start.get(start, ()):
            if known != name:
                continue
            if size and addr < start + size + self.padding:
                return True
            if not size and addr < min(self.next_start(start), limit):
                return True
        return False

    def has_sized(self, addr):
        return covers(self.covered, addr)

    def has_unsized(self, addr):
        """Whether a symbol without a size reaches to addr."""
        i = bisect.bisect_right(self.starts, addr) - 1
        return i >= 0 and any(
            not size and not name.startswith(('$', '.L')) and
            self.explains(addr, self.starts[i], name)
            for name, size, _ in self.by_start[self.starts[i]])

    def is_lost(self, addr):
        """Whether stripping took the name."""
        return False

    def aliases(self, start):
        return {name for name, _, _ in self.by_start.get(start, ())}


def plain_go(name):
    """
    Without type arguments, of which pclntab has "[...]" where symbol tables have all, without the
    calling convention, which pclntab leaves out, and with the "." that symbol tables have for the
    middle dot of a local type.
    """
    name = name.replace('\u00b7', '.')
    name = re.sub(r'\.abi(0|internal)$', '', name)
    result, depth = '', 0
    for c in name:
        depth += c == '['
        result += c if not depth else ''
        depth -= c == ']'
    return result


class GoSymbols(Symbols):
    """By `go tool nm` of the program, or of the same program before it was stripped."""

    padding = GO_PADDING

    def __init__(self, path, twin, go):
        self.sections = code_sections(path)
        self.stripped = path != twin
        self.by_start, spans = {}, []
        for line in output(*go, 'tool', 'nm', '-n', '-size', twin).splitlines():
            part = line.split(None, 3)
            if len(part) < 4 or part[2] not in 'Tt':
                continue
            start, size = int(part[0], 16), int(part[1])
            self.add(start, plain_go(part[3]), size, FOREVER)
            if size:
                spans.append((start, start + size))
        self.starts = sorted(self.by_start)
        self.covered = merged(spans)

    def is_lost(self, addr):
        """Code of C in a stripped program: Go's functions have a package in their names."""
        i = bisect.bisect_right(self.starts, addr) - 1
        return self.stripped and i >= 0 and not any('.' in name for name in
                                                    self.aliases(self.starts[i]))

    def explains(self, addr, start, name):
        return super().explains(addr, start, plain_go(name))


class Stubs:
    """PLT entries by objdump, which looks at relocations and code in its own way."""

    def __init__(self, path):
        self.spans = merged((first, first + size) for first, size, name in
                            code_sections(path).values() if name.startswith(('.plt', '.iplt')))
        self.names = {}
        if not self.spans:
            return
        for line in output('objdump', '-d', '--no-show-raw-insn', '-j', '.plt', '-j', '.plt.sec', '-j',
                           '.plt.got', path).splitlines():
            label = re.match(r'([0-9a-f]+) <(.+)>:$', line)
            if label:
                self.names[int(label[1], 16)] = re.sub(r'@@?(?!plt).*@plt', '@plt', label[2])

    def has(self, addr):
        return covers(self.spans, addr)


class Starts:
    """Function starts by the sorted table in .eh_frame_hdr, which sonde does not read."""

    def __init__(self, path):
        self.known = set()
        for line in output('readelf', '-SW', path).splitlines():
            part = line.replace('[', ' ').replace(']', ' ').split()
            if len(part) > 6 and part[1] == '.eh_frame_hdr':
                self.read(path, int(part[3], 16), int(part[4], 16))

    def read(self, path, vaddr, off):
        with open(path, 'rb') as file:
            file.seek(off)
            head = file.read(12)
            if head[:4] != b'\x01\x1b\x03\x3b':
                return
            count = struct.unpack_from('<I', head, 8)[0]
            table = struct.unpack('<%di' % (2 * count), file.read(8 * count))
        self.known = {(vaddr + entry) & (FOREVER - 1) for entry in table[::2]}


def go_lines(go, path, addresses):
    """FILE:LINE by Go's own tool, the newest: that of 1.19 cannot read a PIE."""
    text = output(*([shutil.which('go')] if shutil.which('go') else go), 'tool', 'addr2line', path, input=''.join('0x%x\n' % a for a in addresses))
    # Padding has no line; it is said in another way.
    return [line if not line.endswith(':-1') else ':0' for line in text.splitlines()[1::2]]


def inlined_calls(path, addresses):
    """Names of the calls at each address by the DWARF of an unstripped Go program."""
    tool = shutil.which('llvm-symbolizer-14') or shutil.which('llvm-symbolizer')
    if not tool:
        return [None] * len(addresses)
    text = output(tool, '--obj=' + path, '--no-demangle', '--functions=linkage', '--inlines',
                  input=''.join('0x%x\n' % a for a in addresses))
    return [[plain_go(name) for name in block.splitlines()[::2]]
            for block in text.split('\n\n') if block.count('\n')]


def llvm_names(path, addresses):
    """The linkage name of the outermost function at each address, or None without the tool."""
    tool = shutil.which('llvm-symbolizer-14') or shutil.which('llvm-symbolizer')
    if not tool:
        return None
    text = output(tool, '--obj=' + path, '--no-demangle', '--functions=linkage', '--inlines',
                  input=''.join('0x%x\n' % a for a in addresses))
    # A block an address, two lines a frame; the last frame is the one that is not inlined.
    return [block.splitlines()[-2] for block in text.split('\n\n') if block.count('\n')]


def debug_file_of(path, folder):
    """The split debug file of a stripped file, if it is installed."""
    if '.symtab' in output('readelf', '-SW', path):
        return None
    for line in output('readelf', '-nW', path).splitlines():
        if 'Build ID:' in line:
            build_id = line.split()[-1]
            found = '%s/.build-id/%s/%s.debug' % (folder, build_id[:2], build_id[2:])
            return found if os.path.exists(found) else None
    return None
