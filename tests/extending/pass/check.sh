# The pass is listed, says what it did, can be switched off, and leaves the answers as they were.
"$BUILD/hone" optimize zoo:double_neg_net --explain -o out.onnx | tee said | grep -q drop_double_neg || { cat said; exit 1; }
grep -q 'two signs cancel out' said
"$BUILD/hone" verify zoo:double_neg_net
