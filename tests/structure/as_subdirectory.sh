# In a project of the user's: what is linked is built, and nothing of ours is installed.
# usage: as_subdirectory.sh SOURCE_DIR CXX CC CMAKE
set -eu
source=$1 cxx=$2 cc=$3 cmake=$4
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
for way in "add_subdirectory($source heapwright)" \
  "include(FetchContent)
FetchContent_Declare(heapwright SOURCE_DIR $source)
FetchContent_MakeAvailable(heapwright)"; do
rm -rf "$place/build" "$place/prefix"
cat >"$place/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C CXX)
$way
add_executable(with_malloc $source/tests/structure/consumer/malloc.c)
target_link_libraries(with_malloc PRIVATE heapwright::malloc)
install(TARGETS with_malloc)
END
{
  "$cmake" -S "$place" -B "$place/build" -G Ninja -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_COMPILER="$cc" &&
    "$cmake" --build "$place/build" && "$place/build/with_malloc" &&
    "$cmake" --install "$place/build" --prefix "$place/prefix"
} >"$place/log" 2>&1 || { cat "$place/log"; exit 1; }
[ "$(cd "$place/prefix" && find . -type f)" = ./bin/with_malloc ] || { echo "installed beside the program:"; find "$place/prefix" -type f; exit 1; }
[ -z "$(find "$place/build" -name '*probe*.so*')" ] || { echo "the probe is built, which nothing links"; exit 1; }
done
