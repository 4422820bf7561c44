#!/bin/sh
# Runs a command where the processor has AMX tiles; says SKIP elsewhere.
grep -q amx_tile /proc/cpuinfo || { echo "SKIP: this processor has no AMX tiles"; exit 0; }
exec "$@"
