# SPDX-License-Identifier: Apache-2.0
"""Real programs under load, for what is tested over many of them: the table of whole stacks and
the oracle. Each runs until it is killed (or for about a minute), in a process group of its own.

PROGRAMS: name -> Program. {dir} is a scratch directory of the caller's, on a real file system.
"""

import os
import shutil
import subprocess
import sys

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
func main() { t := 0; for e := time.Now().Add(3 * time.Minute); time.Now().Before(e); { t += work(3000) }; fmt.Println(t) }
"""
JAVA = """
import java.util.*;
public class Burn {
  static long f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }
  public static void main(String[] a) { for (long t = 0; ; ) { Map<String, Integer> m = new TreeMap<>();
    for (int i = 0; i < 20000; i++) m.put("k" + (i * 7919 % 10007), i);
    t += m.toString().length() + f(20); if (t == 1) System.out.println(t); } } }
"""
MUSL = """
#include <math.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
static void *work(void *arg) {
  regex_t r; double sum = 0;
  if (regcomp(&r, "k[0-9]+7", REG_EXTENDED)) return 0;
  for (;;) { char *v[3000];
    for (int i = 0; i < 3000; i++) { char t[64]; snprintf(t, sizeof t, "k%d %.3f", i * 7919 % 10007, sin(i)); v[i] = strdup(t); }
    qsort(v, 3000, sizeof *v, by_text);
    for (int i = 0; i < 3000; i++) { sum += strtod(strchr(v[i], ' '), 0) + regexec(&r, v[i], 0, 0, 0); free(v[i]); }
    if (sum == 1) puts("1"); } }
int main(void) { pthread_t t; return pthread_create(&t, 0, work, 0) || work(0) != 0; }
"""
SQL = ("with recursive c(x) as (select 1 union all select x+1 from c where x<9000000) "
       "select count(*), sum(length(printf('%d',x))), max(x%997) from c group by x%1000 order by 2;")
RUBY = ("loop { h = {}; 20000.times { |i| h[\"k#{i * 7919 % 10007}\"] = i.to_s }; "
        "h.keys.sort.join(',').gsub(/\\d+/) { |x| x + '!' } }")
PHP = ("while (1) { $h = []; for ($i = 0; $i < 20000; $i++) $h['k'.($i*7919%10007)] = md5($i); "
       "ksort($h); preg_replace('/\\d+/', '<$0>', implode(',', $h)); }")
PERL = ("while (1) { my %h; $h{'k'.($_*7919%10007)} .= \"x$_\" for 1..20000; "
        "my $t = join(',', sort keys %h); $t =~ s/(\\d+)/<$1>/g }")
# A server of its own, in a directory of a user that it agrees to run as.
POSTGRES = """
set -e
bin=$(dirname "$(readlink -f "$(command -v postgres || ls /usr/lib/postgresql/*/bin/postgres | tail -n 1)")")
cd {dir}; rm -rf pg; mkdir pg; chown postgres pg
as="setpriv --reuid=postgres --regid=postgres --clear-groups"
$as $bin/initdb -D pg/data -A trust >/dev/null
$as $bin/postgres -D pg/data -k /tmp -p 5499 -c listen_addresses= -c fsync=off &
until $as $bin/psql -h /tmp -p 5499 -c 'select 1' postgres; do :; done >/dev/null 2>&1
$as $bin/pgbench -h /tmp -p 5499 -i -s 3 postgres
echo ready
exec $as $bin/pgbench -h /tmp -p 5499 -c 4 -T 600 postgres
"""
REDIS = """
redis-server --port 0 --unixsocket {dir}/redis.sock --save '' &
until redis-cli -s {dir}/redis.sock ping >/dev/null 2>&1; do :; done
echo ready
exec redis-benchmark -s {dir}/redis.sock -q -l -n 200000 -c 20 -P 8
"""
GIT = """
set -e
rm -rf {dir}/repo; mkdir {dir}/repo; cd {dir}/repo; git init -q
git config gc.auto 0; cp -r /usr/include inc; git add -A
git -c user.name=t -c user.email=t@t commit -qm t
echo ready
while :; do git -c gc.autoDetach=false gc -q --force --aggressive --prune=now; done
"""
SOURCES = {"burn.js": NODE, "burn.cc": CXX, "burn.rs": RUST, "burn.go": GO, "Burn.java": JAVA,
           "musl.c": MUSL}
JAVAC = ["javac", "-d", "{dir}", "{dir}/Burn.java"]
FFMPEG = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=30", "-t", "3600",
          "-f", "null", "-c:v"]


class Program:
    """
    needs: programs in PATH; packages: the Debian packages that have them. says_ready: it writes a
    line "ready" once it is under load.
    """

    def __init__(self, needs, argv, packages="", build=None, says_ready=False):
        self.needs, self.argv, self.packages = needs.split(), argv, packages
        self.build, self.says_ready = build, says_ready

    def missing(self):
        gone = [p for p in self.needs if not shutil.which(p)]
        return f"{' '.join(gone)} not installed" + (
            f" ({self.packages})" if self.packages else "") if gone else None

    def prepared(self, folder):
        """The command, after its build; None if that fails."""
        def filled(argv):
            return [a.replace("{dir}", folder) for a in argv]
        for file, text in SOURCES.items():
            path = os.path.join(folder, file)
            if not os.path.exists(path):
                with open(path, "w", encoding="ascii") as f:
                    f.write(text)
        if self.build and subprocess.run(filled(self.build), check=False, cwd=folder,
                                         capture_output=True).returncode:
            return None
        return filled(self.argv)


def looped(command):
    return ["sh", "-c", f"while :; do {command}; done"]


def script(text):
    return ["sh", "-c", text]


PROGRAMS = {
    "python3": Program("python3", ["python3", "-c", PYTHON]),
    "node": Program("node", ["node", "{dir}/burn.js"], "nodejs"),
    "java": Program("java javac", ["java", "-cp", "{dir}", "Burn"], "default-jdk-headless", JAVAC),
    "java_fp": Program("java javac", ["java", "-XX:+PreserveFramePointer", "-cp", "{dir}", "Burn"],
                       "default-jdk-headless", JAVAC),
    "gcc": Program("g++", looped("g++ -O2 -c -o {dir}/burn.o {dir}/burn.cc"), "g++"),
    "clang": Program("clang++-14", looped("clang++-14 -O2 -c -o {dir}/burn2.o {dir}/burn.cc"),
                     "clang-14"),
    "postgres": Program("pgbench psql setpriv", script(POSTGRES), "postgresql",
                        says_ready=True),
    "redis": Program("redis-server redis-benchmark", script(REDIS), "redis-server",
                     says_ready=True),
    "openssl": Program("openssl", looped("openssl speed -seconds 1 aes-256-cbc sha256 rsa2048 ecdsap256"),
                       "openssl"),
    "git_gc": Program("git", script(GIT), "git", says_ready=True),
    "sqlite3": Program("sqlite3", looped(f'sqlite3 :memory: "{SQL}"'), "sqlite3"),
    "ffmpeg_x265": Program("ffmpeg", [*FFMPEG, "libx265", "-x265-params", "log-level=none", "-"],
                           "ffmpeg"),
    "ffmpeg_x264": Program("ffmpeg", [*FFMPEG, "libx264", "-"], "ffmpeg"),
    "go": Program("go", ["{dir}/go"], "golang-go", ["go", "build", "-o", "{dir}/go", "{dir}/burn.go"]),
    "go_stripped": Program("go", ["{dir}/go_stripped"], "golang-go",
                           ["go", "build", "-ldflags=-s -w", "-o", "{dir}/go_stripped", "{dir}/burn.go"]),
    "go_build": Program("go", looped("go build -a -o {dir}/go2 {dir}/burn.go"), "golang-go"),
    "rust": Program("rustc", ["{dir}/rust"], "rustc",
                    ["rustc", "-O", "-o", "{dir}/rust", "{dir}/burn.rs"]),
    "rust_abort": Program("rustc", ["{dir}/rust_abort"], "rustc",
                          ["rustc", "-O", "-C", "panic=abort", "-C", "force-unwind-tables=no", "-C",
                           "force-frame-pointers=yes", "-o", "{dir}/rust_abort", "{dir}/burn.rs"]),
    "rustc": Program("rustc", looped("rustc -O -o {dir}/rust3 {dir}/burn.rs"), "rustc"),
    "musl": Program("musl-gcc", ["{dir}/musl"], "musl-tools",
                    ["musl-gcc", "-O2", "-o", "{dir}/musl", "{dir}/musl.c"]),
    "musl_static": Program("musl-gcc", ["{dir}/musl_static"], "musl-tools",
                           ["musl-gcc", "-O2", "-static", "-o", "{dir}/musl_static", "{dir}/musl.c"]),
    "ruby": Program("ruby", ["ruby", "-e", RUBY], "ruby"),
    "php": Program("php", ["php", "-d", "pcre.jit=0", "-r", PHP], "php-cli"),
    "php_jit": Program("php", ["php", "-r", PHP], "php-cli"),
    "perl": Program("perl", ["perl", "-e", PERL], "perl"),
    "xz": Program("xz", looped(f"xz -9 -T2 -c {os.path.realpath(sys.executable)} >/dev/null"), "xz-utils"),
}


def environment():
    """What the programs' own tools need: Go outside a module, and all usual places in PATH."""
    return {**os.environ, "PATH": os.environ["PATH"] + ":/usr/local/go/bin:/usr/sbin",
            "GO111MODULE": "off", "GOFLAGS": "", "GOTOOLCHAIN": "local"}
