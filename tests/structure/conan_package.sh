#!/usr/bin/env bash
# Makes the Conan package, puts it into an empty cache, and builds programs that have it as a dependency.
#   usage: conan_package.sh PROJECT
set -euo pipefail
cd "$1"
script/package conan
packages=(build/packages/heapwright-*-conan.tgz)
[ ${#packages[@]} = 1 ] || { echo "not one package: ${packages[*]}"; exit 1; }
conan=$PWD/build/conan-tools/bin/conan

CONAN_HOME=$(mktemp -d)
export CONAN_HOME
trap 'rm -rf "$CONAN_HOME"' EXIT
"$conan" profile detect
"$conan" cache restore "${packages[0]}"
reference=$("$conan" list 'heapwright/*' --format=json | python3 -c 'import json, sys; print(*json.load(sys.stdin)["Local Cache"])')
cp -r tests/structure/consumer "$CONAN_HOME/consumer"
"$conan" test --no-remote "$CONAN_HOME/consumer" "$reference"
! "$conan" install --no-remote --requires "$reference" -s os=Windows >"$CONAN_HOME/refused" 2>&1 || { echo "it installs for Windows"; exit 1; }
grep "heapwright runs on Linux, and not on Windows" "$CONAN_HOME/refused"
