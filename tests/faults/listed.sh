#!/bin/sh
# listed.sh TESTS: every HN_FAULT of the sources is the end of the name of a test in the file TESTS, or stands in a test
# program.
set -u
tests=$1
code=0
for fault in $(grep -rhoE 'HN_FAULT\("[a-z0-9_]+"\)' src cli | sed 's/.*"\(.*\)".*/\1/' | sort -u); do
  grep -q "_$fault\$" "$tests" && continue
  grep -rqs --include='*.c' --include='*.h' --include='*.sh' "\"$fault\"" tests && continue
  echo "no test notices the fault $fault" >&2
  code=1
done
exit $code
