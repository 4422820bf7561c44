#!/bin/sh
# Debian packages of a build: sh deb.sh BUILD [FOLDER]. Prints their paths.
set -eu
build=$(cd "$1" && pwd) folder=${2:-$build/packages}
for tool in cpack dpkg-deb dpkg-shlibdeps dpkg-architecture gzip; do
  command -v $tool >/dev/null 2>&1 || { echo "hone's packages need $tool (apt-get install cmake dpkg-dev)" >&2; exit 4; }
done
mkdir -p "$folder"
rm -f "$folder"/*.deb
(cd "$build" && umask 022 && cpack -G DEB -B "$folder" >"$folder/cpack.log" 2>&1) || { cat "$folder/cpack.log" >&2; exit 1; }
rm -rf "$folder/_CPack_Packages"
ls "$folder"/*.deb
