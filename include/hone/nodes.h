/* ONNX's nodes one after the other, in f64, each by its definition: what `hone op new --from` writes
 * references with, and first kernels, for nodes that are not elementwise. The same list of nodes tells
 * shapes, memory, operations and results:
 *
 *   static void layer_nodes(hone_nodes *n, const hone_value *x, hone_value *y) {
 *     hone_value mean, off;
 *     const int64_t axes[] = {-1};
 *     hone_reduce(n, HONE_MEAN, &x[0], axes, 1, true, &mean);
 *     HONE_EACH(n, &off, &x[0], &mean, NULL, a - b);
 *     ...
 *   }
 *
 * Header only; C11 and C++17. */
#ifndef HONE_NODES_H
#define HONE_NODES_H

#include <hone/kernel.h>
#include <stdlib.h>

/* A value between nodes, row-major. Rank and dimensions may be unknown (< 0) while only shapes are asked for.
 */
typedef struct hone_value {
  int32_t rank;
  int64_t dim[HONE_MAX_RANK];
  double *data; /* NULL: it has no memory (yet) */
} hone_value;

/* What is done with a list of nodes. Begin with {0}: shapes, bytes and operations alone. */
typedef struct hone_nodes {
  bool compute; /* into memory */
  bool narrow;  /* a number beyond the range of f32, which kernels may compute in, becomes NaN: hone_beyond */
  char *memory; /* where `used` bytes are found: what the first pass said */
  size_t used;
  double flops;
  const char *wrong; /* why the nodes cannot follow each other; NULL: they can */
} hone_nodes;

typedef void (*hone_nodes_list)(hone_nodes *n, const hone_value *x, hone_value *y);

/* ---------------------------------------------------------------- values */

/* -1: not known. */
HONE_KERNEL_FN int64_t hone_value_count(const hone_value *v) {
  int64_t count = 1;
  if (v->rank < 0) return -1;
  for (int32_t i = 0; i < v->rank; i++) {
    if (v->dim[i] < 0) return -1;
    count *= v->dim[i];
  }
  return count;
}

HONE_KERNEL_FN bool hone_nodes_wrong(hone_nodes *n, hone_value *y, const char *why) {
  if (!n->wrong) n->wrong = why;
  y->rank = -1;
  y->data = NULL;
  return false;
}

/* The result of a node, with its dimensions set, gets memory; `each` operations an element. True: compute it.
 */
HONE_KERNEL_FN bool hone_value_make(hone_nodes *n, hone_value *y, double each) {
  const int64_t count = hone_value_count(y);
  y->data = NULL;
  if (n->wrong || count < 0) return false;
  n->flops += each * (double)count;
  if (n->memory) y->data = (double *)(n->memory + n->used);
  n->used += ((size_t)count * sizeof(double) + 63) / 64 * 64;
  return n->compute && y->data;
}

/* What a sum or a product becomes whose terms have the size `size` together. */
HONE_KERNEL_FN double hone_value_kept(const hone_nodes *n, double x, double size) {
  return n->narrow && isfinite(size) && size >= 3.4028235677973366e38 ? (double)NAN : x;
}

/* An operand of this shape: unknown anywhere? Then so is the result. */
HONE_KERNEL_FN bool hone_nodes_known(hone_nodes *n, const hone_value *x, hone_value *y) {
  if (!n->wrong && x->rank >= 0) return true;
  y->rank = -1;
  y->data = NULL;
  return false;
}

/* ---------------------------------------------------------------- elementwise, with broadcasting */

/* One dimension of two operands together; -2: they do not go together. */
HONE_KERNEL_FN int64_t hone_value_together(int64_t p, int64_t q) {
  if (p == q || q == 1) return p;
  if (p == 1) return q;
  return p < 0 ? q : q < 0 ? p : -2;
}

/* y has the dimensions of all operands (NULL: there is none) together. */
HONE_KERNEL_FN bool hone_nodes_broadcast(hone_nodes *n, hone_value *y, const hone_value *p,
                                         const hone_value *q, const hone_value *r) {
  const hone_value *all[3];
  int32_t rank = 0;
  all[0] = p, all[1] = q, all[2] = r;
  for (int k = 0; k < 3; k++) {
    if (!all[k]) continue;
    if (!hone_nodes_known(n, all[k], y)) return false;
    rank = all[k]->rank > rank ? all[k]->rank : rank;
  }
  y->rank = rank;
  for (int32_t i = 0; i < rank; i++) {
    y->dim[i] = 1;
    for (int k = 0; k < 3; k++) {
      const int32_t at = all[k] ? i - (rank - all[k]->rank) : -1;
      if (at >= 0) y->dim[i] = hone_value_together(y->dim[i], all[k]->dim[at]);
      if (y->dim[i] == -2) return hone_nodes_wrong(n, y, "operands whose dimensions do not go together");
    }
  }
  return hone_value_make(n, y, 1);
}

/* The number of an operand that stands behind number i of a result. */
HONE_KERNEL_FN double hone_value_at(const hone_value *x, const hone_value *y, int64_t i) {
  int64_t at = 0, step = 1;
  if (!x) return 0;
  for (int32_t k = x->rank, d = y->rank; k-- > 0;) {
    d--;
    if (x->dim[k] != 1) at += i % y->dim[d] * step;
    i /= y->dim[d];
    step *= x->dim[k];
  }
  return x->data[at];
}

/* y = expression of a, b and c: the numbers of the operands p, q and r (NULL: there is none). */
#define HONE_EACH(nodes, result, p, q, r, expression)                                                        \
  do {                                                                                                       \
    const hone_value *hone_p = (p), *hone_q = (q), *hone_r = (r);                                            \
    hone_value *hone_y = (result);                                                                           \
    if (hone_nodes_broadcast((nodes), hone_y, hone_p, hone_q, hone_r))                                       \
      for (int64_t hone_i = 0, hone_n = hone_value_count(hone_y); hone_i < hone_n; hone_i++) {               \
        const double a = hone_value_at(hone_p, hone_y, hone_i), b = hone_value_at(hone_q, hone_y, hone_i),   \
                     c = hone_value_at(hone_r, hone_y, hone_i);                                              \
        (void)a, (void)b, (void)c;                                                                           \
        const double hone_v = (expression);                                                                  \
        hone_y->data[hone_i] = hone_value_kept((nodes), hone_v, fabs(hone_v));                               \
      }                                                                                                      \
  } while (0)

/* BatchNormalization as in inference. */
HONE_KERNEL_FN void hone_batch_normal(hone_nodes *n, const hone_value *x, const hone_value *scale,
                                      const hone_value *bias, const hone_value *mean, const hone_value *var,
                                      double epsilon, hone_value *y) {
  const hone_value *each[4];
  each[0] = scale, each[1] = bias, each[2] = mean, each[3] = var;
  if (!hone_nodes_known(n, x, y)) return;
  *y = *x;
  for (int k = 0; k < 4; k++)
    if (x->rank < 2 || each[k]->rank > 1 || each[k]->rank == 0 ||
        (each[k]->rank == 1 && hone_value_together(each[k]->dim[0], x->dim[1]) != x->dim[1]) ||
        (each[k]->rank == 1 && each[k]->dim[0] == 1 && x->dim[1] != 1)) {
      hone_nodes_wrong(n, y, "numbers that are not one a channel");
      return;
    }
  if (!hone_value_make(n, y, 4)) return;
  const int64_t count = hone_value_count(y);
  int64_t inner = 1;
  for (int32_t i = 2; i < x->rank; i++) inner *= x->dim[i];
  for (int64_t i = 0; i < count; i++) {
    const int64_t c = i / inner % x->dim[1];
    const double factor = scale->data[c] / sqrt(var->data[c] + epsilon), off = x->data[i] - mean->data[c],
                 size = fabs(factor) + fabs(off) + fabs(off * factor) + fabs(bias->data[c]);
    y->data[i] = hone_value_kept(n, off * factor + bias->data[c], size);
  }
}

/* ---------------------------------------------------------------- along axes */

typedef enum hone_reduction {
  HONE_SUM,
  HONE_MEAN,
  HONE_MOST,
  HONE_LEAST,
  HONE_SUM_SQUARE,
  HONE_L2
} hone_reduction;

HONE_KERNEL_FN bool hone_is_axis(const int64_t *axes, uint32_t n_axes, int32_t rank, int32_t i) {
  bool found = n_axes == 0; /* none: all */
  for (uint32_t k = 0; k < n_axes; k++) found = found || axes[k] == i || axes[k] + rank == i;
  return found;
}

/* Numbers of x that belong to number o of the result, `each` of them; place k of them. */
HONE_KERNEL_FN int64_t hone_reduced_place(const hone_value *x, const int64_t *axes, uint32_t n_axes,
                                          int64_t o, int64_t k) {
  int64_t at = 0, step = 1;
  for (int32_t i = x->rank; i-- > 0;) {
    int64_t *from = hone_is_axis(axes, n_axes, x->rank, i) ? &k : &o;
    at += *from % x->dim[i] * step;
    *from /= x->dim[i];
    step *= x->dim[i];
  }
  return at;
}

HONE_KERNEL_FN double hone_reduced(const hone_nodes *n, hone_reduction how, const hone_value *x,
                                   const int64_t *axes, uint32_t n_axes, int64_t o, int64_t each) {
  double sum = how == HONE_MOST ? -(double)INFINITY : how == HONE_LEAST ? (double)INFINITY : 0, size = 0;
  for (int64_t k = 0; k < each; k++) {
    const double v = x->data[hone_reduced_place(x, axes, n_axes, o, k)];
    if (how == HONE_MOST || how == HONE_LEAST) {
      if (isnan(v) || (how == HONE_MOST ? v > sum : v < sum)) sum = v;
      if (isnan(v)) break;
      continue;
    }
    const double term = how == HONE_SUM_SQUARE || how == HONE_L2 ? v * v : v;
    sum += term, size += fabs(term);
  }
  sum = hone_value_kept(n, sum, size);
  return how == HONE_MEAN ? sum / (double)each : how == HONE_L2 ? sqrt(sum) : sum;
}

/* No axes: all of them. */
HONE_KERNEL_FN void hone_reduce(hone_nodes *n, hone_reduction how, const hone_value *x, const int64_t *axes,
                                uint32_t n_axes, bool keep, hone_value *y) {
  int64_t each = 1;
  if (!hone_nodes_known(n, x, y)) return;
  for (uint32_t k = 0; k < n_axes; k++)
    if (axes[k] < -x->rank || axes[k] >= x->rank) {
      hone_nodes_wrong(n, y, "an axis that is not there");
      return;
    }
  y->rank = 0;
  for (int32_t i = 0; i < x->rank; i++) {
    const bool gone = hone_is_axis(axes, n_axes, x->rank, i);
    if (gone) each = each < 0 || x->dim[i] < 0 ? -1 : each * x->dim[i];
    if (!gone || keep) y->dim[y->rank++] = gone ? 1 : x->dim[i];
  }
  if (each == 0) {
    hone_nodes_wrong(n, y, "a reduction of no numbers");
    return;
  }
  if (!hone_value_make(n, y, (double)(each < 0 ? 0 : each))) return;
  for (int64_t o = 0, count = hone_value_count(y); o < count; o++)
    y->data[o] = hone_reduced(n, how, x, axes, n_axes, o, each);
}

/* Along one axis. */
HONE_KERNEL_FN void hone_softmax(hone_nodes *n, const hone_value *x, int64_t axis, hone_value *y) {
  if (!hone_nodes_known(n, x, y)) return;
  *y = *x;
  if (axis < -x->rank || axis >= x->rank) {
    hone_nodes_wrong(n, y, "an axis that is not there");
    return;
  }
  if (!hone_value_make(n, y, 4)) return;
  const int64_t at = axis < 0 ? axis + x->rank : axis, count = hone_value_count(x), each = x->dim[at];
  int64_t step = 1;
  for (int32_t i = (int32_t)at + 1; i < x->rank; i++) step *= x->dim[i];
  for (int64_t o = 0; each && o < count / each; o++) {
    const int64_t first = o / step * step * each + o % step;
    double most = -(double)INFINITY, sum = 0;
    for (int64_t k = 0; k < each; k++) most = fmax(most, x->data[first + k * step]);
    for (int64_t k = 0; k < each; k++)
      sum += y->data[first + k * step] = exp(x->data[first + k * step] - most);
    for (int64_t k = 0; k < each; k++) y->data[first + k * step] /= sum;
  }
}

/* ---------------------------------------------------------------- products */

/* Dimension d of the matrices' stack; what is not there is 1. */
HONE_KERNEL_FN int64_t hone_stack_dim(const hone_value *x, int32_t stack, int32_t i) {
  const int32_t at = i - (stack - (x->rank - 2));
  return at < 0 ? 1 : x->dim[at];
}

/* Where matrix number s of the result's stack begins in an operand. */
HONE_KERNEL_FN int64_t hone_stack_place(const hone_value *x, const hone_value *y, int64_t s) {
  int64_t at = 0, step = x->dim[x->rank - 2] * x->dim[x->rank - 1];
  for (int32_t i = y->rank - 2; i-- > 0;) {
    const int64_t dim = hone_stack_dim(x, y->rank - 2, i);
    if (dim != 1) at += s % y->dim[i] * step;
    s /= y->dim[i];
    step *= dim;
  }
  return at;
}

/* MatMul of operands with two dimensions or more. */
HONE_KERNEL_FN void hone_matmul(hone_nodes *n, const hone_value *p, const hone_value *q, hone_value *y) {
  if (!hone_nodes_known(n, p, y) || !hone_nodes_known(n, q, y)) return;
  if (p->rank < 2 || q->rank < 2) {
    hone_nodes_wrong(n, y, "a matrix with less than two dimensions");
    return;
  }
  const int32_t rank = p->rank > q->rank ? p->rank : q->rank;
  const int64_t depth = p->dim[p->rank - 1];
  if (depth >= 0 && q->dim[q->rank - 2] >= 0 && depth != q->dim[q->rank - 2]) {
    hone_nodes_wrong(n, y, "matrices that cannot be multiplied");
    return;
  }
  y->rank = rank;
  for (int32_t i = 0; i < rank - 2; i++) {
    y->dim[i] = hone_value_together(hone_stack_dim(p, rank - 2, i), hone_stack_dim(q, rank - 2, i));
    if (y->dim[i] == -2) {
      hone_nodes_wrong(n, y, "operands whose dimensions do not go together");
      return;
    }
  }
  y->dim[rank - 2] = p->dim[p->rank - 2];
  y->dim[rank - 1] = q->dim[q->rank - 1];
  if (!hone_value_make(n, y, 2 * (double)(depth < 0 ? 0 : depth))) return;
  const int64_t rows = y->dim[rank - 2], columns = y->dim[rank - 1], count = hone_value_count(y);
  for (int64_t i = 0; i < count; i++) {
    const int64_t s = i / (rows * columns), row = i / columns % rows, column = i % columns;
    const double *a = p->data + hone_stack_place(p, y, s) + row * depth,
                 *b = q->data + hone_stack_place(q, y, s) + column;
    double sum = 0, size = 0;
    for (int64_t k = 0; k < depth; k++) {
      const double term = a[k] * b[k * columns];
      sum += term, size += fabs(term);
    }
    y->data[i] = hone_value_kept(n, sum, size);
  }
}

/* Conv of one to four dimensions; lists are as long as there are dimensions, pads twice; NULL: their
 * defaults. */
typedef struct hone_conv_form {
  int64_t groups;
  const int64_t *strides, *pads, *dilations;
} hone_conv_form;

HONE_KERNEL_FN bool hone_conv_shape(hone_nodes *n, const hone_value *x, const hone_value *w,
                                    const hone_value *bias, const hone_conv_form *f, hone_value *y) {
  const int32_t rank = x->rank, sides = rank - 2;
  if (rank < 3 || rank > 6 || w->rank != rank || f->groups < 1 || (bias && bias->rank != 1))
    return hone_nodes_wrong(n, y, "x and w are not what a convolution takes");
  if ((x->dim[1] >= 0 && w->dim[1] >= 0 && x->dim[1] != w->dim[1] * f->groups) ||
      (w->dim[0] >= 0 && w->dim[0] % f->groups) ||
      (bias && bias->dim[0] >= 0 && w->dim[0] >= 0 && bias->dim[0] != w->dim[0]))
    return hone_nodes_wrong(n, y, "channels of x, w and b that do not go together");
  y->rank = rank;
  y->dim[0] = x->dim[0];
  y->dim[1] = w->dim[0];
  for (int32_t i = 0; i < sides; i++) {
    const int64_t step = f->strides ? f->strides[i] : 1, apart = f->dilations ? f->dilations[i] : 1,
                  around = f->pads ? f->pads[i] + f->pads[sides + i] : 0;
    const int64_t room = x->dim[2 + i] + around - (apart * (w->dim[2 + i] - 1) + 1);
    const bool known = x->dim[2 + i] >= 0 && w->dim[2 + i] >= 0;
    if (known && (room < 0 || w->dim[2 + i] == 0))
      return hone_nodes_wrong(n, y, "an image that is smaller than the kernel");
    y->dim[2 + i] = known ? room / step + 1 : HONE_DIM_UNKNOWN;
  }
  return true;
}

/* The number of x below tap t of the result's place `at` (a number for each side), or NULL outside of it. */
HONE_KERNEL_FN const double *hone_conv_tap(const hone_value *x, const hone_value *w, const hone_conv_form *f,
                                           const int64_t *at, int64_t plane, int64_t t) {
  const int32_t sides = x->rank - 2;
  int64_t place = 0, step = 1;
  for (int32_t i = sides; i-- > 0;) {
    const int64_t k = t % w->dim[2 + i], p = at[i] * (f->strides ? f->strides[i] : 1) -
                                             (f->pads ? f->pads[i] : 0) +
                                             k * (f->dilations ? f->dilations[i] : 1);
    if (p < 0 || p >= x->dim[2 + i]) return NULL;
    t /= w->dim[2 + i];
    place += p * step;
    step *= x->dim[2 + i];
  }
  return x->data + plane * step + place;
}

HONE_KERNEL_FN void hone_conv(hone_nodes *n, const hone_value *x, const hone_value *w, const hone_value *bias,
                              const hone_conv_form *f, hone_value *y) {
  int64_t taps = 1, out = 1, at[4];
  if (!hone_nodes_known(n, x, y) || !hone_nodes_known(n, w, y) || (bias && !hone_nodes_known(n, bias, y)))
    return;
  if (!hone_conv_shape(n, x, w, bias, f, y)) return;
  for (int32_t i = 2; i < w->rank; i++) taps *= w->dim[i], out *= y->dim[i];
  if (!hone_value_make(n, y, 2 * (double)taps * (double)(w->dim[1] < 0 ? 0 : w->dim[1]) + 1)) return;
  const int64_t depth = w->dim[1], made = w->dim[0], count = hone_value_count(y);
  for (int64_t i = 0; i < count; i++) {
    const int64_t image = i / out / made, c = i / out % made, group = c / (made / f->groups);
    double sum = bias ? bias->data[c] : 0, size = fabs(sum);
    for (int64_t k = y->rank - 2, rest = i % out; k-- > 0; rest /= y->dim[2 + k])
      at[k] = rest % y->dim[2 + k];
    for (int64_t d = 0; d < depth; d++)
      for (int64_t t = 0; t < taps; t++) {
        const double *v = hone_conv_tap(x, w, f, at, image * x->dim[1] + group * depth + d, t);
        const double term = v ? *v * w->data[(c * depth + d) * taps + t] : 0;
        sum += term, size += fabs(term);
      }
    y->data[i] = hone_value_kept(n, sum, size);
  }
}

/* ---------------------------------------------------------------- the same numbers otherwise */

HONE_KERNEL_FN void hone_transpose(hone_nodes *n, const hone_value *x, const int64_t *order, hone_value *y) {
  int64_t step[HONE_MAX_RANK], next = 1;
  if (!hone_nodes_known(n, x, y)) return;
  y->rank = x->rank;
  for (int32_t i = x->rank; i-- > 0;) {
    step[i] = next;
    next *= x->dim[i];
  }
  for (int32_t i = 0; i < x->rank; i++) {
    if (order[i] < 0 || order[i] >= x->rank) {
      hone_nodes_wrong(n, y, "another number of dimensions than is transposed");
      return;
    }
    y->dim[i] = x->dim[order[i]];
  }
  if (!hone_value_make(n, y, 0)) return;
  for (int64_t i = 0, count = hone_value_count(y); i < count; i++) {
    int64_t at = 0, rest = i;
    for (int32_t k = y->rank; k-- > 0; rest /= y->dim[k]) at += rest % y->dim[k] * step[order[k]];
    y->data[i] = x->data[at];
  }
}

/* y has dimensions, and takes the numbers of x. */
HONE_KERNEL_FN void hone_same_numbers(hone_nodes *n, const hone_value *x, hone_value *y) {
  const int64_t count = hone_value_count(x), made = hone_value_count(y);
  if (count >= 0 && made >= 0 && made != count) {
    hone_nodes_wrong(n, y, "another number of elements than its shape has");
    return;
  }
  if (hone_value_make(n, y, 0)) memcpy(y->data, x->data, (size_t)count * sizeof(double));
}

/* Reshape: 0 is the dimension of x at this place, -1 what is left. */
HONE_KERNEL_FN void hone_reshape(hone_nodes *n, const hone_value *x, const int64_t *dims, int32_t rank,
                                 hone_value *y) {
  int64_t made = 1;
  int32_t open = -1;
  if (!hone_nodes_known(n, x, y)) return;
  y->rank = rank;
  for (int32_t i = 0; i < rank; i++) {
    if (dims[i] == 0 && i >= x->rank) {
      hone_nodes_wrong(n, y, "fewer dimensions than are taken over");
      return;
    }
    y->dim[i] = dims[i] == 0 ? x->dim[i] : dims[i];
    if (dims[i] == -1)
      open = i;
    else
      made = made < 0 || y->dim[i] < 0 ? -1 : made * y->dim[i];
  }
  const int64_t count = hone_value_count(x);
  if (open >= 0) y->dim[open] = count >= 0 && made > 0 ? count / made : HONE_DIM_UNKNOWN;
  hone_same_numbers(n, x, y);
}

/* A dimension of 1 at each of these places of the result. */
HONE_KERNEL_FN void hone_unsqueeze(hone_nodes *n, const hone_value *x, const int64_t *axes, uint32_t n_axes,
                                   hone_value *y) {
  int32_t at = 0;
  if (!hone_nodes_known(n, x, y)) return;
  y->rank = x->rank + (int32_t)n_axes;
  for (int32_t i = 0; i < y->rank && y->rank <= HONE_MAX_RANK; i++)
    if (n_axes && hone_is_axis(axes, n_axes, y->rank, i))
      y->dim[i] = 1;
    else if (at < x->rank)
      y->dim[i] = x->dim[at++];
  if (at != x->rank)
    hone_nodes_wrong(n, y, "an axis that is not there");
  else
    hone_same_numbers(n, x, y);
}

HONE_KERNEL_FN void hone_squeeze(hone_nodes *n, const hone_value *x, const int64_t *axes, uint32_t n_axes,
                                 hone_value *y) {
  if (!hone_nodes_known(n, x, y)) return;
  y->rank = 0;
  for (int32_t i = 0; i < x->rank; i++)
    if (!hone_is_axis(axes, n_axes, x->rank, i)) y->dim[y->rank++] = x->dim[i];
  if (y->rank + (int32_t)n_axes != x->rank)
    hone_nodes_wrong(n, y, "an axis that is not there");
  else
    hone_same_numbers(n, x, y);
}

/* A matrix: the dimensions before the axis, and the others. */
HONE_KERNEL_FN void hone_flatten(hone_nodes *n, const hone_value *x, int64_t axis, hone_value *y) {
  if (!hone_nodes_known(n, x, y)) return;
  y->rank = 2;
  y->dim[0] = y->dim[1] = 1;
  for (int32_t i = 0; i < x->rank; i++) {
    int64_t *to = &y->dim[i >= (axis < 0 ? axis + x->rank : axis)];
    *to = *to < 0 || x->dim[i] < 0 ? HONE_DIM_UNKNOWN : *to * x->dim[i];
  }
  hone_same_numbers(n, x, y);
}

/* ---------------------------------------------------------------- what an operator is made of */

HONE_KERNEL_FN hone_value hone_value_of(const hone_tensor_desc *d) {
  hone_value v;
  memset(&v, 0, sizeof v);
  v.rank = d ? d->rank : -1;
  for (int32_t i = 0; i < v.rank; i++) v.dim[i] = d->dim[i];
  return v;
}

#define HONE_NODES_INPUTS 16

/* NAME_shape: the nodes' result becomes output 0. */
HONE_KERNEL_FN hone_status hone_nodes_shape(hone_nodes_list list, const hone_infer *io, hone_error *error) {
  hone_value x[HONE_NODES_INPUTS], y;
  hone_nodes n;
  memset(&n, 0, sizeof n);
  for (uint32_t i = 0; i < io->n_inputs; i++) x[i] = hone_value_of(io->input[i]);
  list(&n, x, &y);
  if (n.wrong) {
    if (error) {
      error->status = HONE_ERROR_INPUT;
      strncpy(error->what, n.wrong, sizeof error->what - 1);
    }
    return HONE_ERROR_INPUT;
  }
  io->output[0]->rank = y.rank;
  for (int32_t i = 0; i < y.rank; i++) io->output[0]->dim[i] = y.dim[i] < 0 ? HONE_DIM_UNKNOWN : y.dim[i];
  return HONE_OK;
}

/* NAME_count. */
HONE_KERNEL_FN void hone_nodes_count(hone_nodes_list list, const hone_infer *io, hone_cost *cost) {
  hone_value x[HONE_NODES_INPUTS], y;
  hone_nodes n;
  memset(&n, 0, sizeof n);
  for (uint32_t i = 0; i < io->n_inputs; i++) x[i] = hone_value_of(io->input[i]);
  list(&n, x, &y);
  cost->flops = n.flops;
  cost->macs = 0;
  cost->bytes = -1;
}

/* NAME_ref. Without memory the result is NaN. */
HONE_KERNEL_FN void hone_nodes_reference(hone_nodes_list list, const hone_array *in, uint32_t n_in,
                                         const hone_array *out) {
  hone_value x[HONE_NODES_INPUTS], y;
  hone_nodes n;
  memset(&n, 0, sizeof n);
  for (uint32_t i = 0; i < n_in; i++) {
    memset(&x[i], 0, sizeof x[i]);
    x[i].rank = in[i].rank;
    for (int32_t k = 0; k < in[i].rank; k++) x[i].dim[k] = in[i].dim[k];
    x[i].data = in[i].data;
  }
  list(&n, x, &y);
  n.memory = (char *)malloc(n.used + 1);
  n.used = 0;
  n.compute = n.memory != NULL;
  n.narrow = in[0].dtype != HONE_DTYPE_F64;
  if (n.compute) list(&n, x, &y);
  for (int64_t i = 0; i < out[0].count; i++) out[0].data[i] = n.compute && y.data ? y.data[i] : (double)NAN;
  free(n.memory);
}

/* The inputs of a step in f64, at the beginning of the memory. data NULL: their room is counted. */
HONE_KERNEL_FN void hone_nodes_take(hone_nodes *n, const hone_step *s, const void *const *data,
                                    hone_value *x) {
  for (uint32_t i = 0; i < s->n_inputs; i++) {
    const hone_tensor_desc *d = &s->input[i].desc;
    x[i] = hone_value_of(d);
    if (hone_value_make(n, &x[i], 0))
      for (int64_t k = 0, count = hone_value_count(&x[i]); k < count; k++)
        x[i].data[k] = hone_element(data[i], d->dtype, k);
  }
}

/* NAME_need: bytes of workspace for hone_nodes_run. */
HONE_KERNEL_FN size_t hone_nodes_bytes(hone_nodes_list list, const hone_step *s) {
  hone_value x[HONE_NODES_INPUTS], y;
  hone_nodes n;
  memset(&n, 0, sizeof n);
  hone_nodes_take(&n, s, NULL, x);
  list(&n, x, &y);
  return n.used + 64;
}

/* A kernel: the nodes one after the other, on one thread, all that is between them in f64. */
HONE_KERNEL_FN void hone_nodes_run(hone_nodes_list list, const hone_step_run *run) {
  hone_value x[HONE_NODES_INPUTS], y;
  hone_nodes n;
  memset(&n, 0, sizeof n);
  n.memory = (char *)run->workspace;
  n.compute = true;
  hone_nodes_take(&n, run->step, run->in, x);
  list(&n, x, &y);
  for (int64_t i = 0, count = hone_value_count(&y); i < count; i++)
    hone_set_element(run->out[0], run->step->output[0].desc.dtype, i, y.data[i]);
}

#endif
