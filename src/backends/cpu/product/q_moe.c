/* QMoE: codes are read where they lie and decoded in registers. */
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/nbits/nbits.h"
#include "backends/cpu/product/experts_step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/mem.h"
#include "model/ops/microsoft/nbits.h"
#include "model/ops/microsoft/q_moe.h"

typedef struct matrix {
  int64_t columns, depth, bits, block;
  bool code_zeros, row_zeros; /* zero points: of blocks, in a row's codes; of rows, as floats in the blob */
  int64_t zeros_at;
} matrix;

typedef struct blob_head {
  hn_isa isa;
  hn_experts of;
  matrix m[3];
  int64_t bytes, rows_at,
      row;       /* rows_at: packed rows of a thread in the workspace; row: floats of the longest */
  int64_t group; /* rows that are packed at a time */
} blob_head;

enum { GROUP = 16 };

static hn_nbits_matrix kernel_of(const matrix *m) {
  const int64_t block = m->block ? m->block : m->depth;
  return (hn_nbits_matrix){.blocks = (size_t)(m->depth / block),
                           .block_bytes = (size_t)(block * m->bits / 8),
                           .zero_row = (size_t)((m->depth / block * m->bits + 7) / 8),
                           .bits = (uint32_t)m->bits};
}

static bool describe_matrix(const hone_step *s, uint32_t which, int64_t experts, matrix *m,
                            hone_reason *why) {
  const uint32_t codes = HN_QMOE_FC1 + 3 * which, scales = codes + 1, bias = codes + 2,
                 zeros = HN_QMOE_ZEROS + which;
  const hone_tensor_desc *d = &s->input[codes].desc;
  if (d->dtype != HONE_DTYPE_U8 || !hn_step_plain(d) || hone_desc_count(d) < 1)
    return hn_refuse(why, "codes of unknown shape, or none");
  if (!hn_step_plain_f32(&s->input[scales].desc) ||
      (hn_step_has(s, bias) && !hn_step_plain_f32(&s->input[bias].desc)))
    return hn_refuse(why, "scales or a bias are not f32");
  m->bits = hn_q_moe_bits(s->node, (int)which);
  m->block = hone_node_int(s->node, "block_size", 0);
  m->columns = d->dim[1], m->depth = d->dim[2] * 8 / m->bits;
  if ((m->block ? m->block : m->depth) * m->bits / 8 < 4) return hn_refuse(why, "blocks of few bytes");
  if (!hn_step_has(s, zeros)) return true;
  if (!hn_step_plain(&s->input[zeros].desc)) return hn_refuse(why, "zero points of unknown shape");
  m->code_zeros = m->block != 0, m->row_zeros = !m->code_zeros;
  if (m->row_zeros && !s->input[zeros].constant) return hn_refuse(why, "zero points of rows are computed");
  (void)experts;
  return true;
}

static bool describe(const hone_step *s, const hone_machine *machine, blob_head *h, hone_reason *why) {
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(machine->isa);
  const hn_nbits_ops *o = hn_nbits_find(h->isa);
  if (!o) return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  if (!hn_experts_read(s, &h->of, why)) return false;
  if (hn_step_has(s, HN_QMOE_WEIGHTS) && !hn_step_plain_f32(&s->input[HN_QMOE_WEIGHTS].desc))
    return hn_refuse(why, "router_weights are not f32");
  h->of.third = hn_step_has(s, HN_QMOE_FC3);
  size_t at = hn_round_up(sizeof *h, 64);
  for (uint32_t i = 0; i < 3; i++) {
    matrix *m = &h->m[i];
    if (i == HN_EXPERTS_THIRD && !h->of.third) continue;
    if (!describe_matrix(s, i, h->of.experts, m, why)) return false;
    const hn_nbits_matrix w = kernel_of(m);
    h->row = hn_max_i64(h->row, (int64_t)hn_round_up(o->packed(&w), 16));
    m->zeros_at = (int64_t)at;
    if (m->row_zeros) at = hn_round_up(at + (size_t)(h->of.experts * m->columns) * sizeof(float), 64);
  }
  h->bytes = (int64_t)at;
  h->of.inter = h->m[HN_EXPERTS_SECOND].depth;
  h->group = hn_min_i64(GROUP, h->of.tokens * h->of.k);
  h->rows_at = (int64_t)hn_round_up(hn_experts_workspace(&h->of), 64);
  return true;
}

static double cost_of(const blob_head *h, const hone_step *s, const hone_machine *m) {
  return hn_experts_cost(s, m, &h->of, (double)h->m[0].bits / 8, 0.3);
}

static void need_of(const blob_head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s;
  n->blob_bytes = (size_t)h->bytes;
  n->workspace_bytes = (size_t)h->rows_at + (size_t)(h->row * h->group) * m->threads * sizeof(float);
}

static hone_status fill(blob_head *h, const hone_step *s, void *blob, hone_error *error) {
  (void)error;
  memcpy(blob, h, sizeof *h);
  for (uint32_t i = 0; i < 3; i++) {
    const matrix *m = &h->m[i];
    if (!m->row_zeros) continue;
    float *to = (float *)(void *)((char *)blob + m->zeros_at);
    const uint8_t *from = s->input[HN_QMOE_ZEROS + i].constant;
    const int64_t row = (m->columns * m->bits + 7) / 8;
    for (int64_t k = 0; k < h->of.experts * m->columns; k++)
      to[k] = (float)hn_nbits_code(from + k / m->columns * row, m->bits, k % m->columns);
  }
  return HONE_OK;
}

HN_DESCRIBED_SIZED(blob_head)

static void product(const void *context, int which, int64_t expert, const float *x, int64_t rows,
                    int64_t from, int64_t end, float *y, uint32_t thread) {
  const hone_step_run *r = context;
  const blob_head *h = r->blob;
  const matrix *m = &h->m[which];
  const hn_nbits_ops *o = hn_nbits_find(h->isa);
  const uint32_t codes = HN_QMOE_FC1 + 3 * (uint32_t)which;
  const int64_t before = (HN_FAULT("q_moe_expert") ? 0 : expert) * m->columns;
  hn_nbits_matrix w = kernel_of(m);
  w.codes = (const uint8_t *)r->in[codes] + (size_t)before * w.blocks * w.block_bytes;
  w.scales = (const float *)r->in[codes + 1] + (size_t)before * w.blocks;
  if (m->code_zeros) w.zeros = (const uint8_t *)r->in[HN_QMOE_ZEROS + which] + (size_t)before * w.zero_row;
  if (m->row_zeros)
    w.zero_floats = (const float *)(const void *)((const char *)r->blob + m->zeros_at) + before;
  const float *bias = hn_step_has(r->step, codes + 2) ? (const float *)r->in[codes + 2] + before : NULL;
  const size_t row = o->packed(&w);
  float *packed =
      (float *)(void *)((char *)r->workspace + h->rows_at) + (size_t)thread * (size_t)(h->row * h->group);
  for (int64_t i = 0; i < rows; i += h->group) {
    const int64_t some = hn_min_i64(h->group, rows - i);
    for (int64_t k = 0; k < some; k++)
      o->pack(&w, x + (i + k) * m->depth, (size_t)m->depth, packed + (size_t)k * row);
    o->product(&w, packed, (size_t)some, (size_t)from, (size_t)end, bias, y + i * m->columns, m->columns);
  }
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  const hn_experts_job j = {
      .of = &h->of, .run = r, .product = product, .context = r, .isa = h->isa, .grain = 16};
  (void)error;
  hn_experts_exec(&j, r->in[HN_QMOE_X], r->in[HN_QMOE_ROUTER],
                  hn_step_has(r->step, HN_QMOE_WEIGHTS) ? r->in[HN_QMOE_WEIGHTS] : NULL, r->out[0]);
  return HONE_OK;
}

HN_TACTIC(cpu, q_moe, "com.microsoft.QMoE", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
