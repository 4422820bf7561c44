/* Bounds of Clip: the one place that reads them, for the reference, passes, lowering and device texts. */
#ifndef HN_MODEL_OPS_CLIP_BOUNDS_H
#define HN_MODEL_OPS_CLIP_BOUNDS_H

#include "model/ops/common/op.h"

/* Before opset 11 the bounds are attributes, and one that is left out is the largest finite f32 of its side
 * (an infinite x becomes that). Since opset 11 they are inputs, `low` and `high` here, and one that is left
 * out (NULL) bounds nothing: it is infinite. So does one that is NaN: ONNX defines Clip by Less and Where,
 * and nothing is less than NaN. x becomes min(max(x, *lo), *hi), so the upper bound wins where they lie the
 * wrong way round; a NaN in x stays. */
void hn_clip_bounds(const hone_node *node, const hone_tensor *low, const hone_tensor *high, double *lo,
                    double *hi);

#endif
