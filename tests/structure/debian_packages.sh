#!/usr/bin/env bash
# Makes Debian's packages, and tries what is in them: lintian has nothing to say, and the command works from where they are unpacked.
#   usage: debian_packages.sh PROJECT
set -euo pipefail
cd "$1"
script/package deb
packages=(build/packages/*.*deb)
[ ${#packages[@]} = 5 ] || { echo "not three packages and two with debugging information: ${packages[*]}"; exit 1; }
lintian --fail-on error,warning "${packages[@]}"

unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
for package in build/packages/*.deb; do dpkg-deb -x "$package" "$unpacked"; done
PATH=$unpacked/usr/bin:$PATH
heapwright run --stats -- true 2>&1 | grep 'heapwright .*process'
heapwright run --hardened -- true
printf '#include <heapwright/heap/recipe.hpp>\ninline constexpr heapwright::recipe app{.spans = {.kept_empty = 0}};\n' >"$unpacked/recipe.hpp"
heapwright build "$unpacked/recipe.hpp" -o "$unpacked/libapp.so" --check
heapwright run --with "$unpacked/libapp.so" -- true
heapwright record -o "$unpacked/app.trace" -- sort /dev/null
heapwright replay --memory --only heapwright "$unpacked/app.trace"
for page in "$unpacked"/usr/share/man/man{1/heapwright{,-fit}.1,5/heapwright-recipe.5}.gz; do gzip -t "$page"; done
for package in heapwright libheapwright0 libheapwright-dev; do
  grep -q 'MIT License' "$unpacked/usr/share/doc/$package/copyright"
done
