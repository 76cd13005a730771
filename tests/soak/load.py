#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two of the loads of soak.py, each until it is killed: load.py compiler|database DIR."""

import glob
import os
import sqlite3
import subprocess
import sys
import time


def compiler(root):
    """gcc on one file of sonde after the other."""
    while True:
        for source in sorted(glob.glob(f"{root}/base/*.c")):
            subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-g", f"-I{root}", "-c",
                            "-o", "/dev/null", source], check=False)


def database(directory):
    """Writes, a query over all rows, and deletes, in a file of SQLite."""
    base = sqlite3.connect(os.path.join(directory, "load.db"))
    base.execute("create table if not exists t (k integer primary key, v text, n integer)")
    while True:
        with base:
            base.executemany("insert into t (v, n) values (?, ?)",
                             ((f"value {i}", i % 97) for i in range(500)))
        base.execute("select n, count(*), max(v) from t group by n order by 2").fetchall()
        with base:
            base.execute("delete from t where k < (select max(k) from t) - 20000")
        time.sleep(0.05)


if __name__ == "__main__":
    {"compiler": compiler, "database": database}[sys.argv[1]](sys.argv[2])
