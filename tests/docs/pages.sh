#!/bin/sh
# The pages (*.md): every relative link leads to a file, and to a heading where it names one; every docs/ path that any file of the
# repository mentions exists; docs/README.md leads to every page; lines of prose are at most 120 wide (not tables, code, lone links).
# usage: pages.sh [FOLDER]
set -u
cd "${1:-.}" || exit 6
bad=0
say() {
  echo "$*"
  bad=1
}
# A heading as links name it: lower case, spaces as dashes, without punctuation.
headings() { sed -n 's/^##* //p' "$1" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9_\n-'; }
# What follows "](", one to a line; code between backquotes is no link.
links() { sed 's/`[^`]*`//g' "$1" | grep -o '](\([^) ]*\))' | sed 's/^](//; s/)$//'; }
own() { find . \( -name .git -o -name 'build*' -o -path ./tests/importers/data \) -prune -o -type f "$@" -print | sort; }

pages=$(own -name '*.md')
[ -n "$pages" ] || say "no pages below $PWD"
for page in $pages; do
  for link in $(links "$page"); do
    case $link in *:*) continue ;; esac
    path=${link%%#*}
    target=$page
    [ -n "$path" ] && target=$(dirname "$page")/$path
    [ -e "$target" ] || { say "$page: the link '$link' leads nowhere"; continue; }
    case $link in
    *#*) headings "$target" | grep -qxF -- "${link#*#}" || say "$page: '$path' has no heading '${link#*#}'" ;;
    esac
  done
done

# Words like docs/guide/gate.md anywhere; what begins elsewhere (https://..., ../docs) is none of these.
own -size -400k | xargs grep -IoE '(^|[^A-Za-z0-9_./$-])docs/[A-Za-z0-9_/.-]*\.(md|json|png)' -- 2>/dev/null |
  sed 's/:[^:]*docs\//:docs\//' | sort -u | while IFS=: read -r file path; do
    [ -e "$path" ] || echo "$file: names $path, which does not exist"
  done | grep . && bad=1

if [ -f docs/README.md ]; then
  for page in $(find docs -name '*.md' ! -path docs/README.md | sort); do
    links docs/README.md | grep -qxF -- "${page#docs/}" || say "docs/README.md: does not lead to $page"
  done
fi

# docs/log is left out: tools write most of it.
# shellcheck disable=SC2046
LC_ALL=C.UTF-8 awk 'FNR == 1 { code = 0 } /^```/ { code = !code } !code && !/^\|/ && !/^    / { print FILENAME ":" FNR ": " $0 }' $(echo "$pages" | grep -v '^./docs/log/') |
  LC_ALL=C.UTF-8 grep -E '^[^:]*:[0-9]+: .{121,}' | grep -v ': \(- \)*!*\[[^ ]*$' | sed 's/^\([^:]*:[0-9]*\): .*/\1: a line of prose is wider than 120/' |
  grep . && bad=1
exit $bad
