#!/bin/sh
# The command starts without the libraries that few runs need: sh late.sh BUILD
set -u
build=$1 bad=0
command -v objdump >/dev/null 2>&1 || { echo "SKIP: objdump is not installed"; exit 77; }
late=$(sed -n 's/^#define HN_LATE_[A-Z0-9]* "\(.*\)"$/\1/p' "$build/generated/late_names.h")
[ -n "$late" ] || { echo "SKIP: this build is linked with all libraries (HONE_LATE=OFF)"; exit 77; }
needed=$(objdump -p "$build/hone" | sed -n 's/^ *NEEDED *//p')
echo "$needed" | grep -q '^libc\.so' || { echo "FAIL: what hone is linked with cannot be read"; exit 1; }
for library in $late; do
  echo "$needed" | grep -qxF "$library" && { echo "FAIL: every start loads $library"; bad=1; }
done
exit $bad
