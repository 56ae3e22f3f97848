#!/bin/sh
# outside_compiler.sh OUTPUT STATUS ARGUMENT...: compiles for outside_compiler.exe, with paths as wine has them.
drives=$(mktemp -d)
ln -s / "$drives/Z:"
ln -s "$WINEPREFIX/drive_c" "$drives/C:"
cd "$drives" || exit
with_slashes() { printf '%s' "$1" | tr '\\' /; }
output=$(with_slashes "$1") status=$(with_slashes "$2")
shift 2
for word in "$@"; do
  shift
  set -- "$@" "$(with_slashes "$word")"
done
# "-I .": a source may include another one by such a path.
x86_64-w64-mingw32-g++-posix -I . "$@" >"$output" 2>&1
echo $? >"$status.unfinished"
mv "$status.unfinished" "$status"
rm -r "$drives"
