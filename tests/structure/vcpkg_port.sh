#!/usr/bin/env bash
# Makes the port for vcpkg, installs it by stand-ins for vcpkg's functions, and builds programs that have it as a dependency, in both configurations.
#   usage: vcpkg_port.sh PROJECT
set -euo pipefail
cd "$1"
script/package vcpkg
ports=(build/packages/heapwright-*-vcpkg.tar.gz)
[ ${#ports[@]} = 1 ] || { echo "not one port: ${ports[*]}"; exit 1; }
version=${ports[0]#*heapwright-} version=${version%-vcpkg.tar.gz}

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
tar xf "${ports[0]}" -C "$place"
port=$place/heapwright-$version-vcpkg/heapwright
python3 - "$port/vcpkg.json" "$version" <<'CHECK'
import json, sys
said = json.load(open(sys.argv[1]))
assert said["name"] == "heapwright" and said["version"] == sys.argv[2], said
CHECK
cmake -DPORT=heapwright "-DVERSION=$version" "-DCURRENT_PORT_DIR=$port" "-DCURRENT_PACKAGES_DIR=$place/packages" "-DCURRENT_BUILDTREES_DIR=$place/buildtrees" \
  -P tests/structure/vcpkg_functions.cmake
for file in share/heapwright/copyright share/heapwright/usage include/heapwright/kit.hpp lib/libheapwright.so debug/lib/libheapwright.so; do
  [ -e "$place/packages/$file" ] || { echo "there is no $file"; exit 1; }
done
for folder in debug/include debug/share share/doc; do
  [ ! -e "$place/packages/$folder" ] || { echo "vcpkg would complain of $folder"; exit 1; }
done
rm -rf "$place/buildtrees"
for type in Release Debug; do
  cmake -S tests/structure/consumer -B "$place/$type" -G Ninja "-DCMAKE_BUILD_TYPE=$type" "-DCMAKE_PREFIX_PATH=$place/packages"
  cmake --build "$place/$type"
  for program in with_kit with_malloc with_static_malloc with_kit_and_static_malloc; do "$place/$type/$program"; done
done
