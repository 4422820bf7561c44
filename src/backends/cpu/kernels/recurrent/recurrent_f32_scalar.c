/* Steps of RNN, GRU and LSTM, scalar tier. */
#define MR 2
#define ROWS(X) X(1) X(2)
#include "backends/cpu/kernels/recurrent/recurrent_body.h"

const struct hn_kernel hn_kernel_recurrent_f32_scalar = {.name = "recurrent_f32_scalar",
                                                         .family = "recurrent",
                                                         .role = "f32",
                                                         .isa = HN_ISA_SCALAR,
                                                         .ops = &table};
