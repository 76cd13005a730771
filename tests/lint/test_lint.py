#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The lint must fail where it should: each case is a small tree with one fault."""
import os
import subprocess
import sys
import tempfile

LINT = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'lint.py')
SPDX = '/* SPDX-License-Identifier: Apache-2.0 */\n'
BPF_SPDX = '/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */\n'
LONG_FUNCTION = 'int f(void)\n{\n' + '\t;\n' * 79 + '}\n'

# name, file, content, the rule that must fail (None: all must pass)
CASES = [
    ('clean tree', 'base/a.c', SPDX + '#include "base/b.h"\n#include <stdio.h>\n', None),
    ('base includes symbolizer', 'base/a.c', SPDX + '#include "symbolizer/x.h"\n', 'include table'),
    ('base includes a library', 'base/a.c', SPDX + '#include <zlib.h>\n', 'include table'),
    ('proto includes symbolizer', 'proto/a.c', SPDX + '#include "symbolizer/symbolizer.h"\n', 'include table'),
    ('resolve includes collect.h', 'agent/resolve/a.c', SPDX + '#include "agent/collect/collect.h"\n', 'include table'),
    ('resolve includes events.h', 'agent/resolve/a.c', SPDX + '#include "agent/collect/events.h"\n', None),
    ('cli includes libbpf', 'cli/a.c', SPDX + '#include <bpf/libbpf.h>\n', 'include table'),
    ('cli includes the skeleton', 'cli/a.c', SPDX + '#include "sonde.skel.h"\n', 'include table'),
    ('collect includes libbpf', 'agent/collect/a.c', SPDX + '#include <bpf/libbpf.h>\n#include "sonde.skel.h"\n', None),
    ('BPF includes libc', 'bpf/a.bpf.c', BPF_SPDX + '#include <string.h>\n', 'include table'),
    ('relative include', 'base/a.c', SPDX + '#include "b.h"\n', 'include table'),
    ('unknown folder', 'extra/a.c', SPDX, 'include table'),
    ('501 lines', 'base/a.c', SPDX + '\n' * 500, 'file sizes'),
    ('500 lines', 'base/a.c', SPDX + '\n' * 499, None),
    ('function of 81 lines', 'base/a.c', SPDX + LONG_FUNCTION, 'function sizes'),
    ('function of 80 lines', 'base/a.c', SPDX + LONG_FUNCTION.replace('\t;\n', '', 1), None),
    ('line of 121 columns', 'base/a.c', SPDX + '\t' * 15 + ';\n', 'line widths'),
    ('line of 120 columns', 'base/a.c', SPDX + '\t' * 14 + '12345678\n', None),
    ('no licence', 'base/a.c', 'int x;\n', 'licence lines'),
    ('wrong licence in bpf', 'bpf/a.bpf.c', SPDX, 'licence lines'),
    ('wrong licence of a kernel module', 'tests/vm/nmi_pmu/a.c', SPDX, 'licence lines'),
    ('script without licence', 'tools/x', '#!/bin/sh\n', 'licence lines'),
    ('trailing blank', 'docs/a.md', 'text \n', 'trailing blanks'),
    ('no newline at the end', 'docs/a.md', 'text', 'trailing blanks'),
    ('machine path', 'docs/a.md', 'see /wor' + 'k/main/x\n', 'machine paths'),
    ('root of a process is no machine path', 'docs/a.md', '/proc/12/root/etc\n', None),
    ('package host', 'docs/a.md', 'http://deb.' + 'debian.org/debian\n', 'machine paths'),
    ('unfinished', 'base/a.c', SPDX + '/* TO' + 'DO: more */\n', 'unfinished code'),
    ('header that needs another', 'base/a.h', SPDX + 'size_t f(void);\n', 'headers compile alone'),
]


def failing_rules(name, content):
    with tempfile.TemporaryDirectory() as root:
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path))
        with open(path, 'w') as f:
            f.write(content)
        run = subprocess.run([sys.executable, LINT, root], stdout=subprocess.PIPE, text=True)
    rules = [line.split(' - ')[1] for line in run.stdout.splitlines() if line.startswith('not ok')]
    return rules, run.returncode


print(f'1..{len(CASES)}')
failed = 0
for n, (title, name, content, rule) in enumerate(CASES, 1):
    rules, code = failing_rules(name, content)
    good = rules == ([rule] if rule else []) and (code != 0) == bool(rule)
    failed += not good
    if not good:
        print(f'# failing rules: {rules}, exit status {code}')
    print(f'{"ok" if good else "not ok"} {n} - {title}')
sys.exit(1 if failed else 0)
