#!/bin/sh
# usage: test_gpu_record.sh SOURCE   tools/test_gpu.sh with RECORD on programs that only say what they were asked: what passed is not done again
# by the next call, what failed is, and another build does everything.
set -u
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
mkdir "$temp/bin"
cat >"$temp/bin/program" <<'END'
#!/bin/sh
name=${0##*/}
case "$name $1" in
"hone zoo") echo '"name": "tiny"'; exit 0 ;;
"hone run" | "hone device") exit 0 ;;
esac
echo "$name $*" >>"$ASKED"
case "$name $*" in *"${FAILS:-nothing}"*) echo "FAIL $name"; exit 1 ;; esac
echo "1 cases, 2 runs, 0 failures"
END
chmod +x "$temp/bin/program"
for name in hone check_tactics check_attention check_pointwise check_late check_quantised check_codes test_driver test_driver_failures check_networks; do
  cp "$temp/bin/program" "$temp/bin/$name"
done
failed=0
call() { # FAILS, least and most programs asked, exit code
  : >"$temp/asked"
  ASKED=$temp/asked FAILS=$1 RECORD=$temp/record PARTS="tactics zoo" JOBS=3 sh "$source/tools/test_gpu.sh" "$temp/bin" >"$temp/out" 2>&1
  status=$?
  asked=$(wc -l <"$temp/asked")
  [ "$status" = "$4" ] && [ "$asked" -ge "$2" ] && [ "$asked" -le "$3" ] && return
  echo "FAIL: with '$1' failing: exit code $status (not $4), $asked programs asked (not $2 to $3)"
  cat "$temp/out"
  failed=1
}
source=$1
call 'shard 1/3' 12 60 1
all=$asked
call 'shard 1/3' 1 1 1
call nothing 1 1 0
call nothing 0 0 0
echo "# another build" >>"$temp/bin/hone"
call nothing "$all" "$all" 0
exit $failed
