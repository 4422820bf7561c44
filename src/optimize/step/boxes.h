/* What Transpose, Concat, Split, Slice, Expand, Tile, Pad... do, for any backend: copies between two strided
 * boxes of equal dimensions. */
#ifndef HN_OPTIMIZE_STEP_BOXES_H
#define HN_OPTIMIZE_STEP_BOXES_H

#include <hone/plugin.h>

#include "base/nest.h"

/* One side of a copy: tensor index, first element, strides in elements. */
typedef struct hn_box_side {
  uint32_t tensor; /* output for dst; input, or HN_BOX_FILL, for src */
  int64_t at;
  int64_t stride[HN_NEST_RANK];
} hn_box_side;

#define HN_BOX_FILL 0xffffffffu /* the source is the one element hn_boxes.fill */

typedef struct hn_box {
  int32_t element; /* bytes: 1, 2, 4 or 8 */
  int32_t rank;
  int64_t dim[HN_NEST_RANK];
  hn_box_side dst, src;
} hn_box;

/* Takes the boxes of a step. */
typedef struct hn_boxes hn_boxes;
struct hn_boxes {
  void (*add)(hn_boxes *self, const hn_box *box);
  uint64_t fill; /* bits of the element that HN_BOX_FILL stands for */
};

/* 1, 2, 4 or 8; 0 for what cannot be moved as plain bits (strings). */
int32_t hn_box_element(hone_dtype dtype);
/* Whole tensor as a side. */
hn_box_side hn_box_side_of(uint32_t tensor, const hone_tensor_desc *desc);
/* Checks what all moves need: dtypes of input 0 and the outputs equal and of a size that moves, dimensions
 * known, no epilogue. Sets *element. */
bool hn_boxes_check(const hone_step *step, int32_t *element, hone_reason *why);

/* Adds the boxes of a step with that anchor; false with the reason where it is no list of boxes. */
typedef bool (*hn_boxes_build)(const hone_step *step, hn_boxes *b, hone_reason *why);
bool hn_boxes_transpose(const hone_step *step, hn_boxes *b, hone_reason *why);
bool hn_boxes_concat(const hone_step *step, hn_boxes *b, hone_reason *why);
bool hn_boxes_split(const hone_step *step, hn_boxes *b, hone_reason *why);
bool hn_boxes_slice(const hone_step *step, hn_boxes *b, hone_reason *why);
bool hn_boxes_expand(const hone_step *step, hn_boxes *b, hone_reason *why);
bool hn_boxes_tile(const hone_step *step, hn_boxes *b, hone_reason *why);
bool hn_boxes_depth_to_space(const hone_step *step, hn_boxes *b, hone_reason *why);
bool hn_boxes_space_to_depth(const hone_step *step, hn_boxes *b, hone_reason *why);
/* Gather by constant indices that step evenly along each of their dimensions: ranges, and windows that
 * overlap. */
bool hn_boxes_gather(const hone_step *step, hn_boxes *b, hone_reason *why);
bool hn_boxes_pad(const hone_step *step, hn_boxes *b, hone_reason *why);
/* Pad: begin widths per dimension; ends follow from the dimensions. */
bool hn_boxes_widths(const hone_step *step, int64_t *begin, hone_reason *why);
bool hn_boxes_reformat(const hone_step *step, hn_boxes *b, hone_reason *why);

#endif
