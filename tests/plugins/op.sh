# hone op new, build, list, install, remove, as a user types them: sh op.sh BUILD. Needs a C compiler.
. "$(dirname "$0")/begin.sh"
# From nothing to an operator that is used where its pattern matches.
says 'hone op build swish' 0 "$hone" op new swish
says 'swish is there already (another name, another --output-dir, or remove it)' 2 "$hone" op new swish
# A folder without a built operator does not pass for one with it.
says '(hone op build' 4 "$hone" op test --op-path swish
says 'holds no built operator' 0 "$hone" op list --op-path swish
mkdir nothing
says 'hone op new NAME begins one' 4 "$hone" op test --op-path nothing
says 'custom operator swish is not used' 0 env HONE_OP_PATH="$PWD/swish" "$hone" op list
says '(hone op build' 4 "$hone" op test swish
says '4 tactics, 2 patterns' 0 "$hone" op build swish --op-path swish
# Its folder is its name, as it was for build.
says ' 0 failed' 0 "$hone" op test swish -n 1
says ' 0 failed' 0 "$hone" op test ./swish/ -n 1
says 'unfused: Sigmoid, Mul' 0 "$hone" op bench swish/ --shape x=2x3x8 -n 1 --max-seconds 1
# Beside built ones it is named, and they are used; other folders with a .json are no projects.
mkdir several && cp -r swish several && "$hone" op new later --output-dir several >/dev/null && mkdir several/notes && echo {} >several/notes/a.json
says 'custom operator later is not used: ' 0 "$hone" op list --op-path several
case $out in *notes*) fail "no project: $out" ;; *"(hone op build several/later)"*'operator custom.Swish'*) ;; *) fail "beside built ones: $out" ;; esac
[ "$(printf '%s\n' "$out" | grep -c 'is not used')" = 1 ] || fail "one line: $out"
says '4 tactics' 0 "$hone" op build several/later
says 'custom.Later' 0 "$hone" op list --op-path several
case $out in *'not used'*) fail "built by now: $out" ;; esac
[ -z "$(find swish/build -name '*.o')" ] || fail "objects are left"
says 'operator custom.Swish' 0 "$hone" op list --op-path swish
says 'swish' 0 "$hone" op list --op-path swish/build/swish.so
# One that is not elementwise.
says 'rows_cpu.c' 0 "$hone" op new rows --general --output-dir .
says 'operator rows' 0 "$hone" op build rows
# A pattern that is another function than the operator, by an operator or by an attribute, is found.
says 'as the operator: 8 cases' 0 "$hone" op test --op-path swish -n 1
cp -r swish wrong && rm -rf wrong/build && sed -i 's/"%g = Sigmoid(%x)"/"%g = Tanh(%x)"/' wrong/swish.json
"$hone" op build wrong >/dev/null || fail "wrong"
says '%g = Tanh(%x)' 1 "$hone" op test --op-path wrong -n 1
case $out in *'nodes of this pattern are not the operator'*'the reference has'*) ;; *) fail "a wrong pattern: $out" ;; esac
says '"failed":true' 1 sh -c '"$0" op test --op-path wrong -n 1 --json | tr -d " \n"; exit 1' "$hone"
sed 's/"beta": "%b"/"beta": 1/' swish/swish.json >wrong/swish.json
"$hone" op build wrong >/dev/null || fail "wrong attribute"
says 'nodes of this pattern are not the operator' 1 "$hone" op test --op-path wrong -n 1
# What the templates make is right, and can be measured.
says ' 0 failed' 0 "$hone" op test --op-path swish -n 12
says ' 0 failed' 0 "$hone" op test rows --op-path rows -n 12
says 'unfused: Sigmoid, Mul' 0 "$hone" op bench swish --op-path swish --shape x=2x3x8 -n 3 --max-seconds 1
# What its shape function refuses: operator, reason, what it was given.
mkdir pair && cat >pair/pair.json <<'END'
{ "op": "Pair", "kind": "elementwise", "input_desc": [{"name": "a", "type": "float"}, {"name": "b", "type": "float"}],
  "output_desc": [{"name": "y", "type": "float", "shape": "a"}], "attr": [],
  "pattern": {"text": ["%s = Add(%a, %b)", "%y = Relu(%s)"], "inputs": "%a %b"} }
END
cat >pair/pair_ref.c <<'END'
#include "pair_op.h"
void pair_ref(const pair_attrs *a, const hone_array in[2], const hone_array out[1]) {
  (void)a;
  for (int64_t i = 0; i < out[0].count; i++) out[0].data[i] = fmax(in[0].data[i] + in[1].data[i], 0);
}
END
says 'operator pair' 0 "$hone" op build pair
says "'sum' (custom.Pair): its operands have several shapes" 1 env HONE_OP_PATH="$PWD/pair" sh -c '"$0" "$@" || exit 1' "$(dirname "$hone")/text_model" 'opset "custom" 1
graph g(%x: f32[1x8x11x9], %z: f32[9]) -> (%y) { %y = custom::Pair(%x, %z) "sum" }' pair.onnx
# Installed for every run, and away again; installed twice is replaced.
says 'every run uses it' 0 "$hone" op install swish
says 'custom.Swish' 0 "$hone" op list
says 'every run uses it' 0 "$hone" op install swish/build/swish.so
says 'no longer installed' 0 "$hone" op remove swish
says 'no custom operators' 0 "$hone" op list
says 'there is no plugin' 4 "$hone" op remove swish
says 'comes from' 2 "$hone" op remove swish --op-path swish
says 'no name' 2 "$hone" op remove ../swish
# Every verb has options of its own.
says "hone op list: unknown option '--tolerance'" 2 "$hone" op list --tolerance 1
says "hone op list: unknown option '--from'" 2 "$hone" op list --from swish
says "hone op build: unknown option '--json'" 2 "$hone" op build --json swish
says "hone op bench: unknown option '--filter'" 2 "$hone" op bench swish --filter x
says "did you mean '--filter'" 2 "$hone" op test swish --fliter x
says "unknown option '-n'" 2 "$hone" op install -n 3 swish
says "there is no 'lsit'; did you mean 'list'" 2 "$hone" op lsit --json
says "there is no 'x'" 2 "$hone" op -- x
says 'operator custom.Swish' 0 "$hone" op --op-path swish list
says 'operator custom.Swish' 0 "$hone" op --op-path=swish list
says 'usage: hone op test [NAME...]' 0 "$hone" op test --help
says 'usage: hone op test [NAME...]' 0 "$hone" help op test
says 'hone op test [NAME...]' 0 "$hone" op
says 'no parts' 2 "$hone" help run test
says "there is no 'x'" 2 "$hone" help op x
says "wants a value" 2 "$hone" op --op-path
# Mistakes: one line each, with file, line and column.
edit() { sed "$1" swish/swish.json >t.json && mkdir -p e && cp swish/*.c e && cp t.json e/swish.json; }
edit 's/"float16", "bf/"flaot16", "bf/'; says 'e/swish.json:9:83: there is no type' 3 "$hone" op build e
edit 's/"version": "1.0.0",/"version": "1.0.0"/'; says 'e/swish.json:7:' 3 "$hone" op build e
edit 's/"kind": "elementwise"/"kind": "pointwise"/'; says 'e/swish.json:7:13: there is no kind' 3 "$hone" op build e
edit 's/"shape": "x"/"shape": "z"/'; says "there is no input 'z'" 3 "$hone" op build e
edit 's/"type": "float", "default/"type": "real", "default/'; says "e/swish.json:15:" 3 "$hone" op build e
optional='s/"name": "x", "param_type": "required"/"name": "x", "param_type": "optional"/'
edit "$optional"; says "e/swish.json:9:35: the first input, 'x', cannot be left out" 3 "$hone" op build e
edit '/"name": "y"/s/\["float", "float16"/["float"/'; says "e/swish.json:12:73: 'y' has the first input's type" 3 "$hone" op build e
two='s/"name": "x", \(.*\)}/"name": "x", \1}, {"name": "z", "param_type": "optional", "type": "float"}/;s/"shape": "x"/"shape": "z"/'
edit "$two"; says "e/swish.json:12:116: 'z' may be left out" 3 "$hone" op build e
# One that may be left out, behind the first, works.
cp -r rows left; sed 's/"type": \["float"\]}$/"type": ["float"]}, {"name": "b", "param_type": "optional", "type": "float"}/' rows/rows.json >left/rows.json
says 'operator rows' 0 "$hone" op build left
says ' 0 failed' 0 "$hone" op test rows --op-path left -n 12
edit 's/"about"/"abuot"/'; says 'e/swish.json:5:14: "abuot" is not known' 3 "$hone" op build e
edit 's/"op": "Swish"/"op": "Swi sh"/'; says "is no name" 3 "$hone" op build e
edit 's/"name": "x"/"name": "for"/'; says "meaning of its own" 3 "$hone" op build e
edit 's/"custom"/"custom", "functions": ["need"]/'; says '"functions" is not for this one' 3 "$hone" op build e
cp -r rows told; sed 's/"attr"/"functions": ["need", "pack"], "attr"/' rows/rows.json >told/rows.json
says "there is no function 'pack'" 3 "$hone" op build told
sed 's/"attr"/"functions": ["prepack"], "attr"/' rows/rows.json >told/rows.json
says '"prepack" has no room' 3 "$hone" op build told
edit 's/"custom"/"cus\\"tom"/'; says "is no domain" 3 "$hone" op build e
edit 's/%g = Sigmoid(%x)/%g = Sigmoid(%x/'; says "e/swish.json:18:37: expected" 3 "$hone" op build e
edit 's/"beta": "%b"/"gamma": "%b"/'; says "an attribute of the operator" 3 "$hone" op build e
[ -e e/build/swish.so ] && says 'swish' 0 "$hone" op list --op-path e
edit ''; echo 'int x = ;' >>e/swish_cpu.c; says 'swish_cpu.c does not compile' 3 "$hone" op build e ; [ -z "$(ls e/build/*.o 2>/dev/null)" ] || fail 'objects stay'
cp swish/swish_cpu.c e; rm e/swish_ref.c; says 'swish_ref.c is missing' 3 "$hone" op build e
printf 'void swish_reff(void);\nvoid swish_reff(void) {}\n' >e/swish_ref.c; says "swish_ref" 3 "$hone" op build e
CC=no-such-compiler says 'cannot start the C compiler' 4 "$hone" op build swish
says 'no such folder' 4 "$hone" op build nowhere
says 'no definition' 3 "$hone" op build /usr/include
says 'missing argument' 2 "$hone" op new
says 'no name' 2 "$hone" op new 'a b'
says 'swish_op.c' 0 sh -c "'$hone' op build swish --c-only && ls swish/build"
exit $bad
