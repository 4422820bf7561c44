/* Attention steps as lowering makes them: inputs Q, K, V and up to three masks as views [batch..., rows,
 * columns] of whatever memory they lie in; masks broadcast by strides of 0. */
#include "backends/cpu/attention/attention_step.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/gemm_bf16/gemm_bf16.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"

enum { Q, K, V, MASK };

/* Masks that are bands ("mask_band": row r sees the keys from r + low to before r + high, empty where a mask
 * is none): what they hide is not even multiplied. Where it is hidden by a finite number ("mask_finite") that
 * is right only if the row sees something under all masks, which is known where all of them are bands. Minus
 * infinity stays what it is whatever is added, but not where a later mask puts a number in its place. */
static void take_bands(const hone_step *s, hn_attention *p) {
  size_t n = 0, m = 0;
  const int64_t *band = hone_node_ints(s->node, "mask_band", &n),
                *finite = hone_node_ints(s->node, "mask_finite", &m);
  const uint32_t masks = n == 2 * (size_t)p->n_masks && m == p->n_masks ? p->n_masks : 0;
  int64_t low = -p->rows, high = p->keys;
  bool all = true, taken[HN_ATTENTION_MASKS] = {0};
  for (uint32_t i = 0; i < masks; i++) all = all && band[2 * i] < band[2 * i + 1];
  bool stays = true; /* no mask behind this one puts a number in the place of minus infinity */
  for (uint32_t i = masks; i-- > 0;) {
    const int64_t from = band[2 * i], end = band[2 * i + 1];
    taken[i] = from < end && (all || (!finite[i] && stays));
    stays = stays && (taken[i] || p->mask[i].kind == HN_MASK_ADD || p->mask[i].value == -INFINITY);
    if (taken[i]) low = from > low ? from : low, high = end < high ? end : high;
  }
  if (high > 0 && low < high && p->rows - 1 + low < p->keys) { /* every row sees a key */
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->n_masks; i++)
      if (!taken[i]) p->mask[kept++] = p->mask[i];
    p->n_masks = kept;
  } else {
    low = -p->rows, high = p->keys;
  }
  p->ends = high<p->keys, p->begins = low> - p->rows;
  p->place = high - 1;
  p->window = high - 1 - low;
}

/* f32, or bf16 where operands are rounded to it. */
static bool is_taken(const hone_tensor_desc *d, int32_t parts, bool *narrow) {
  *narrow = d->dtype == HONE_DTYPE_BF16;
  return d->dtype == HONE_DTYPE_F32 || (parts == 1 && *narrow);
}

static bool take_mix(const hone_node *n, const char *name, hn_attention *p, int which, bool *there) {
  size_t count;
  const float *f = hone_node_floats(n, name, &count);
  const size_t heads = (size_t)p->heads;
  *there = f != NULL;
  if (!f) return true;
  if (count != heads * heads + heads) return false;
  memcpy(p->factor[which], f, heads * heads * sizeof *f);
  memcpy(p->sum[which], f + heads * heads, heads * sizeof *f);
  return true;
}

/* Heads that are mixed: "heads" of them, the innermost of the batches; "mix_before" and "mix_behind" Softmax:
 * [out][in], then what is added to each; "masks_before" the first. */
static bool take_mixes(const hone_step *s, hn_attention *p, hone_reason *why) {
  const int64_t heads = hone_node_int(s->node, "heads", 0);
  if (!heads) return true;
  if (p->parts) return hn_refuse(why, "heads are mixed");
  if (heads > HN_ATTENTION_HEADS) return hn_refuse(why, "%lld heads are mixed", (long long)heads);
  int64_t batches = 1;
  for (int32_t i = 0; i < p->n_batch; i++) batches *= p->batch[i];
  p->heads = heads;
  p->masks_before = (uint32_t)hone_node_int(s->node, "masks_before", 0);
  if (heads < 1 || batches % heads || p->masks_before > p->n_masks ||
      !take_mix(s->node, "mix_before", p, 0, &p->mix_before) ||
      !take_mix(s->node, "mix_behind", p, 1, &p->mix_behind))
    return hn_refuse(why, "not of the form that lowering makes");
  return true;
}

static bool describe(const hone_step *s, const hone_machine *m, int32_t parts, hn_attention *p,
                     hone_reason *why) {
  memset(p, 0, sizeof *p);
  p->parts = parts;
  if (parts && s->math < (parts > 1 ? HONE_MATH_FAST : HONE_MATH_BF16))
    return hn_refuse(why, "the plan does not allow operands in %d bf16 part%s", parts, parts > 1 ? "s" : "");
  p->isa = hn_isa_of(m->isa);
  if (s->n_inputs < MASK || s->n_inputs > MASK + HN_ATTENTION_MASKS || !s->node)
    return hn_refuse(why, "not of the form that lowering makes");
  if (s->n_epilogue) return hn_refuse(why, "attention has no epilogue");
  if (!hn_attention_has(p)) return hn_refuse(why, "no kernels for %s", hn_isa_name(p->isa));
  const hone_tensor_desc *q = &s->input[Q].desc, *k = &s->input[K].desc, *v = &s->input[V].desc,
                         *y = &s->output[0].desc;
  const int32_t n = q->rank - 2;
  if (n < 0 || k->rank != q->rank || v->rank != q->rank || y->rank != q->rank)
    return hn_refuse(why, "the operands differ in rank");
  if (!is_taken(q, parts, &p->narrow_q) || !is_taken(k, parts, &p->narrow_k) ||
      !is_taken(v, parts, &p->narrow_v) || !is_taken(y, parts, &p->narrow_y))
    return hn_refuse(why, parts == 1 ? "an operand is neither f32 nor bf16" : "an operand is not f32");
  p->rows = q->dim[n], p->depth = q->dim[n + 1], p->keys = k->dim[n], p->depth_v = v->dim[n + 1];
  if (k->dim[n + 1] != p->depth || v->dim[n] != p->keys || y->dim[n] != p->rows ||
      y->dim[n + 1] != p->depth_v)
    return hn_refuse(why, "the operands do not fit together");
  if (p->depth < 1 || p->keys < 1 || p->depth_v < 1) return hn_refuse(why, "an empty operand");
  if ((p->depth > 1 && q->stride[n + 1] != 1) ||
      (p->depth_v > 1 && (v->stride[n + 1] != 1 || y->stride[n + 1] != 1)))
    return hn_refuse(why, "columns are not neighbours");
  p->q_row = q->stride[n], p->v_row = v->stride[n], p->y_row = y->stride[n];
  p->k_row = k->stride[n], p->k_col = k->stride[n + 1];
  if (parts && p->depth > 1 && p->k_col != 1) return hn_refuse(why, "the keys lie transposed");
  if (parts && p->depth > 2048) return hn_refuse(why, "%lld values a query", (long long)p->depth);
  p->n_batch = n;
  for (int32_t i = 0; i < n; i++) {
    p->batch[i] = y->dim[i];
    if (q->dim[i] != y->dim[i] || k->dim[i] != y->dim[i] || v->dim[i] != y->dim[i])
      return hn_refuse(why, "the batches differ");
    p->q_batch[i] = q->stride[i], p->k_batch[i] = k->stride[i];
    p->v_batch[i] = v->stride[i], p->y_batch[i] = y->stride[i];
  }
  p->scale = hone_node_float(s->node, "scale", 1.0f);
  p->cap = hone_node_float(s->node, "cap", 0);
  p->nan_to_zero = hone_node_int(s->node, "nan_to_zero", 0) != 0;
  size_t n_kinds, n_values;
  const int64_t *kind = hone_node_ints(s->node, "mask_kind", &n_kinds);
  const float *value = hone_node_floats(s->node, "mask_value", &n_values);
  p->n_masks = s->n_inputs - MASK;
  if (n_kinds != p->n_masks || n_values != p->n_masks)
    return hn_refuse(why, "not of the form that lowering makes");
  for (uint32_t k0 = 0; k0 < p->n_masks; k0++) {
    const hone_tensor_desc *d = &s->input[MASK + k0].desc;
    hn_attention_mask *mask = &p->mask[k0];
    mask->kind = (hn_mask_kind)kind[k0];
    mask->value = value[k0];
    mask->input = k0;
    if (d->dtype != (mask->kind == HN_MASK_ADD ? HONE_DTYPE_F32 : HONE_DTYPE_BOOL))
      return hn_refuse(why, "mask %u is %s", k0, hone_dtype_name(d->dtype));
    if (d->rank != n + 2 || d->stride[n + 1] < 0 || d->stride[n + 1] > 1)
      return hn_refuse(why, "mask %u has another form", k0);
    for (int32_t i = 0; i < n; i++) mask->batch[i] = d->stride[i];
    mask->row = d->stride[n], mask->col = d->stride[n + 1];
  }
  if (!take_mixes(s, p, why)) return false;
  if (!parts && !p->heads) take_bands(s, p);
  if (!hn_attention_plan(p, m->threads, m->l1, m->l2))
    return hn_refuse(why, "%lld scores of %lld heads do not fit into L2", (long long)p->keys,
                     (long long)p->heads);
  if (p->narrow_y && p->block < p->keys)
    return hn_refuse(why, "the result is bf16, and %lld keys do not fit at once", (long long)p->keys);
  return true;
}

static double round_up(int64_t n, int64_t to) { return (double)hn_fill_up(n, to); }

bool hn_attention_accepts(const hone_step *s, const hone_machine *m, const hn_attention_config *config,
                          hone_reason *why) {
  hn_attention p;
  return describe(s, m, config->parts, &p, why);
}

double hn_attention_cost(const hone_step *s, const hone_machine *m, const hn_attention_config *config) {
  const int32_t parts = config->parts;
  hn_attention p;
  if (!describe(s, m, parts, &p, NULL)) return HN_REFUSED_SECONDS;
  const double scores = (double)p.batches * (double)p.rows * (double)p.keys;
  const int64_t pad = parts ? HN_BF16_STEP : 1;
  double macs = scores * (round_up(p.depth, pad) + round_up(p.depth_v, parts ? 16 : 1));
  /* AMX does 16 multiply-adds per one of f32, about half of them with operands this small. */
  double rate = parts ? 16.0 / (parts * (parts + 1)) : 0.85;
  const hn_bf16_ops *bf16 = parts ? hn_bf16_find(p.isa) : NULL;
  if (bf16 && !(bf16->x1_rate > 0)) rate = 0.85 * hn_bf16_rate(bf16);
  if (parts) macs *= round_up(p.keys, HN_BF16_STEP) / (double)p.keys;
  /* A vector of exponentials, their scaling, maximum and sum takes about 16 cycles, 22 where scores lie in
   * panels and are stored as two bf16 parts, 14 as one. A row is begun and ended once a block of keys (sums
   * across a vector, the result's scaling), and each task packs all keys and values for itself, a cycle a
   * value and part, a quarter where bf16 is all that is kept of it. Short sequences spend most of their time
   * there. */
  const int64_t blocks = hn_div_up(p.keys, p.block);
  const double vector = hn_gemm_find(p.isa)->vw; /* a cycle of a core: two multiply-adds of a vector */
  const double weight = (parts > 1 ? 22
                         : parts   ? 14
                                   : 16) +
                        (p.cap != 0 ? 14 : 0),
               packing = parts > 1 ? 2
                         : parts   ? 0.25
                                   : 1;
  /* A mix: a multiply-add for each head that goes into a score, and a score's way from row to row. */
  const double mixes = p.heads ? (p.mix_before + p.mix_behind) * ((double)p.heads / 2 / 0.6 + 3) : 0;
  const double packed = (double)(p.batches * p.chunks);
  const double cycles = scores * (weight + mixes) / vector +
                        80 * (double)p.batches * (double)p.rows * (double)blocks +
                        (p.direct ? 0 : packed * (double)(p.keys * (p.depth + p.depth_v)) * packing);
  /* Q, K and V come from products that may have divided their columns otherwise. */
  const double read = (double)p.batches * (double)(p.rows * p.depth + p.keys * (p.depth + p.depth_v));
  const double work = p.lane_cycles > 0 ? (double)p.batches * p.lane_cycles * 4 * vector
                                        : 2 * macs / rate + cycles * 4 * vector;
  return hn_step_seconds(m, work, s->cost.bytes, 1) + hn_handed_over_seconds(m, read * sizeof(float));
}

hone_status hn_attention_need(const hone_step *s, const hone_machine *m, const hn_attention_config *config,
                              hone_tactic_need *n, hone_error *error) {
  hn_attention p;
  hone_reason why;
  if (!describe(s, m, config->parts, &p, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = sizeof p;
  n->workspace_bytes = hn_attention_workspace(&p, m->threads) * sizeof(float);
  return HONE_OK;
}

hone_status hn_attention_prepack(const hone_step *s, const hone_machine *m, const hn_attention_config *config,
                                 void *blob, hone_error *error) {
  hone_reason why;
  if (!describe(s, m, config->parts, blob, &why)) return hn_not_described(s, &why, error);
  return HONE_OK;
}

void hn_attention_work(const hone_step *s, const hone_machine *m, const hn_attention_config *config,
                       hone_work *work) {
  (void)m;
  if (config->parts) hn_bf16_work(s->cost.macs, (uint32_t)config->parts, work);
}

hone_status hn_attention_run(const hone_step_run *r, const hn_attention_config *config, hone_error *error) {
  (void)config, (void)error;
  hn_attention_exec(r->blob, r->in[Q], r->in[K], r->in[V], r->in + MASK, r->out[0], r->workspace, r->parallel,
                    r->pool);
  return HONE_OK;
}
