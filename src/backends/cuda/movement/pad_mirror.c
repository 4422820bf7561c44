/* Pad with elements of the data: mode reflect, edge or wrap, with known widths. */
#include "backends/cuda/movement/indexed.h"
#include "base/error.h"

#include <string.h>

enum { DIMENSIONS = 8, NUMBERS = 5 };

static bool plan(const hone_step *s, hn_cuda_indexed *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  const char *mode = hone_node_string(s->node, "mode", "constant");
  int64_t begin[HONE_MAX_RANK], step = 1;
  const int64_t how = !strcmp(mode, "edge")      ? 0
                      : !strcmp(mode, "reflect") ? 1
                      : !strcmp(mode, "wrap")    ? 2
                                                 : -1;
  if (how < 0) return hn_refuse(why, "mode %s", mode);
  if (x->rank != y->rank || x->rank > DIMENSIONS || x->dtype != y->dtype)
    return hn_refuse(why, "more than %d dimensions", DIMENSIONS);
  if (!hn_boxes_widths(s, begin, why)) return false;
  p->body = "hn_pad_mirror", p->in[0] = 0;
  p->args.p[0] = x->rank, p->args.p[1] = how;
  for (int32_t d = x->rank - 1; d >= 0; d--) {
    i64 *n = p->args.p + 2 + d * NUMBERS;
    const int64_t first = begin[d] < 0 ? -begin[d] : 0, front = begin[d] > 0 ? begin[d] : 0;
    const int64_t end = y->dim[d] - x->dim[d] - begin[d], cut = end < 0 ? -end : 0;
    const int64_t kept = x->dim[d] - first - cut;
    if (kept < 1 && y->dim[d] > 0) return hn_refuse(why, "dimension %d has no elements to pad with", d);
    n[0] = y->dim[d], n[1] = front, n[2] = kept, n[3] = first * step, n[4] = step;
    step *= x->dim[d];
  }
  p->args.count = hone_desc_count(y);
  return true;
}

hn_cuda_indexed_tactic(pad_mirror, "Pad", plan);
