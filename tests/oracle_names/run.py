#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares sonde's names with those of other tools, at random addresses of real programs.

usage: run.py [-n ADDRESSES] [-v] [FILE...]     without files: what is installed, and Go programs

By the files' own tables (readelf, objdump for the PLT, .eh_frame_hdr for starts, `go tool nm`)
an answer is
  equal     the same name (type arguments of Go aside), or no name where there is none
  WRONG     a name that the tables do not give to this address
  MISSED    no name where they give one
A start (sub_<start>) counts as no name; it must be that of an entry of .eh_frame_hdr. `llvm` is
the share of answers that llvm-symbolizer also gives, apart from what is explained:
  below     it takes the nearest symbol below, though that ends before the address
  plt       it has no names for the PLT
  debug     it uses the debug information of a file that sonde has not looked at
  dwarf     its name comes from DWARF: without suffixes as .cold, or that of an alias
Fails on any WRONG or MISSED, on less than 99.5 % equal, and on more than 0.5 % that differ from
llvm-symbolizer without an explanation. The addresses are always the same ones.
"""
import argparse
import collections
import os
import random
import shutil
import subprocess
import sys

import files
from truth import (GoSymbols, Starts, Stubs, Symbols, debug_file_of, go_lines, inlined_calls,
                   llvm_names, output, plain_go)

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
BUILD = os.environ.get('BUILD', os.path.join(ROOT, 'build'))
PROGRAM = os.path.join(BUILD, 'oracle_names', 'names')
DEBUG_DIR = '/usr/lib/debug'
SHOWN_MAX = 20  # of one file
Answer = collections.namedtuple('Answer', 'kind start name calls')


def ask(path, debug_dir, addresses):
    done = subprocess.run([PROGRAM, path, *filter(None, [debug_dir])], check=False,
                          input=''.join('%x\n' % a for a in addresses), stdout=subprocess.PIPE,
                          universal_newlines=True, errors='replace')
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) != len(addresses) + 1:
        return None, []
    answers = []
    for line in lines[1:]:
        *calls, rest = line.split('\t')
        kind, start, name = rest.split(' ', 2)
        answers.append(Answer(kind, int(start, 16), name, [c.split(' ', 1) for c in calls]))
    return lines[0].split(), answers


def pick(symbols, count, path):
    rng = random.Random(os.path.basename(path))
    spans = [(first, size) for first, size, _ in symbols.sections.values() if size]
    if not spans:
        return []
    chosen = rng.choices(spans, [size for _, size in spans], k=count)
    return [first + rng.randrange(size) for first, size in chosen]


def judge_stub(stubs, answer):
    known = stubs.names.get(answer.start, '')
    if answer.name == '[plt]':
        return 'equal' if not known.endswith('@plt') or known.startswith('*ABS*') else 'MISSED'
    # objdump leaves out the first of two sections for IBT.
    return 'equal' if known in ('', answer.name) or not known.endswith('@plt') else 'WRONG'


def judge(symbols, stubs, starts, addr, answer):
    if stubs.has(addr) and not symbols.has_sized(addr):
        return judge_stub(stubs, answer) if answer.kind == 'named' else 'MISSED'
    if answer.kind == 'named':
        return 'equal' if symbols.explains(addr, answer.start, answer.name) else 'WRONG'
    if symbols.has_sized(addr):
        return 'equal' if symbols.is_lost(addr) else 'MISSED'
    if answer.kind == 'start' and starts.known and answer.start not in starts.known:
        return 'WRONG'
    # A symbol without a size ends where, by the unwind data, its function does.
    if symbols.has_unsized(addr) and not starts.known:
        return 'MISSED'
    return 'equal'


def plain(name):
    return name.lstrip('_').split('.')[0]


def judge_llvm(symbols, stubs, addr, answer, name, other_file):
    if answer.kind == 'named' and name in symbols.aliases(answer.start) | {answer.name}:
        return 'same'
    if answer.kind != 'named' and name == '??':
        return 'same'
    if stubs.has(addr):
        return 'plt'
    if answer.kind == 'named' and (plain(name) == plain(answer.name) or name == '??'):
        return 'dwarf'
    if other_file:
        return 'debug'
    if answer.kind != 'named' and not symbols.has_sized(addr):
        return 'below'
    if answer.kind == 'named' and any(name in symbols.aliases(s) for s in symbols.by_start
                                      if s < answer.start):
        return 'below'
    return 'other'


def compare_lines(path, twin, go, addresses, answers):
    """Lines beside `go tool addr2line`, inlined calls beside llvm-symbolizer by DWARF."""
    lines, chains = go_lines(go, twin, addresses), inlined_calls(twin, addresses)
    ours = [(i, a.calls) for i, a in enumerate(answers) if a.calls]
    same_line = sum(calls[0][0] == lines[i] for i, calls in ours)
    same_chain = sum([plain_go(c[1]) for c in calls] == chains[i] or
                     (chains[i] == ['??'] and calls[0][0] == ':0') for i, calls in ours)
    inlined = sum(len(calls) > 1 for _, calls in ours)
    print('%-34s %6d with lines: %.2f %% those of addr2line; %d with inlined calls: %.2f %% of all '
          "chains DWARF's" % ('', len(ours), 100.0 * same_line / max(1, len(ours)), inlined,
                             100.0 * same_chain / max(1, len(ours))))
    return not ours or same_line >= 0.995 * len(ours)


def show(path, addresses, answers, verdicts):
    shown = 0
    for addr, answer, verdict in zip(addresses, answers, verdicts):
        if verdict not in ('equal', 'same', 'plt', 'debug', 'dwarf', 'below') and shown < SHOWN_MAX:
            shown += 1
            print('# %s: %x is %s: %s %s at %x' % (path, addr, verdict, answer.kind, answer.name,
                                                     answer.start))


def compare(path, options, debug_dir=None, debug_file=None, twin=None, go=None):
    """One line of the table; False if the file fails."""
    symbols = GoSymbols(path, twin, go) if twin else Symbols(path, debug_file if debug_dir else None)
    stubs, starts = Stubs(path), Starts(path)
    addresses = pick(symbols, options.n, path)
    load, answers = ask(path, debug_dir, addresses)
    if not answers:
        print('# %s: cannot be read' % path)
        return not addresses
    verdicts = [judge(symbols, stubs, starts, a, w) for a, w in zip(addresses, answers)]
    count = collections.Counter(verdicts)
    kinds = collections.Counter(a.kind for a in answers)
    llvm = None if twin or options.no_llvm else llvm_names(path, addresses)
    by_llvm = collections.Counter()
    if llvm and len(llvm) == len(addresses):
        other_file = bool(debug_file) and not debug_dir
        verdicts2 = [judge_llvm(symbols, stubs, a, w, n, other_file)
                     for a, w, n in zip(addresses, answers, llvm)]
        by_llvm = collections.Counter(verdicts2)
        if options.v:
            show(path, addresses, answers, verdicts2)
    show(path, addresses, answers, verdicts)
    total = len(addresses)
    equal = 100.0 * count['equal'] / total
    print('%-34s %6d %6.1f%% %6.1f%% %6.2f%% %5d %6d %7s %6d %5d %5d %5d %5d %8s' % (
        os.path.basename(path)[-26:] + ('+debug' if debug_dir else ''), total,
        100.0 * kinds['named'] / total, 100.0 * kinds['start'] / total, equal, count['WRONG'],
        count['MISSED'], '%.2f%%' % (100.0 * by_llvm['same'] / total) if by_llvm else '-',
        by_llvm['below'], by_llvm['plt'], by_llvm['debug'], by_llvm['dwarf'], by_llvm['other'],
        load[0]), flush=True)
    options.totals.update(count)
    options.total += total
    lines_good = not twin or compare_lines(path, twin, go, addresses, answers)
    return (lines_good and not count['WRONG'] and not count['MISSED'] and
            by_llvm['other'] <= 0.005 * total)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('-n', type=int, default=10000)
    parser.add_argument('-v', action='store_true', help='also what differs from llvm-symbolizer')
    parser.add_argument('--no-llvm', action='store_true')
    parser.add_argument('--no-go', action='store_true')
    parser.add_argument('--only-go', action='store_true')
    parser.add_argument('--short', action='store_true', help='fewer Go programs')
    parser.add_argument('files', nargs='*')
    options = parser.parse_args()
    options.totals, options.total = collections.Counter(), 0
    print('%-34s %6s %7s %7s %7s %5s %6s %7s %6s %5s %5s %5s %5s %8s' % (
        'file', 'tried', 'named', 'start', 'equal', 'WRONG', 'MISSED', 'llvm', 'below', 'plt', 'debug',
        'dwarf', 'other', 'load ms'))
    good = count = 0
    for path in options.files or ([] if options.only_go else files.installed()):
        sections = output('readelf', '-SW', path)
        if 'gopclntab' in sections:
            # A stripped one has no table to compare with: the programs made below do that.
            if '.symtab' in sections and shutil.which('go'):
                good += compare(path, options, twin=path, go=['go'])
                count += 1
            continue
        debug_file = debug_file_of(path, DEBUG_DIR)
        for debug_dir in [None, DEBUG_DIR] if debug_file else [None]:
            good += compare(path, options, debug_dir, debug_file)
            count += 1
    if not options.files and not options.no_go:
        for path, twin, go in files.go_programs(os.path.dirname(PROGRAM), options.short):
            good += compare(path, options, twin=twin, go=go)
            count += 1
    print('%d of %d runs good; of %d addresses %.3f %% equal, %d wrong, %d missed' % (
        good, count, options.total, 100.0 * options.totals['equal'] / max(1, options.total),
        options.totals['WRONG'], options.totals['MISSED']))
    return 0 if good == count else 1


if __name__ == '__main__':
    sys.exit(main())
