#!/usr/bin/env bash
# Makes the wheel, installs it beside nothing else, and tries what it promises.
#   usage: python_wheel.sh PROJECT
set -euo pipefail
cd "$1"
script/package wheel
wheels=(build/packages/heapwright-*.whl)
[ ${#wheels[@]} = 1 ] || { echo "not one wheel: ${wheels[*]}"; exit 1; }
[[ ${wheels[0]} == *-py3-none-manylinux_2_*_x86_64.whl ]] || { echo "not for each glibc from one on: ${wheels[0]}"; exit 1; }

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/python"
python=$place/python/bin/python
"$place/python/bin/pip" install --quiet --no-index "${wheels[0]}"
cd "$place"
tell='import heapwright as h; print(h.is_loaded(), h.statistics()["in_use_bytes"] > 1000)'
[ "$("$python" -m heapwright run -- "$python" -c "$tell")" = "True True" ]
[ "$("$place/python/bin/heapwright" run --hardened -- "$python" -c "$tell")" = "True True" ]
"$place/python/bin/heapwright" compare --rounds 2 --only heapwright -- true
if "$python" -c "$tell" 2>"$place/said"; then echo "statistics of another malloc"; exit 1; fi
grep -q "this process does not run on libheapwright" "$place/said"
printf '#include <heapwright/heap/recipe.hpp>\ninline constexpr heapwright::recipe app{.spans = {.kept_empty = 0}};\n' >recipe.hpp
"$place/python/bin/heapwright" build recipe.hpp -o libapp.so --check
"$place/python/bin/heapwright" run --with ./libapp.so -- "$python" -c "$tell"
"$place/python/bin/heapwright" record -o app.trace -- sort /dev/null
"$place/python/bin/heapwright" leaks -- "$python" -c pass
"$place/python/bin/pip" uninstall --quiet --yes heapwright
[ ! -e "$place/python/bin/heapwright" ]
