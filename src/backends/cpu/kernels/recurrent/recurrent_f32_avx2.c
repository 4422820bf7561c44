/* Steps of RNN, GRU and LSTM, avx2 tier. */
/* 12 sums, 3 broadcasts and a vector of R: all 16 registers. */
#define MR 3
#define ROWS(X) X(1) X(2) X(3)
#include "backends/cpu/kernels/recurrent/recurrent_body.h"

const struct hn_kernel hn_kernel_recurrent_f32_avx2 = {
    .name = "recurrent_f32_avx2", .family = "recurrent", .role = "f32", .isa = HN_ISA_AVX2, .ops = &table};
