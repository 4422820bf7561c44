# The tactic runs on the emulated GPU, agrees with the reference on both triangles, and refuses other diagonals with a reason.
if ! cmake --build "$BUILD" --target fakecuda fakenvrtc; then
  if grep -q 'CUDA_INCLUDE:PATH=/' "$BUILD/CMakeCache.txt"; then exit 1; fi
  echo "SKIP: CUDA's headers are missing"
  exit 77
fi
cat >cases.txt <<'CASES'
Trilu@14 : f32[3,5,7] @ r
Trilu@14 upper=0 : f32[2,9,4] @ r
CASES
HONE_BUILD=$BUILD sh "$TREE/tests/cuda/emulated.sh" "$BUILD/check_tactics" cases.txt --device cuda --tactic trilu_main -v | tee said
grep -Eq '[1-9][0-9]* runs of tactics on cuda, 0 failures' said
echo 'Trilu@14 : f32[3,4] =i64{1} @ r' >refused.txt
HONE_BUILD=$BUILD sh "$TREE/tests/cuda/emulated.sh" "$BUILD/check_tactics" refused.txt --device cuda --tactic trilu_main -v | tee said
grep -q ' 0 runs of tactics on cuda' said
grep -q 'the diagonal is not the main one' said
