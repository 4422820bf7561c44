# The tactic is reached, agrees with the reference on both triangles, and refuses other diagonals with a reason.
cat >cases.txt <<'CASES'
Trilu@14 : f32[3,5,7] @ r
Trilu@14 upper=0 : f32[2,9,4] @ r
Trilu@14 upper=0 : f32[6,6] @ r
CASES
"$BUILD/check_tactics" cases.txt --tactic trilu_rows -v | tee said
grep -Eq '[1-9][0-9]* runs of tactics, 0 failures' said
echo 'Trilu@14 : f32[3,4] =i64{1} @ r' >refused.txt
if "$BUILD/check_tactics" refused.txt --tactic trilu_rows -v >said; then exit 1; fi
grep -q 'the diagonal is not the main one' said
