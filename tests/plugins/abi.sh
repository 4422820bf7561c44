# What plugins are compiled against: the functions that the built libhone.so has for them, with their types and those of all
# descriptors, against tests/plugins/abi.xml: sh abi.sh BUILD SOURCE [update]. Needs abidw and abidiff (abigail-tools).
# A change that plugins feel raises HONE_PLUGIN_ABI. A member more at the end of a descriptor is none, and still to be
# described anew: update.
set -u
build=$1 source=$2 bad=0
stored=$source/tests/plugins/abi.xml
CC=${CC:-cc}
for tool in abidw abidiff nm "$CC"; do
  command -v "$tool" >/dev/null 2>&1 || { echo "SKIP: there is no $tool"; exit 77; }
done
[ "$(uname -m)" = x86_64 ] || { echo "SKIP: the description is one of x86-64"; exit 77; }
[ -e "$build/libhone.so" ] || { echo "SKIP: this build has no libhone.so"; exit 77; }
dir=$(mktemp -d) && cd "$dir" || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAIL: $*"; bad=1; }
# A library with a pointer to each function that libhone.so exports of these headers: description of folder $1 as $2.
describe() {
  { for h in plugin cuda tensor; do echo "#include <hone/$h.h>"; done
    echo '__typeof__(hone_plugin_entry) *abi_hone_plugin_entry;'
    sed 's/.*/__typeof__(&) *abi_&;/' functions; } >abi.c
  "$CC" -std=gnu17 -g -gdwarf-4 -shared -fPIC -I"$1" abi.c -o abi.so || exit 1
  abidw --no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed --type-id-style hash abi.so >"$2" || exit 1
}
nm -D --defined-only "$build/libhone.so" | awk '$2 == "T" {print $3}' | LC_ALL=C sort >exported
for h in plugin cuda tensor; do grep -o 'hone_[a-z0-9_]*(' "$source/include/hone/$h.h"; done | tr -d '(' | LC_ALL=C sort -u |
  LC_ALL=C comm -12 - exported >functions
same() { abidiff --no-added-syms "$stored" "$1" >report 2>&1; }
describe "$source/include" now.xml
if [ "${3:-}" = update ]; then cp now.xml "$stored"; exit; fi
same now.xml || { fail "not what plugins were compiled against (a wanted change: sh tests/plugins/abi.sh BUILD SOURCE update)"; cat report; }
# It does see what it should.
changed() { # what, sed expression on plugin.h
  rm -rf include && cp -r "$source/include" include
  sed -i "$2" include/hone/plugin.h
  cmp -s include/hone/plugin.h "$source/include/hone/plugin.h" && fail "$1: nothing was changed"
  describe include other.xml
  same other.xml && fail "$1 is not seen"
}
changed 'another type of a member' 's/^  int32_t version; .*/  int64_t version;/'
changed 'a member before others' 's/^  const char \*anchor; .*/&\n  int more;/'
changed 'a member at the end' 's/^} hone_tactic_desc;/  void *more;\n&/'
changed 'another argument' 's/hone_node_inputs(const hone_node \*node)/hone_node_inputs(const hone_node *node, int more)/'
sed -i 1d functions
describe "$source/include" other.xml
same other.xml && fail "a function that is gone is not seen"
exit $bad
