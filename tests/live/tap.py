# SPDX-License-Identifier: Apache-2.0
"""TAP output for tests that are plain functions.

A test file decorates its functions with @test("what is shown") and ends with run(). A test
passes if it returns; check() and friends raise; skip() skips it with a reason. Diagnostics go
to "# ..." lines, so that a log shows the figures of passed tests too.
"""

import os
import sys
import traceback

_tests = []


class Failure(Exception):
    pass


class Skip(Exception):
    pass


def test(name):
    def register(function):
        _tests.append((name, function))
        return function
    return register


def note(text):
    for line in str(text).splitlines():
        print("#", line, flush=True)


def skip(why):
    raise Skip(why)


def check(condition, text):
    if not condition:
        raise Failure(text)


def equal(got, want, what):
    check(got == want, f"{what}: got {got!r}, want {want!r}")


def near(got, want, tolerance, what):
    check(abs(got - want) <= tolerance,
          f"{what}: got {got:.4g}, want {want:.4g} within {tolerance:.3g}")


def _run_one(number, name, function):
    try:
        function()
    except Skip as why:
        print(f"ok {number} - {name} # SKIP {why}", flush=True)
        return True
    except Failure as why:
        print(f"not ok {number} - {name}", flush=True)
        note(why)
        return False
    except Exception:  # a fault of the test itself is a failed test, with its trace
        print(f"not ok {number} - {name}", flush=True)
        note(traceback.format_exc())
        return False
    print(f"ok {number} - {name}", flush=True)
    return True


def run(needs_root=True):
    """Runs the tests whose name contains $ONLY; exits 1 if any failed."""
    if needs_root and os.geteuid() != 0:
        print("1..0 # SKIP needs root")
        sys.exit(0)
    only = os.environ.get("ONLY", "")
    chosen = [t for t in _tests if only in t[0]]
    print(f"1..{len(chosen)}", flush=True)
    good = [_run_one(i + 1, *t) for i, t in enumerate(chosen)]
    sys.exit(0 if all(good) else 1)
