#!/bin/sh
# Writes a call of every public function with each of its pointers NULL, from the headers themselves, so that none can be forgotten:
# CALL(function, argument, must_refuse, expression). Usage: null_calls.sh HEADER...
set -eu
cat "$@" | awk '
# Comments go; a declaration may cover several lines.
{
  line = $0
  while (1) {
    if (inside) { at = index(line, "*/"); if (!at) next; line = substr(line, at + 2); inside = 0 }
    at = index(line, "/*"); if (!at) break
    q = index(substr(line, at), "*/")
    if (q) line = substr(line, 1, at - 1) substr(line, at + q + 1)
    else { text = text substr(line, 1, at - 1) " "; inside = 1; next }
  }
  if (line ~ /^[ \t]*#/) next
  text = text line " "
}
function trim(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); return s }
# Type and name of a parameter.
function cut(param) { match(param, /[a-z_0-9]+$/); name = substr(param, RSTART); type = trim(substr(param, 1, RSTART - 1)) }
function value(t) {
  if (t ~ /\*$/) return "(" t ")object(\"" t "\")"
  if (t == "hone_sink") return "sink"
  if (t == "hone_done") return "done"
  if (t == "hone_allocate" || t == "hone_pipeline_told") return "NULL"
  return "(" t ")1"
}
END {
  n = split(text, part, "HONE_API ")
  for (i = 2; i <= n; i++) {
    decl = part[i]; sub(/;.*/, "", decl); sub(/__attribute__.*/, "", decl); gsub(/[ \t]+/, " ", decl)
    open = index(decl, "("); head = trim(substr(decl, 1, open - 1)); params = trim(substr(decl, open + 1)); sub(/\)$/, "", params)
    match(head, /[a-z_0-9]+$/); function_name = substr(head, RSTART); returns = trim(substr(head, 1, RSTART - 1))
    if (function_name !~ /^hone_/) continue
    total++
    if (params == "void" || params ~ /va_list/) { print "/* " function_name ": no pointers, or a va_list (test_text) */"; continue }
    k = split(params, p, ",")
    for (j = 1; j <= k; j++) { cut(trim(p[j])); types[j] = type; names[j] = name }
    for (null = 1; null <= k; null++) {
      t = types[null]
      if (t !~ /\*$/ && t != "hone_sink") continue
      args = ""
      for (j = 1; j <= k; j++) args = args (j > 1 ? ", " : "") (j == null ? "NULL" : value(types[j]))
      # What makes, keeps or works on an object cannot do without it. Options, errors and texts may have a meaning when NULL.
      must = returns == "hone_status" && (t ~ /\*\*$/ && t !~ /^const/ || null == 1 && t ~ /^(const )?hone_[a-z_]+ \*$/ && t !~ /options|report|hone_error/)
      result = returns == "hone_status" ? "status = " : "(void)"
      printf "CALL(%s, %s, %d, %s%s(%s))\n", function_name, names[null], must ? 1 : 0, result, function_name, args
    }
  }
  printf "#define PUBLIC_FUNCTIONS %d\n", total
}'
