/* The best of many keys, in order. */
#ifndef HN_MODEL_OPS_BEST_H
#define HN_MODEL_OPS_BEST_H

#include <stdint.h>

/* How many entries of scratch hn_best takes. */
int64_t hn_best_spare(int64_t n, int64_t k);
/* index[0..k): the places of the k <= n largest of key[n], the largest first; of equal ones the first comes
 * first. The time is linear in n and k whatever the keys are. */
void hn_best(int64_t *index, const int64_t *key, int64_t n, int64_t k, int64_t *spare);

#endif
