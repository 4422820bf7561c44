# The command is in the overview, has help, runs, and knows its options and its number of arguments.
"$BUILD/hone" help | grep -q 'hello .*greet somebody'
"$BUILD/hone" hello --help | grep -q -- --json
[ "$("$BUILD/hone" hello world)" = 'hello, world' ]
"$BUILD/hone" hello world --json | grep -q '"hello": *"world"'
if "$BUILD/hone" hello 2>/dev/null; then exit 1; fi
if "$BUILD/hone" hello world --loud 2>/dev/null; then exit 1; fi
