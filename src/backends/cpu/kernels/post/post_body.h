/* The body of post_f32_<tier>.c: the vectors of a block stay in registers through all operations. */
#include "backends/cpu/kernels/post/post.h"

#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec_act.h"

enum {
  SIDE = 4,         /* vectors at a time: their chains of operations overlap */
  MOST_OPS = 8,     /* of rows that are brought together */
  TOGETHER = VEC_W, /* so many of them */
};

static inline vf part(const float *p, size_t live) { return live == VEC_W ? v_load(p) : v_loadn(p, live); }

#define EACH HN_UNROLL for (int r = 0; r < side; r++)

/* One vector in each of `side` places of y, `step` apart. along: the places are beside each other in a row,
 * so that vectors of columns advance with them. */
static inline __attribute__((always_inline)) void block(const hn_post_op *op, uint32_t n_ops, float *y,
                                                        ptrdiff_t step, size_t row, size_t column,
                                                        const int side, const int along, size_t live) {
  vf x[SIDE];
  EACH x[r] = part(y + r * step, live);
  for (uint32_t k = 0; k < n_ops; k++) {
    const hn_post_op *o = &op[k];
    const float *v = o->v ? o->v + (ptrdiff_t)row * o->pitch + column : NULL;
    const ptrdiff_t v_step = along ? VEC_W : o->pitch;
    switch (o->kind) {
    case HN_POST_BIAS:
    case HN_POST_ADD: EACH x[r] = v_add(x[r], part(v + r * v_step, live)); break;
    case HN_POST_SCALE:
    case HN_POST_MUL: EACH x[r] = v_mul(x[r], part(v + r * v_step, live)); break;
    case HN_POST_ACT: {
      const vf al = v_set1(o->p[0]), be = v_set1(o->p[1]);
      switch (o->op) {
      case HONE_PW_RELU: EACH x[r] = v_max_number(v_zero(), x[r]); break;
      case HONE_PW_CLIP: EACH x[r] = v_min_number(be, v_max_number(al, x[r])); break;
      case HONE_PW_ROUND: EACH x[r] = v_round(x[r]); break;
      case HONE_PW_LEAKYRELU: EACH x[r] = v_leaky(x[r], al); break;
      case HONE_PW_HARDSIGMOID: EACH x[r] = v_ramp(x[r], al, be); break;
      case HONE_PW_HARDSWISH: EACH x[r] = v_mul(x[r], v_ramp(x[r], al, be)); break;
      case HONE_PW_SIGMOID: EACH x[r] = v_sigmoid(x[r]); break;
      case HONE_PW_SILU: EACH x[r] = v_mul(x[r], v_sigmoid(v_mul(al, x[r]))); break;
      case HONE_PW_TANH: EACH x[r] = v_tanh(x[r]); break;
      case HONE_PW_ELU: EACH x[r] = v_elu(x[r], al); break;
      case HONE_PW_GELU_ERF: EACH x[r] = v_gelu_erf(x[r]); break;
      case HONE_PW_GELU_TANH: EACH x[r] = v_gelu_tanh(x[r]); break;
      default: {
        float space[SIDE * VEC_W];
        EACH v_store(space + r * VEC_W, x[r]);
        o->act(space, (size_t)side * VEC_W, o->p);
        EACH x[r] = v_load(space + r * VEC_W);
      }
      }
      break;
    }
    }
  }
  EACH {
    if (live == VEC_W)
      v_store(y + r * step, x[r]);
    else
      v_storen(y + r * step, x[r], HN_FAULT("post_tail_mask") ? live - 1 : live);
  }
}

static void wide(const hn_post_op *op, uint32_t n_ops, float *y, ptrdiff_t pitch, size_t rows, size_t n) {
  size_t i = 0;
  for (; i + SIDE <= rows; i += SIDE, y += SIDE * pitch) {
    size_t j = 0;
    for (; j + VEC_W <= n; j += VEC_W) block(op, n_ops, y + j, pitch, i, j, SIDE, 0, VEC_W);
    if (j < n) block(op, n_ops, y + j, pitch, i, j, SIDE, 0, n - j);
  }
  for (; i < rows; i++, y += pitch) {
    size_t j = 0;
    for (; j + SIDE * VEC_W <= n; j += SIDE * VEC_W) block(op, n_ops, y + j, VEC_W, i, j, SIDE, 1, VEC_W);
    for (; j + VEC_W <= n; j += VEC_W) block(op, n_ops, y + j, VEC_W, i, j, 1, 1, VEC_W);
    if (j < n) block(op, n_ops, y + j, VEC_W, i, j, 1, 1, n - j);
  }
}

/* Rows without gaps that are narrower than a vector: TOGETHER of them make a row of whole vectors. */
static void narrow(const hn_post_op *op, uint32_t n_ops, float *y, size_t rows, size_t n) {
  float space[MOST_OPS][VEC_W * VEC_W];
  hn_post_op many[MOST_OPS] = {0};
  const size_t whole = rows / TOGETHER, done = whole * TOGETHER;
  for (uint32_t k = 0; k < n_ops; k++) {
    many[k] = op[k];
    many[k].pitch *= TOGETHER;
    if (!op[k].v || op[k].pitch) continue;
    for (size_t i = 0; i < TOGETHER; i++)
      for (size_t j = 0; j < n; j++) space[k][i * n + j] = op[k].v[j];
    many[k].v = space[k];
  }
  wide(many, n_ops, y, (ptrdiff_t)n * TOGETHER, whole, n * TOGETHER);
  for (uint32_t k = 0; k < n_ops; k++) {
    many[k] = op[k];
    if (op[k].v) many[k].v += (ptrdiff_t)done * op[k].pitch;
  }
  wide(many, n_ops, y + done * n, (ptrdiff_t)n, rows - done, n);
}

static void bring(float *to, const float *from, ptrdiff_t pitch, size_t rows, size_t n) {
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < n; j++) to[i * n + j] = from[(ptrdiff_t)i * pitch + (ptrdiff_t)j];
}

/* Rows of at most half a vector with gaps between them, or too few for `narrow`: brought together, worked on
 * as one row, and put back. A vector for each row would be empty for the most part. */
static void sparse(const hn_post_op *op, uint32_t n_ops, float *y, ptrdiff_t pitch, size_t rows, size_t n) {
  float x[SIDE * VEC_W], v[MOST_OPS][SIDE * VEC_W];
  hn_post_op many[MOST_OPS] = {0};
  const size_t most = SIDE * VEC_W / n;
  for (size_t i = 0; i < rows; i += most) {
    const size_t m = rows - i < most ? rows - i : most;
    float *at = y + (ptrdiff_t)i * pitch;
    bring(x, at, pitch, m, n);
    for (uint32_t k = 0; k < n_ops; k++) {
      many[k] = op[k];
      many[k].pitch = 0;
      if (!op[k].v) continue;
      many[k].v = v[k];
      if (i == 0 || op[k].pitch) bring(v[k], op[k].v + (ptrdiff_t)i * op[k].pitch, op[k].pitch, m, n);
    }
    wide(many, n_ops, x, 0, 1, m * n);
    for (size_t r = 0; r < m; r++)
      for (size_t j = 0; j < n; j++) at[(ptrdiff_t)r * pitch + (ptrdiff_t)j] = x[r * n + j];
  }
}

static void rows_f32(const hn_post_op *op, uint32_t n_ops, float *y, ptrdiff_t pitch, size_t rows, size_t n) {
  bool gaps = pitch != (ptrdiff_t)n;
  for (uint32_t k = 0; k < n_ops; k++) gaps = gaps || (op[k].pitch && op[k].pitch != pitch);
  if (n < VEC_W && rows >= TOGETHER && !gaps && n_ops <= MOST_OPS)
    narrow(op, n_ops, y, rows, n);
  else if (2 * n <= VEC_W && n > 0 && rows > 1 && n_ops <= MOST_OPS)
    sparse(op, n_ops, y, pitch, rows, n);
  else
    wide(op, n_ops, y, pitch, rows, n);
}

static const struct hn_post_ops table = {.rows = rows_f32};
