#!/bin/sh
# One way out and one way in. What is shown goes through what escapes names (cli_print in cli/, hn_show, hn_paint and the tables in
# src/insight/report/); what is opened for reading and writing goes through base/os.h and hone/file.h. Prints every line that does not;
# exit 1 when there is one. /proc and /sys are no one's files and are read as they are.
set -eu
cd "$(dirname "$0")/.."
bad=0
# complain WHY: lines of standard input that grep found.
complain() {
  while IFS= read -r line; do
    echo "$line" | sed 's/^\([^:]*:[0-9]*\):.*/\1/' | tr '\n' ':'
    echo " $1"
    bad=1
  done
  return 0
}
code() { git ls-files -co --exclude-standard "$@"; }
found=$(mktemp)
trap 'rm -f "$found"' EXIT

code 'cli/*.c' | grep -v '^cli/terminal/term\.c$' |
  xargs grep -nE '(^|[^a-zA-Z0-9_"])(v?f?printf|fputs|puts|fputc|putc|putchar|fwrite|json_dumpf?|json_dump_file)\(' |
  grep -vE '^cli/options/files\.c:[0-9]+:.*fwrite\(data, 1, length, file->stream\)|^cli/options/session\.c:[0-9]+: *fputs\("5", f\)' >"$found" || true
complain "prints past cli_print (cli/terminal/term.h)" <"$found"
code 'src/insight/report/text.c' 'src/insight/report/findings_text.c' 'src/insight/report/comparison.c' 'src/insight/report/counters.c' |
  xargs grep -nE 'hn_str_printf\(|hn_str_puts\([a-z&]+, *[a-z]' >"$found" || true
complain "prints past hn_show (src/insight/report/table.h)" <"$found"
code 'cli/*.c' 'src/insight/report/*.c' | xargs grep -nE '"\\n" *: *""|"" *: *"\\n"' >"$found" || true
complain "hands a line break to %s, which shows it as \\x0a" <"$found"
code 'src/*.c' | xargs grep -nE '(^|[^a-zA-Z0-9_"])(v?printf|puts|putchar)\(|f(printf|puts|putc|write)\([^;]*(stdout|stderr)' >"$found" || true
complain "the library prints" <"$found"
code 'src/*.c' 'cli/*.c' | grep -v '^src/base/linux/\(read\|write\|os\|cgroup\)\.c$' |
  xargs grep -nE '(^|[^a-zA-Z0-9_>.])(fopen|freopen|creat|open|openat|rename|renameat|link|symlink|mkstemp|mkostemp|gzopen|json_load_file)\(' |
  grep -vE '"/proc/|"/sys/|"/dev/null"|hone_writer \*\*|open\(path, &' |
  grep -vE '^src/base/sensors\.c:|^cli/doctor/doctor\.c:.*fopen\(full|^cli/options/files\.c:|^cli/commands/op/build\.c:.*rename\(temporary, path\)' >"$found" || true
complain "opens past hn_file_open or hn_writer_open (src/base/os.h), or hone/file.h" <"$found"
exit $bad
