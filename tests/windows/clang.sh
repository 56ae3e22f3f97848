#!/usr/bin/env bash
# Builds the kit, heaps, heapwright.dll and heapwright.exe for Windows by Clang, and runs their tests under wine.
#   usage: clang.sh PROJECT
set -euo pipefail
cd "$1"
HEAPWRIGHT_ZIG=$(cmake/install_zig build/zig)
export HEAPWRIGHT_ZIG
cmake --preset windows-clang -DHEAPWRIGHT_BUILD_TESTS=ON
cmake --build --preset windows-clang -j "$(nproc)"
ctest --test-dir build/windows-clang --output-on-failure -j "$(nproc)"
