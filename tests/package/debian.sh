#!/bin/sh
# The Debian packages of a build: made, looked at by lintian, and installed, used and taken away again in a bare system
# with nothing but what they say they need: sh debian.sh BUILD SOURCE
set -u
build=$1 source=$2 bad=0
fail() { echo "FAIL: $*"; bad=1; }
for tool in cpack dpkg-deb dpkg-shlibdeps dpkg-architecture gzip; do
  command -v $tool >/dev/null 2>&1 || { echo "SKIP: $tool is not installed"; exit 77; }
done
work=$(mktemp -d "${TMPDIR:-/tmp}/debian-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
sh "$source/tools/deb.sh" "$build" "$work/packages" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cd "$work" || exit 1
[ "$(find packages -name '*.deb' | wc -l)" = 3 ] || fail "not three packages"
for package in hone libhone0 libhone-dev; do
  dpkg-deb -f packages/${package}_*.deb Depends | grep -q . || fail "$package depends on nothing"
done
# What is loaded when it is needed, and so is no program's, is a package's need all the same.
late=$(sed -n 's/^#define HN_LATE_[A-Z0-9]* "\(lib[a-z0-9-]*\)\.so\..*"$/\1/p' "$build/generated/late_names.h")
for package in hone libhone0; do
  for library in $late; do
    case $library in libz) name=zlib1g ;; *) name=$library ;; esac # Debian's names of packages
    dpkg-deb -f packages/${package}_*.deb Depends | grep -q "$name" || fail "$package does not depend on $name"
  done
done
dpkg-deb --ctrl-tarfile packages/libhone0_*.deb | tar -xO ./shlibs | grep -q '^libhone 0 libhone0 ' || fail "libhone0 has no shlibs"
if command -v lintian >/dev/null 2>&1; then
  # Only a package for Debian's own archive closes a bug with its first upload.
  lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs packages/*.deb >log 2>&1 || { fail "lintian"; cat log; }
else
  echo "SKIP: lintian is not installed"
fi

command -v mmdebstrap >/dev/null 2>&1 || { echo "SKIP: mmdebstrap is not installed"; exit $bad; }
[ "$(id -u)" = 0 ] || { echo "SKIP: a bare system needs root"; exit $bad; }
suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
needed=$(for p in hone libhone0; do dpkg-deb -f packages/${p}_*.deb Depends; done | tr ',' '\n' | sed 's/(.*//; s/ //g' | sort -u | paste -sd,)
mmdebstrap --quiet --variant=essential --include="$needed" "$suite" root >log 2>&1 || { echo "SKIP: mmdebstrap has no bare system: $(tail -1 log)"; exit $bad; }
cp packages/*.deb root/
inside() { chroot root env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/tmp LC_ALL=C.UTF-8 "$@"; }
(cd root && find . -xdev ! -path './var/*' ! -path './tmp/*' ! -path './*.deb' ! -path './etc/ld.so.cache' | sort) >before
inside sh -c 'dpkg -i /*.deb' >log 2>&1 || { fail "dpkg -i"; cat log; }
inside hone doctor >log 2>&1 || { fail "hone doctor"; cat log; }
inside sh -c 'cd /tmp && hone zoo mobilenetv2 --width 0.25 --size 32 -b 1 -o small.onnx && hone verify small.onnx -n 2' >log 2>&1 ||
  { fail "hone in the bare system"; cat log; }
# Compiled against what libhone-dev brought, run with what libhone0 did.
PKG_CONFIG_SYSROOT_DIR=$work/root PKG_CONFIG_LIBDIR=$(echo root/usr/lib/*/pkgconfig) pkg-config --exists hone || fail "pkg-config does not find it"
lib=$(dirname "$(echo root/usr/lib/*/libhone.so)")
"${CC:-cc}" -Iroot/usr/include "$source/examples/c/classify.c" -o root/tmp/classify -L"$lib" -lhone >log 2>&1 || { fail "classify"; cat log; }
inside /tmp/classify /tmp/small.onnx >log 2>&1 || { fail "classify in the bare system"; cat log; }
cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(find LANGUAGES C)
find_package(hone 0.1 REQUIRED)
get_target_property(library hone::hone IMPORTED_LOCATION)
if(NOT EXISTS ${library} OR NOT EXISTS ${HONE_COMMAND} OR NOT EXISTS ${HONE_PREFIX}/include/hone/hone.h)
  message(FATAL_ERROR "${library} ${HONE_COMMAND} ${HONE_PREFIX}")
endif()
CMAKE
cmake -S . -B found -DCMAKE_PREFIX_PATH="$lib/cmake" >log 2>&1 || { fail "find_package"; cat log; }
inside dpkg -P hone libhone-dev libhone0 >log 2>&1 || { fail "dpkg -P"; cat log; }
(cd root && find . -xdev ! -path './var/*' ! -path './tmp/*' ! -path './*.deb' ! -path './etc/ld.so.cache' | sort) >after
diff before after || fail "not everything is gone"
exit $bad
