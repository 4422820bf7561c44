# The operator is in the table of operators; a model with it is inferred, costed, planned, run and verified, in f32 and in f16's storage.
"$BUILD/hone_operators" | grep -q '^| LogCosh | 1 and newer | floats |'
"$BUILD/hone" inspect zoo:log_cosh_net | grep -q LogCosh
"$BUILD/hone" run zoo:log_cosh_net --batch 2 | grep -q 2x8x16x16
"$BUILD/hone" verify zoo:log_cosh_net
