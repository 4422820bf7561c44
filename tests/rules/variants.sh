#!/bin/sh
# Real profiles of other tools, varied: the first finding must be what an expert names first. usage: variants.sh HONE
set -eu
profiles=${HONE_SHARED:-../shared}/cases/profiles
[ -d "$profiles" ] || { echo "SKIP: no profiles in $profiles"; exit 77; }
python3 -c 'import sqlite3' 2>/dev/null || { echo "SKIP: no python3 with sqlite3"; exit 77; }
exec python3 tests/rules/variants.py "$1" "$profiles"
