#include "backends/cpu/product/bf16_step.h"

#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "optimize/step/conv_attr.h"

/* ---------------------------------------------------------------- reading steps */

static const hn_bf16_ops *ops_of(const hn_bf16_step *d) {
  return d->f16 ? hn_f16_find(d->isa) : hn_bf16_find(d->isa);
}

/* Whether the plan allows that arithmetic. */
static bool is_licensed(const hone_step *s, hn_bf16_form form, hone_reason *why) {
  switch (form) {
  case HN_BF16_SPLIT:
    return s->math >= HONE_MATH_FAST || hn_refuse(why, "operands cut to two bf16 parts take level 3");
  case HN_BF16_TRIPLE:
    return s->math >= HONE_MATH_F32 || hn_refuse(why, "the step wants f32 products of its own formula");
  case HN_BF16_F16: return s->math == HONE_MATH_TF32 || hn_refuse(why, "operands in f16 take precision fp16");
  default: return s->math >= HONE_MATH_BF16 || hn_refuse(why, "the plan does not allow operands in bf16");
  }
}

/* The type of 16 bits in which the input, the output and a tensor of the epilogue may lie. */
static hone_dtype narrow_of(hn_bf16_form form) {
  static const hone_dtype of[] = {[HN_BF16_ROUNDED] = HONE_DTYPE_BF16,
                                  [HN_BF16_SPLIT] = HONE_DTYPE_F32,
                                  [HN_BF16_TRIPLE] = HONE_DTYPE_F32,
                                  [HN_BF16_F16] = HONE_DTYPE_F16};
  return of[form];
}

static int64_t parts_of(hn_bf16_form form) {
  return form == HN_BF16_SPLIT ? 2 : form == HN_BF16_TRIPLE ? 3 : 1;
}

/* What comes before the operator is looked at: licence, tier, types, constant weights. */
static const hn_bf16_ops *begin(const hone_step *s, const hone_machine *m, hn_bf16_form form, hn_bf16_step *d,
                                hone_reason *why) {
  memset(d, 0, sizeof *d);
  d->isa = hn_isa_of(m->isa);
  d->alpha = d->bias_scale = 1;
  d->conv.parts = parts_of(form);
  d->f16 = form == HN_BF16_F16;
  if (!is_licensed(s, form, why)) return NULL;
  const hn_bf16_ops *o = ops_of(d);
  if (!o || d->conv.parts > o->parts) {
    static const char *const names[] = {"bf16", "split bf16", "split bf16", "f16"};
    hn_refuse(why, "no %s kernel for %s", names[form], hn_isa_name(d->isa));
    return NULL;
  }
  const hone_dtype narrow = narrow_of(form);
  if (!hn_step_is_float(s, narrow, why)) return NULL;
  for (uint32_t i = 1; i < s->n_anchor_inputs; i++)
    if (s->input[i].desc.dtype == narrow && narrow != HONE_DTYPE_F32) {
      hn_refuse(why, "input %u is %s, not f32", i, hone_dtype_name(narrow));
      return NULL;
    }
  d->conv.narrow_in = s->input[0].desc.dtype != HONE_DTYPE_F32;
  d->conv.narrow_out = s->output[0].desc.dtype != HONE_DTYPE_F32;
  if (!s->input[1].constant) {
    hn_refuse(why, "weights are not constant");
    return NULL;
  }
  return o;
}

/* Plans the product and lays out the blob. */
static bool finish(const hone_machine *m, const hn_bf16_ops *o, hn_bf16_step *d, bool bias,
                   hone_reason *why) {
  const char *reason = "";
  if (!hn_bf16_plan(&d->conv, o, m->threads, m->l1, m->l2, &reason)) return hn_refuse(why, "%s", reason);
  size_t at = hn_round_up(sizeof *d, 64);
  d->steps_at = (int64_t)at;
  at = hn_round_up(at + (size_t)d->conv.steps * sizeof(int32_t), 64);
  d->bias_at = bias ? (int64_t)at : 0;
  if (bias) at = hn_round_up(at + (size_t)d->conv.cout * 4, 64);
  d->weights_at = (int64_t)at;
  d->bytes = (int64_t)(at + hn_bf16_weights(&d->conv) * (size_t)d->conv.groups * 2);
  return true;
}

/* Groups of few channels fill neither the steps of K nor a panel's columns. Several of them are one product
 * whose weights are 0 where a column's group has no channel, as long as that is faster. Not in f32: what
 * overflows in a group would be NaN in its neighbours, too. */
static void join_groups(const hone_machine *m, const hn_bf16_ops *o, hn_bf16_step *d) {
  const char *reason;
  hn_bf16_conv best = d->conv;
  double least = hn_bf16_plan(&best, o, m->threads, m->l1, m->l2, &reason) ? hn_bf16_seconds(&best, o, m) : 0;
  const hn_bf16_conv one = d->conv;
  for (int64_t join = 2; join <= one.groups && join * one.cin <= 2 * HN_BF16_STEP; join++) {
    if (one.groups % join) continue;
    hn_bf16_conv next = one;
    hn_bf16_join(&next, join);
    const hn_bf16_conv problem = next;
    if (!hn_bf16_plan(&next, o, m->threads, m->l1, m->l2, &reason)) continue;
    const double seconds = hn_bf16_seconds(&next, o, m);
    if (least == 0 || seconds < least) least = seconds, d->conv = problem;
  }
}

bool hn_bf16_describe_conv(const hone_step *s, const hone_machine *m, hn_bf16_form form, hn_bf16_step *d,
                           hone_reason *why) {
  hn_conv_attr a;
  const hn_bf16_ops *o = begin(s, m, form, d, why);
  if (!o || !hn_conv_attr_of(s, &a, why) || !hn_epilogue_takes(s, d->isa, false, narrow_of(form), why))
    return false;
  hn_bf16_conv *c = &d->conv;
  c->batch = a.x.batch, c->groups = a.groups, c->cin = a.cin, c->cout = a.cout;
  c->in_pitch = a.x.view.pixel, c->in_batch = a.x.view.batch, c->view = a.y.view;
  for (int i = 0; i < 3; i++) {
    c->in[i] = a.x.size[i], c->out[i] = a.y.size[i];
    c->kernel[i] = a.kernel[i], c->stride[i] = a.stride[i], c->dilation[i] = a.dilation[i],
    c->pad[i] = a.pad[i];
  }
  if (hn_step_has(s, 2) && s->n_anchor_inputs > 2) d->bias_input = 2;
  if (a.groups > 1 && a.cin > 1 && parts_of(form) == 1) join_groups(m, o, d);
  return finish(m, o, d, false, why);
}

/* m x k rows at `row` floats from each other, times k x n. */
static void matrix(hn_bf16_step *d, int64_t m, int64_t n, int64_t k, int64_t row) {
  hn_bf16_conv *c = &d->conv;
  d->matrix = 1;
  c->batch = c->groups = 1, c->cin = k, c->cout = n, c->in_pitch = row, c->in_batch = m * row;
  c->view = (hn_view){m * n, m * n, m * n, n};
  for (int i = 0; i < 3; i++) c->in[i] = c->out[i] = c->kernel[i] = c->stride[i] = c->dilation[i] = 1;
  c->in[2] = c->out[2] = m;
}

/* C of a Gemm: a constant row goes into the blob (times beta), another row is a bias, a full C a residual. */
static bool describe_c(const hone_step *s, hn_bf16_step *d, bool *bias, hone_reason *why) {
  const float beta = hone_node_float(s->node, "beta", 1.0f);
  *bias = false;
  if (s->n_anchor_inputs < 3 || !hn_step_has(s, 2) || beta == 0) return true;
  const hone_tensor_desc *c = &s->input[2].desc;
  const int64_t count = hone_desc_count(c), rows = c->rank > 1 ? c->dim[c->rank - 2] : 1;
  if (c->layout != HONE_LAYOUT_ROW_MAJOR || c->rank > 2) return hn_refuse(why, "C is not row-major");
  if (rows == 1 && (count == d->conv.cout || count == 1) && s->input[2].constant) {
    *bias = true;
    d->bias_scale = beta;
    return true;
  }
  if (beta != 1) return hn_refuse(why, "beta is %g and C is no constant row", (double)beta);
  if (rows == 1 && count == d->conv.cout) {
    d->bias_input = 2;
    return true;
  }
  if (count != d->conv.out[2] * d->conv.cout || rows != d->conv.out[2])
    return hn_refuse(why, "C broadcasts along rows");
  if (s->n_epilogue) return hn_refuse(why, "a full C together with an epilogue");
  d->residual_input = 2;
  return true;
}

bool hn_bf16_describe_gemm(const hone_step *s, const hone_machine *m, hn_bf16_form form, hn_bf16_step *d,
                           hone_reason *why) {
  const hn_bf16_ops *o = begin(s, m, form, d, why);
  if (!o) return false;
  const hone_tensor_desc *a = &s->input[0].desc, *b = &s->input[1].desc;
  if (a->rank != 2 || b->rank != 2 || a->layout != HONE_LAYOUT_ROW_MAJOR ||
      b->layout != HONE_LAYOUT_ROW_MAJOR || s->output[0].desc.layout != HONE_LAYOUT_ROW_MAJOR)
    return hn_refuse(why, "operands are not row-major matrices");
  if (hone_node_int(s->node, "transA", 0)) return hn_refuse(why, "A is transposed");
  const bool tb = hone_node_int(s->node, "transB", 0) != 0;
  const int64_t k = a->dim[1], n = b->dim[!tb];
  if (b->dim[tb] != k) return hn_refuse(why, "inner dimensions differ");
  matrix(d, a->dim[0], n, k, k);
  d->w_row = tb ? 1 : n, d->w_column = tb ? k : 1;
  d->alpha = hone_node_float(s->node, "alpha", 1.0f);
  bool bias;
  return hn_epilogue_takes(s, d->isa, true, narrow_of(form), why) && describe_c(s, d, &bias, why) &&
         finish(m, o, d, bias, why);
}

bool hn_bf16_describe_matmul(const hone_step *s, const hone_machine *m, hn_bf16_form form, hn_bf16_step *d,
                             hone_reason *why) {
  const hn_bf16_ops *o = begin(s, m, form, d, why);
  if (!o) return false;
  const hone_tensor_desc *a = &s->input[0].desc, *b = &s->input[1].desc;
  if (a->layout != HONE_LAYOUT_ROW_MAJOR || b->layout != HONE_LAYOUT_ROW_MAJOR ||
      s->output[0].desc.layout != HONE_LAYOUT_ROW_MAJOR)
    return hn_refuse(why, "operands are not row-major");
  if (a->rank < 2 || b->rank < 2) return hn_refuse(why, "an operand is a vector");
  const int64_t k = b->dim[b->rank - 2], n = b->dim[b->rank - 1];
  if (hone_desc_count(b) != k * n) return hn_refuse(why, "a batch of weights");
  if (a->dim[a->rank - 1] != k || k == 0) return hn_refuse(why, "inner dimensions differ, or are 0");
  /* One B for all: the rows of all matrices of A are rows of one product. */
  matrix(d, hone_desc_count(a) / k, n, k, k);
  d->w_row = n, d->w_column = 1;
  return hn_epilogue_takes(s, d->isa, true, narrow_of(form), why) && finish(m, o, d, false, why);
}

/* ---------------------------------------------------------------- the tactic's functions */

static bool describe(const hone_step *s, const hone_machine *m, const hn_bf16_step_config *config,
                     hn_bf16_step *d, hone_reason *why) {
  return config->describe(s, m, config->form, d, why);
}

static double cost_of(const hn_bf16_step *d, const hone_step *s, const hone_machine *m) {
  return hn_bf16_seconds(&d->conv, ops_of(d), m) + hn_epilogue_seconds(s, m, true);
}

static void need_of(const hn_bf16_step *d, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s;
  n->blob_bytes = (size_t)d->bytes;
  n->bytewise = 1u << 1;
  n->packed = 1u << 1 | (d->bias_at ? 1u << 2 : 0);
  n->workspace_bytes = hn_bf16_workspace(&d->conv, m->threads);
}

size_t hn_bf16_step_shared(const hone_step *s, const hone_machine *m, const hn_bf16_step_config *config,
                           uint64_t *key) {
  hn_bf16_step d;
  if (!config->describe(s, m, config->form, &d, NULL)) return 0;
  const int64_t order[] = {d.conv.steps, d.conv.c_steps, d.conv.fold, d.conv.groups};
  *key = hn_hash(order, sizeof order, 0);
  return (size_t)d.weights_at;
}

/* Where the values of each step lie in B. */
static void places(const hn_bf16_step *d, int64_t *at) {
  if (!d->matrix) {
    hn_bf16_places(&d->conv, at);
    return;
  }
  for (int64_t k = 0; k < d->conv.steps * HN_BF16_STEP; k++) at[k] = k < d->conv.cin ? k * d->w_row : -1;
}

static hone_status fill(hn_bf16_step *d, const hone_step *s, void *blob, hone_error *error) {
  const hn_bf16_conv *c = &d->conv;
  const hn_bf16_ops *o = ops_of(d);
  unsigned char *base = blob;
  memcpy(base, d, sizeof *d);
  hn_bf16_steps(c, (int32_t *)(void *)(base + d->steps_at));
  if (d->bias_at) {
    float *bias = (float *)(void *)(base + d->bias_at);
    const float *from = s->input[2].constant;
    const bool one = hone_desc_count(&s->input[2].desc) == 1;
    for (int64_t i = 0; i < c->cout; i++) bias[i] = from[one ? 0 : i] * d->bias_scale;
  }
  if (s->own_only) return HONE_OK;
  const int64_t column = d->matrix ? d->w_column : c->cin * c->kernel[0] * c->kernel[1] * c->kernel[2],
                count = c->cout * column;
  const bool joined = c->joined > 1;
  const size_t bytes = (size_t)c->steps * HN_BF16_STEP * sizeof(int64_t),
               spread = joined ? (size_t)count * sizeof(float) : 0;
  int64_t *at = hn_malloc(bytes + spread);
  if (!at) return hn_fail_memory(error, bytes + spread, "packing weights");
  places(d, at);
  float *zeroed = (float *)(void *)(at + c->steps * HN_BF16_STEP);
  uint16_t *to = (uint16_t *)(void *)(base + d->weights_at);
  for (int64_t g = 0; g < c->groups; g++) {
    const float *w = (const float *)s->input[1].constant + g * count / (joined ? c->joined : 1);
    if (joined) hn_bf16_spread(c, w, zeroed);
    hn_bf16_pack(o, joined ? zeroed : w, at, column, (size_t)c->steps, (size_t)c->cout, 0, (size_t)c->cout,
                 d->alpha, (uint32_t)c->parts, to + (size_t)g * hn_bf16_weights(c));
  }
  hn_free(at);
  return HONE_OK;
}

HN_FAMILY_DESCRIBED(hn_bf16_step, hn_bf16_step, fill)

void hn_bf16_step_work(const hone_step *s, const hone_machine *m, const hn_bf16_step_config *config,
                       hone_work *work) {
  (void)m;
  if (config->form == HN_BF16_F16)
    work->arithmetic = HONE_ARITHMETIC_F16;
  else
    hn_bf16_work(s->cost.macs, (uint32_t)parts_of(config->form), work);
}

hone_status hn_bf16_step_run(const hone_step_run *r, const hn_bf16_step_config *config, hone_error *error) {
  (void)config, (void)error;
  const hn_bf16_step *d = r->blob;
  const unsigned char *base = r->blob;
  const float *bias = d->bias_at      ? (const float *)(const void *)(base + d->bias_at)
                      : d->bias_input ? r->in[d->bias_input]
                                      : NULL;
  hn_epilogue e;
  hn_epilogue_bind(r->step, d->isa, d->matrix != 0, bias, r->in, &e);
  if (d->residual_input) { /* accepted only without an epilogue */
    e.flags |= HN_EPI_RESIDUAL;
    e.residual = r->in[d->residual_input];
    e.residual_view = d->conv.view;
  }
  hn_bf16_args a = {.conv = &d->conv,
                    .ops = ops_of(d),
                    .step = (const int32_t *)(const void *)(base + d->steps_at),
                    .x = r->in[0],
                    .w = hn_shared_at(r, d->weights_at),
                    .y = r->out[0],
                    .epilogue = &e,
                    .workspace = r->workspace,
                    .threads = r->threads};
  hn_bf16_exec(&a, r->parallel, r->pool);
  return HONE_OK;
}
