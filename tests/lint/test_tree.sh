#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The rules of lint.py over this tree.
exec python3 tests/lint/lint.py .
