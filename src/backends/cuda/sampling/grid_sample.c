/* GridSample in one to three spatial dimensions, all modes and paddings. */
#include <string.h>

#include "backends/cuda/step/direct.h"
#include "base/dims.h"
#include "base/error.h"

/* Number of the name in the list, both spellings of a mode being neighbours; -1: none of them. */
static int find(const char *name, const char *const *list, int n) {
  for (int i = 0; i < n; i++)
    if (!strcmp(name, list[i])) return i;
  return -1;
}

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  static const char *const modes[] = {"nearest", "nearest", "linear", "bilinear", "cubic", "bicubic"};
  static const char *const pads[] = {"zeros", "border", "reflection"};
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  const int mode = find(hone_node_string(s->node, "mode", "linear"), modes, 6);
  const int pad = find(hone_node_string(s->node, "padding_mode", "zeros"), pads, 3);
  if (mode < 0 || pad < 0) return hn_refuse(why, "unknown mode or padding_mode");
  if (x->rank < 3 || x->rank > 5) return hn_refuse(why, "rank %d, not 3 to 5", (int)x->rank);
  if (!hone_dtype_is_float(x->dtype)) return hn_refuse(why, "the input is %s", hone_dtype_name(x->dtype));
  const int64_t plane = hn_dims(x, 2, x->rank), points = hn_dims(y, 2, y->rank);
  if (plane == 0) return hn_refuse(why, "the input is empty");
  p->text = "sample";
  hn_cuda_direct_define(p, "HN_AXES", x->rank - 2);
  hn_cuda_direct_define(p, "HN_MODE", mode / 2);
  hn_cuda_direct_define(p, "HN_PAD", pad);
  hn_cuda_direct_define(p, "HN_ALIGN", hone_node_int(s->node, "align_corners", 0) != 0);
  p->args.p[0] = x->dim[1], p->args.p[1] = plane, p->args.p[2] = points;
  for (int32_t d = 2; d < x->rank; d++) p->args.p[2 + d] = x->dim[d];
  hn_cuda_direct_add(p, "hn_grid_sample", hone_desc_count(y), 0);
  return true;
}

hn_cuda_direct_tactic(grid_sample, "GridSample", plan);
