#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures stacks of many programs and compares sonde's walker with libdw on them: one table.

usage: run.py [-n SAMPLES] [-m PERCENT] [-k DIRECTORY] [NAME...]

Needs root and `make workloads`. Without names, all programs that are installed. -k keeps the
captures (64 KB a stack). Ends with 1 if one has less than PERCENT (99.5) of its stacks equal.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
WL = os.path.join(BUILD, "workloads")
ORACLE = os.path.join(BUILD, "oracle")

PYTHON = """
import json, re
d = {"a": [{"k%d" % i: [1, 2, 3.5, "xx" * i]} for i in range(200)]}
r = re.compile(r"(\\w+?)\\s*(:|,)\\s*")
while True:
    s = json.dumps(d, indent=1); json.loads(s); r.findall(s)
"""
NODE = """
function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2) }
let o = {};
for (let i = 0; i < 1e9; i++) {
  o["k" + (i % 5000)] = JSON.stringify({ a: i, b: [1, 2, i] }); f(15);
  if (i % 100 == 0) Object.values(o).map(x => x.length).sort((a, b) => a - b);
}
"""
CXX = """
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
template<int N> struct S { std::map<int, std::string> m; std::regex r{"a+"};
  static int f() { S s; s.m[N] = "x"; return s.m.size() + S<N - 1>::f(); } };
template<> struct S<0> { static int f() { return 0; } };
int main() { std::vector<int> v(100); std::sort(v.begin(), v.end()); std::cout << S<250>::f(); }
"""
RUST = """
use std::collections::{BTreeMap, HashMap};
fn main() { let mut n = 0u64; loop {
  let (mut m, mut b) = (HashMap::new(), BTreeMap::new());
  for i in 0..20000u64 { m.insert(format!("k{}", i * 7919 % 10007), i); b.insert(i * 31 % 1009, vec![i; 3]); }
  let mut v: Vec<_> = m.iter().collect(); v.sort();
  n += v.len() as u64 + b.values().map(|x| x.iter().sum::<u64>()).sum::<u64>();
  if n == 1 { println!("{}", n); } } }
"""
GO = """
package main
import ("encoding/json"; "fmt"; "sort"; "strings"; "time")
func work(n int) int { s := []string{}
  for i := 0; i < n; i++ { s = append(s, fmt.Sprintf("%d", i*7919%10007)) }
  sort.Strings(s); b, _ := json.Marshal(s); return len(strings.Join(s, ",")) + len(b) }
func main() { t := 0; for e := time.Now().Add(time.Minute); time.Now().Before(e); { t += work(3000) }; fmt.Println(t) }
"""
JAVA = """
import java.util.*;
public class Burn {
  static long f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }
  public static void main(String[] a) { for (long t = 0; ; ) { Map<String, Integer> m = new TreeMap<>();
    for (int i = 0; i < 20000; i++) m.put("k" + (i * 7919 % 10007), i);
    t += m.toString().length() + f(20); if (t == 1) System.out.println(t); } } }
"""
SQL = ("with recursive c(x) as (select 1 union all select x+1 from c where x<9000000) "
       "select count(*), sum(length(printf('%d',x))), max(x%997) from c group by x%1000 order by 2;")
RUBY = ("loop { h = {}; 20000.times { |i| h[\"k#{i * 7919 % 10007}\"] = i.to_s }; "
        "h.keys.sort.join(',').gsub(/\\d+/) { |x| x + '!' } }")
PHP = ("while (1) { $h = []; for ($i = 0; $i < 20000; $i++) $h['k'.($i*7919%10007)] = md5($i); "
       "ksort($h); preg_replace('/\\d+/', '<$0>', implode(',', $h)); }")
PERL = ("while (1) { my %h; $h{'k'.($_*7919%10007)} .= \"x$_\" for 1..20000; "
        "my $t = join(',', sort keys %h); $t =~ s/(\\d+)/<$1>/g }")
# name -> (what it needs, command; {dir} is a scratch directory)
PROGRAMS = {
    "split": (None, [f"{WL}/split"]),
    "deep_small": (None, [f"{WL}/deep_small"]),
    "deep_large": (None, [f"{WL}/deep_large"]),
    **{f"u_{s}": (None, [f"{WL}/shapes", s]) for s in (
        "noreturn", "mixed", "plt", "resolve", "asm", "asm_bare", "thread", "clone", "broken")},
    "u_vfork": (None, [f"{WL}/shapes", "vfork", "-t", "5"]),
    "u_plt_nocet": (None, [f"{WL}/shapes_nocet", "plt"]),
    **{f"u_signal_{s}": (None, [f"{WL}/signals_plain", s]) for s in ("plain", "alt", "nested")},
    "python3": ("python3", ["python3", "-c", PYTHON]),
    "node": ("node", ["node", "{dir}/burn.js"]),
    "openssl": ("openssl", ["openssl", "speed", "-seconds", "1", "aes-256-cbc", "sha256", "rsa2048",
                            "ecdsap256"]),
    "gcc": ("g++", ["g++", "-O2", "-c", "-o", "{dir}/burn.o", "{dir}/burn.cc"]),
    "clang": ("clang++-14", ["clang++-14", "-O2", "-c", "-o", "{dir}/burn2.o", "{dir}/burn.cc"]),
    "rust": ("rustc", ["{dir}/rust"]),
    "rust_abort": ("rustc", ["{dir}/rust_abort"]),
    "rustc": ("rustc", ["rustc", "-O", "-o", "{dir}/rust3", "{dir}/burn.rs"]),
    "go": ("go", ["{dir}/go"]),
    "go_build": ("go", ["go", "build", "-a", "-o", "{dir}/go2", "{dir}/burn.go"]),
    "java": ("javac", ["java", "-cp", "{dir}", "Burn"]),
    "java_fp": ("javac", ["java", "-XX:+PreserveFramePointer", "-cp", "{dir}", "Burn"]),
    "sqlite3": ("sqlite3", ["sqlite3", ":memory:", SQL]),
    "git": ("git", ["git", "-C", ROOT, "log", "-p", "--stat", "-M", "-C"]),
    "xz": ("xz", ["xz", "-9", "-T2", "-c", os.path.realpath(sys.executable)]),
    "perl": ("perl", ["perl", "-e", PERL]),
    "ruby": ("ruby", ["ruby", "-e", RUBY]),
    "php": ("php", ["php", "-r", PHP]),
}
SOURCES = {"burn.js": NODE, "burn.cc": CXX, "burn.rs": RUST, "burn.go": GO, "Burn.java": JAVA}
BUILDS = {
    "rust": ["rustc", "-O", "-o", "{dir}/rust", "{dir}/burn.rs"],
    "rust_abort": ["rustc", "-O", "-C", "panic=abort", "-C", "force-unwind-tables=no", "-C",
                   "force-frame-pointers=yes", "-o", "{dir}/rust_abort", "{dir}/burn.rs"],
    "go": ["go", "build", "-o", "{dir}/go", "{dir}/burn.go"],
    "java": ["javac", "-d", "{dir}", "{dir}/Burn.java"],
    "java_fp": ["javac", "-d", "{dir}", "{dir}/Burn.java"],
}


def filled(argv, folder):
    return [a.replace("{dir}", folder) for a in argv]


def capture(name, folder, keep, samples):
    """The capture's path, or None if the program cannot be run here."""
    need, argv = PROGRAMS[name]
    if need and not shutil.which(need):
        return None
    if name in BUILDS and subprocess.run(filled(BUILDS[name], folder), check=False,
                                         capture_output=True).returncode:
        return None
    path = os.path.join(keep, name)
    done = subprocess.run([f"{ORACLE}/capture", "-o", path, "-F", "299", "-n", str(samples), "-d", "8",
                           *filled(argv, folder)], check=False, cwd=folder, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, errors="replace")
    if done.returncode:
        print(f"{name}: capture failed: {done.stderr.strip()[-200:]}")
        return None
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=1000)
    parser.add_argument("-m", type=float, default=99.5)
    parser.add_argument("-k")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    os.environ["PATH"] += ":/usr/local/go/bin:/usr/sbin"
    os.environ["GO111MODULE"] = "off"
    low = []
    with tempfile.TemporaryDirectory(dir=BUILD) as folder, \
            tempfile.TemporaryDirectory(dir=BUILD) as captures:
        for file, text in SOURCES.items():
            with open(os.path.join(folder, file), "w", encoding="ascii") as f:
                f.write(text)
        print(f"{'program':<16} {'stacks':>7} {'equal':>9} {'whole':>9} {'frames':>7} {'by fp':>7} "
              f"files table_KB failed", flush=True)
        for name in args.names or PROGRAMS:
            path = capture(name, folder, args.k or captures, args.n)
            if not path:
                print(f"{name:<16} cannot be run here", flush=True)
                continue
            done = subprocess.run([f"{ORACLE}/compare", path], stdout=subprocess.PIPE, text=True,
                                  check=False)
            print(done.stdout or f"{name:<16} compare failed: {done.returncode}\n", end="",
                  flush=True)
            equal = re.search(r"([\d.]+)%", done.stdout)
            if not equal or float(equal.group(1)) < args.m:
                low.append(name)
            if not args.k:
                os.unlink(path)
    if low:
        print(f"below {args.m} %: {', '.join(low)}")
    return 1 if low else 0


sys.exit(main())
