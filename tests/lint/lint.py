#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Rules of the source tree that no compiler checks; prints TAP, one line a rule.

usage: lint.py [ROOT]

The include table is the layering of docs/ARCHITECTURE.md: a path is a layer. LAYERS maps a
path pattern (the first that fits counts) to the project headers and the library headers that
its files may include; libc and kernel uapi headers are free everywhere but in BPF code.
"""
import os
import re
import subprocess
import sys

MAX_LINES, WARN_LINES, MAX_FUNCTION, MAX_COLUMNS, WARN_COLUMNS = 500, 400, 80, 120, 100

LAYERS = [
    # path, project headers, library headers
    (r'base/', r'base/', r''),
    (r'bpf/abi\.h', r'', r'linux/types\.h'),
    (r'bpf/sched_abi\.h', r'bpf/abi\.h', r''),
    (r'bpf/off_abi\.h', r'bpf/sched_abi\.h', r''),
    (r'bpf/', r'vmlinux\.h|bpf/', r'bpf/bpf_'),
    (r'symbolizer/', r'base/|symbolizer/',
     r'libelf\.h|gelf\.h|elfutils/|dwarf\.h|zlib\.h|zstd\.h|lzma\.h|libiberty/'),
    (r'proto/', r'base/|proto/', r'zlib\.h|zstd\.h'),
    (r'agent/collect/', r'base/|bpf/((sched|off)_)?abi\.h|(sonde|sched)\.skel\.h|agent/collect/', r'bpf/'),
    (r'agent/resolve/',
     r'base/|agent/collect/(sched_)?events\.h|symbolizer/(symbolizer|unwind)\.h|proto/profile\.h|agent/resolve/', r''),
    (r'agent/sched/', r'base/|agent/collect/(sched_)?events\.h|proto/profile\.h|agent/sched/', r''),
    (r'agent/(export|store)/', r'base/|proto/|agent/(export|store)/', r'curl/|sqlite3\.h|zstd\.h|zlib\.h'),
    (r'agent/[^/]*$|cli/', r'base/|symbolizer/|proto/|agent/|cli/|bpf/abi\.h',
     r'microhttpd\.h|yaml\.h|jansson\.h|curses\.h'),
    (r'tests/|tools/', r'.*', r'.*'),
]
# Everything in angle brackets that is neither libc nor the kernel's uapi.
LIBRARY = re.compile(r'(bpf|elfutils|libiberty|curl)/|(libelf|gelf|dwarf|zlib|zstd|lzma|microhttpd|'
                     r'sqlite3|yaml|jansson|curses|cmocka)\.h')
GEN = os.path.join(os.environ.get('BUILD', 'build'), 'gen')
BARE_NAMES = ('sonde.skel.h', 'sched.skel.h', 'vmlinux.h')

CODE = re.compile(r'\.(c|h|py|sh)$|(^|/)Makefile$')
C_FILE = re.compile(r'\.[ch]$')
NOT_OURS = re.compile(r'^\.git$|^(\.git|build)/|^vmlinux/.*\.h$|^tests/fuzz/corpus/|^tests/golden/.*\.(txt|pb|gz|zst|bin|folded)$')
MACHINE_PATH = re.compile(r'(?<![\w.}>*-])/(work|farm|root|home/\w+)/')
REGISTRY = re.compile(r'(deb|security|ftp)\.' + r'debian\.org|snapshot\.' + r'debian|(pypi|npmjs|crates)\.' + r'(org|com|io)/')
UNFINISHED = re.compile(r'\b(TO' + r'DO|FIX' + r'ME|XX' + r'X)\b')


class Tree:
    """All text files below a root, by relative path."""

    def __init__(self, root):
        self.root = root
        self.files = {}
        for folder, folders, names in os.walk(root):
            rel = os.path.relpath(folder, root)
            folders[:] = sorted(d for d in folders if not NOT_OURS.match(os.path.normpath(os.path.join(rel, d)) + '/')
                                and d != '__pycache__')
            for name in sorted(names):
                path = os.path.normpath(os.path.join(rel, name))
                if not NOT_OURS.match(path) and not os.path.islink(os.path.join(root, path)):
                    self.add(path)

    def add(self, path):
        with open(os.path.join(self.root, path), 'rb') as f:
            data = f.read()
        if b'\0' in data[:4096]:
            return
        self.files[path] = data.decode('utf-8', 'replace').split('\n')

    def matching(self, pattern):
        return [(p, lines) for p, lines in self.files.items() if pattern.search(p)]

    def scripts(self):
        return [(p, lines) for p, lines in self.files.items() if CODE.search(p) or lines[0].startswith('#!')]


def each_line(tree, pattern, what):
    return [f'{p}:{n}: {what}' for p, lines in tree.files.items() for n, line in enumerate(lines, 1)
            if pattern.search(line)]


def check_includes(tree):
    bad = []
    for path, lines in tree.matching(C_FILE):
        row = next((r for r in LAYERS if re.match(r[0], path)), None)
        if not row:
            bad.append(f'{path}: its folder is not in the include table')
            continue
        for n, line in enumerate(lines, 1):
            m = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if not m:
                continue
            quoted, name = m[1] == '"', m[2]
            beside = os.path.join(os.path.dirname(path), name)
            if quoted and path.startswith('tests/') and beside in tree.files:
                continue
            if quoted and '/' not in name and name not in BARE_NAMES:
                bad.append(f'{path}:{n}: "{name}" is not written from the root')
            elif quoted and not (row[1] and re.match(row[1], name)):
                bad.append(f'{path}:{n}: a file here may not include "{name}"')
            elif not quoted and not path.startswith('bpf/') and LIBRARY.match(name) and \
                    not (row[2] and re.match(row[2], name)):
                bad.append(f'{path}:{n}: a file here may not include <{name}>')
            elif not quoted and path.startswith('bpf/') and not re.match(row[2], name):
                bad.append(f'{path}:{n}: BPF code may not include <{name}>')
    return bad


def check_file_sizes(tree):
    for path, lines in tree.scripts():
        if WARN_LINES < len(lines) - 1 <= MAX_LINES:
            print(f'# warning: {path} has {len(lines) - 1} lines, more than {WARN_LINES}')
    return [f'{p}: {len(lines) - 1} lines, more than {MAX_LINES}' for p, lines in tree.scripts()
            if len(lines) - 1 > MAX_LINES]


def check_function_sizes(tree):
    """A function's body opens and closes in column one; nothing else of ours does."""
    bad = []
    for path, lines in tree.matching(C_FILE):
        start = None
        for n, line in enumerate(lines, 1):
            if line.startswith('{'):
                start = n
            elif line.startswith('}') and start:
                if n - start + 1 > MAX_FUNCTION:
                    bad.append(f'{path}:{start}: function of {n - start + 1} lines, more than {MAX_FUNCTION}')
                start = None
    return bad


def check_columns(tree):
    wide = [(p, n, len(line.expandtabs(8))) for p, lines in tree.matching(C_FILE)
            for n, line in enumerate(lines, 1) if len(line.expandtabs(8)) > WARN_COLUMNS]
    if wide:
        print(f'# warning: {len(wide)} lines in {len({p for p, _, _ in wide})} files are wider than '
              f'{WARN_COLUMNS} columns')
    return [f'{p}:{n}: {width} columns, more than {MAX_COLUMNS}' for p, n, width in wide if width > MAX_COLUMNS]


# First match. A kernel module may not be anything else.
LICENCES = [(r'bpf/', 'GPL-2.0-only OR BSD-2-Clause'), (r'tests/vm/nmi_pmu/.*\.c$', 'GPL-2.0-only'), (r'', 'Apache-2.0')]


def check_licence(tree):
    bad = []
    for path, lines in tree.scripts():
        want = next(licence for pattern, licence in LICENCES if re.match(pattern, path))
        if not any(re.search(f'SPDX-License-Identifier: {want}( \\*/)?$', line) for line in lines[:3]):
            bad.append(f'{path}: no line "SPDX-License-Identifier: {want}" at its top')
    return bad


def check_blanks(tree):
    return each_line(tree, re.compile(r'[ \t\r]+$'), 'trailing blanks') + \
        [f'{p}: no newline at the end' for p, lines in tree.files.items() if lines[-1] != '']


def check_machine_paths(tree):
    return each_line(tree, MACHINE_PATH, 'path of one machine') + \
        each_line(tree, REGISTRY, 'name of a package host')


def check_unfinished(tree):
    return [p for p in each_line(tree, UNFINISHED, 'unfinished') if C_FILE.search(p.split(':')[0])]


def check_headers(tree):
    """Each header compiles as a file of its own."""
    bad = []
    for path, _ in tree.matching(re.compile(r'^(base|symbolizer|proto|agent|cli|bpf)/.*\.h$')):
        if path.startswith('bpf/') and not path.endswith('abi.h'):
            command = [os.environ.get('CLANG', 'clang-14'), '-target', 'bpf', '-D__TARGET_ARCH_x86', '-g', '-O2',
                       '-Ivmlinux/x86_64', '-Ivmlinux']
        else:
            command = ['gcc', '-std=gnu17', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Wno-unused']
            if path.startswith('bpf/'):  # as the table says: its includer brings the types
                command += ['-include', 'linux/types.h']
        run = subprocess.run(command + ['-I.', f'-I{GEN}', '-fsyntax-only', '-x', 'c', path], cwd=tree.root,
                             stderr=subprocess.PIPE, text=True)
        if run.returncode or 'warning:' in run.stderr:
            bad.append(f'{path}: does not compile on its own: {run.stderr.strip()[:400]}')
    return bad


RULES = [
    ('include table', check_includes),
    ('file sizes', check_file_sizes),
    ('function sizes', check_function_sizes),
    ('line widths', check_columns),
    ('licence lines', check_licence),
    ('trailing blanks', check_blanks),
    ('machine paths', check_machine_paths),
    ('unfinished code', check_unfinished),
    ('headers compile alone', check_headers),
]


def main():
    tree = Tree(sys.argv[1] if len(sys.argv) > 1 else '.')
    failed = 0
    print(f'1..{len(RULES)}')
    for n, (name, check) in enumerate(RULES, 1):
        bad = check(tree)
        failed += bool(bad)
        for line in bad:
            print('# ' + line.replace('\n', '\n# '))
        print(f'{"not ok" if bad else "ok"} {n} - {name}')
    return 1 if failed else 0


sys.exit(main())
