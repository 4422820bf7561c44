#include "backends/cuda/pooling/window.h"

#include <string.h>

#include "base/error.h"

bool hn_cuda_grid_of(const hone_tensor_desc *d, hn_cuda_grid *g, hone_reason *why) {
  if (d->rank < 3 || d->rank > 5) return hn_refuse(why, "rank %d, not 3 to 5", (int)d->rank);
  const int lead = 5 - d->rank;
  memset(g, 0, sizeof *g);
  g->n = d->dim[0], g->c = d->dim[1];
  g->n_step = d->stride[0], g->c_step = d->dim[1] > 1 ? d->stride[1] : 1;
  for (int i = 0; i < 3; i++) {
    g->size[i] = i < lead ? 1 : d->dim[2 + i - lead];
    g->step[i] = i < lead ? 0 : d->stride[2 + i - lead];
  }
  return true;
}

static bool list3(const hone_node *node, const char *name, int32_t spatial, int64_t out[3],
                  hone_reason *why) {
  size_t n = 0;
  const int64_t *v = hone_node_ints(node, name, &n);
  for (int i = 0; i < 3; i++) out[i] = 1;
  if (v && (int64_t)n != spatial)
    return hn_refuse(why, "%s has %zu values for %d dimensions", name, n, (int)spatial);
  for (int32_t i = 0; v && i < spatial; i++) {
    if (v[i] < 1 || v[i] > INT32_MAX) return hn_refuse(why, "%s holds %lld", name, (long long)v[i]);
    out[3 - spatial + i] = v[i];
  }
  return true;
}

static bool padding(const hone_step *s, int32_t spatial, hn_cuda_window *w, hone_reason *why) {
  const char *mode = hone_node_string(s->node, "auto_pad", "NOTSET");
  size_t n = 0;
  const int64_t *pads = hone_node_ints(s->node, "pads", &n);
  if (!strncmp(mode, "SAME", 4)) {
    for (int i = 0; i < 3; i++) {
      int64_t total =
          (w->y.size[i] - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 - w->x.size[i];
      if (total < 0) total = 0;
      w->begin[i] = !strcmp(mode, "SAME_LOWER") ? total - total / 2 : total / 2;
      w->end[i] = total - w->begin[i];
    }
  } else if (pads && n && strcmp(mode, "VALID") != 0) {
    if ((int64_t)n != 2 * spatial)
      return hn_refuse(why, "pads has %zu values for %d dimensions", n, (int)spatial);
    for (int32_t i = 0; i < spatial; i++) {
      w->begin[3 - spatial + i] = pads[i], w->end[3 - spatial + i] = pads[spatial + i];
      if (pads[i] < 0 || pads[spatial + i] < 0) return hn_refuse(why, "negative padding");
    }
  }
  return true;
}

bool hn_cuda_window_of(const hone_step *s, hn_cuda_window *w, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  memset(w, 0, sizeof *w);
  if (x->rank != y->rank || !hn_cuda_grid_of(x, &w->x, why) || !hn_cuda_grid_of(y, &w->y, why)) return false;
  if (!hone_node_has(s->node, "kernel_shape")) return hn_refuse(why, "kernel_shape is missing");
  const int32_t spatial = x->rank - 2;
  return list3(s->node, "kernel_shape", spatial, w->kernel, why) &&
         list3(s->node, "strides", spatial, w->stride, why) &&
         list3(s->node, "dilations", spatial, w->dilation, why) && padding(s, spatial, w, why);
}
