/* Steps of RNN, GRU and LSTM, avx512 tier. */
/* 24 sums, 6 broadcasts and a vector of R: 31 of 32 registers. */
#define MR 6
#define ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#include "backends/cpu/kernels/recurrent/recurrent_body.h"

const struct hn_kernel hn_kernel_recurrent_f32_avx512 = {.name = "recurrent_f32_avx512",
                                                         .family = "recurrent",
                                                         .role = "f32",
                                                         .isa = HN_ISA_AVX512,
                                                         .ops = &table};
