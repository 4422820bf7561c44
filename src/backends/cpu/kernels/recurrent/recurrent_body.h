/* The body of recurrent_f32_<tier>.c. The including file defines ROWS(X), the counts of samples that have an
 * instance of the product, and MR, the largest of them. */
#include "backends/cpu/kernels/recurrent/recurrent.h"

#include <stdbool.h>

#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec_act.h"

enum { NV = HN_RECURRENT_VECTORS };

#define INLINE static inline __attribute__((always_inline))

#define ROW HN_UNROLL for (int i = 0; i < MR; i++) if (i < m)
#define VECTOR HN_UNROLL for (int j = 0; j < NV; j++) if (j < nv)

INLINE vf part(const float *p, size_t live) { return live == VEC_W ? v_load(p) : v_loadn(p, live); }

/* ------------------------------------------------------------------ the product */

/* sums[row][vector] = h[row] x panel. Few sums would wait for themselves: even and odd k then have their
 * own. */
INLINE void product(const float *b, size_t k, const float *far, const hn_recurrent_row *row,
                    const bool of_reset, float *sums, const int m, const int nv) {
  const int chains = m * nv * 2 <= MR * NV ? 2 : 1;
  vf acc[2][MR][NV];
  const float *h[MR];
  ROW h[i] = of_reset ? row[i].reset : row[i].h;
  ROW VECTOR acc[0][i][j] = acc[1][i][j] = v_zero();
  if (HN_FAULT("recurrent_last_k") && k > 0) k--;
  size_t at = 0;
  for (; at + 2 <= k; at += 2) HN_UNROLL for (int s = 0; s < 2; s++, b += nv * VEC_W) {
      vf x[MR];
      /* Where arithmetic leaves room. Alone with its loads, a row is faster without. */
      if (m > 2 && far) {
        HN_UNROLL for (int line = 0; line < HN_RECURRENT_AHEAD; line += 16)
            __builtin_prefetch(far + line, 0, 2);
        far += HN_RECURRENT_AHEAD;
      }
      ROW x[i] = v_set1(h[i][at + (size_t)s]);
      VECTOR {
        const vf v = v_load(b + j * VEC_W);
        ROW acc[s % chains][i][j] = v_fma(x[i], v, acc[s % chains][i][j]);
      }
    }
  if (at < k) ROW {
      const vf x = v_set1(h[i][at]);
      VECTOR acc[0][i][j] = v_fma(x, v_load(b + j * VEC_W), acc[0][i][j]);
    }
  ROW VECTOR v_store(sums + (i * NV + j) * VEC_W,
                     chains == 2 ? v_add(acc[0][i][j], acc[1][i][j]) : acc[0][i][j]);
}

#define INSTANCE(m)                                                                                          \
  static void product_##m(const float *b, size_t k, const float *far, const hn_recurrent_row *row,           \
                          bool of_reset, float *sums, uint32_t nv) {                                         \
    switch (nv) {                                                                                            \
    case 1: product(b, k, far, row, of_reset, sums, m, 1); break;                                            \
    case 2: product(b, k, far, row, of_reset, sums, m, 2); break;                                            \
    case 3: product(b, k, far, row, of_reset, sums, m, 3); break;                                            \
    default: product(b, k, far, row, of_reset, sums, m, 4);                                                  \
    }                                                                                                        \
  }
ROWS(INSTANCE)
#undef INSTANCE

/* ------------------------------------------------------------------ activations and states */

INLINE vf apply(const hn_activation *a, vf x) {
  const vf al = v_set1((float)a->alpha), be = v_set1((float)a->beta);
  switch (a->kind) {
  case HN_ACT_RELU: return v_max_number(v_zero(), x);
  case HN_ACT_TANH: return v_tanh(x);
  case HN_ACT_SIGMOID: return v_sigmoid(x);
  case HN_ACT_AFFINE: return v_fma(al, x, be);
  case HN_ACT_LEAKY_RELU: return v_leaky(x, al);
  case HN_ACT_THRESHOLDED_RELU: return v_sel(v_le(al, x), x, v_zero());
  case HN_ACT_SCALED_TANH: return v_mul(al, v_tanh(v_mul(be, x)));
  case HN_ACT_HARD_SIGMOID: return v_ramp(x, al, be);
  case HN_ACT_ELU: return v_elu(x, al);
  case HN_ACT_SOFTSIGN: return v_div(x, v_add(v_set1(1.0f), v_abs(x)));
  case HN_ACT_SOFTPLUS: return v_softplus(x);
  }
  return x;
}

/* usual: the operator's default functions, known while compiling. */
INLINE vf function(const hn_recurrent_cell *cell, const int which, vf x, const bool usual) {
  if (!usual) return apply(&cell->f[which], x);
  const bool gate = which == 0 && cell->pass != HN_RECURRENT_RNN;
  return gate ? v_sigmoid(x) : v_tanh(x);
}

INLINE vf clipped(const hn_recurrent_cell *cell, vf x) {
  const float clip = HN_FAULT("recurrent_clip") ? 0 : cell->clip;
  return clip > 0 ? v_min_number(v_set1(clip), v_max_number(v_set1(-clip), x)) : x;
}

INLINE vf activate(const hn_recurrent_cell *cell, const int which, vf x, const bool usual) {
  return function(cell, which, clipped(cell, x), usual);
}

/* One block of one sample; sums: a vector for each gate. */
INLINE void block(const hn_recurrent_cell *cell, const hn_recurrent_row *r, const float *sums, size_t at,
                  size_t live, const hn_recurrent_pass pass, const bool usual) {
  const size_t n = cell->hidden;
#define X(gate) part(r->x + (gate)*n + at, live)
#define SUM(gate) v_load(sums + (gate)*VEC_W)
#define GATE(gate, sum) v_add(X(gate), SUM(sum))
  vf y;
  if (pass == HN_RECURRENT_RNN) {
    y = activate(cell, 0, GATE(0, 0), usual);
  } else if (pass == HN_RECURRENT_LSTM) {
    vf c = v_load(r->c + at), in = GATE(0, 0), out = GATE(1, 1), forget = GATE(2, 2);
    const float *p = cell->peepholes ? cell->peepholes + at : NULL;
    if (p) in = v_fma(v_load(p), c, in), forget = v_fma(v_load(p + 2 * cell->padded), c, forget);
    const bool shared = usual && !cell->coupled; /* a division for a gate and what it lets through */
    if (shared) {
      const vf through = v_sigmoid_tanh(clipped(cell, in), clipped(cell, GATE(3, 3)));
      c = v_fma(activate(cell, 0, forget, usual), c, through);
    } else {
      in = activate(cell, 0, in, usual);
      forget = cell->coupled ? v_sub(v_set1(1.0f), in) : activate(cell, 0, forget, usual);
      c = v_fma(forget, c, v_mul(in, activate(cell, 1, GATE(3, 3), usual)));
    }
    if (p && !HN_FAULT("recurrent_peephole")) out = v_fma(v_load(p + cell->padded), c, out);
    v_store(r->c + at, c);
    /* clip bounds what enters the gates, not the cell */
    y = usual ? v_sigmoid_tanh(clipped(cell, out), c)
              : v_mul(activate(cell, 0, out, usual), function(cell, 2, c, usual));
  } else if (pass == HN_RECURRENT_GRU_GATES) {
    v_store(r->update + at, activate(cell, 0, GATE(0, 0), usual));
    v_store(r->reset + at, v_mul(activate(cell, 0, GATE(1, 1), usual), v_load(r->h + at)));
    return;
  } else {
    vf update, hidden;
    if (pass == HN_RECURRENT_GRU) {
      update = activate(cell, 0, GATE(0, 0), usual);
      hidden = cell->bias ? v_add(SUM(2), v_load(cell->bias + at)) : SUM(2);
      hidden = v_fma(hidden, activate(cell, 0, GATE(1, 1), usual), X(2));
    } else {
      update = v_load(r->update + at), hidden = GATE(2, 0);
    }
    const vf g = activate(cell, 1, hidden, usual);
    y = v_fma(update, v_load(r->h + at), v_mul(v_sub(v_set1(1.0f), update), g));
  }
#undef X
#undef SUM
#undef GATE
  v_store(r->next + at, y);
  if (!r->y) return;
  if (live == VEC_W)
    v_store(r->y + at, y);
  else
    v_storen(r->y + at, y, live);
}

INLINE void blocks_of(const hn_recurrent_cell *cell, const float *sums, size_t first, uint32_t blocks,
                      const hn_recurrent_row *row, uint32_t rows, const hn_recurrent_pass pass,
                      const bool usual) {
  const size_t gates = hn_recurrent_gates(pass);
  for (uint32_t i = 0; i < rows; i++)
    for (uint32_t j = 0; j < blocks; j++) {
      const size_t at = first + j * VEC_W, left = cell->hidden - at;
      block(cell, &row[i], sums + (i * NV + j * gates) * VEC_W, at, left < VEC_W ? left : VEC_W, pass, usual);
    }
}

/* The default functions of an operator: sigmoid for gates, else tanh. */
static bool is_usual(const hn_recurrent_cell *cell) {
  const int n = cell->pass == HN_RECURRENT_LSTM ? 3 : cell->pass == HN_RECURRENT_RNN ? 1 : 2;
  for (int k = 0; k < n; k++)
    if (cell->f[k].kind != (n > 1 && k == 0 ? HN_ACT_SIGMOID : HN_ACT_TANH)) return false;
  return true;
}

/* The inputs' products were written by another step, perhaps on another core: they come while the sums are
 * made. */
static void ask_for_x(const hn_recurrent_cell *cell, size_t first, uint32_t blocks,
                      const hn_recurrent_row *row, uint32_t rows) {
  const size_t skip = cell->pass == HN_RECURRENT_GRU_HIDDEN ? 2 : 0, gates = hn_recurrent_gates(cell->pass);
  for (uint32_t i = 0; i < rows; i++)
    for (size_t g = skip; g < skip + gates; g++)
      for (uint32_t k = 0; k < blocks * VEC_W; k += 16)
        __builtin_prefetch(row[i].x + g * cell->hidden + first + k, 0, 3);
}

static void panel(const hn_recurrent_cell *cell, const float *b, size_t first, uint32_t blocks,
                  const hn_recurrent_row *row, uint32_t rows) {
#define ENTRY(m) product_##m,
  static void (*const table[MR])(const float *, size_t, const float *, const hn_recurrent_row *, bool,
                                 float *, uint32_t) = {ROWS(ENTRY)};
#undef ENTRY
  _Alignas(64) float sums[MR * NV * VEC_W];
  ask_for_x(cell, first, blocks, row, rows);
  table[rows - 1](b, cell->k, cell->far, row, cell->pass == HN_RECURRENT_GRU_HIDDEN, sums,
                  blocks * hn_recurrent_gates(cell->pass));
  const bool usual = is_usual(cell);
#define PASS(p)                                                                                              \
  case p:                                                                                                    \
    if (usual)                                                                                               \
      blocks_of(cell, sums, first, blocks, row, rows, p, true);                                              \
    else                                                                                                     \
      blocks_of(cell, sums, first, blocks, row, rows, p, false);                                             \
    break
  switch (cell->pass) {
    PASS(HN_RECURRENT_RNN);
    PASS(HN_RECURRENT_LSTM);
    PASS(HN_RECURRENT_GRU);
    PASS(HN_RECURRENT_GRU_GATES);
    PASS(HN_RECURRENT_GRU_HIDDEN);
  default: break;
  }
#undef PASS
}

static const struct hn_recurrent_ops table = {.vw = VEC_W, .rows = MR, .panel = panel};
