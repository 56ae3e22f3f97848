#!/usr/bin/env bash
# The kit and heaps on musl, and C++ programs of musl on libheapwright.so: their output is that on musl's own malloc.
#   tests      of the kit and of heaps, static, and examples, dynamic: by Clang with libc++, which zig brings
#   ninja      from PyPI, by GCC with libstdc++
#   usage: programs.sh PROJECT     after the preset `release` is built
set -euo pipefail
cd "$1"
HEAPWRIGHT_ZIG=$(cmake/install_zig build/zig)
export HEAPWRIGHT_ZIG
cmake --preset musl -DHEAPWRIGHT_BUILD_TESTS=ON
mapfile -t examples < <(basename -s .cpp -a examples/[0-9]*.cpp)
cmake --build --preset musl -j "$(nproc)" --target unit_tests kit_tests counted_new "${examples[@]/#/example_}"
ctest --test-dir build/musl --output-on-failure -j "$(nproc)" -R '^(unit|kit|kit\.counted_new|example\..*)$'

place=build/musl/programs
mkdir -p "$place"
if [ ! -e "$place/ninja" ]; then
  build/zig/bin/pip download --quiet --no-deps --only-binary=:all: --platform musllinux_1_2_x86_64 --platform musllinux_1_1_x86_64 -d "$place" ninja
  python3 -m zipfile -e "$place"/ninja-*.whl "$place/wheel"
  install "$place"/wheel/ninja-*/scripts/ninja "$place/ninja"
fi
{
  printf 'rule double\n  command = cat $in $in >$out\n'
  for i in $(seq 2000); do echo "build out$i: double out$((i / 2))"; done
} >"$place/build.ninja"
: >"$place/out0"

# on_each NAME COMMAND...: what it prints on its own malloc and on both of ours.
on_each() {
  local name=$1 library
  shift
  "$@" >"$place/$name.alone" 2>/dev/null
  for library in libheapwright libheapwright-hardened; do
    HEAPWRIGHT_STATS=1 LD_PRELOAD=$PWD/build/release/lib/$library.so "$@" >"$place/$name.ours" 2>"$place/$name.statistics"
    cmp "$place/$name.alone" "$place/$name.ours"
    grep -q '^heapwright .*, process' "$place/$name.statistics"
  done
  echo "$name: $(grep -E 'mapped at the peak' "$place/$name.statistics" | tr -s ' ')"
}
on_each ninja "$place/ninja" -C "$place" -n -v
[ "$(grep -c 'cat out' "$place/ninja.ours")" = 2000 ]
# By cmake zig links statically.
for expected in examples/expected/*.txt; do
  name=$(basename "$expected" .txt)
  (cd "$place" && "$HEAPWRIGHT_ZIG" build-exe --name "$name" -target x86_64-linux-musl -dynamic -lc -lc++ -I "$OLDPWD/include" \
    -cflags -std=c++20 -O2 -- "$OLDPWD/examples/$name.cpp")
  on_each "$name" "$place/$name"
done
