#!/usr/bin/env bash
# The packages of a commit are the same bytes wherever they are built: those made here before (script/package deb) are made again, from a clone in another folder.
#   usage: reproducible_build.sh PROJECT
set -euo pipefail
cd "$1"
packages=(build/packages/*.*deb)
[ ${#packages[@]} = 5 ] || { echo "script/package deb has not made five packages here: ${packages[*]}"; exit 1; }
elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
copy=$elsewhere/a-folder-with-a-longer-name/heapwright
git clone --quiet . "$copy"
export HEAPWRIGHT_MAINTAINER=${HEAPWRIGHT_MAINTAINER:-$(git log -1 --format='%an <%ae>')}
"$copy/script/package" deb

different=0
for package in "${packages[@]}"; do
  name=$(basename "$package")
  cmp "$package" "$copy/build/packages/$name" && continue
  different=1
  mkdir "$elsewhere/here" "$elsewhere/there"
  dpkg-deb -R "$package" "$elsewhere/here"
  dpkg-deb -R "$copy/build/packages/$name" "$elsewhere/there"
  diff -rq "$elsewhere/here" "$elsewhere/there" || true
  rm -r "$elsewhere/here" "$elsewhere/there"
done
[ $different = 0 ] || { echo "the packages differ"; exit 1; }
echo "the same bytes: ${packages[*]}"
