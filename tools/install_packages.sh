#!/bin/sh
# Installs the Debian packages that are missing, through apt as root or with sudo. Arguments: build, test.
set -eu
want=""
for set in "$@"; do
  case $set in
  build) want="$want gcc libc6-dev cmake ninja-build pkg-config libjansson-dev libpng-dev libjpeg-dev zlib1g-dev libsqlite3-dev libpcre2-dev libmicrohttpd-dev libcmocka-dev" ;;
  test) want="$want lintian mmdebstrap mandoc zsh fish dpkg-dev clang clang-format clang-tidy libclang-rt-14-dev libonnx-testdata chromium jq" ;;
  *) echo "usage: $0 [build] [test]" >&2; exit 2 ;;
  esac
done
command -v dpkg-query >/dev/null 2>&1 || exit 0 # not Debian: cmake says what it misses
missing=""
for p in $want; do
  dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ]; then as=""; elif command -v sudo >/dev/null 2>&1; then as=sudo; else
  echo "hone needs these packages:$missing" >&2
  echo "Neither root nor sudo is at hand: install them with  apt-get install$missing" >&2
  exit 4
fi
echo "Installing through apt:$missing"
$as env DEBIAN_FRONTEND=noninteractive apt-get update -qq
# shellcheck disable=SC2086
$as env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
