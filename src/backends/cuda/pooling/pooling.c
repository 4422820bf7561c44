#include "backends/cuda/pooling/pooling.h"

#include <string.h>

#include "backends/cuda/pooling/pool_args.h"
#include "backends/cuda/pooling/window.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/launch.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"

bool hn_cuda_pooling_accepts(const hone_step *s, const hone_machine *m, const hn_cuda_pooling_config *config,
                             hone_reason *why) {
  const hone_dtype x = s->input[0].desc.dtype, y = s->output[0].desc.dtype;
  hn_cuda_window w;
  (void)m, (void)config;
  if (!hn_cuda_known(s, why)) return false;
  if (!hn_cuda_value(x) || !hn_cuda_value(y) || strcmp(hn_cuda_value(x), hn_cuda_value(y)) != 0)
    return hn_refuse(why, "from %s to %s", hone_dtype_name(x), hone_dtype_name(y));
  if (s->n_epilogue) return hn_refuse(why, "pooling has no epilogue");
  if (!hn_cuda_window_of(s, &w, why)) return false;
  if (w.x.n * w.y.n_step > INT64_MAX / 8 || hone_desc_bytes(&s->output[0].desc) > INT32_MAX * (int64_t)8)
    return hn_refuse(why, "the output is too large");
  if (hone_desc_count(&s->output[0].desc) > INT32_MAX) return hn_refuse(why, "more than 2^31 outputs");
  return true;
}

double hn_cuda_pooling_cost(const hone_step *s, const hone_machine *m, const hn_cuda_pooling_config *config) {
  (void)config;
  return hn_cuda_seconds(m, s->cost.flops, m->peak_flops / 4, hn_cuda_bytes(s), 0.7);
}

/* Channels that a thread takes: vectors where channels are contiguous in both tensors and padded alike. */
static int64_t width_of(const hone_step_run *r, const hn_cuda_window *w) {
  const hone_tensor_desc *x = &r->step->input[0].desc, *y = &r->step->output[0].desc;
  const int64_t width = 16 / (int64_t)hone_dtype_size(x->dtype);
  if (x->dtype != y->dtype || hn_cuda_gives(r->step, 1) || w->x.c_step != 1 || w->y.c_step != 1) return 1;
  const int64_t padded = hn_fill_up(w->x.c, width);
  const hn_cuda_grid *g[2] = {&w->x, &w->y};
  for (int i = 0; i < 2; i++) {
    const hone_tensor_desc *d = i ? y : x;
    if (padded != w->x.c && (d->layout != HONE_LAYOUT_CHANNELS_LAST || d->channel_pitch < padded)) return 1;
    if (g[i]->n > 1 && g[i]->n_step % width) return 1;
    for (int k = 0; k < 3; k++)
      if (g[i]->size[k] > 1 && (g[i]->step[k] % width || g[i]->step[k] < padded)) return 1;
  }
  if (((uintptr_t)r->in[0] | (uintptr_t)r->out[0]) % 16) return 1;
  return width;
}

static void write_prefix(const hone_step *s, hn_cuda_pooling kind, const hn_cuda_window *w, int64_t width,
                         bool last, hn_str *t) {
  const hone_dtype x = s->input[0].desc.dtype;
  const char *value = hn_cuda_value(x);
  hn_str_printf(t, "#define HN_TYPE %s\n#define HN_OUT %s\n#define HN_VALUE %s\n#define HN_ACC %s\n",
                hone_dtype_name(x), hone_dtype_name(s->output[0].desc.dtype), value, value);
  hn_str_printf(t, "#define HN_W %d\n#define HN_LAST %d\n", (int)width, last);
  hn_str_printf(t, "#define HN_KD %lld\n#define HN_KH %lld\n#define HN_KW %lld\n", (long long)w->kernel[0],
                (long long)w->kernel[1], (long long)w->kernel[2]);
  switch (kind) {
  case HN_CUDA_POOL_MAX:
    hn_str_printf(t, "#define HN_MAX %s\n",
                  x == HONE_DTYPE_I8   ? "-128"
                  : x == HONE_DTYPE_U8 ? "0"
                                       : "hn_from_bits(0xff800000u)");
    if (hn_cuda_gives(s, 1))
      hn_str_printf(t, "#define HN_INDEX %d\n", hone_node_int(s->node, "storage_order", 0) == 1);
    else if (width == 8 && w->kernel[2] <= 16 && (x == HONE_DTYPE_F16 || x == HONE_DTYPE_BF16))
      hn_str_printf(t, "#define HN_PAIRS %s\n", x == HONE_DTYPE_F16 ? "0xfc00fc00u" : "0xff80ff80u");
    else if (width == 16 && w->kernel[2] <= 16)
      hn_str_printf(t, "#define HN_BYTE_PAIRS %s\n", x == HONE_DTYPE_I8 ? "i16" : "u16");
    break;
  case HN_CUDA_POOL_AVERAGE:
    hn_str_printf(t, "#define HN_AVERAGE %d\n", hone_node_int(s->node, "count_include_pad", 0) != 0);
    break;
  case HN_CUDA_POOL_LP:
    hn_str_printf(t, "#define HN_LP %lld\n",
                  (long long)hone_node_int(s->node, "p", (int64_t)hone_node_float(s->node, "p", 2)));
    break;
  }
}

hone_status hn_cuda_pooling_run(const hone_step_run *r, const hn_cuda_pooling_config *config,
                                hone_error *error) {
  const hone_step *s = r->step;
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  const hone_tensor_desc *y = &s->output[0].desc;
  hn_cuda_window w;
  hone_reason why = {""};
  if (!hn_cuda_window_of(s, &w, &why)) return hn_not_described(s, &why, error);
  const int64_t width = width_of(r, &w);
  const bool last = w.y.c_step == 1 && w.y.c > 1;
  /* One by one up to the output's pitch, so that its padding becomes zeros; the input is not read there. */
  int64_t c = hn_div_up(w.x.c, width);
  hone_status status = HONE_OK;
  if (width == 1 && y->layout == HONE_LAYOUT_CHANNELS_LAST && y->channel_pitch > y->dim[1])
    status = hn_cuda_zero(q, r->out[0], (size_t)hone_desc_bytes(y), error);
  if (!status && hn_cuda_gives(s, 1)) {
    const hone_tensor_desc *d = &s->output[1].desc;
    if (d->layout == HONE_LAYOUT_CHANNELS_LAST && d->channel_pitch > d->dim[1])
      status = hn_cuda_zero(q, r->out[1], (size_t)hone_desc_bytes(d), error);
  }
  hn_pool_args a = {.x = r->in[0], .y = r->out[0], .index = hn_cuda_gives(s, 1) ? r->out[1] : NULL};
  a.channels = (i32)w.x.c, a.c = hn_cuda_divisor((uint32_t)(c > 0 ? c : 1));
  a.x_n = w.x.n_step, a.x_c = w.x.c_step, a.y_n = w.y.n_step, a.y_c = w.y.c_step;
  hn_cuda_grid index = w.y;
  if (a.index && !hn_cuda_grid_of(&s->output[1].desc, &index, &why)) return hn_not_described(s, &why, error);
  a.i_n = index.n_step, a.i_c = index.c_step;
  int64_t work = w.y.n * c;
  for (int i = 0; i < 3; i++) {
    work *= w.y.size[i];
    a.out[i] = hn_cuda_divisor((uint32_t)(w.y.size[i] > 0 ? w.y.size[i] : 1));
    a.in[i] = (i32)w.x.size[i], a.stride[i] = (i32)w.stride[i], a.dilation[i] = (i32)w.dilation[i];
    a.begin[i] = (i32)w.begin[i], a.end[i] = (i32)w.end[i];
    a.x_step[i] = w.x.step[i], a.y_step[i] = w.y.step[i], a.i_step[i] = index.step[i];
  }
  a.work = (u32)work;
  hn_str text = {0};
  write_prefix(s, config->kind, &w, width, last, &text);
  if (!status) status = hn_cuda_launch_line(q, "pool", &text, "hn_pool", work, 128, &a, sizeof a, error);
  hn_str_free(&text);
  return status;
}
