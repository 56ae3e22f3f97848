# In a project of the user's that Meson builds, as README says: the libraries alone are built.
# usage: meson_subproject.sh SOURCE_DIR CXX CC
set -eu
source=$1 cxx=$2 cc=$3
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir "$place/subprojects"
ln -s "$source" "$place/subprojects/heapwright"
cp "$source/tests/structure/consumer/kit.cpp" "$source/tests/structure/consumer/malloc.c" "$place"
cat >"$place/meson.build" <<END
project('user', 'c', 'cpp', default_options: ['cpp_std=c++20'])
cmake = import('cmake')
options = cmake.subproject_options()
options.add_cmake_defines({'CMAKE_BUILD_TYPE': 'Release', 'HEAPWRIGHT_BUILD_TOOLS': false, 'HEAPWRIGHT_BUILD_TESTS': false, 'HEAPWRIGHT_BUILD_BENCH': false, 'HEAPWRIGHT_INSTALL': false})
heapwright = cmake.subproject('heapwright', options: options)
executable('with_kit', 'kit.cpp', dependencies: heapwright.dependency('heapwright_headers'))
executable('with_malloc', 'malloc.c', dependencies: heapwright.dependency('heapwright_shared'))
END
{ CC=$cc CXX=$cxx meson setup "$place/build" "$place" && ninja -C "$place/build"; } >"$place/log" 2>&1 || { cat "$place/log"; exit 1; }
"$place/build/with_kit"
case $(HEAPWRIGHT_VERBOSE=1 "$place/build/with_malloc" 2>&1) in
*"loaded into process"*) ;;
*) echo "with_malloc runs without libheapwright"; exit 1 ;;
esac
[ -z "$(find "$place/build" -name '*probe*.so*')" ] || { echo "the probe is built, which nothing links"; exit 1; }
