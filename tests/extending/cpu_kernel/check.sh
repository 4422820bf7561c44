# The kernel is among those that check_kernels tests, and computes what its family computes.
"$BUILD/check_kernels" | tee said
grep -q norm_f32_again said
