/* QLinearMatMul on the int8 kernels: see int8_step.h. */
#include "backends/cpu/common/int8_step.h"

HN_INT8_TACTIC(int8_matmul, "QLinearMatMul", hn_int8_describe_matmul);
