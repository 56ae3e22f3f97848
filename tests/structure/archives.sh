#!/usr/bin/env bash
# Makes the archives for Windows, macOS and musl, and tries what is in them, from where they are unpacked.
#   usage: archives.sh PROJECT
set -euo pipefail
cd "$1"
for kind in windows macos musl; do script/package "$kind"; done

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
for archive in build/packages/heapwright-*-{windows,macos,musl}*.tar.gz; do
  tar -C "$place" -xzf "$archive"
  folder=$place/$(basename "$archive" .tar.gz)
  [ -f "$folder/include/heapwright/heap.hpp" ]
  [ -f "$folder/LICENSE" ]
done

windows=$(echo "$place"/heapwright-*-windows-x86_64)
cat >"$place/own.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  char* p = malloc(100);
  p = realloc(p, 100000);
  puts(p == NULL ? "no memory" : "done");
  free(p);
  return 0;
}
C
x86_64-w64-mingw32-gcc -o "$place/own.exe" "$place/own.c"
cmake/under_wine "$windows/heapwright.exe" run --stats -- "$place/own.exe" >"$place/said" 2>"$place/told"
grep -q done "$place/said"
grep -q 'heapwright .*process' "$place/told"
x86_64-w64-mingw32-gcc -o "$place/within.exe" "$place/own.c" -Wl,--whole-archive "$windows/libheapwright.a" -Wl,--no-whole-archive -lntdll -lsynchronization
HEAPWRIGHT_STATS=1 cmake/under_wine "$place/within.exe" 2>&1 | grep -q 'heapwright .*process'
printf '#include <heapwright/heap.hpp>\nint main() { heapwright::heap<> h("own"); void* p = h.allocate({100, 16}); h.deallocate(p); return p == nullptr; }\n' >"$place/heap.cpp"
x86_64-w64-mingw32-g++-posix -std=c++20 -static -I"$windows/include" -o "$place/heap.exe" "$place/heap.cpp" -lsynchronization
cmake/under_wine "$place/heap.exe"
# The sources of the malloc are in it as a whole.
for source in options windows/c_libraries windows/child_processes windows/dll_main windows/process_heap windows/process_life windows/redirection; do
  x86_64-w64-mingw32-g++-posix -std=c++20 -fsyntax-only -I"$windows/include" -DHEAPWRIGHT_VERSION='"0"' -DHEAPWRIGHT_BUILD='"x"' "$windows/malloc/$source.cpp"
done

for processor in arm64 x86_64; do
  python3 tests/macos/dylib_test.py "$(echo "$place"/heapwright-*-macos)/$processor/libheapwright.dylib" "$processor"
done

musl=$(echo "$place"/heapwright-*-musl-*)
musl-gcc -o "$place/own" "$place/own.c"
for library in libheapwright libheapwright-hardened; do
  HEAPWRIGHT_STATS=1 LD_PRELOAD=$musl/$library.so "$place/own" >"$place/said" 2>"$place/told"
  grep -q done "$place/said"
  grep -q 'heapwright .*process' "$place/told"
done
musl-gcc -static -Wl,--undefined=malloc -o "$place/static" "$place/own.c" "$musl/libheapwright.a"
HEAPWRIGHT_STATS=1 "$place/static" 2>&1 | grep -q 'heapwright .*process'
