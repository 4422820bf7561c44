#!/bin/sh
# docs/reference/passes.md says of every fusion what its list does.
set -eu
cd "$(dirname "$0")/../.."
sed -n 's/^FUSION(\([a-z]*\), "\(.*\)")$/| `\1` | \2 |/p' src/optimize/step/fusions.def | {
  n=0
  while IFS= read -r row; do
    n=$((n + 1))
    grep -qxF "$row" docs/reference/passes.md || { echo "passes.md lacks: $row"; exit 1; }
  done
  [ "$n" = "$(grep -c '^FUSION(' src/optimize/step/fusions.def)" ]
}
