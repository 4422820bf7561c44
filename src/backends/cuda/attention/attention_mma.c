/* FusedAttention as lowering makes it, perhaps with a QuantizeLinear behind it (its attributes y_scale,
 * y_zero), and of codes with a DequantizeLinear for each of Q, K and V (codes_scale, codes_zero): Q, K, V and
 * up to three masks as views [batch..., rows, columns] of whatever memory they lie in; masks broadcast by
 * distances of 0. f32 operands are rounded to tf32 where the plan allows it, else cut into two such parts:
 * three products, whose error is of f32's order. */
#include <string.h>

#include "backends/cuda/attention/attention_args.h"
#include "backends/cuda/attention/attention_cost.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/launch.h"
#include "backends/cuda/step/quantise.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/mem.h"

enum { Q, K, V, MASK };
enum { ADDED, KEEPS, DROPS }; /* kinds of masks */

typedef struct plan {
  hn_attention_args args; /* without addresses */
  hone_dtype type;
  bool split3;  /* f32 as three products */
  bool codes;   /* of 8 bits are made */
  bool coded;   /* Q, K and V are codes of 8 bits */
  bool cleared; /* weights of a row that are no numbers are 0 instead */
  uint32_t
      vectors; /* bytes that are copied together: rows of Q, K and V are multiples; 0: of elements alone */
  int64_t kind[HN_ATTENTION_MASK], batches;
  uint32_t depth, depth_v, warps, parts, keys, ring; /* depths rounded up; parts of the keys */
  size_t shared;
} plan;

static bool fits(int64_t v) { return v >= 0 && v < 0x7fffffff; }

static bool read_masks(const hone_step *s, plan *p, hone_reason *why) {
  size_t n_kinds, n_values;
  const int64_t *kind = hone_node_ints(s->node, "mask_kind", &n_kinds);
  const float *value = hone_node_floats(s->node, "mask_value", &n_values);
  const uint32_t masks = s->n_inputs - MASK;
  const int32_t n = s->input[Q].desc.rank - 2;
  if (n_kinds != masks || n_values != masks) return hn_refuse(why, "not of the form that lowering makes");
  for (uint32_t i = 0; i < masks; i++) {
    const hone_tensor_desc *d = &s->input[MASK + i].desc;
    const bool real = hn_cuda_type(d->dtype) != NULL;
    if (kind[i] == ADDED ? !real : d->dtype != HONE_DTYPE_BOOL)
      return hn_refuse(why, "mask %u is %s", i, hone_dtype_name(d->dtype));
    if (d->rank != n + 2) return hn_refuse(why, "mask %u has another form", i);
    p->kind[i] = kind[i];
    p->args.mask_value[i] = value[i];
    for (int32_t b = 0; b < n; b++) p->args.mask_batch[i][b] = d->stride[b];
    p->args.mask_row[i] = d->stride[n], p->args.mask_col[i] = d->stride[n + 1];
  }
  return true;
}

/* Shared memory: Q, and each part's ring of keys and values, in whose place results of parts meet. */
static size_t shared_of(const plan *p) {
  const size_t size = hone_dtype_size(p->type), chunk = 16 / size, rows = 16 * (size_t)p->warps;
  const size_t ring = size * (rows * (p->depth + chunk) +
                              (size_t)p->parts * p->ring * p->keys * (p->depth + p->depth_v + 2 * chunk));
  const size_t meet = p->parts > 1 ? p->parts * rows * (p->depth_v + 8 + 2) * sizeof(float) : 0;
  return ring > meet ? ring : meet;
}

/* Warps, parts, keys of a block and blocks in flight, as shared memory and the number of multiprocessors
 * allow. Where blocks do not fill the device, warps with the same rows divide the keys. */
static bool choose(plan *p, const hone_machine *m, hone_reason *why) {
  enum { MOST_PARTS = 8, PART_KEYS = 32 };
  const hn_attention_args *g = &p->args;
  const uint32_t processors = m->processors ? m->processors : 1;
  for (p->warps = 4; p->warps > 1; p->warps /= 2)
    if (p->batches * ((g->rows + 16 * p->warps - 1) / (16 * p->warps)) >= processors) break;
  p->parts = 1;
  while (p->warps == 1 && p->parts < MOST_PARTS && g->keys > PART_KEYS * p->parts &&
         p->batches * ((g->rows + 15) / 16) * p->parts < 4 * (int64_t)processors)
    p->parts *= 2;
  /* The sums of a row and its scores stay in registers. */
  p->keys = p->depth_v > 128 || hone_dtype_size(p->type) == 4 || p->parts > 1 ? PART_KEYS : 64;
  for (;; p->parts /= 2)
    for (p->ring = !p->coded && g->keys > p->keys * p->parts ? 2 : 1; p->ring; p->ring--) {
      p->shared = shared_of(p);
      if (p->shared <= m->shared_bytes) return true;
      if (p->ring == 1 && p->parts == 1) return hn_refuse(why, "%zu bytes of shared memory", p->shared);
    }
}

/* 16, 8 or 4, the most of which everything in `all` (or-ed together) is a multiple; else 0. */
static uint32_t copied_together(int64_t all) {
  return all % 16 == 0 ? 16 : all % 8 == 0 ? 8 : all % 4 == 0 ? 4 : 0;
}

static bool ordinary(float scale) { return scale > 0x1p-60f && scale < 0x1p60f; }

/* What the operands are, and what products take: codes less their zero points as f16, which holds them as
 * they are. */
static bool read_types(const hone_step *s, const hone_machine *m, plan *p, hone_reason *why) {
  size_t n_scales = 0, n_zeros = 0;
  const float *scale = hone_node_floats(s->node, "codes_scale", &n_scales);
  const int64_t *zero = hone_node_ints(s->node, "codes_zero", &n_zeros);
  const hone_dtype type = s->input[Q].desc.dtype;
  p->coded = n_scales > 0, p->type = p->coded ? HONE_DTYPE_F16 : type;
  if (s->input[K].desc.dtype != type || s->input[V].desc.dtype != type)
    return hn_refuse(why, "operands are not of one type");
  if (!p->coded)
    return hn_cuda_type(type) ? hn_cuda_tensor_cores(m, type, why)
                              : hn_refuse(why, "operands are not of a floating type");
  if ((type != HONE_DTYPE_U8 && type != HONE_DTYPE_I8) || n_scales != MASK || n_zeros != MASK)
    return hn_refuse(why, "not of the form that lowering makes");
  if (s->math < HONE_MATH_TF32) return hn_refuse(why, "the plan does not allow weights of 11 bits");
  if (s->input[Q].constant || s->input[K].constant || s->input[V].constant)
    return hn_refuse(why, "constant codes");
  p->args.flip = type == HONE_DTYPE_I8 ? 0x80808080u : 0;
  for (int i = 0; i < MASK; i++) {
    if (!ordinary(scale[i])) return hn_refuse(why, "a scale is not positive, or far from 1");
    p->args.zero[i] = (uint32_t)((zero[i] & 0xff) * 0x01010101) ^ p->args.flip;
  }
  p->args.scale = scale[Q] * scale[K];
  p->args.values_scale = scale[V];
  return hn_cuda_tensor_cores(m, p->type, why);
}

static bool describe(const hone_step *s, const hone_machine *m, plan *p, hone_reason *why) {
  memset(p, 0, sizeof *p);
  hn_attention_args *g = &p->args;
  if (s->n_inputs < MASK || s->n_inputs > MASK + HN_ATTENTION_MASK || !s->node)
    return hn_refuse(why, "not of the form that lowering makes");
  if (s->n_epilogue) return hn_refuse(why, "attention has no epilogue");
  if (!hn_cuda_known(s, why)) return false;
  const hone_tensor_desc *q = &s->input[Q].desc, *k = &s->input[K].desc, *v = &s->input[V].desc,
                         *y = &s->output[0].desc;
  const int32_t n = q->rank - 2;
  if (n < 0 || k->rank != q->rank || v->rank != q->rank || y->rank != q->rank)
    return hn_refuse(why, "the operands differ in rank");
  if (!read_types(s, m, p, why)) return false;
  const float y_scale = hone_node_float(s->node, "y_scale", 0);
  p->codes = y_scale != 0;
  if (p->codes
          ? !hn_cuda_quantise(y_scale, (int32_t)hone_node_int(s->node, "y_zero", 0), y->dtype, &g->codes, why)
          : !hn_cuda_type(y->dtype) && !hn_refuse(why, "the result is %s", hone_dtype_name(y->dtype)))
    return false;
  if (s->input[Q].constant && p->type != HONE_DTYPE_F32) return hn_refuse(why, "constant queries are f32");
  if (p->type == HONE_DTYPE_F32 && s->math < HONE_MATH_F32)
    return hn_refuse(why, "the plan allows f32 products alone");
  p->split3 = p->type == HONE_DTYPE_F32 && s->math < HONE_MATH_TF32;
  const int64_t rows = q->dim[n], depth = q->dim[n + 1], keys = k->dim[n], depth_v = v->dim[n + 1];
  if (k->dim[n + 1] != depth || v->dim[n] != keys || y->dim[n] != rows || y->dim[n + 1] != depth_v)
    return hn_refuse(why, "the operands do not fit together");
  if (rows < 1 || depth < 1 || keys < 1 || depth_v < 1 || !fits(rows) || !fits(keys))
    return hn_refuse(why, "an operand is empty or too large");
  if (depth > 256 || depth_v > 256) return hn_refuse(why, "more than 256 values a query");
  if ((depth > 1 && q->stride[n + 1] != 1) ||
      (depth_v > 1 && (v->stride[n + 1] != 1 || y->stride[n + 1] != 1)))
    return hn_refuse(why, "columns are not neighbours");
  if (n > HN_ATTENTION_BATCH) return hn_refuse(why, "more than %d batch dimensions", HN_ATTENTION_BATCH);
  int64_t steps = depth | depth_v | q->stride[n] | k->stride[n] | v->stride[n];
  g->n_batch = (uint32_t)n;
  p->batches = 1;
  for (int32_t i = 0; i < n; i++) {
    if (q->dim[i] != y->dim[i] || k->dim[i] != y->dim[i] || v->dim[i] != y->dim[i] || !fits(y->dim[i]))
      return hn_refuse(why, "the batches differ");
    if (y->dim[i] == 0) return hn_refuse(why, "an empty batch");
    g->batch[i] = hn_cuda_divisor((uint32_t)y->dim[i]);
    g->q_batch[i] = q->stride[i], g->k_batch[i] = k->stride[i];
    g->v_batch[i] = v->stride[i], g->y_batch[i] = y->stride[i];
    steps |= q->stride[i] | k->stride[i] | v->stride[i];
    p->batches *= y->dim[i];
  }
  p->vectors = k->stride[n + 1] == 1 ? copied_together(steps * (int64_t)hone_dtype_size(q->dtype)) : 0;
  g->rows = (uint32_t)rows, g->keys = (uint32_t)keys, g->depth = (uint32_t)depth,
  g->depth_v = (uint32_t)depth_v;
  g->q_row = q->stride[n], g->k_row = k->stride[n], g->k_col = k->stride[n + 1];
  g->v_row = v->stride[n], g->y_row = y->stride[n];
  const float scale = hone_node_float(s->node, "scale", 1.0f);
  g->scale = p->coded ? g->scale * scale : scale;
  p->cleared = hone_node_int(s->node, "nan_to_zero", 0) != 0;
  p->depth = (uint32_t)hn_round_up((size_t)depth, 16),
  p->depth_v = (uint32_t)hn_round_up((size_t)depth_v, 16);
  if (!read_masks(s, p, why) || !choose(p, m, why)) return false;
  const int64_t row_tiles = hn_div_up(g->rows, 16 * p->warps);
  g->row_tiles = hn_cuda_divisor((uint32_t)row_tiles);
  if (!fits(p->batches * row_tiles)) return hn_refuse(why, "more than 2^31 blocks");
  return true;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  plan p;
  return describe(s, m, &p, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  plan p;
  if (!describe(s, m, &p, NULL)) return HN_REFUSED_SECONDS;
  const double flops = 2.0 * (double)p.batches * p.args.rows * p.args.keys * (p.depth + p.depth_v);
  return hn_cuda_attention_seconds(s, m, flops, p.type, p.split3) + 3e-6;
}

/* Blocks that share a multiprocessor: without a bound on registers fewer would fit. Long rows need more. */
static uint32_t resident(const plan *p, const hone_machine *m) {
  const uint32_t by_registers =
      p->depth <= 64 && p->depth_v <= 64 && p->type != HONE_DTYPE_F32 ? 512 / (32 * p->warps * p->parts) : 1;
  const uint32_t by_shared = (uint32_t)(m->shared_bytes / (p->shared + 1024));
  const uint32_t n = by_shared < by_registers ? by_shared : by_registers;
  return n < 1 ? 1 : n > 16 ? 16 : n;
}

/* Whether neighbours in the result lie at an even place. */
static bool pairs(const hone_step *s, const plan *p, const void *y) {
  const hn_attention_args *g = &p->args;
  int64_t all = g->y_row | g->depth_v;
  for (uint32_t i = 0; i < g->n_batch; i++) all |= g->y_batch[i];
  return all % 2 == 0 && (uintptr_t)y % (2 * hone_dtype_size(s->output[0].desc.dtype)) == 0;
}

/* Each mask as two functions: its value, and a score with it. Values that do not hang on the row are read
 * ahead of the scores, once for all of a thread's rows. */
static void write_masks(const hone_step *s, const plan *p, hn_str *t) {
  const uint32_t masks = s->n_inputs - MASK;
  static const char *const use[] = {"x + p->mask_value[%u] * m", "m != 0 ? x : p->mask_value[%u]",
                                    "m != 0 ? p->mask_value[%u] : x"};
  hn_str_printf(t, "#define HN_MASKS %u\n#include \"prelude.cuh\"\n#include \"attention_args.h\"\n", masks);
  for (uint32_t i = 0; i < masks; i++) {
    const hone_dtype d = s->input[MASK + i].desc.dtype;
    hn_str_printf(t,
                  "HN_FN float hn_mask_value%u(const hn_attention_args *p, i64 at, u32 row, u32 key) {\n"
                  "  i64 i = at",
                  i);
    if (p->args.mask_row[i]) hn_str_printf(t, " + (i64)row * p->mask_row[%u]", i);
    if (p->args.mask_col[i] == 1)
      hn_str_puts(t, " + key");
    else if (p->args.mask_col[i])
      hn_str_printf(t, " + (i64)key * p->mask_col[%u]", i);
    hn_str_puts(t, ";\n  (void)row, (void)key;\n  return ");
    if (p->kind[i] == ADDED)
      hn_str_printf(t, "hn_load_%s(p->mask[%u], i)", hn_cuda_type(d), i);
    else
      hn_str_printf(t, "(float)((const u8 *)p->mask[%u])[i]", i);
    hn_str_printf(t, ";\n}\nHN_FN float hn_mask%u(const hn_attention_args *p, float x, float m) {\n  return ",
                  i);
    hn_str_printf(t, use[p->kind[i]], i);
    hn_str_puts(t, ";\n}\n");
  }
  hn_str_puts(t, "#define HN_READ_MASKS(ahead, key)");
  for (uint32_t i = 0; i < masks; i++)
    if (!p->args.mask_row[i])
      hn_str_printf(t, " (ahead)[%u] = hn_mask_value%u(p, m_at[%u], 0, key);", i, i, i);
  hn_str_puts(t, "\n#define HN_MASKED(x, row, key, ahead) ");
  for (uint32_t i = masks; i-- > 0;) hn_str_printf(t, "hn_mask%u(p, ", i);
  hn_str_puts(t, "x");
  for (uint32_t i = 0; i < masks; i++)
    hn_str_printf(t, p->args.mask_row[i] ? ", hn_mask_value%u(p, m_at[%u], row, key))" : ", (ahead)[%u])", i,
                  i);
  hn_str_putc(t, '\n');
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  const hone_step *s = r->step;
  plan p;
  hone_reason why;
  if (!describe(s, hn_cuda_machine(q), &p, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "attention_mma: %s", why.text);
  p.args.q = r->in[Q], p.args.k = r->in[K], p.args.v = r->in[V], p.args.y = r->out[0];
  for (uint32_t i = MASK; i < s->n_inputs; i++) p.args.mask[i - MASK] = r->in[i];
  const uint32_t aligned =
      copied_together((int64_t)((uintptr_t)r->in[Q] | (uintptr_t)r->in[K] | (uintptr_t)r->in[V]));
  if (aligned < p.vectors) p.vectors = aligned;
  hn_str text = {0};
  if (p.vectors) hn_str_printf(&text, "#define HN_VECTORS %u\n", p.vectors);
  hn_str_printf(&text,
                "#define HN_T %s\n#define DEPTH %u\n#define DEPTH_V %u\n#define WARPS %u\n#define PARTS "
                "%u\n#define KEYS %u\n"
                "#define RING %u\n#define BLOCKS %u\n#define HN_Y %s\n%s%s%s%s%s%s",
                hn_cuda_type(p.type), p.depth, p.depth_v, p.warps, p.parts, p.keys, p.ring,
                resident(&p, hn_cuda_machine(q)), hone_dtype_name(s->output[0].desc.dtype),
                p.coded ? "#define HN_CODES_IN 1\n" : "", p.codes ? "#define HN_CODES_OUT 1\n" : "",
                p.cleared ? "#define HN_NAN_TO_ZERO 1\n" : "", p.split3 ? "#define HN_SPLIT3 1\n" : "",
                pairs(s, &p, r->out[0]) ? "#define HN_PAIRS 1\n" : "",
                p.type != HONE_DTYPE_F32 ? "#define HN_FAST_MATH 1\n" : "");
  write_masks(s, &p, &text);
  const hn_cuda_kernel k = {"attention_mma", text.ptr, "attention_mma"};
  const hn_cuda_shape shape = {.grid = {(uint32_t)p.batches * p.args.row_tiles.by, 1, 1},
                               .threads = 32 * p.warps * p.parts,
                               .shared = (uint32_t)p.shared,
                               .overlap = true};
  hone_status st = text.failed ? hn_fail_memory(error, text.cap, "device text")
                               : hn_cuda_launch(q, &k, &shape, &p.args, sizeof p.args, error);
  hn_str_free(&text);
  return st;
}

static void work(const hone_step *s, const hone_machine *m, hone_work *w) {
  (void)m;
  hn_cuda_tf32_work(s, w);
}

HN_TACTIC(cuda, attention_mma, "FusedAttention", 6, .accepts = accepts, .cost = cost, .run = run,
          .work = work);
