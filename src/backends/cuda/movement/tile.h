/* Transposing copies through shared memory (device/tile.cuh), with a conversion of floating types on the way.
 */
#ifndef HN_CUDA_MOVEMENT_TILE_H
#define HN_CUDA_MOVEMENT_TILE_H

#include <hone/plugin.h>

#include "backends/cuda/driver/cuda.h"
#include "base/nest.h"

typedef struct hn_cuda_tile {
  const hn_nest *nest; /* operand 0: destination, 1: source, in elements */
  int32_t source;      /* the dimension that is contiguous in the source */
  hone_dtype from, to; /* equal, or floating types */
  int64_t padded;      /* length of the destination's rows with padding that becomes zeros; 0: none */
} hn_cuda_tile;

/* Finds a nest's source dimension; false when the two sides are not contiguous in different dimensions. */
bool hn_cuda_tile_of(const hn_nest *nest, int32_t *source);
hone_status hn_cuda_tile_launch(hn_cuda_queue *q, const hn_cuda_tile *t, void *to, const void *from,
                                hone_error *error);

/* The unsigned integer type with as many bytes: elements that are only moved. */
hone_dtype hn_cuda_bits_of(hone_dtype dtype);
hone_dtype hn_cuda_bits_of_size(int32_t bytes);

#endif
