#!/bin/sh
# Does pages.sh notice what it is there for? One page with one of each fault, beside the same things done right.
set -eu
pages=$(cd "$(dirname "$0")" && pwd)/pages.sh
folder=$(mktemp -d "${TMPDIR:-/tmp}/pages-XXXXXX")
trap 'rm -rf "$folder"' EXIT
docs=docs # spelled so that this file names none of them
mkdir "$folder/pages" && cd "$folder/pages"
mkdir $docs
wide=$(printf 'word %.0s' $(seq 25))
cat >$docs/README.md <<END
# Index of pages, all

[one](one.md), [right](one.md#the-second-part-2), [here](#index-of-pages-all), [elsewhere](https://example.org/none.md),
\`[code](none.md)\`

| $wide | $wide |
END
printf '# One\n\n## The second part: 2\n\n    %s %s\n' "$wide" "$wide" >$docs/one.md
sh "$pages" . >../said || { cat ../said; echo "FAIL: pages without a fault are blamed"; exit 1; }

cat >>$docs/README.md <<END

[gone](gone.md) and [no such part](one.md#the-third-part)
$wide
END
echo 'Nothing leads here.' >$docs/orphan.md
echo "/* $docs/one.md, and $docs/none.md */" >source.c
cat >../wanted <<END
./$docs/README.md: the link 'gone.md' leads nowhere
./$docs/README.md: 'one.md' has no heading 'the-third-part'
./source.c: names $docs/none.md, which does not exist
$docs/README.md: does not lead to $docs/orphan.md
./$docs/README.md:9: a line of prose is wider than 120
END
if sh "$pages" . >../said; then echo "FAIL: pages with faults pass"; exit 1; fi
diff ../wanted ../said
