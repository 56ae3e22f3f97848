# The single header is all that a program needs: with each compiler, and with each macro that changes what is included.
# usage: single_header.sh PROJECT PYTHON COMPILER...
set -eu
project=$1 python=$2
shift 2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$python" "$project/cmake/single_header.py" "$project/include" "$place/heapwright.hpp"
for cxx; do
  for macro in HEAPWRIGHT_CHECKS=0 HEAPWRIGHT_DEFAULT_MALLOC; do
    echo "$cxx -D$macro"
    "$cxx" -std=c++20 -Wall -Wextra -Wpedantic -Werror "-D$macro" -I "$place" "$project/tests/structure/single_header.cpp" -o "$place/program" -pthread
    "$place/program"
  done
done
