#!/usr/bin/env bash
# Real programs of Windows on heapwright.dll, under wine: each gives the same result as on its own malloc.
#   ffmpeg   from PyPI (imageio-ffmpeg), built by MSYS2 on ucrt: encodes a video with several threads
#   7za      from npm (7zip-bin), built by Microsoft's compiler on msvcrt: packs files with two threads
#   ninja    from PyPI, with a C library within itself: nothing is redirected, which `run --verbose` says
#   usage: real_programs.sh PROJECT     after the preset `windows` is built
set -euo pipefail
cd "$1"
wine=$PWD/cmake/under_wine heapwright=$PWD/build/windows/bin/heapwright.exe
place=build/windows-programs
mkdir -p "$place"
cd "$place"
if [ ! -e have-all ]; then
  [ -x tools/bin/pip ] || python3 -m venv tools
  for wheel in imageio-ffmpeg ninja; do
    tools/bin/pip download --quiet --no-deps --only-binary=:all: --platform win_amd64 -d . "$wheel"
  done
  npm pack --silent 7zip-bin@5.2.0
  python3 -m zipfile -e imageio_ffmpeg-*.whl ffmpeg
  python3 -m zipfile -e ninja-*.whl ninja
  tar -xzf 7zip-bin-5.2.0.tgz
  mv ffmpeg/imageio_ffmpeg/binaries/ffmpeg*.exe ffmpeg.exe
  mv ninja/ninja-*/scripts/ninja.exe ninja.exe
  mv package/win/x64/7za.exe 7za.exe
  touch have-all
fi

# both NAME PROGRAM ARGUMENTS...: what it prints on its own malloc and on ours; the second has to be the first.
both() {
  local name=$1
  shift
  "$wine" "$@" >"$name.alone" 2>/dev/null
  "$wine" "$heapwright" run --stats -- "$@" >"$name.ours" 2>"$name.statistics"
  cmp "$name.alone" "$name.ours"
  grep -Eq 'threads now [0-9]+, ever [1-9]' "$name.statistics"
  echo "$name: $(grep -E 'mapped at the peak' "$name.statistics" | tr -s ' ')"
}
both ffmpeg ffmpeg.exe -hide_banner -f lavfi -i testsrc=size=640x360:rate=25 -t 8 -f md5 -
[ "$(head -c 4 ffmpeg.ours)" = MD5= ]

for archive in alone ours; do
  rm -f "$archive.7z"
  on=()
  [ "$archive" = alone ] || on=("$heapwright" run --stats --)
  "$wine" "${on[@]}" 7za.exe a -bd -mmt=2 "$archive.7z" ninja.exe 7za.exe package >7za.said 2>7za.statistics
  grep -q 'Everything is Ok' 7za.said
done
cmp alone.7z ours.7z
grep -Eq 'threads now [0-9]+, ever [1-9]' 7za.statistics
echo "7za: $(grep 'mapped at the peak' 7za.statistics | tr -s ' ')"

"$wine" "$heapwright" run --verbose -- ninja.exe --version 2>ninja.modules
grep -q 'ninja.exe: no import of malloc and the like: it calls none, or has a C library within itself' ninja.modules
