#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Profiles without names, named later or elsewhere: only by files of the same build-id (S-13)."""

import bisect
import os
import shutil
import struct
import subprocess

import lab
import pprofread
from tap import check, equal, note, run, skip, test

scratch = lab.Scratch()
HZ = 997
HOT = ("hot_60", "hot_30", "hot_10")


def symbolize(*args, status=0):
    done = subprocess.run([lab.SONDE, "symbolize", *args], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
                          check=False)
    note(done.stdout.strip()[-600:])
    equal(done.returncode, status, "exit status")
    return done.stdout


def read(path):
    with open(path, "rb") as f:
        return pprofread.Profile(f.read())


def functions(path):
    return {f.function for s in read(path).samples for f in s.frames if f.function}


def program(name):
    """A copy of the workload that this test may move about."""
    path = scratch.path(name)
    shutil.copy(lab.wl("split"), path)
    return path


def record_unnamed(path, out):
    r = lab.record("-F", HZ, "--no-symbols", out=out,
                   command=[path, "-t", str(lab.seconds(1.5, 10))])
    named = {n for n in functions(out) if not n.startswith("[")}
    equal(named, set(), "names in a profile without names")
    check(any("names are left out" in c for c in r.profile.comments), "the reason is not told")
    return r


def check_named(path, r):
    """The same weights as the program's own measure, by the names that were added."""
    truth = lab.truth_in(r.stdout)
    named = lab.Recording(path, r.status, r.stdout, r.stderr, r.took)
    lab.check_split(named, named.profile.samples, HOT, [truth["functions"][f] for f in HOT])
    return named.profile


@test("named later on the same machine: program, libraries, kernel, in place of the file")
def same_machine():
    out = scratch.path("same.pb.gz")
    r = record_unnamed(program("same"), out)
    symbolize(out)
    kernel = [f.function for s in check_named(out, r).samples for f in s.frames if lab.is_kernel(f)]
    named = sum(1 for f in kernel if f)
    note(f"{named} of {len(kernel)} kernel frames are named")
    check(not kernel or named > 0.9 * len(kernel), "kernel frames are not named")


@test("named on another machine: files below --symfs; the original is gone")
def other_machine():
    out, root = scratch.path("other.pb.gz"), scratch.path("symfs")
    path = program("other")
    r = record_unnamed(path, out)
    os.makedirs(root + os.path.dirname(path))
    shutil.move(path, root + path)
    symbolize("--symfs", root, "-o", scratch.path("named.pb.gz"), out)
    check_named(scratch.path("named.pb.gz"), r)
    check(not set(HOT) & functions(out), "the original was written to")


@test("a file of another build at the same path is not used")
def another_build():
    out, path = scratch.path("build.pb.gz"), program("build")
    record_unnamed(path, out)
    shutil.copy(lab.wl("storm"), path + ".new")
    os.rename(path + ".new", path)
    text = symbolize("-o", scratch.path("build2.pb.gz"), out)
    check("another build-id" in text, "the cause is not told")
    named = {f.function for s in read(scratch.path("build2.pb.gz")).samples
             for f in s.frames if f.module.endswith("/build") and f.function}
    equal(named, set(), "names from another build")


@test("a program that was stripped since is named by its debug file, of compressed sections (S-05)")
def debug_file():
    out, path, debug = scratch.path("debug.pb.gz"), program("debug"), scratch.path("debugdir")
    r = record_unnamed(path, out)
    notes = subprocess.run(["readelf", "-n", path], stdout=subprocess.PIPE, text=True, check=True)
    build_id = notes.stdout.split("Build ID: ")[1].split()[0]
    os.makedirs(f"{debug}/.build-id/{build_id[:2]}")
    subprocess.run(["objcopy", "--only-keep-debug", "--compress-debug-sections=zstd", path,
                    f"{debug}/.build-id/{build_id[:2]}/{build_id[2:]}.debug"], check=True)
    os.unlink(path)
    symbolize("--debug-dir", debug, out)
    check_named(out, r)


@test("hidden kernel addresses: no kernel names, and the reason (kptr_restrict)")
def hidden_kernel():
    with lab.Sysctl("kernel.kptr_restrict", 2):
        r = lab.record("-F", HZ, out=scratch.path("hidden.pb.gz"), command=[
            "dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=100000"])
    kernel = [f for s in r.profile.samples for f in s.frames if lab.is_kernel(f)]
    check(kernel, "no kernel frames")
    equal({f.function for f in kernel if f.function}, set(), "kernel names")
    check(any("kptr_restrict" in c for c in r.profile.comments), "the reason is not told")


def kernel_build_id():
    with open("/sys/kernel/notes", "rb") as f:
        notes = f.read()
    at = notes.find(b"GNU\0")
    if at < 12:
        skip("this kernel has no build-id")
    size = struct.unpack_from("<I", notes, at - 8)[0]
    return notes[at + 4:at + 4 + size]


@test("the kernel's symbols are kept by build-id while one records: the same names without kallsyms")
def kept_symbols():
    out, kept = scratch.path("kept.pb.gz"), scratch.path("kept")
    copy = f"{os.environ['XDG_CACHE_HOME']}/sonde/kernel-{kernel_build_id().hex()}"
    if os.path.exists(copy):
        os.unlink(copy)
    record_unnamed(program("kept_program"), out)
    check(os.path.getsize(copy) > 1 << 20, "recording has kept nothing")
    named = {}
    for how in ("", kept, kept):
        path = scratch.path(f"kept{len(named)}.pb.gz")
        symbolize("--cache-dir", how, "-o", path, out)
        named.setdefault(how, set()).update(functions(path))
        equal(functions(path), named[""], f"names with --cache-dir '{how}'")
    with open(f"{kept}/{os.path.basename(copy)}", "rb") as mine, open(copy, "rb") as recorded:
        equal(mine.read() == recorded.read(), True, "the same copy")
    # Of a damaged one nothing is believed.
    os.truncate(f"{kept}/{os.path.basename(copy)}", 1 << 20)
    symbolize("--cache-dir", kept, "-o", path, out)
    equal(functions(path), named[""], "names with a damaged copy")
    check(os.path.getsize(f"{kept}/{os.path.basename(copy)}") > 1 << 20, "it was not made anew")


def write_vmlinux(path, build_id, symbols, text, base):
    """
    A kernel with its symbols, linked at `base`, of the functions that are at `text` on in kallsyms;
    their names get a prefix, so that it is seen where they come from.
    """
    end = symbols[-1][0] + 64 - text + base
    names, table = bytearray(1), bytearray(24)
    for addr, name in symbols:
        table += struct.pack("<IBBHQQ", len(names), 0x12, 0, 1, addr - text + base, 0)
        names += b"vm_" + name.encode() + b"\0"
    note = struct.pack("<III", 4, len(build_id), 3) + b"GNU\0" + build_id
    sections = [(0, 0, 0, 0, b"", 0, 0),  # name, type, flags, address, bytes, link, entry size
                (1, 8, 6, base, end - base, 0, 0), (7, 2, 0, 0, bytes(table), 3, 24),
                (15, 3, 0, 0, bytes(names), 0, 0),
                (23, 3, 0, 0, b"\0.text\0.symtab\0.strtab\0.shstrtab\0", 0, 0)]
    at, body, headers = 64 + 2 * 56 + len(note), b"", b""
    for name, kind, flags, addr, data, link, size in sections:
        length = data if isinstance(data, int) else len(data)
        headers += struct.pack("<IIQQQQIIQQ", name, kind, flags, addr, at, length, link, 0, 1, size)
        if not isinstance(data, int):
            at, body = at + length, body + data
    segments = (struct.pack("<IIQQQQQQ", 1, 5, 4096, base, base, 0, end - base, 4096) +
                struct.pack("<IIQQQQQQ", 4, 4, 64 + 2 * 56, 0, 0, len(note), len(note), 4))
    header = struct.pack("<4sBBBB8xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 2, 62, 1, base, 64, at,
                         0, 64, 56, 2, 64, len(sections), len(sections) - 1)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(header + segments + note + body + headers)


def kernel_functions():
    """(address, name) of the kernel's own functions, in order, one for each address."""
    found = {}
    with open("/proc/kallsyms", encoding="ascii") as f:
        for line in f:
            fields = line.split()
            if len(fields) == 3 and fields[1] in "tT":
                found.setdefault(int(fields[0], 16), fields[2])
    return sorted(found.items())


def names_of_kernel(path, prefix):
    frames = [f for s in read(path).samples for f in s.frames if lab.is_kernel(f)]
    named = [f for f in frames if f.function]
    check(all(f.function.startswith(prefix) for f in named), f"not from there: {named[:3]}")
    return frames, named


@test("kernel addresses named on another machine by a vmlinux of the same build-id, none by another")
def vmlinux():
    out, root = scratch.path("kernel.pb.gz"), scratch.path("kernelfs")
    symbols, build_id = kernel_functions(), kernel_build_id()
    r = lab.record("-F", HZ, "--no-symbols", out=out, command=[
        "dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=200000"])
    text = next(int(c.split(": ")[1], 16) for c in r.profile.comments if c.startswith("kernel text"))
    symbols = [(a, n) for a, n in symbols if a >= text]
    path = f"{root}/usr/lib/debug/boot/vmlinux-{os.uname().release}"
    with lab.Sysctl("kernel.kptr_restrict", 2):  # so that this machine is another one
        write_vmlinux(path, build_id[:-1] + bytes([build_id[-1] ^ 1]), symbols, text, 0x4000000)
        told = symbolize("--cache-dir", "", "--symfs", root, "-o", scratch.path("wrong.pb.gz"), out)
        check("another build-id" in told, "the cause is not told")
        equal(names_of_kernel(scratch.path("wrong.pb.gz"), "?")[1], [], "names of another kernel")
        write_vmlinux(path, build_id, symbols, text, 0x4000000)
        symbolize("--cache-dir", "", "--symfs", root, "-o", scratch.path("right.pb.gz"), out)
        shutil.rmtree(root)
        link = f"{root}/.build-id/{build_id.hex()[:2]}/{build_id.hex()[2:]}.debug"
        write_vmlinux(link, build_id, symbols, text, 0xffffffff80000000)
        symbolize("--cache-dir", "", "--debug-dir", root, "-o", scratch.path("linked.pb.gz"), out)
    addresses = [a for a, _ in symbols]
    for name in ("right", "linked"):
        frames, named = names_of_kernel(scratch.path(name + ".pb.gz"), "vm_")
        note(f"{len(named)} of {len(frames)} kernel frames are named")
        check(len(named) > 0.9 * len(frames) > 0, "kernel frames are not named")
        for f in named:
            want = symbols[bisect.bisect_right(addresses, f.address) - 1][1]
            equal(f.function, "vm_" + want, f"the name at {f.address:x}")


@test("mistakes get one line and an exit status")
def mistakes():
    for args, status in (((), 2), (("x.txt",), 2), (("/nonexistent.pb.gz",), 1)):
        text = symbolize(*args, status=status)
        equal(len(text.strip().splitlines()), 1, f"lines for {args}")


if __name__ == "__main__":
    run()
