# Four operators became an epilogue of the convolution's step, and the answers are the same.
"$BUILD/hone" profile zoo:sigmoid_tanh_net -n 2 -w 0 --json >profile.json
grep -o '"epilogue": *"[^"]*"' profile.json | grep -q Tanh || { grep -o '"epilogue": *"[^"]*"' profile.json; exit 1; }
"$BUILD/hone" verify zoo:sigmoid_tanh_net
