# The format is found by its content and diagnosed, a broken row is one error with its line, and who gives another file is told of it.
printf 'stopwatch layer,operator,ms\nfirst,Conv,8.5\nlast,Softmax,1.5\n' >watch.csv
"$BUILD/hone" diagnose watch.csv --json | grep -q first
printf 'stopwatch layer,operator,ms\nfirst,Conv,8.5\nlast,Softmax\n' >broken.csv
if "$BUILD/hone" diagnose broken.csv 2>error; then exit 1; fi
grep -q 'broken.csv.*line 3' error
echo nothing >other.txt
if "$BUILD/hone" diagnose other.txt 2>error; then exit 1; fi
grep -q 'formats: .*stopwatch' error
