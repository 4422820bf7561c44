/* Operators that draw numbers (irregular/random.cu). Without a seed every call gives others, which what is
 * captured cannot: these are left to the host. */
#ifndef HN_CUDA_IRREGULAR_RANDOM_H
#define HN_CUDA_IRREGULAR_RANDOM_H

#include "backends/cuda/step/direct.h"

/* With the attributes of a distribution's two parameters: the second is a range from the first, or a scale.
 */
bool hn_cuda_random_uniform(const hone_step *s, hn_cuda_direct *p, hone_reason *why);
bool hn_cuda_random_normal(const hone_step *s, hn_cuda_direct *p, hone_reason *why);
/* Probabilities of ones; rows of the probabilities of classes. */
bool hn_cuda_bernoulli(const hone_step *s, hn_cuda_direct *p, hone_reason *why);
bool hn_cuda_multinomial(const hone_step *s, hn_cuda_direct *p, hone_reason *why);

#endif
