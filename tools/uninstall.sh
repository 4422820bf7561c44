#!/bin/sh
# Removes the files of the last `make install`, from where it put them, and folders of hone's own that are empty then: sh uninstall.sh BUILD.
# BUILD/installed.txt: its DESTDIR, its PREFIX, then a file a line. A DESTDIR that is given has to be that one.
set -u
list=$1/installed.txt
[ -f "$list" ] || { echo "uninstall: there is no list of what make install wrote from $1" >&2; exit 2; }
{ IFS= read -r to; IFS= read -r prefix; } <"$list"
[ -z "${DESTDIR:-}" ] || [ "$DESTDIR" = "$to" ] || { echo "uninstall: make install wrote to DESTDIR=$to, not to $DESTDIR" >&2; exit 2; }
files() { sed 1,2d "$list"; [ -z "$(tail -c 1 "$list")" ] || echo; } # the last line may have no end
files | while IFS= read -r file; do
  [ -z "$file" ] || rm -f -- "$to$file" || exit 1
done || exit 1
files | while IFS= read -r file; do
  within=$(dirname -- "${file#"$prefix"/}")
  while case /$within/ in */hone/*) ;; *) false ;; esac && rmdir -- "$to$prefix/$within" 2>/dev/null; do
    within=$(dirname -- "$within")
  done
done
rm -f -- "$list"
