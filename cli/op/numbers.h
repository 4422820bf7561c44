/* Elements of tensors as doubles, and how far apart the numbers of a type are. */
#ifndef HONE_CLI_OP_NUMBERS_H
#define HONE_CLI_OP_NUMBERS_H

#include <hone/tensor.h>

double op_element(hone_dtype dtype, const void *data, int64_t i);
/* Rounded to the nearest number of the type, ties to even; integers and bool take what they can hold. */
void op_set_element(hone_dtype dtype, void *data, int64_t i, double value);
/* From |value| to the next larger number of a float type; 1 of integers. */
double op_ulp(hone_dtype dtype, double value);
/* Largest, smallest normal and smallest number above 0 of a float type. */
double op_largest(hone_dtype dtype);
double op_normal(hone_dtype dtype);
double op_smallest(hone_dtype dtype);

#endif
