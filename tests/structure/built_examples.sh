# `script/build`, which builds no tests, builds every example: examples/README.md says so.
# usage: built_examples.sh CMAKE PROJECT
set -eu
cmake=$1 project=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
grep -q 'build release -DHEAPWRIGHT_BUILD_TESTS=.*OFF' "$project/script/build" || { echo "script/build has other options"; exit 1; }
"$cmake" --preset release -S "$project" -B "$place" -DHEAPWRIGHT_BUILD_TESTS=OFF >"$place/log" 2>&1 || { cat "$place/log"; exit 1; }
"$cmake" --build "$place" --target help >"$place/targets"
for example in "$project"/examples/*.cpp; do
  name=example_$(basename "$example" .cpp)
  grep -q "^$name: " "$place/targets" || { echo "$name is not built"; exit 1; }
done
