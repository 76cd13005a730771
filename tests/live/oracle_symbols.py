#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the symbolizer with readelf and llvm-symbolizer on real binaries.

usage: oracle_symbols.py [-n ADDRESSES] [FILE...]

Random addresses of the executable sections of each file are looked up. By readelf's list of
symbols an answer is
  right    the name is one that the file has for that start, and it covers the address;
           or there is no name, and no symbol covers the address
  WRONG    anything else: the script then fails
Of the answers with a name, `same` counts those that agree with llvm-symbolizer but for aliases.
It always uses installed debug files; the symbolizer is run without, then (+debug) with them.
"""
import argparse
import bisect
import os
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
DEFAULTS = ['/lib/x86_64-linux-gnu/libc.so.6', '/lib64/ld-linux-x86-64.so.2', '/bin/bash',
            '/usr/bin/python3', shutil.which('node'), '/usr/lib/x86_64-linux-gnu/libstdc++.so.6',
            '/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1', '/usr/lib/x86_64-linux-gnu/libcrypto.so.3',
            '/usr/lib/x86_64-linux-gnu/libclang-cpp.so.14', shutil.which('git'), shutil.which('go'),
            '/usr/lib/x86_64-linux-gnu/libm.so.6', shutil.which('gdb'), shutil.which('perf'),
            '/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so']
DEBUG_DIR = '/usr/lib/debug'
CODE_TYPES = ('FUNC', 'IFUNC', 'NOTYPE')


def run(*argv, **kwargs):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          universal_newlines=True, errors='replace', **kwargs).stdout


def build(folder):
    program = os.path.join(folder, 'oracle_symbols')
    sources = [os.path.join(ROOT, d, f) for d in ('base', 'symbolizer')
               for f in os.listdir(os.path.join(ROOT, d)) if f.endswith('.c')]
    subprocess.check_call(['gcc', '-O2', '-std=gnu17', '-D_GNU_SOURCE', '-I' + ROOT, '-o', program,
                           os.path.join(ROOT, 'tests/live/oracle_symbols.c'), *sources,
                           '-lzstd', '-lz', '-l:libiberty.a'])
    return program


class Truth:
    """Code sections and symbols of a file, by readelf."""

    def __init__(self, path, debug_file):
        self.sections = {}
        for line in run('readelf', '-SW', path).splitlines():
            part = line.replace('[', ' ').replace(']', ' ').split()
            if len(part) >= 10 and part[0].isdigit() and 'X' in part[7] and 'A' in part[7]:
                self.sections[part[0]] = (int(part[3], 16), int(part[5], 16))
        self.by_start, spans = {}, []
        for line in run('readelf', '-sW', path, *filter(None, [debug_file])).splitlines():
            part = line.replace('<OS specific>: 10', 'IFUNC').split(None, 7)
            if len(part) < 8 or part[3] not in CODE_TYPES or part[6] not in self.sections:
                continue
            start, size = int(part[1], 16), int(part[2], 0)
            first, length = self.sections[part[6]]
            if not first <= start < first + length:
                continue
            name = part[7].split('@')[0]  # Go's names hold blanks
            self.by_start.setdefault(start, []).append((name, size, part[6]))
            if size:
                spans.append((start, start + size))
        self.starts = sorted(self.by_start)
        spans.sort()
        self.covered = []
        for start, end in spans:
            if self.covered and start <= self.covered[-1][1]:
                self.covered[-1][1] = max(end, self.covered[-1][1])
            else:
                self.covered.append([start, end])

    def has_sized(self, addr):
        i = bisect.bisect_right(self.covered, [addr, 1 << 64]) - 1
        return i >= 0 and addr < self.covered[i][1]

    def explains(self, addr, start, name):
        """Whether `name` at `start` may be said to cover addr."""
        for known, size, section in self.by_start.get(start, ()):
            if known != name.split('@')[0]:
                continue
            first, length = self.sections[section]
            if size and addr < start + size:
                return True
            i = bisect.bisect_right(self.starts, start)
            next_start = self.starts[i] if i < len(self.starts) else 1 << 64
            if not size and addr < min(next_start, first + length):
                return True
        return False

    def aliases(self, start):
        return {name for name, _, _ in self.by_start.get(start, ())}

    def unsized_owner(self, addr):
        """Whether a symbol without a size reaches to addr."""
        i = bisect.bisect_right(self.starts, addr) - 1
        return i >= 0 and any(self.explains(addr, self.starts[i], n) for n, s, _ in
                              self.by_start[self.starts[i]] if not s
                              and not n.startswith(('$', '.L')))

    def addresses(self, count, rng):
        spans = list(self.sections.values())
        weights = [size for _, size in spans]
        return [first + rng.randrange(size) for first, size in
                rng.choices(spans, weights, k=count)] if spans else []


def llvm_names(path, addresses):
    tool = shutil.which('llvm-symbolizer-14') or shutil.which('llvm-symbolizer')
    if not tool:
        return None
    text = run(tool, '--obj=' + path, '--no-demangle', '--functions=linkage', '--inlines',
               input=''.join('0x%x\n' % a for a in addresses))
    # A block an address, two lines a frame; the last frame is the one that is not inlined.
    return [block.splitlines()[-2] for block in text.split('\n\n') if block.count('\n')]


def find_debug_file(path):
    """The split debug file of a stripped file, if it is installed."""
    if '.symtab' in run('readelf', '-SW', path):
        return None
    for line in run('readelf', '-nW', path).splitlines():
        if 'Build ID:' in line:
            build_id = line.split()[-1]
            found = '%s/.build-id/%s/%s.debug' % (DEBUG_DIR, build_id[:2], build_id[2:])
            return found if os.path.exists(found) else None
    return None


def compare(program, path, debug_file, count):
    truth, rng = Truth(path, debug_file), random.Random(path)
    addresses = truth.addresses(count, rng)
    folder = [DEBUG_DIR] if debug_file else []
    out = run(program, path, *folder, input=''.join('%x\n' % a for a in addresses)).splitlines()
    if not out:
        return None
    llvm = llvm_names(path, addresses)
    named = unnamed = wrong = same = 0
    for i, (addr, answer) in enumerate(zip(addresses, out[1:])):
        start, name = answer.split(' ', 1)
        if start == '-':
            unnamed += 1
            if truth.has_sized(addr) or truth.unsized_owner(addr):
                wrong += 1
                print('# %s: %x has no name' % (path, addr))
            continue
        named += 1
        if not truth.explains(addr, int(start, 16), name):
            wrong += 1
            print('# %s: %x is not %s at %s' % (path, addr, name, start))
        if llvm and i < len(llvm) and llvm[i] in truth.aliases(int(start, 16)) | {name}:
            same += 1
    print('%-26s %6d %6.1f%% %7d %6.2f%% %9s ms %9s B' % (
        os.path.basename(path) + ('+debug' if debug_file else ''), len(addresses),
        100.0 * named / max(1, len(addresses)), wrong,
        100.0 * same / max(1, named), *out[0].split()[:2]))
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('-n', type=int, default=2000)
    parser.add_argument('files', nargs='*')
    options = parser.parse_args()
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        program = build(folder)
        print('%-26s %6s %7s %7s %7s %12s %11s' % (
            'file', 'tried', 'named', 'WRONG', 'same', 'load', 'memory'))
        for path in options.files or [p for p in DEFAULTS if p and os.path.exists(p)]:
            path = os.path.realpath(path)
            total += compare(program, path, None, options.n) or 0
            debug_file = find_debug_file(path)
            if debug_file:
                total += compare(program, path, debug_file, options.n) or 0
    return 1 if total else 0


if __name__ == '__main__':
    sys.exit(main())
