# What is installed can be used: by find_package, by pkg-config, and from another place than it was built for;
# and the links of its documents lead somewhere.
# usage: installed_copy.sh BUILD_DIR CONSUMER_DIR CXX CC CMAKE PYTHON
set -eu
build=$1 consumer=$2 cxx=$3 cc=$4 cmake=$5 python=$6
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$cmake" --install "$build" --prefix "$place/first" >/dev/null
mv "$place/first" "$place/prefix"
"$python" "$(dirname "$0")/installed_links.py" "$(dirname "$(find "$place/prefix/share" -name CHANGELOG.md)")"

"$cmake" -S "$consumer" -B "$place/build" -G Ninja -DCMAKE_PREFIX_PATH="$place/prefix" \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_COMPILER="$cc" >"$place/log" 2>&1 || { cat "$place/log"; exit 1; }
"$cmake" --build "$place/build" >>"$place/log" 2>&1 || { cat "$place/log"; exit 1; }
for program in with_kit with_malloc with_static_malloc with_kit_and_static_malloc; do
  "$place/build/$program" || { echo "$program failed"; exit 1; }
done

libdir=$(dirname "$(find "$place/prefix" -name heapwright.pc)")
flags=$(PKG_CONFIG_PATH=$libdir pkg-config --define-variable=prefix="$place/prefix" --cflags --libs heapwright)
# shellcheck disable=SC2086
"$cc" "$consumer/malloc.c" -o "$place/by_pkg_config" $flags -Wl,-rpath,"$(dirname "$libdir")"
"$place/by_pkg_config" || { echo "the program linked by pkg-config failed"; exit 1; }
# Compilers of some systems leave out a library that the program itself does not call.
printf '#include <string>\nint main(int n, char**) { return static_cast<int>(std::string(100 * n, 1).size()) - 100; }\n' >"$place/quiet.cpp"
# shellcheck disable=SC2086
"$cxx" -Wl,--as-needed "$place/quiet.cpp" -o "$place/quiet" $flags -Wl,-rpath,"$(dirname "$libdir")"
case $(HEAPWRIGHT_VERBOSE=1 "$place/quiet" 2>&1) in
*"loaded into process"*) ;;
*) echo "a C++ program linked by pkg-config runs without libheapwright"; exit 1 ;;
esac

if [ -x "$place/prefix/bin/heapwright" ]; then
  "$place/prefix/bin/heapwright" run -- true || { echo "the installed tool does not find the installed library"; exit 1; }
  printf '#include <heapwright/heap/recipe.hpp>\nconstexpr heapwright::recipe mine{};\n' >"$place/recipe.hpp"
  CXX=$cxx "$place/prefix/bin/heapwright" build "$place/recipe.hpp" -o "$place/libmine.so" --check &&
    "$place/prefix/bin/heapwright" run --with "$place/libmine.so" -- true || { echo "the installed tool does not make a malloc"; exit 1; }
  for page in man/man1/heapwright-run.1 man/man5/heapwright-recipe.5 bash-completion/completions/heapwright zsh/site-functions/_heapwright fish/vendor_completions.d/heapwright.fish; do
    [ -s "$place/prefix/share/$page" ] || { echo "$page is not installed"; exit 1; }
  done
fi
