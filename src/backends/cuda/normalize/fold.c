#include "backends/cuda/normalize/fold.h"

#include <string.h>

#include "backends/cuda/normalize/fold_args.h"
#include "backends/cuda/normalize/walk.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/launch.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "optimize/step/axes.h"

enum { THREADS = 256, MOST_SPLITS = 64 };

typedef struct plan {
  hn_fold_args args; /* but for addresses */
  bool columns;
  int width;
  bool clear;   /* the output has padding that the walk does not reach */
  bool nothing; /* an empty output */
  size_t part;
} plan;

static bool is_integer(hone_dtype d) { return hone_dtype_is_signed_int(d) || hone_dtype_is_unsigned_int(d); }

static const char *accumulator(hone_dtype d, const hn_fold_rule *rule) {
  if (rule->pair) return "hn_exp_sum";
  if (d == HONE_DTYPE_F64) return "double";
  if (is_integer(d) || d == HONE_DTYPE_BOOL)
    return rule->real ? "double" : hone_dtype_is_signed_int(d) ? "i64" : "u64";
  return "float";
}

/* Channels of channels-last tensors are walked up to the output's pitch, when the input is as wide and its
 * channels are the output's (they are not when a dimension before them is taken away). */
static void pad_channels(const hone_tensor_desc *x, const hone_tensor_desc *y, uint32_t axes, int64_t *dim,
                         plan *p) {
  if (y->layout != HONE_LAYOUT_CHANNELS_LAST || y->channel_pitch <= y->dim[1]) return;
  if (x->rank == y->rank && !(axes >> 1 & 1) && x->layout == HONE_LAYOUT_CHANNELS_LAST &&
      x->channel_pitch >= y->channel_pitch && x->stride[1] == 1 && y->dim[1] > 1) {
    dim[1] = y->channel_pitch;
    p->args.channels = (i32)y->dim[1], p->args.padded = (i32)y->channel_pitch;
  } else {
    p->clear = true;
  }
}

static uint32_t power_below(int64_t n) {
  uint32_t p = 1;
  while ((int64_t)p * 2 <= n) p *= 2;
  return p;
}

static bool make(const hone_step *s, const hone_machine *m, const hn_fold_rule *rule, bool aligned, plan *p,
                 hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  int64_t stride[HONE_MAX_RANK], dim[HONE_MAX_RANK], outputs, length;
  uint32_t axes = 0;
  memset(p, 0, sizeof *p);
  if (!hn_cuda_known(s, why)) return false;
  if (!hn_cuda_value(x->dtype) || !hn_cuda_value(y->dtype))
    return hn_refuse(why, "the input is %s", hone_dtype_name(x->dtype));
  if (x->dtype != y->dtype && !(hone_dtype_is_float(x->dtype) && hone_dtype_is_float(y->dtype)))
    return hn_refuse(why, "input and output differ in type");
  if (s->n_epilogue) return hn_refuse(why, "a reduction has no epilogue");
  if (rule->spatial)
    for (int32_t i = 2; i < x->rank; i++) axes |= 1u << i;
  else if (!hn_step_axes(s, &axes, why))
    return false;
  p->nothing = hone_desc_count(y) == 0;
  if (p->nothing) return true;
  if (hone_desc_count(x) == 0) return hn_refuse(why, "an empty input");
  memcpy(dim, x->dim, sizeof dim);
  pad_channels(x, y, axes, dim, p);
  const uint32_t all = x->rank ? (1u << x->rank) - 1u : 0;
  if (!hn_cuda_reduced_strides(x, y, axes, stride, why) ||
      !hn_cuda_walk(&p->args.kept, x->rank, dim, x->stride, stride, all & ~axes, &outputs, why) ||
      !hn_cuda_walk(&p->args.gone, x->rank, dim, x->stride, NULL, axes, &length, why))
    return false;
  p->args.count = (double)length;
  const int width = aligned ? (int)(16 / hone_dtype_size(x->dtype)) : 1;
  const hn_walk_args *kept = &p->args.kept, *gone = &p->args.gone;
  const int64_t kept_step = kept->x[kept->rank - 1], gone_step = gone->x[gone->rank - 1];
  /* Columns when neighbours in memory belong to different outputs. */
  p->columns = length == 1 || (kept_step == 1 && kept->dim[kept->rank - 1].by > 1 && gone_step != 1);
  p->width = 1;
  if (p->columns) {
    bool even = true; /* all distances between vectors are vectors */
    for (int32_t i = 0; i < gone->rank; i++) even = even && gone->x[i] % width == 0;
    if (even && hn_cuda_walk_vectors(&p->args.kept, width, true, &outputs)) p->width = width;
  } else {
    bool even = true;
    for (int32_t i = 0; i < kept->rank; i++) even = even && kept->x[i] % width == 0;
    if (even && hn_cuda_walk_vectors(&p->args.gone, width, false, &length)) p->width = width;
  }
  const int64_t processors = m->processors ? m->processors : 108;
  /* Threads for an output: as many as fill the device, each with a few vectors to add. */
  int64_t share = processors * 1024 / (outputs > 0 ? outputs : 1), most = length / 2;
  if (!p->columns && share < 32) share = 32; /* rows are read by warps */
  if (share > most) share = most;
  if (share < 1) share = 1;
  int64_t group = power_below(share);
  if (group > (p->columns ? 32 : THREADS)) group = p->columns ? 32 : THREADS;
  int64_t splits = share / group;
  if (splits > MOST_SPLITS) splits = MOST_SPLITS;
  if (splits < 4) splits = 1; /* a second kernel costs more */
  p->args.group = (i32)group, p->args.splits = (u32)splits;
  p->args.outputs = (u32)outputs, p->args.length = (u32)length;
  p->part = splits > 1 ? (size_t)(splits * outputs * (p->columns ? p->width : 1)) * 16 : 0;
  return true;
}

bool hn_cuda_fold_accepts(const hone_step *s, const hone_machine *m, const hn_fold_rule *rule,
                          hone_reason *why) {
  plan p;
  return make(s, m, rule, true, &p, why);
}

double hn_cuda_fold_cost(const hone_step *s, const hone_machine *m, const hn_fold_rule *rule) {
  (void)rule;
  return hn_cuda_seconds(m, s->cost.flops, m->peak_flops, hn_cuda_bytes(s), 0.7);
}

hone_status hn_cuda_fold_need(const hone_step *s, const hone_machine *m, const hn_fold_rule *rule,
                              hone_tactic_need *need, hone_error *error) {
  plan p, apart;
  hone_reason why = {""};
  if (!make(s, m, rule, true, &p, &why) || !make(s, m, rule, false, &apart, &why))
    return hn_not_described(s, &why, error);
  need->workspace_bytes = p.part > apart.part ? p.part : apart.part;
  return HONE_OK;
}

static void write_prefix(const hone_step *s, const hn_fold_rule *rule, const plan *p, hn_str *t) {
  const hone_dtype x = s->input[0].desc.dtype, y = s->output[0].desc.dtype;
  const bool integer = !rule->real && !rule->pair && (is_integer(x) || x == HONE_DTYPE_BOOL);
  const char *zero = integer && rule->integer_zero ? rule->integer_zero : rule->zero;
  if (integer && rule->integer_zero && !hone_dtype_is_signed_int(x) && strstr(zero, "HN_LEAST")) zero = "0";
  if (integer && rule->integer_zero && !hone_dtype_is_signed_int(x) && strstr(zero, "HN_MOST"))
    zero = "~(u64)0";
  hn_str_printf(t, "#define HN_TYPE %s\n#define HN_OUT %s\n", hone_dtype_name(x), hone_dtype_name(y));
  hn_str_printf(t, "#define HN_VALUE %s\n#define HN_RESULT %s\n#define HN_ACC %s\n", hn_cuda_value(x),
                hn_cuda_value(y), accumulator(x, rule));
  hn_str_printf(t, "#define HN_W %d\n#define HN_PART %d\n", p->width, p->columns ? p->width : 1);
  if (rule->power)
    hn_str_printf(t, "#define HN_P %lld.0\n",
                  (long long)hone_node_int(s->node, "p", (int64_t)hone_node_float(s->node, "p", 2)));
  if (rule->pair) hn_str_puts(t, "#define HN_EXP_SUM 1\n");
  hn_str_puts(t, "#define HN_LEAST ((i64)((u64)1 << 63))\n#define HN_MOST ((i64)(~(u64)0 >> 1))\n");
  hn_str_printf(t, "#define HN_ZERO %s\n", zero);
  hn_str_printf(t, "#define HN_ADD(a, v) %s\n", integer && rule->integer_add ? rule->integer_add : rule->add);
  hn_str_printf(t, "#define HN_MEET(a, b) %s\n", rule->meet);
  hn_str_printf(t, "#define HN_END(a, n) ((HN_RESULT)(%s))\n",
                integer && rule->integer_end ? rule->integer_end : rule->end);
}

hone_status hn_cuda_fold_run(const hone_step_run *r, const hn_fold_rule *rule, hone_error *error) {
  const hone_step *s = r->step;
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  plan p;
  hone_reason why = {""};
  if (!make(s, hn_cuda_machine(q), rule, (uintptr_t)r->in[0] % 16 == 0, &p, &why))
    return hn_not_described(s, &why, error);
  hone_status status = HONE_OK;
  if (p.nothing) return HONE_OK;
  if (p.clear) status = hn_cuda_zero(q, r->out[0], (size_t)hone_desc_bytes(&s->output[0].desc), error);
  p.args.x = r->in[0], p.args.y = r->out[0], p.args.part = r->workspace;
  hn_str text = {0};
  write_prefix(s, rule, &p, &text);
  if (!status && text.failed) status = hn_fail_memory(error, text.cap, "device text");
  hn_cuda_kernel kernel = {"fold", text.ptr, p.columns ? "hn_fold_columns" : "hn_fold_rows"};
  const int64_t each = THREADS / p.args.group;
  hn_cuda_shape shape = {
      .grid = {hn_cuda_blocks(p.args.outputs, each), p.args.splits, 1}, .threads = THREADS, .overlap = true};
  if (!status) status = hn_cuda_launch(q, &kernel, &shape, &p.args, sizeof p.args, error);
  if (!status && p.args.splits > 1) {
    kernel.entry = "hn_fold_finish";
    shape.grid[0] = hn_cuda_blocks((int64_t)p.args.outputs * (p.columns ? p.width : 1), THREADS);
    shape.grid[1] = 1;
    status = hn_cuda_launch(q, &kernel, &shape, &p.args, sizeof p.args, error);
  }
  hn_str_free(&text);
  return status;
}
