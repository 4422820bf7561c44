# The operator runs within the convolution's step and within a pointwise program, by the fast tactics, and the answers are right.
"$BUILD/hone_operators" | grep -q '^| HardTanh | 1 and newer | floats |'
"$BUILD/hone" profile zoo:hard_tanh_net -n 2 -w 0 -O 2 --json >profile.json
tr ',' '\n' <profile.json | grep -E '"(op_type|tactic|epilogue)"' | tee said
grep -A2 '"op_type": *"Conv"' said | grep -q 'epilogue.*HardTanh'
grep -A2 '"op_type": *"Pointwise"' said | grep -q 'epilogue.*HardTanh'
if grep -q '"tactic": *"ref"' said; then exit 1; fi
if grep -q '"op_type": *"HardTanh"' said; then exit 1; fi
"$BUILD/hone" verify zoo:hard_tanh_net
