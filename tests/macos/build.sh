#!/usr/bin/env bash
# Builds the kit's examples and libheapwright.dylib for both processors of macOS, and looks at what was built. The compiler is zig,
# which brings the system's headers, from PyPI.
#   usage: build.sh PROJECT
set -euo pipefail
cd "$1"
HEAPWRIGHT_ZIG=$(cmake/install_zig build/zig)
export HEAPWRIGHT_ZIG
for processor in arm64 x86_64; do
  cmake --preset "macos-$processor"
  cmake --build --preset "macos-$processor"
  python3 tests/macos/dylib_test.py "build/macos-$processor/lib/libheapwright.dylib" "$processor"
done
