#include "backends/cuda/sampling/resize.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cuda/sampling/resize_args.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/launch.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/mem.h"
#include "model/ops/sampling/resample.h"

/* Where the tables of the dimensions lie in the blob. */
typedef struct tables {
  hn_resize r;
  int64_t taps[HONE_MAX_RANK]; /* 0: not resized */
  size_t index[HONE_MAX_RANK], weight[HONE_MAX_RANK], outside[HONE_MAX_RANK], bytes;
} tables;

static bool describe(const hone_step *s, tables *t, hone_reason *why) {
  const hone_tensor_desc *input[4] = {NULL}, *x = &s->input[0].desc, *y = &s->output[0].desc;
  hone_tensor tensor[4];
  const hone_tensor *value[4] = {NULL};
  hone_error error = {0};
  bool known = false;
  memset(t, 0, sizeof *t);
  if (!hone_desc_known(x) || !hone_desc_known(y)) return hn_refuse(why, "dimensions are not known");
  if (!hn_cuda_value(x->dtype) || x->dtype == HONE_DTYPE_BOOL || !hn_cuda_value(y->dtype) ||
      strcmp(hn_cuda_value(x->dtype), hn_cuda_value(y->dtype)) != 0)
    return hn_refuse(why, "from %s to %s", hone_dtype_name(x->dtype), hone_dtype_name(y->dtype));
  if (s->n_epilogue) return hn_refuse(why, "a resize has no epilogue");
  const uint32_t n = s->n_anchor_inputs < 4 ? s->n_anchor_inputs : 4;
  for (uint32_t i = 0; i < n; i++) {
    if (!hn_cuda_has(s, i)) continue;
    tensor[i] = (hone_tensor){s->input[i].desc, (void *)(uintptr_t)s->input[i].constant};
    input[i] = &tensor[i].desc;
    if (s->input[i].constant) value[i] = &tensor[i];
  }
  if (hn_resize_init(&t->r, s->node, input, value, n, &known, &error))
    return hn_refuse(why, "%.140s", error.what);
  if (!known) return hn_refuse(why, "scales or sizes are not constant");
  if (hone_desc_count(x) == 0 || hone_desc_count(y) > INT32_MAX)
    return hn_refuse(why, "an empty or huge tensor");
  int64_t all = 1;
  for (int32_t i = 0; i < x->rank; i++) {
    if (t->r.out[i] != y->dim[i]) return hn_refuse(why, "the output's dimension %d does not fit", (int)i);
    /* A dimension that keeps its size is still resampled under tf_crop_and_resize. */
    if (hn_resample_is_still(&t->r, i)) continue;
    const int64_t taps = hn_resample_taps(&t->r, i), entries = taps * y->dim[i];
    t->taps[i] = taps, all *= taps;
    if (all > 65536) return hn_refuse(why, "more than 65536 taps");
    t->index[i] = t->bytes, t->bytes += hn_round_up((size_t)entries * sizeof(int32_t), 16);
    t->weight[i] = t->bytes, t->bytes += hn_round_up((size_t)entries * sizeof(float), 16);
    t->outside[i] = t->bytes, t->bytes += hn_round_up((size_t)y->dim[i], 16);
  }
  return true;
}

bool hn_cuda_resize_accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  tables t;
  (void)m;
  return describe(s, &t, why);
}

double hn_cuda_resize_cost(const hone_step *s, const hone_machine *m) {
  return hn_cuda_seconds(m, s->cost.flops, m->peak_flops / 4, hn_cuda_bytes(s), 0.7);
}

hone_status hn_cuda_resize_need(const hone_step *s, const hone_machine *m, hone_tactic_need *need,
                                hone_error *error) {
  tables t;
  hone_reason why = {""};
  (void)m;
  if (!describe(s, &t, &why)) return hn_not_described(s, &why, error);
  need->blob_bytes = t.bytes;
  return HONE_OK;
}

hone_status hn_cuda_resize_prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  tables t;
  hone_reason why = {""};
  unsigned char *base = blob;
  (void)m;
  if (!describe(s, &t, &why)) return hn_not_described(s, &why, error);
  for (int32_t d = 0; d < s->output[0].desc.rank; d++) {
    if (!t.taps[d]) continue;
    const int64_t out = s->output[0].desc.dim[d], entries = out * t.taps[d];
    hn_resample_axis a = {.taps = t.taps[d]};
    a.index = malloc((size_t)entries * sizeof *a.index + 1);
    a.weight = (float *)(void *)(base + t.weight[d]);
    a.outside = malloc((size_t)out + 1);
    if (a.index && a.outside) {
      hn_resample_fill(&t.r, d, &a);
      int32_t *index = (int32_t *)(void *)(base + t.index[d]);
      for (int64_t i = 0; i < entries; i++) index[i] = (int32_t)a.index[i];
      for (int64_t i = 0; i < out; i++) base[t.outside[d] + (size_t)i] = a.outside[i];
    }
    const bool failed = !a.index || !a.outside;
    free(a.index), free(a.outside);
    if (failed) return hn_fail_memory(error, (unsigned long long)entries * 9, "tables of a resize");
  }
  return HONE_OK;
}

/* The output's dimensions by falling strides; the innermost in vectors where both tensors allow it. */
static int order(const hone_step_run *r, const tables *t, hn_resize_args *a) {
  const hone_tensor_desc *x = &r->step->input[0].desc, *y = &r->step->output[0].desc;
  int32_t by[HONE_MAX_RANK], n = 0;
  for (int32_t i = 0; i < y->rank; i++)
    if (y->dim[i] != 1 || t->taps[i]) by[n++] = i;
  for (int32_t i = 1; i < n; i++)
    for (int32_t k = i; k > 0 && y->stride[by[k]] > y->stride[by[k - 1]]; k--) {
      const int32_t swap = by[k];
      by[k] = by[k - 1], by[k - 1] = swap;
    }
  int width = x->dtype == y->dtype ? (int)(16 / hone_dtype_size(x->dtype)) : 1;
  bool even = n > 0 && ((uintptr_t)a->x | (uintptr_t)a->y) % 16 == 0;
  for (int32_t k = 0; k < n; k++) {
    const int32_t d = by[k];
    if (k == n - 1)
      even = even && !t->taps[d] && x->stride[d] == 1 && y->stride[d] == 1;
    else
      even = even && x->stride[d] % width == 0 && y->stride[d] % width == 0;
  }
  int64_t last = n ? y->dim[by[n - 1]] : 1;
  if (even && by[n - 1] == 1 && x->layout == HONE_LAYOUT_CHANNELS_LAST && y->layout == x->layout &&
      x->channel_pitch == y->channel_pitch)
    last = hn_fill_up(last, width); /* zeros of the padding stay zeros */
  if (!even || last % width) width = 1, last = n ? y->dim[by[n - 1]] : 1;
  a->rank = n, a->all = 1;
  for (int32_t k = 0; k < n; k++) {
    const int32_t d = by[k];
    const int64_t size = k == n - 1 ? last / width : y->dim[d];
    a->dim[k] = hn_cuda_divisor((uint32_t)size);
    a->x_step[k] = x->dim[d] == 1 && !t->taps[d] ? 0 : x->stride[d];
    a->y_step[k] = y->stride[d];
    if (k == n - 1) a->x_step[k] *= width, a->y_step[k] *= width;
    a->taps[k] = (i32)t->taps[d];
    if (t->taps[d]) a->all *= (i32)t->taps[d];
    const unsigned char *blob = r->blob;
    a->index[k] = (const i32 *)(const void *)(blob + t->index[d]);
    a->weight[k] = (const float *)(const void *)(blob + t->weight[d]);
    a->outside[k] = blob + t->outside[d];
  }
  return width;
}

hone_status hn_cuda_resize_run(const hone_step_run *r, hone_error *error) {
  const hone_step *s = r->step;
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  tables t;
  hone_reason why = {""};
  if (!describe(s, &t, &why)) return hn_not_described(s, &why, error);
  hn_resize_args a = {.x = r->in[0], .y = r->out[0], .extrapolation = t.r.extrapolation};
  const int width = order(r, &t, &a);
  hone_status status = HONE_OK;
  if (width == 1 && y->layout == HONE_LAYOUT_CHANNELS_LAST && y->channel_pitch > y->dim[1])
    status = hn_cuda_zero(q, r->out[0], (size_t)hone_desc_bytes(y), error);
  int64_t work = 1;
  for (i32 k = 0; k < a.rank; k++) work *= a.dim[k].by;
  a.work = (u32)work;
  const char *value = hn_cuda_value(x->dtype);
  const bool real = !strcmp(value, "float") || !strcmp(value, "double");
  hn_str text = {0};
  hn_str_printf(&text, "#define HN_TYPE %s\n#define HN_OUT %s\n#define HN_VALUE %s\n",
                hone_dtype_name(x->dtype), hone_dtype_name(y->dtype), value);
  hn_str_printf(&text, "#define HN_W %d\n#define HN_ONE %d\n#define HN_SUM %s\n", width, a.all == 1,
                !strcmp(value, "float") ? "float" : "double");
  hn_str_printf(&text, "#define HN_ROUND(v) %s\n",
                real            ? "(v)"
                : t.r.antialias ? "((HN_VALUE)floor((double)(v) + 0.5))"
                                : "((HN_VALUE)(v))");
  hn_str_printf(&text, "#define HN_RANK %d\n#define HN_ALL %d\n#define HN_TAPS(d) (", (int)a.rank,
                (int)a.all);
  for (i32 k = 0; k < a.rank; k++) hn_str_printf(&text, "(d) == %d ? %d : ", (int)k, (int)a.taps[k]);
  hn_str_puts(&text, "1)\n");
  if (!status) status = hn_cuda_launch_line(q, "resize", &text, "hn_resize", work, 128, &a, sizeof a, error);
  hn_str_free(&text);
  return status;
}
