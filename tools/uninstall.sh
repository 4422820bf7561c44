#!/bin/sh
# Removes the files of the last `make install`, and folders of hone's own that are empty then: sh uninstall.sh BUILD.
# DESTDIR as it was for make install.
set -u
list=$1/installed.txt to=${DESTDIR:-}
[ -f "$list" ] || { echo "uninstall: make install has installed nothing from $1" >&2; exit 2; }
while IFS= read -r file || [ -n "$file" ]; do
  rm -f -- "$to$file" || exit 1
done <"$list"
while IFS= read -r file || [ -n "$file" ]; do
  folder=$(dirname -- "$to$file")
  while case $folder in */hone | */hone/*) ;; *) false ;; esac && rmdir -- "$folder" 2>/dev/null; do
    folder=$(dirname -- "$folder")
  done
done <"$list"
rm -f -- "$list"
