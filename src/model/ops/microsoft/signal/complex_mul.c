/* ComplexMul: a b. */
#include "model/ops/microsoft/signal/complex_product.h"

HN_COMPLEX_PRODUCT_OP(complex_mul, "ComplexMul", false);
