/* Part of the strassen family's adapter: whole products. */
#ifndef HN_TESTS_KERNELS_STRASSEN_PRODUCT_H
#define HN_TESTS_KERNELS_STRASSEN_PRODUCT_H
#include "check.h"
void ck_strassen_products(ck *c, hn_isa isa);
#endif
