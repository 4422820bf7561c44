# The operator runs within the convolution's step and within a pointwise program, by the fast tactics, and the answers are right.
"$BUILD/hone_operators" | grep -q '^| HardTanh | 1 and newer | floats |'
"$BUILD/hone" profile zoo:hard_tanh_net -n 2 -w 0 --json >profile.json
tr ',' '\n' <profile.json | sed 's/": */":/' | grep -E '"(tactic|epilogue)":' | tee said
grep -q '"epilogue":"Conv + HardTanh"' said
grep -B1 '"epilogue":"Neg + HardTanh + Abs"' said | grep -q '"tactic":"pointwise"'
if grep -q '"tactic":"ref"' said; then exit 1; fi
"$BUILD/hone" verify zoo:hard_tanh_net
