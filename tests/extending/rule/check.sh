# The rule fires where it must, in both languages, and not where it must not.
for batch in 3 4; do
  "$BUILD/hone" profile zoo:res3_block --batch $batch -n 3 -w 0 -o batch$batch.json >/dev/null
done
"$BUILD/hone" diagnose batch3.json --json | grep -q '"odd_batch"'
"$BUILD/hone" diagnose batch3.json | grep -q 'The batch is odd: 3'
"$BUILD/hone" diagnose batch3.json --lang zh | grep -q '批大小为奇数'
if "$BUILD/hone" diagnose batch4.json --json | grep -q odd_batch; then exit 1; fi
