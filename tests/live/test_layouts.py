#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Names and addresses are those of nm, whatever the layout of the file (S-01, S-02, S-03, S-08)."""

import os
import re
import subprocess

import lab
from tap import check, equal, note, run, test

scratch = lab.Scratch()
HZ = 997
HOT = ("hot_60", "hot_30", "hot_10")


def nm(path, *options):
    """name -> (address, size), as the file's symbol table has them."""
    text = subprocess.run(["nm", "-S", *options, path], text=True, stdout=subprocess.PIPE,
                          check=True).stdout
    found = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) \w (\S+)$", text, re.M)
    return {name.split("@")[0]: (int(a, 16), int(size, 16)) for a, size, name in found}


def run_library(name, *options):
    path = lab.wl(name)
    with lab.Workload(lab.wl("dlrun"), *options, path) as w:
        r = lab.record("-F", HZ, "-p", w.pid, "-d", lab.seconds(1, 10),
                       out=scratch.path(f"{name}{len(options)}.pb.gz"))
        w.stop()
    return path, r


def leaves(r, thread):
    """Distinct leaf frames of a thread's user-mode samples in any library of ours -> samples."""
    counts = {}
    i = r.profile.value_index(lab.TYPE_SAMPLES)
    for s in filter(lab.in_user_mode, r.select(thread=thread)):
        f = lab.leaf(s)
        if os.path.basename(f.module).endswith("_lib.so") or "/lay_" in f.module:
            counts[f] = counts.get(f, 0) + s.values[i]
    return counts


def check_library(name, *options, symbols=None):
    path, r = run_library(name, *options)
    symbols = nm(symbols or path)
    for function in ("lay_60", "lay_30", "lay_10"):
        counts = leaves(r, function)
        total = sum(counts.values())
        named = sum(n for f, n in counts.items() if f.function == function)
        note(f"{name} {' '.join(options)}: {named} of {total} samples named {function}")
        check(total > 5, f"{function}: only {total} samples")
        equal({f.function for f in counts}, {function}, f"{name}: names shown for {function}")
        start, size = symbols[function]
        for f in counts:
            check(start <= f.address < start + size,
                  f"{name}: {function} at {f.address:#x}, nm says {start:#x}+{size:#x}")


def add_layout(name, text):
    test(text)(lambda: check_library(name))


add_layout("lay_bfd.so", "plain shared library")
add_layout("lay_lld.so", "lld: text with address != file offset (S-01)")
add_layout("lay_second.so", "two executable segments with different distances (S-01)")
add_layout("lay_bfd_64k.so", "64 KiB segment alignment, bfd (S-02)")
add_layout("lay_lld_16k.so", "16 KiB segment alignment, lld (S-02)")
add_layout("lay_lld_64k.so", "64 KiB segment alignment, lld (S-02)")
add_layout("lay_lld_2m.so", "2 MiB segment alignment, lld (S-02)")
add_layout("lay_prelinked.so", "a first address that is not 0 (S-02)")


@test("text split into three mappings by mprotect (S-02)")
def protected():
    check_library("lay_bfd.so", "-p")


@test("no section headers: exported names by PT_DYNAMIC (S-03)")
def no_sections():
    check_library("lay_nosections.so", symbols=lab.wl("lay_bfd.so"))


def check_program(name):
    symbols = nm(lab.wl(name))
    with lab.Workload(lab.wl(name)) as w:
        r = lab.record("-F", HZ, "-p", w.pid, "-d", lab.seconds(1, 10),
                       out=scratch.path(name + ".pb.gz"))
        truth = w.stop()
    lab.check_split(r, r.profile.samples, HOT, [truth["functions"][f] for f in HOT])
    for s in r.profile.samples:
        for f in s.frames:
            if f.function in HOT:
                start, size = symbols[f.function]
                check(start <= f.address < start + size, f"{f.function} at {f.address:#x}")


@test("program at a fixed address (no PIE)")
def no_pie():
    check_program("split_nopie")


@test("static program")
def static():
    check_program("split-static")


@test("static PIE")
def static_pie():
    check_program("split_static_pie")


@test("PIE by lld with an image base that is not 0 and 64 KiB alignment (S-02)")
def image_base():
    check_program("split_lld_base")


@test("a stripped static program: no names, and none made up")
def stripped():
    with lab.Workload(lab.wl("split_stripped")) as w:
        r = lab.record("-F", HZ, "-p", w.pid, "-d", 1.5, out=scratch.path("stripped.pb.gz"))
    names = {f.function for s in r.profile.samples for f in lab.user_frames(s)
             if "split_stripped" in f.module and f.function and "sub_" not in f.function}
    equal(names, set(), "names in a file that has none")
    check(any("split_stripped" in f.module for s in r.profile.samples for f in s.frames),
          "the module is not named")


@test("the right symbol: size 0, a stripped neighbour, ifunc, PLT, version markers (S-08)")
def pick():
    _path, r = run_library("pick_lib.so")
    seen = {}
    for thread in ("pick_first", "pick_nameless", "pick_last", "pick_nosize", "pick_impl",
                   "pick_plt_loop"):
        counts = leaves(r, thread)
        seen[thread] = {}
        for f, n in counts.items():
            seen[thread][f.function] = seen[thread].get(f.function, 0) + n
        note(f"{thread}: {seen[thread]}")
    for thread in ("pick_first", "pick_last", "pick_nosize", "pick_impl"):
        equal(set(seen[thread]), {thread}, f"names shown for {thread}")
    made_up = {n for n in seen["pick_nameless"] if n and "sub_" not in n}
    equal(made_up, set(), "names shown for the function without a symbol")
    check(seen["pick_nameless"], "the function without a symbol was not sampled")
    plt = {n for n in seen["pick_plt_loop"] if n and "plt" not in n}
    equal(plt | {"pick_tiny"}, {"pick_tiny"}, "names shown for the hot PLT and around it")
    check("pick_plt_loop" in seen["pick_plt_loop"] and "pick_tiny" in seen["pick_plt_loop"],
          "the loop or its callee is missing")


if __name__ == "__main__":
    run()
