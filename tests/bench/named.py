#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of real programs' time has a function name, with and without debug packages (root).

usage: named.py [SECONDS [LOAD...]]     prints a table; each load is sampled twice, 5 s each by default

`leaf` is the share of samples whose innermost function has a name of its own, `frames` that of all
frames; `starts` is the share of frames shown as module!sub_<start>.
Which debug packages are installed is told first; "without" looks in an empty folder. POSTGRES: a
folder with another build of its programs, where Debian's debug package cannot be had.
"""
import collections
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'live'))
import lab  # noqa: E402

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
DEBUG_DIR = '/usr/lib/debug'
PACKAGES = ('libc6-dbg', 'python3.11-dbg', 'openjdk-17-dbg', 'postgresql-15-dbgsym')
POSTGRES = os.environ.get('POSTGRES', '/usr/lib/postgresql/15/bin')
PYTHON = '''
import json, re, zlib
while True:
    s = json.dumps([{"k%d" % k: [k] * 9} for k in range(999)])
    re.findall(r"k[0-9]+7", s); zlib.compress(s.encode()); json.loads(s); sorted(s)
'''
NODE = '''
const z = require("zlib");
for (;;) { const o = []; for (let i = 0; i < 3e4; i++) o.push({ k: "v" + i });
  z.gzipSync(JSON.stringify(o)); o.sort((a, b) => a.k < b.k ? -1 : 1); }
'''
JAVA = '''
import java.util.*;
public class Load { public static void main(String[] a) { for (;;) {
  Map<String, Integer> m = new TreeMap<>();
  for (int i = 0; i < 50000; i++) m.merge("k" + i % 777, i, Integer::sum);
  StringBuilder s = new StringBuilder(); m.forEach((k, v) -> s.append(k).append(v));
  byte[] b = new byte[8 << 20]; b[s.length()] = 1; } } }
'''


def first(*paths):
    return next((p for p in paths if p and os.path.exists(p)), None)


def python(folder):
    return [['/usr/bin/python3', '-c', PYTHON]]


def node(folder):
    return [['node', '-e', NODE]] if shutil.which('node') else None


def java(folder):
    program = first('/usr/lib/jvm/java-17-openjdk-amd64/bin/java', shutil.which('java'))
    with open(os.path.join(folder, 'Load.java'), 'w', encoding='ascii') as file:
        file.write(JAVA)
    return [[program, os.path.join(folder, 'Load.java')]] if program else None


def gcc(folder):
    loop = 'while :; do for f in base/*.c; do gcc -O2 -D_GNU_SOURCE -I. -c -o %s/x.o $f; done; done'
    return [['sh', '-c', loop % folder]]


def redis(folder):
    if not shutil.which('redis-server'):
        return None
    return [['redis-server', '--port', '7399', '--save', '', '--dir', folder],
            ['sh', '-c', 'while :; do redis-benchmark -p 7399 -q -n 100000 -t set,get,lpush; done']]


def postgres(folder):
    if not os.path.exists(POSTGRES + '/postgres'):
        return None
    data = os.path.join(folder, 'pg')
    as_postgres = ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups']
    os.chmod(folder, 0o755)
    os.mkdir(data)
    shutil.chown(data, 'postgres')
    subprocess.run([*as_postgres, POSTGRES + '/initdb', '-D', data, '-A', 'trust'], check=True,
                   stdout=subprocess.DEVNULL)
    bench = 'sleep 1; %s/pgbench -q -h %s -U postgres -i -s 2 postgres && ' \
            'while :; do %s/pgbench -h %s -U postgres -S -c 2 -T 60 postgres; done'
    return [[*as_postgres, POSTGRES + '/postgres', '-D', data, '-k', data, '-h', ''],
            ['sh', '-c', bench % (POSTGRES, data, POSTGRES, data)]]


# How it is made, seconds until it is warm, names of the processes.
LOADS = {'python3': (python, 1, {'python3'}), 'node': (node, 1, {'node'}), 'java': (java, 3, {'java'}),
         'gcc': (gcc, 1, {'cc1', 'as', 'gcc'}), 'redis': (redis, 2, {'redis-server', 'redis-benchmark'}),
         'postgres': (postgres, 4, {'postgres', 'pgbench'})}


def share(part, whole):
    return 100.0 * part / whole if whole else 0.0


def show(name, how, recording, comms):
    value = recording.profile.value_index(lab.TYPE_SAMPLES)
    total = leaf = frames = named = starts = 0
    rest = collections.Counter()
    for s in recording.profile.samples:
        if s.labels.get(lab.LABEL_COMM) not in comms:
            continue
        n = s.values[value]
        code = [f for f in s.frames if not lab.is_marker(f)]
        good = [f for f in code if f.function and '!sub_' not in f.function]
        total += n
        leaf += n * bool(code and code[0] in good)
        frames += n * len(code)
        named += n * len(good)
        starts += n * sum('!sub_' in (f.function or '') for f in code)
        for f in code:
            if not f.function:
                rest['JIT code without a map' if f.module in lab.MODULE_JIT else
                     'no symbol in ' + os.path.basename(f.module)] += n
    print('%-10s %-8s %8d %6.1f%% %6.1f%% %6.1f%%  %s' % (
        name, how, total, share(leaf, total), share(named, frames), share(starts, frames),
        '; '.join('%.1f%% %s' % (share(c, frames), text) for text, c in rest.most_common(4))),
        flush=True)


def measure(name, make, warm_up, comms, folder):
    commands = make(folder)
    if not commands:
        print('%-10s is not here' % name)
        return
    # Debug files are looked for in the root of each process too: there they are hidden.
    hide = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none %s && exec "$@"' % DEBUG_DIR, 'sh']
    running = [subprocess.Popen(hide + argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, start_new_session=True, cwd=lab.ROOT)
               for argv in commands]
    try:
        time.sleep(warm_up)
        for how, where in (('without', folder), ('with', DEBUG_DIR)):
            show(name, how, lab.record('-a', '-d', SECONDS, '--debug-dir', where,
                                       out=os.path.join(folder, 'x.pb.gz')), comms)
    finally:
        for process in running:
            os.killpg(process.pid, 15)
            process.wait()


def main():
    for package in PACKAGES:
        state = subprocess.run(['dpkg-query', '-W', '-f', '${db:Status-Status}', package], check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        print('# %s: %s' % (package, state or 'not installed'))
    print('%-10s %-8s %8s %7s %7s %7s  %s' % ('load', 'debug', 'samples', 'leaf', 'frames', 'starts',
                                            'the rest, of all frames'))
    for name in sys.argv[2:] or LOADS:
        with lab.Scratch() as scratch:
            measure(name, *LOADS[name], scratch if isinstance(scratch, str) else scratch.name)


if __name__ == '__main__':
    main()
