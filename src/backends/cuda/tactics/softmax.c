/* Softmax; before opset 13 the dimensions from the axis on are one row. */
#include "backends/cuda/common/softmax.h"

HN_CUDA_SOFTMAX(softmax, "Softmax", HN_ROWS_SOFTMAX);
