/* ComplexMulConj: a times the conjugate of b. */
#include "model/ops/microsoft/signal/complex_product.h"

HN_COMPLEX_PRODUCT_OP(complex_mul_conj, "ComplexMulConj", true);
