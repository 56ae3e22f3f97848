#!/usr/bin/env bash
# script/abi finds no change between a commit and itself, and says so of a library that has lost a function.
#   usage: abi.sh PROJECT
set -euo pipefail
cd "$1"
script/abi HEAD
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
echo 'void heapwright_gone(void) {}' >"$place/older.c"
cc -g -shared -fPIC -Wl,-soname,libheapwright.so.0 -o "$place/older.so" "$place/older.c"
if script/abi "$place/older.so" >"$place/said" 2>&1; then
  echo "a function that is gone is no change" >&2
  exit 1
fi
grep -q heapwright_gone "$place/said"
grep -q 'do not run on this one' "$place/said"
if script/abi no-such-commit >"$place/said" 2>&1; then exit 1; fi
grep -q 'unknown argument: no-such-commit' "$place/said"
