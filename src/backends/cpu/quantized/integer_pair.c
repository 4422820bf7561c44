/* MatMulInteger, MatMulIntegerToFloat and MatMulIntegerToCodes of two matrices that the run computes, as
 * attention has them: stacks of products of codes, summed in i32, on the kernels of QLinearMatMul. Each task
 * brings its B into their order. Of B's zero point what an i8 cannot hold is an offset of its codes
 * (gemm_int8.h). */
#include "backends/cpu/quantized/sums_step.h"

#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/step/step.h"
#include "base/fault.h"
#include "base/integers.h"

typedef struct pair {
  hn_int8_conv part, rest; /* of the rows of one task, and of a matrix's last one */
  hn_isa isa;
  int64_t matrices, m, n, k;
  int64_t one_b; /* all of A's matrices meet the same B */
  int64_t parts; /* tasks of a matrix */
  int64_t coded;
  /* in the workspace: the output's zero point, and behind it of each thread */
  int64_t sums_at, bias_at, offset_at, scale_at, scratch_at, thread_bytes;
} pair;

enum { HEAD_BYTES = 64 };

static const hone_tensor_desc *desc_of(const hone_step *s, uint32_t role) {
  return &s->input[hn_sums_at(s, role)].desc;
}

static bool is_8bit(hone_dtype d) { return d == HONE_DTYPE_U8 || d == HONE_DTYPE_I8; }

static bool has(const hone_step *s, uint32_t role) {
  return s->n_anchor_inputs > hn_sums_at(s, role) && hn_step_has(s, hn_sums_at(s, role));
}

/* One value of the type of what it belongs to. */
static bool zero_fits(const hone_step *s, uint32_t i, hone_dtype type, hone_reason *why) {
  if (!has(s, i) || (desc_of(s, i)->dtype == type && hone_desc_count(desc_of(s, i)) == 1)) return true;
  return hn_refuse(why, "a zero point is not one value of its codes' type");
}

static bool one_f32(const hone_tensor_desc *d) {
  return d->dtype == HONE_DTYPE_F32 && hone_desc_count(d) == 1;
}

static bool operands_fit(const hone_step *s, pair *p, hone_reason *why) {
  const hone_tensor_desc *a = desc_of(s, HN_SUMS_X), *b = desc_of(s, HN_SUMS_W), *y = &s->output[0].desc;
  if (!is_8bit(a->dtype) || !is_8bit(b->dtype)) return hn_refuse(why, "an operand is no codes of 8 bits");
  if (!hn_step_plain(a) || !hn_step_plain(b) || !hn_step_plain(y))
    return hn_refuse(why, "operands are not row-major");
  if (a->rank < 2 || b->rank < 2 || y->rank < 2) return hn_refuse(why, "an operand is a vector");
  if (hone_node_int(s->node, "transA", 0) || hone_node_int(s->node, "transB", 0))
    return hn_refuse(why, "an operand is transposed");
  p->m = a->dim[a->rank - 2], p->k = a->dim[a->rank - 1], p->n = b->dim[b->rank - 1];
  if (b->dim[b->rank - 2] != p->k) return hn_refuse(why, "inner dimensions differ");
  if (p->m < 1 || p->n < 1 || p->k < 1 || hone_desc_count(y) < 1) return hn_refuse(why, "an empty tensor");
  p->matrices = hone_desc_count(y) / (p->m * p->n);
  const int64_t bs = hone_desc_count(b) / (p->k * p->n);
  if (hone_desc_count(a) != p->matrices * p->m * p->k || (bs != p->matrices && bs != 1))
    return hn_refuse(why, "one matrix of a stack meets several");
  p->one_b = bs == 1;
  return true;
}

/* Where B's codes are i8 around 0 there is nothing to add behind the product. */
static bool plain_b(const hone_step *s) {
  const hone_step_tensor *z = has(s, HN_SUMS_W_ZERO) ? &s->input[hn_sums_at(s, HN_SUMS_W_ZERO)] : NULL;
  const bool is_u8 = desc_of(s, HN_SUMS_W)->dtype == HONE_DTYPE_U8;
  return z ? z->constant && *(const uint8_t *)z->constant == (is_u8 ? 128 : 0) : !is_u8;
}

static bool plan_rows(const hone_step *s, const hone_machine *m, const pair *p, int64_t rows, hn_int8_conv *c,
                      hone_reason *why) {
  const hn_int8_ops *o = hn_int8_find(p->isa);
  const char *reason = "";
  memset(c, 0, sizeof *c);
  c->batch = c->groups = 1, c->cin = c->in_pitch = p->k, c->cout = p->n;
  c->out_pitch = p->n * (p->coded ? 1 : (int64_t)sizeof(float));
  c->in_bytes = rows * p->k;
  for (int i = 0; i < 3; i++) c->in[i] = c->out[i] = c->kernel[i] = c->stride[i] = c->dilation[i] = 1;
  c->in[2] = c->out[2] = rows;
  c->wide = 1, c->whole = hn_sums_whole(s), c->coded = p->coded,
  c->flip = desc_of(s, HN_SUMS_X)->dtype == HONE_DTYPE_I8;
  c->offsets = !plain_b(s);
  if (!hn_int8_plan(c, o, 1, m->l2, &reason)) return hn_refuse(why, "%s", reason);
  c->listed = 0; /* B is there in the run alone: too late to look at it */
  return true;
}

static bool describe(const hone_step *s, const hone_machine *m, pair *p, hone_reason *why) {
  const hone_tensor_desc *y = &s->output[0].desc;
  memset(p, 0, sizeof *p);
  p->isa = hn_isa_of(m->isa);
  p->coded = s->n_anchor_inputs > HN_SUMS_Y_SCALE;
  if (!operands_fit(s, p, why) || !zero_fits(s, HN_SUMS_X_ZERO, desc_of(s, HN_SUMS_X)->dtype, why) ||
      !zero_fits(s, HN_SUMS_W_ZERO, desc_of(s, HN_SUMS_W)->dtype, why))
    return false;
  if (s->input[hn_sums_at(s, HN_SUMS_W)].constant) return hn_refuse(why, "constant weights");
  if (has(s, HN_SUMS_BIAS)) return hn_refuse(why, "a bias");
  if (!hn_sums_whole(s) && !one_f32(desc_of(s, HN_SUMS_SCALE)))
    return hn_refuse(why, "the scale is not one f32");
  if (p->coded) {
    if (!is_8bit(y->dtype)) return hn_refuse(why, "the output is %s, not 8 bits", hone_dtype_name(y->dtype));
    if (!one_f32(desc_of(s, HN_SUMS_Y_SCALE))) return hn_refuse(why, "the output's scale is not one f32");
    if (!zero_fits(s, HN_SUMS_Y_ZERO, y->dtype, why)) return false;
  } else if (y->dtype != (hn_sums_whole(s) ? HONE_DTYPE_I32 : HONE_DTYPE_F32))
    return hn_refuse(why, "the output is %s", hone_dtype_name(y->dtype));
  const hn_int8_ops *o = hn_int8_find(p->isa);
  if (!o) return hn_refuse(why, "no int8 kernel for %s", hn_isa_name(p->isa));
  if (!hn_epilogue_accepts(s, p->isa, true, why)) return false;
  /* Threads share the matrices, and their rows where there are few. */
  const int64_t want = hn_div_up(m->threads > 1 ? 2 * (int64_t)m->threads : 1, p->matrices),
                rows = hn_div_up(hn_div_up(p->m, want), o->mr) * o->mr, part = hn_min(rows, p->m);
  p->parts = hn_div_up(p->m, part);
  if (!plan_rows(s, m, p, part, &p->part, why) ||
      !plan_rows(s, m, p, p->m - (p->parts - 1) * part, &p->rest, why))
    return false;
  const int64_t columns = (int64_t)hn_int8_columns(&p->part) * (int64_t)sizeof(int32_t);
  int64_t at = (int64_t)hn_round_up(hn_int8_weights(&p->part), 64);
  p->sums_at = at, p->bias_at = at += columns, p->offset_at = at += columns, p->scale_at = at += columns;
  p->scratch_at = at += columns;
  p->thread_bytes = at + (int64_t)hn_round_up(hn_int8_workspace(&p->part, o, 1), 64) +
                    (int64_t)hn_round_up(hn_int8_workspace(&p->rest, o, 1), 64);
  return true;
}

static double cost_of(const pair *p, const hone_step *s, const hone_machine *m) {
  const double peak = m->peak_flops > 0 ? m->peak_flops : 1e10,
               cache = m->cache_bytes > 0 ? m->cache_bytes : 1e10, rows = (double)(p->matrices * p->m);
  const double product = hn_int8_seconds(&p->part, hn_int8_find(p->isa), peak, cache) - 3e-6,
               each = product / (double)p->part.rows,
               brought = 8.0 * (double)(p->k * p->n * p->matrices * p->parts) / peak;
  const double out = (p->coded ? 16 / peak : 3.0 / cache) * rows * (double)p->n;
  return rows * each + brought + out + hn_epilogue_seconds(s, m, true) + 3e-6;
}

static void need_of(const pair *p, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s;
  n->blob_bytes = sizeof *p;
  n->workspace_bytes = (size_t)(HEAD_BYTES + p->thread_bytes * (int64_t)m->threads);
}

static hone_status fill(pair *p, const hone_step *s, void *blob, hone_error *error) {
  (void)s, (void)error;
  memcpy(blob, p, sizeof *p);
  return HONE_OK;
}

HN_DESCRIBED_SIZED(pair, fill)

static int32_t zero_of(const hone_step_run *r, uint32_t role, hone_dtype type) {
  if (!has(r->step, role)) return 0;
  const void *zero = r->in[hn_sums_at(r->step, role)];
  return type == HONE_DTYPE_I8 ? *(const int8_t *)zero : *(const uint8_t *)zero;
}

typedef struct job {
  const hone_step_run *r;
  const pair *p;
  const hn_int8_ops *o;
  hn_epilogue e;
  hn_code_rows codes;
  int32_t a_zero, b_zero; /* of u8, of i8 */
  uint8_t turn;
  float scale;
  unsigned char *work;
} job;

/* B of matrix i in the kernels' order, and what its columns bring. */
static void bring(const job *j, int64_t i, unsigned char *own) {
  const pair *p = j->p;
  int32_t *sums = (int32_t *)(void *)(own + p->sums_at), *bias = (int32_t *)(void *)(own + p->bias_at),
          *offset = (int32_t *)(void *)(own + p->offset_at);
  float *scale = (float *)(void *)(own + p->scale_at);
  const int64_t at = p->one_b ? 0 : i * p->k * p->n;
  const hn_int8_operand b = {.b = (const uint8_t *)j->r->in[hn_sums_at(j->r->step, HN_SUMS_W)] +
                                  (HN_FAULT("integer_pair_b") ? 0 : at),
                             .ldb = p->n,
                             .k = (size_t)p->k,
                             .n = (size_t)p->n,
                             .k_packed = (size_t)p->part.k_packed,
                             .turn = j->turn,
                             .dst = (int8_t *)(void *)own,
                             .sums = sums};
  j->o->operand(&b);
  for (size_t c = 0; c < hn_int8_columns(&p->part); c++) {
    const uint32_t all = (uint32_t)sums[c] - (uint32_t)p->k * (uint32_t)j->b_zero;
    bias[c] = (int32_t)(0u - (uint32_t)j->a_zero * all);
    offset[c] = -j->b_zero;
    scale[c] = j->scale;
  }
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const pair *p = j->p;
  const int64_t i = index / p->parts, part = index % p->parts, row = i * p->m + part * p->part.rows;
  hn_int8_conv c = part + 1 < p->parts ? p->part : p->rest;
  unsigned char *own = j->work + thread * p->thread_bytes;
  hn_epilogue e = j->e;
  bring(j, i, own);
  hn_epilogue_shift(&e, row * p->n);
  c.padding = j->a_zero;
  c.in_bytes = (p->matrices * p->m - row) * p->k; /* up to the end of all matrices */
  const hn_int8_args a = {.conv = &c,
                          .ops = j->o,
                          .x = (const uint8_t *)j->r->in[HN_SUMS_X] + row * p->k,
                          .w = (const int8_t *)(const void *)own,
                          .bias = (const int32_t *)(const void *)(own + p->bias_at),
                          .offset = (const int32_t *)(const void *)(own + p->offset_at),
                          .scale = (const float *)(const void *)(own + p->scale_at),
                          .epilogue = &e,
                          .codes = &j->codes,
                          .y = (char *)j->r->out[0] + row * c.out_pitch,
                          .scratch = own + p->scratch_at};
  hn_int8_exec(&a, NULL, NULL);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const pair *p = r->blob;
  const hone_dtype a = desc_of(r->step, HN_SUMS_X)->dtype, b = desc_of(r->step, HN_SUMS_W)->dtype,
                   y = r->step->output[0].desc.dtype;
  float *zero = r->workspace;
  job j = {.r = r,
           .p = p,
           .o = hn_int8_find(p->isa),
           .a_zero = zero_of(r, HN_SUMS_X_ZERO, a) + (a == HONE_DTYPE_I8 ? 128 : 0),
           .b_zero = zero_of(r, HN_SUMS_W_ZERO, b) - (b == HONE_DTYPE_U8 ? 128 : 0),
           .turn = b == HONE_DTYPE_U8 ? 0x80 : 0,
           .scale = hn_sums_whole(r->step) ? 0 : *(const float *)r->in[HN_SUMS_SCALE],
           .work = (unsigned char *)r->workspace + HEAD_BYTES};
  (void)error;
  hn_epilogue_bind_rows(r->step, p->isa, true, NULL, r->in, &j.e);
  if (p->coded) {
    *zero = (float)zero_of(r, HN_SUMS_Y_ZERO, y);
    j.codes = (hn_code_rows){.ops = hn_quantize_find(p->isa),
                             .scale = r->in[HN_SUMS_Y_SCALE],
                             .zero = zero,
                             .is_signed = y == HONE_DTYPE_I8};
    hn_code_rows_join(&j.codes, &j.e, p->isa, zero + 1, 1);
  }
  const int64_t tasks = p->matrices * p->parts;
  if (tasks == 1)
    task(&j, 0, 0);
  else
    r->parallel(r->pool, tasks, task, &j);
  return HONE_OK;
}

static void work(const hone_step *s, const hone_machine *m, hone_work *w) {
  (void)s, (void)m;
  w->arithmetic = HONE_ARITHMETIC_INT8;
}

HN_TACTIC(cpu, matmul_integer_pair, "MatMulInteger", 3, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run, .work = work);
HN_TACTIC(cpu, integer_pair, "MatMulIntegerToFloat", 4, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run, .work = work);
HN_TACTIC(cpu, integer_pair_codes, "MatMulIntegerToCodes", 4, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run, .work = work);
