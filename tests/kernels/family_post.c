/* Adapter of the kernels that finish epilogues: one pass over a block must equal the operations done one
 * after the other by the elementwise kernels of the same tier (which have their own oracle), bit for bit. */
#include <stdio.h>
#include <string.h>

#include "backends/cpu/kernels/pointwise/pointwise.h"
#include "backends/cpu/kernels/post/post.h"
#include "check.h"

enum { MOST = 7 };

/* A function that the kernel does not know. */
static void square(float *x, size_t n, const float *p) {
  for (size_t i = 0; i < n; i++) x[i] = p[0] * x[i] * x[i];
}

/* Letters of a list of operations: b and s with a vector of columns, + and * with a tensor, ? unknown
 * function, others by number below. */
static const struct {
  char letter;
  hone_pw_op op;
  float p[2];
} functions[] = {{'r', HONE_PW_RELU, {0}},
                 {'c', HONE_PW_CLIP, {-0.5f, 0.75f}},
                 {'l', HONE_PW_LEAKYRELU, {0.1f}},
                 {'h', HONE_PW_HARDSIGMOID, {0.2f, 0.5f}},
                 {'w', HONE_PW_HARDSWISH, {1 / 6.0f, 0.5f}},
                 {'g', HONE_PW_SIGMOID, {0}},
                 {'i', HONE_PW_SILU, {1.0f}},
                 {'t', HONE_PW_TANH, {0}},
                 {'e', HONE_PW_ELU, {0.7f}},
                 {'f', HONE_PW_GELU_ERF, {0}},
                 {'a', HONE_PW_GELU_TANH, {0}},
                 {'m', HONE_PW_MISH, {0}},
                 {'n', HONE_PW_NEG, {0}}};

typedef struct block {
  size_t rows, n;
  ptrdiff_t pitch, tensor_pitch;
} block;

static size_t room(size_t rows, ptrdiff_t pitch, size_t n) {
  return rows ? (rows - 1) * (size_t)pitch + n : 0;
}

static void check_block(ck *c, const struct hn_kernel *k, const char *list, block b, enum ck_fill fill) {
  const struct hn_post_ops *ops = k->ops;
  const struct hn_pw_ops *pw = hn_pw_find(k->isa);
  const size_t n_ops = strlen(list), size = room(b.rows, b.pitch, b.n);
  hn_post_op op[MOST];
  ck_case(c, "post %s %zux%zu pitch %td/%td fill %s", list, b.rows, b.n, b.pitch, b.tensor_pitch,
          ck_fill_name(fill));
  float *y = ck_alloc(c, size, 0), *want = ck_alloc(c, size, 1);
  ck_fill(c, y, size, fill);
  memcpy(want, y, size * sizeof *y);
  for (size_t i = 0; i < n_ops; i++) {
    op[i] = (hn_post_op){.kind = HN_POST_ACT};
    const bool tensor = list[i] == '+' || list[i] == '*', add = list[i] == '+' || list[i] == 'b';
    if (tensor || strchr("bs", list[i])) {
      const size_t m = tensor ? room(b.rows, b.tensor_pitch, b.n) : b.n;
      float *v = ck_alloc(c, m, 0);
      ck_fill(c, v, m, CK_RANDOM);
      op[i].kind = tensor ? (add ? HN_POST_ADD : HN_POST_MUL) : add ? HN_POST_BIAS : HN_POST_SCALE;
      op[i].v = v;
      op[i].pitch = tensor ? b.tensor_pitch : 0;
      for (size_t r = 0; r < b.rows; r++)
        pw->fn[add ? HONE_PW_ADD : HONE_PW_MUL](want + r * (size_t)b.pitch, want + r * (size_t)b.pitch,
                                                v + r * (size_t)op[i].pitch, NULL, b.n, 0, NULL);
      continue;
    }
    op[i].act = square, op[i].p[0] = 2;
    for (size_t j = 0; j < sizeof functions / sizeof *functions; j++)
      if (functions[j].letter == list[i]) {
        op[i].op = functions[j].op, op[i].act = pw->act[op[i].op];
        memcpy(op[i].p, functions[j].p, sizeof op[i].p);
      }
    for (size_t r = 0; r < b.rows; r++) op[i].act(want + r * (size_t)b.pitch, b.n, op[i].p);
  }
  ops->rows(op, (uint32_t)n_ops, y, b.pitch, b.rows, b.n);
  for (size_t i = 0; i < size; i++) ck_same(c, i, y[i], want[i]);
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const char *lists[] = {"",  "r",  "c",   "l",  "h",    "w",     "g",       "i",  "t",
                                "e", "f",  "a",   "m",  "n",    "?",     "b",       "s",  "+",
                                "*", "sb", "wsb", "g*", "sbw+", "s?b*m", "+wsb*rs", "i+", "b*bs+cn"};
  static const size_t rows[] = {0, 1, 2, 4, 5, 16, 19, 33},
                      columns[] = {1, 3, 7, 8, 9, 16, 17, 24, 32, 67, 96};
  for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
      for (size_t j = 0; j < sizeof columns / sizeof *columns; j++)
        for (int gaps = 0; gaps < 3; gaps++) {
          block b = {rows[r], columns[j], (ptrdiff_t)columns[j], (ptrdiff_t)columns[j]};
          b.pitch += gaps == 1 ? 5 : 0;
          b.tensor_pitch += gaps == 2 ? 3 : 0;
          check_block(c, k, lists[l], b, (enum ck_fill)((l + r + j) % CK_FILLS));
        }
}

/* ------------------------------------------------------------------ bench */

typedef struct pass {
  const struct hn_post_ops *ops;
  const hn_post_op *op;
  uint32_t n_ops;
  float *y;
} pass;

static void run(void *p) {
  const pass *a = p;
  a->ops->rows(a->op, a->n_ops, a->y, 32, 64, 32);
}

static void bench(ck *c, const struct hn_kernel *k) {
  const struct hn_pw_ops *pw = hn_pw_find(k->isa), *plain = hn_pw_find(HN_ISA_SCALAR);
  float *y = ck_alloc(c, 64 * 32, 0), *v = ck_alloc(c, 32, 0);
  ck_fill(c, y, 64 * 32, CK_RANDOM);
  for (size_t i = 0; i < 32; i++) v[i] = 0.5f;
  for (int sigmoid = 0; sigmoid < 2; sigmoid++) {
    const hone_pw_op f = sigmoid ? HONE_PW_SIGMOID : HONE_PW_HARDSWISH;
    hn_post_op op[] = {{.kind = HN_POST_ACT, .op = f, .act = pw->act[f], .p = {1 / 6.0f, 0.5f}},
                       {.kind = HN_POST_SCALE, .v = v},
                       {.kind = HN_POST_BIAS, .v = v}};
    pass a = {k->ops, op, 3, y};
    const double seconds = ck_time(run, &a);
    a.ops = hn_post_find(HN_ISA_SCALAR), op[0].act = plain->act[f];
    const ck_work work = {.unit = CK_F32,
                          .instructions = 64 * 32 * (sigmoid ? 16 : 6),
                          .divisions = sigmoid ? 64 * 32 : 0,
                          .read = 64 * 32 * 4,
                          .written = 64 * 32 * 4};
    ck_bench_line(c, sigmoid ? "sigmoid scale shift 64x32" : "hardswish scale shift 64x32", seconds, &work,
                  k->isa == HN_ISA_SCALAR ? 0 : ck_time(run, &a));
  }
  ck_release_all(c);
}

const ck_family ck_family_post = {"post", check, bench};
