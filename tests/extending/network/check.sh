# The network is listed, runs in another batch and size, and its optimised plan gives its answers.
"$BUILD/hone" zoo | grep -q 'two_layers *Two fully connected layers'
"$BUILD/hone" inspect zoo:two_layers | grep -q Relu
"$BUILD/hone" run zoo:two_layers --batch 3 | grep -q '3x10'
"$BUILD/hone" verify zoo:two_layers
