/* QMoE: matrices stay codes, in panels as those of MatMulNBits, and are widened in registers. */
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/product/coded_step.h"
#include "backends/cpu/product/experts_step.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/mem.h"
#include "model/ops/microsoft/codes/nbits.h"
#include "model/ops/microsoft/experts/q_moe.h"

typedef struct matrix {
  hn_coded_step of;  /* of one expert */
  bool row_zeros;    /* a zero point for each column, as codes one behind the other */
  int64_t at, bytes; /* in the blob: those of the first expert; of each */
} matrix;

typedef struct blob_head {
  hn_isa isa;
  hn_experts of;
  matrix m[3];
  int64_t bytes;
  int64_t sums_at,
      sums;      /* of blocks of rows, where there are zero points: of a thread in the workspace, in floats */
  int64_t group; /* rows that are multiplied at a time */
} blob_head;

enum { GROUP = 16 };

static uint32_t codes_of(uint32_t which) { return HN_QMOE_FC1 + 3 * which; }

static bool describe_matrix(const hone_step *s, uint32_t which, matrix *m, hone_reason *why) {
  const uint32_t codes = codes_of(which), scales = codes + 1, bias = codes + 2, zeros = HN_QMOE_ZEROS + which;
  const hone_tensor_desc *d = &s->input[codes].desc;
  hn_coded_step *o = &m->of;
  if (d->dtype != HONE_DTYPE_U8 || !hn_step_plain(d) || hone_desc_count(d) < 1)
    return hn_refuse(why, "codes of unknown shape, or none");
  if (!hn_step_plain_f32(&s->input[scales].desc) ||
      (hn_step_has(s, bias) && !hn_step_plain_f32(&s->input[bias].desc)))
    return hn_refuse(why, "scales or a bias are not f32");
  if (!s->input[codes].constant || !s->input[scales].constant)
    return hn_refuse(why, "codes or scales are computed");
  o->bits = hn_q_moe_bits(s->node, (int)which);
  o->n = d->dim[1], o->k = d->dim[2] * 8 / o->bits;
  o->block = hone_node_int(s->node, "block_size", 0);
  m->row_zeros = o->block == 0;
  if (!o->block) o->block = o->k;
  o->blocks = o->k / o->block;
  if (o->block % 8 || o->blocks * o->block != o->k) return hn_refuse(why, "blocks that are no whole eights");
  m->row_zeros = m->row_zeros && hn_step_has(s, zeros);
  if (hn_step_has(s, zeros)) {
    if (!hn_step_plain(&s->input[zeros].desc) || !s->input[zeros].constant)
      return hn_refuse(why, "zero points of unknown shape, or computed");
    o->zeros = m->row_zeros ? 2 : 1;
  }
  m->bytes = (int64_t)hn_round_up(hn_coded_panels_bytes(o), 64);
  return true;
}

static bool describe(const hone_step *s, const hone_machine *machine, blob_head *h, hone_reason *why) {
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(machine->isa);
  if (!hn_coded_find(h->isa)) return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  if (!hn_experts_read(s, &h->of, why)) return false;
  if (hn_step_has(s, HN_QMOE_WEIGHTS) && !hn_step_plain_f32(&s->input[HN_QMOE_WEIGHTS].desc))
    return hn_refuse(why, "router_weights are not f32");
  h->of.third = hn_step_has(s, HN_QMOE_FC3);
  h->group = hn_min(GROUP, h->of.tokens * h->of.k);
  h->bytes = (int64_t)hn_round_up(sizeof *h, 64);
  for (uint32_t i = 0; i < 3; i++) {
    matrix *m = &h->m[i];
    if (i == HN_EXPERTS_THIRD && !h->of.third) continue;
    if (!describe_matrix(s, i, m, why)) return false;
    m->at = h->bytes;
    h->bytes += m->bytes * h->of.experts;
    if (m->of.zeros) h->sums = hn_max(h->sums, hn_fill_up(m->of.blocks * h->group, 16));
  }
  h->of.inter = h->m[HN_EXPERTS_SECOND].of.k;
  h->sums_at = (int64_t)hn_round_up(hn_experts_workspace(&h->of), 64);
  return true;
}

static double cost_of(const blob_head *h, const hone_step *s, const hone_machine *m) {
  return hn_experts_cost(s, m, &h->of, (double)h->m[0].of.bits / 8, 0.3);
}

static void need_of(const blob_head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  n->blob_bytes = (size_t)h->bytes;
  n->workspace_bytes = (size_t)h->sums_at + (size_t)h->sums * m->threads * sizeof(float);
  for (uint32_t i = 0; i < 3; i++) {
    if (i == HN_EXPERTS_THIRD && !h->of.third) continue;
    n->packed |= 1u << codes_of(i) | 1u << (codes_of(i) + 1);
    if (hn_step_has(s, HN_QMOE_ZEROS + i)) n->packed |= 1u << (HN_QMOE_ZEROS + i);
  }
}

/* The matrices of all experts; `zeros` has room for the zero points of an expert's columns. */
static void put_matrices(const blob_head *h, const hone_step *s, uint32_t which, float *zeros, char *blob) {
  const matrix *m = &h->m[which];
  const hn_coded_step *o = &m->of;
  const uint8_t *codes = s->input[codes_of(which)].constant;
  const float *scales = s->input[codes_of(which) + 1].constant;
  const uint8_t *given = o->zeros ? s->input[HN_QMOE_ZEROS + which].constant : NULL;
  const int64_t row = o->k * o->bits / 8, zero_row = ((m->row_zeros ? o->n : o->blocks) * o->bits + 7) / 8;
  for (int64_t e = 0; e < h->of.experts; e++) {
    const void *own = given;
    if (m->row_zeros) {
      for (int64_t c = 0; c < o->n; c++)
        zeros[c] = (float)hn_nbits_code(given + e * zero_row, (int)o->bits, c);
      own = zeros;
    } else if (given) {
      own = given + e * o->n * zero_row;
    }
    hn_coded_put(o, codes + e * o->n * row, scales + e * o->n * o->blocks, own,
                 (uint8_t *)blob + m->at + e * m->bytes);
  }
}

static hone_status fill(blob_head *h, const hone_step *s, void *blob, hone_error *error) {
  int64_t most = 1;
  for (uint32_t i = 0; i < 3; i++) most = hn_max(most, h->m[i].of.n);
  float *zeros = hn_malloc((size_t)most * sizeof *zeros);
  if (!zeros) return hn_fail_memory(error, (size_t)most * sizeof *zeros, "packing experts");
  memcpy(blob, h, sizeof *h);
  for (uint32_t i = 0; i < 3; i++)
    if (h->m[i].bytes) put_matrices(h, s, i, zeros, blob);
  hn_free(zeros);
  return HONE_OK;
}

HN_DESCRIBED_SIZED(blob_head, fill)

static void product(const void *context, int which, int64_t expert, const float *x, int64_t rows,
                    int64_t from, int64_t end, float *y, uint32_t thread) {
  const hone_step_run *r = context;
  const blob_head *h = r->blob;
  const matrix *m = &h->m[which];
  const hn_coded_step *d = &m->of;
  const hn_coded_ops *o = hn_coded_find(h->isa);
  const uint32_t at = codes_of((uint32_t)which) + 2;
  const int64_t of = HN_FAULT("q_moe_expert") ? 0 : expert;
  const hn_coded w = hn_coded_at(d, (const uint8_t *)r->blob + m->at + of * m->bytes);
  const float *bias = hn_step_has(r->step, at) ? (const float *)r->in[at] + of * d->n : NULL;
  float *sums = (float *)(void *)((char *)r->workspace + h->sums_at) + (int64_t)thread * h->sums;
  for (int64_t i = 0; i < rows; i += h->group) {
    const int64_t some = hn_min(h->group, rows - i);
    const float *a = x + i * d->k;
    float *to = y + i * d->n + from;
    for (int64_t k = 0; k < some && d->zeros; k++) o->sums(&w, a + k * d->k, sums + k * d->blocks);
    o->product(&w, a, d->zeros ? sums : NULL, (size_t)some, (size_t)from, (size_t)end, to, d->n);
    for (int64_t k = 0; k < some && bias; k++)
      for (int64_t c = from; c < end; c++) to[k * d->n + c - from] += bias[c];
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
