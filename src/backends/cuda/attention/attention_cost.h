/* What tactics of attention cost, which differ in how many products they make and in their launches. */
#ifndef HN_CUDA_ATTENTION_COST_H
#define HN_CUDA_ATTENTION_COST_H

#include <hone/plugin.h>
#include <stdbool.h>

/* Operands of the type on tensor cores; split3: f32 as two parts of tf32 each, which is three products. */
double hn_cuda_attention_seconds(const hone_step *s, const hone_machine *m, double flops, hone_dtype type,
                                 bool split3);

#endif
