/* Conv(x, A) + Conv(x, B) + ...  ->  Conv(x, A + B + ...)
 *
 * Networks that were trained with several branches for one (RepVGG, MobileOne, RepViT, FastViT) and were
 * exported as they were trained. Smaller kernels stand in the middle of larger ones, where their padding puts
 * them. x k + d beside such a convolution, with a number a channel (a normalisation of x itself), is one of
 * 1x1 whose weights lie on the diagonal: not where weights have few bits, of which its large ones would take
 * most (bf16), and not in files, which may get codes of 8 bits. Sums of weights in double, rounded once. */
#include "base/integers.h"
#include "model/ops/common/window.h"
#include "optimize/passes/common/pass.h"

#include <math.h>

enum { MOST = 16 };

typedef struct branch {
  hn_value *out;
  hone_node *conv; /* of x k + d: the one beside it, whose attributes it has */
  hn_window window;
  const hone_tensor *scale, *shift; /* k and d; NULL: a convolution, and no shift */
} branch;

/* A sum of branches, as one convolution. */
typedef struct whole {
  branch part[MOST];
  uint32_t n;
  hn_window window; /* kernel, dilation, pad and pad_end of the sum */
  int64_t volume;   /* elements of all kernels */
} whole;

enum { LARGEST = 4096 }; /* elements of a window */

static const hone_tensor *weights_of(const hone_node *n) { return hn_known_desc(hn_in(n, 1)); }

/* A convolution by constants that nothing but the sum reads. */
static bool read_branch(hn_value *v, branch *b) {
  hone_node *n = v->producer;
  if (!n || n->graph != v->graph || !hn_is_op(n, "Conv") || !hn_value_single_use(v) || !n->in[0])
    return false;
  const hone_tensor *w = weights_of(n), *bias = hn_known_desc(hn_in(n, 2));
  if (!w || w->desc.dtype != HONE_DTYPE_F32 || w->desc.rank < 3 || n->in[0]->desc.rank != w->desc.rank)
    return false;
  if (hn_in(n, 2) && (!bias || bias->desc.dtype != HONE_DTYPE_F32)) return false;
  *b = (branch){.out = v, .conv = n};
  if (hn_window_init(&b->window, n, &n->in[0]->desc, w->desc.dim + 2, false, NULL) != HONE_OK) return false;
  for (int32_t d = 0; d < b->window.n; d++)
    if (b->window.in[d] < 1 || b->window.out[d] < 1) return false; /* not known */
  return true;
}

/* A constant with a number for each channel of `like`, and no more dimensions. */
static const hone_tensor *by_channel(const hn_value *v, const hone_tensor_desc *like) {
  const hone_tensor *t = hn_known(v);
  if (!t || t->desc.dtype != HONE_DTYPE_F32 || t->desc.rank > like->rank || t->desc.rank + 1 < like->rank)
    return NULL;
  for (int32_t i = 0; i < t->desc.rank; i++)
    if (t->desc.dim[i] != (i == t->desc.rank - like->rank + 1 ? like->dim[1] : 1)) return NULL;
  return t;
}

/* x k + d, or x k, that nothing but the sum reads: x, and the numbers. */
static hn_value *read_scaled(hn_value *v, branch *b) {
  hone_node *n = v->producer;
  *b = (branch){.out = v};
  if (v->desc.rank < 3 || !hn_value_single_use(v)) return NULL;
  if (n && hn_is_op(n, "Add") && n->in[0] && n->in[1]) {
    const int at = by_channel(n->in[1], &v->desc) != NULL;
    b->shift = by_channel(n->in[at], &v->desc);
    if (!b->shift || !hn_value_single_use(n->in[!at])) return NULL;
    n = n->in[!at]->producer;
  }
  if (!n || n->graph != v->graph || !hn_is_op(n, "Mul") || !n->in[0] || !n->in[1]) return NULL;
  const int at = by_channel(n->in[1], &v->desc) != NULL;
  b->scale = by_channel(n->in[at], &v->desc);
  hn_value *x = n->in[!at];
  return b->scale && v->producer->graph == v->graph && hn_same_shape(&x->desc, &v->desc) ? x : NULL;
}

/* As a convolution of 1x1, in the form of one that reads x, too, and has as many channels behind it. */
static bool stands_beside(branch *b, const hn_value *x, const branch *conv) {
  const hone_tensor *w = hn_known_desc(hn_in(conv->conv, 1));
  const int64_t channels = x->desc.dim[1];
  if (conv->scale || conv->conv->in[0] != x || w->desc.dim[0] != channels ||
      w->desc.dim[1] * hone_node_int(conv->conv, "group", 1) != channels)
    return false;
  b->conv = conv->conv;
  b->window = conv->window;
  for (int32_t d = 0; d < b->window.n; d++) {
    if (b->window.stride[d] != 1 || b->window.in[d] != b->window.out[d]) return false;
    b->window.kernel[d] = b->window.dilation[d] = 1, b->window.pad[d] = b->window.pad_end[d] = 0;
  }
  return true;
}

static int64_t volume(const hn_window *w) {
  int64_t n = 1;
  for (int32_t d = 0; d < w->n; d++) n *= w->kernel[d];
  return n;
}

/* The window that has the elements of both, *out; false where there is none: elements of one lie between
 * those of the other. */
static bool join_windows(const hn_window *a, const hn_window *b, hn_window *out) {
  *out = *a;
  for (int32_t d = 0; d < a->n; d++) {
    if (a->stride[d] != b->stride[d] || a->out[d] != b->out[d]) return false;
    const int64_t step = a->kernel[d] > 1 ? a->dilation[d] : b->kernel[d] > 1 ? b->dilation[d] : 1;
    if (a->kernel[d] > 1 && b->kernel[d] > 1 && a->dilation[d] != b->dilation[d]) return false;
    if ((a->pad[d] - b->pad[d]) % step) return false;
    const int64_t last = hn_max((a->kernel[d] - 1) * step - a->pad[d], (b->kernel[d] - 1) * step - b->pad[d]);
    out->dilation[d] = step;
    out->pad[d] = hn_max(a->pad[d], b->pad[d]);
    out->kernel[d] = (out->pad[d] + last) / step + 1;
    out->pad_end[d] = hn_max(0, (a->out[d] - 1) * a->stride[d] + last + 1 - a->in[d]);
  }
  return true;
}

/* Does each element of the window belong to a kernel? Others would be zeros, which make NaN of infinities
 * that no branch reads, and products for nothing. */
static bool is_covered(const hn_window *w, const branch *part, uint32_t n) {
  bool seen[LARGEST] = {false};
  int64_t left = volume(w);
  if (left > LARGEST) return false;
  for (uint32_t i = 0; i < n; i++) {
    const hn_window *own = &part[i].window;
    int64_t k[HN_MAX_SPATIAL] = {0};
    for (int64_t e = 0, all = volume(own); e < all; e++) {
      int64_t at = 0;
      for (int32_t d = 0; d < w->n; d++)
        at = at * w->kernel[d] + (w->pad[d] - own->pad[d]) / w->dilation[d] + k[d];
      left -= !seen[at];
      seen[at] = true;
      for (int32_t d = w->n - 1; d >= 0 && ++k[d] == own->kernel[d]; d--) k[d] = 0;
    }
  }
  return left == 0;
}

/* Takes the branch into the sum, where that makes no more products than both have now. */
static bool take(whole *w, const branch *b) {
  hn_window joined;
  if (w->n == MOST) return false;
  if (w->n) {
    const hone_node *one = w->part[0].conv, *two = b->conv;
    const hone_tensor *a = weights_of(one), *c = weights_of(two);
    if (one->in[0] != two->in[0] || a->desc.rank != c->desc.rank || a->desc.dim[0] != c->desc.dim[0] ||
        a->desc.dim[1] != c->desc.dim[1] ||
        hone_node_int(one, "group", 1) != hone_node_int(two, "group", 1) ||
        !join_windows(&w->window, &b->window, &joined) || volume(&joined) > w->volume + volume(&b->window))
      return false;
    w->part[w->n] = *b;
    if (!is_covered(&joined, w->part, w->n + 1)) return false;
    w->window = joined;
  } else
    w->window = b->window;
  w->volume += volume(&b->window);
  w->part[w->n++] = *b;
  return true;
}

/* The operands of a sum of sums. */
static uint32_t addends(hone_node *root, bool scaled, hn_value **list) {
  hn_value *open[2 * MOST] = {root->in[0], root->in[1]};
  uint32_t n = 0, left = 2;
  while (left) {
    hn_value *v = open[--left];
    hone_node *add = v->producer;
    branch unread;
    if (add && add->graph == root->graph && hn_is_op(add, "Add") && hn_value_single_use(v) &&
        !(scaled && read_scaled(v, &unread)) && left + 2 <= 2 * MOST &&
        hn_same_shape(&v->desc, &root->out[0]->desc) && add->in[0] && add->in[1]) {
      open[left++] = add->in[0], open[left++] = add->in[1];
      continue;
    }
    if (n < 2 * MOST && hn_same_shape(&v->desc, &root->out[0]->desc)) list[n++] = v;
  }
  return n;
}

/* Is the sum itself an operand of a larger one? That one is looked at then. */
static bool within_larger(const hone_node *add) {
  if (!hn_value_single_use(add->out[0])) return false;
  const hone_node *user = add->out[0]->users.ptr[0].node;
  return user->graph == add->graph && hn_is_op(user, "Add") && user->out[0] &&
         hn_same_shape(&user->out[0]->desc, &add->out[0]->desc);
}

/* Of the sum's largest group of branches that are one convolution: true with two or more. */
static bool find(hone_node *add, bool scaled, whole *w) {
  hn_value *operand[2 * MOST];
  branch all[2 * MOST];
  const uint32_t n = addends(add, scaled, operand);
  uint32_t branches = 0;
  for (uint32_t i = 0; i < n; i++) branches += read_branch(operand[i], &all[branches]);
  const uint32_t convs = branches;
  for (uint32_t i = 0; i < n && convs && scaled; i++) {
    const hn_value *x = read_scaled(operand[i], &all[branches]);
    uint32_t k = 0;
    while (x && k < convs && !stands_beside(&all[branches], x, &all[k])) k++;
    branches += x && k < convs;
  }
  for (uint32_t i = 1; i < branches; i++) /* the larger kernels first: the others lie in them */
    for (uint32_t k = i; k > 0 && volume(&all[k].window) > volume(&all[k - 1].window); k--) {
      const branch larger = all[k];
      all[k] = all[k - 1], all[k - 1] = larger;
    }
  *w = (whole){0};
  for (uint32_t i = 0; i + 1 < branches && w->n < 2; i++) {
    if (all[i].scale) continue; /* beside which convolution? */
    *w = (whole){0};
    take(w, &all[i]);
    for (uint32_t k = i + 1; k < branches; k++) take(w, &all[k]);
  }
  return w->n >= 2;
}

/* The same of x k: [channel, channel of its group, the element that stands on the pixel itself]. */
static void add_diagonal(const whole *w, const branch *b, double *sum) {
  const int64_t channels = weights_of(b->conv)->desc.dim[0], deep = weights_of(b->conv)->desc.dim[1];
  for (int64_t c = 0; c < channels; c++) {
    int64_t at = c * deep + c % deep;
    for (int32_t d = 0; d < w->window.n; d++)
      at = at * w->window.kernel[d] + (w->window.pad[d] - b->window.pad[d]) / w->window.dilation[d];
    sum[at] += hn_get_f64(b->scale, c);
  }
}

/* sum[] of the window's elements += the branch's, at their places. */
static void add_weights(const whole *w, const branch *b, double *sum) {
  if (b->scale) {
    add_diagonal(w, b, sum);
    return;
  }
  const void *from = hn_known(b->conv->in[1])->data;
  int64_t next = 0;
  const int64_t pairs = weights_of(b->conv)->desc.dim[0] * weights_of(b->conv)->desc.dim[1];
  int64_t shift[HN_MAX_SPATIAL], k[HN_MAX_SPATIAL] = {0};
  for (int32_t d = 0; d < w->window.n; d++)
    shift[d] = (w->window.pad[d] - b->window.pad[d]) / w->window.dilation[d];
  for (int64_t pair = 0; pair < pairs;) {
    int64_t at = pair;
    for (int32_t d = 0; d < w->window.n; d++) at = at * w->window.kernel[d] + shift[d] + k[d];
    sum[at] += (double)hn_f32_at(from, next++);
    int32_t d = w->window.n - 1;
    for (; d >= 0 && ++k[d] == b->window.kernel[d]; d--) k[d] = 0;
    pair += d < 0;
  }
}

/* The sum as a node in front of the first branch; NULL with ctx->status. *beyond: the numbers leave f32's
 * range. */
static hone_node *make_whole(hn_pass_context *ctx, const whole *w, bool *beyond) {
  hone_node *first = w->part[0].conv;
  hone_tensor_desc d = weights_of(first)->desc, row = hone_desc(HONE_DTYPE_F32, 1, d.dim);
  int64_t pads[2 * HN_MAX_SPATIAL];
  bool biased = false;
  for (int32_t i = 0; i < w->window.n; i++) {
    d.dim[i + 2] = w->window.kernel[i];
    pads[i] = w->window.pad[i], pads[w->window.n + i] = w->window.pad_end[i];
  }
  hone_desc_set_layout(&d, HONE_LAYOUT_ROW_MAJOR, 0);
  const int64_t count = hone_desc_count(&d);
  double *sum = HN_NEW_ARRAY(ctx->scratch, double, count),
         *bias = HN_NEW_ARRAY(ctx->scratch, double, d.dim[0]);
  if (!sum || !bias) return hn_pass_memory(ctx), NULL;
  for (uint32_t i = 0; i < w->n; i++) {
    const hone_tensor *b = w->part[i].scale ? w->part[i].shift : hn_known(hn_in(w->part[i].conv, 2));
    add_weights(w, &w->part[i], sum);
    for (int64_t c = 0; b && c < d.dim[0]; c++) bias[c] += hn_get_f64(b, c);
    biased |= b != NULL;
  }
  *beyond = false;
  for (int64_t i = 0; i < count; i++) *beyond |= !(fabs(sum[i]) <= 3.4028234e38);
  for (int64_t i = 0; i < d.dim[0]; i++) *beyond |= !(fabs(bias[i]) <= 3.4028234e38);
  if (*beyond) return NULL;
  hn_value *in[3] = {first->in[0], hn_make_floats(ctx, first->in[1]->name, &d, sum),
                     biased ? hn_make_floats(ctx, first->out[0]->name, &row, bias) : NULL};
  if (!in[1] || (biased && !in[2])) return NULL;
  hone_node *n = hn_make_node(ctx, first, "Conv", in, biased ? 3 : 2, &first->out[0]->desc);
  if (!n) return NULL;
  if (!hn_node_copy_attrs(n, first) ||
      !hn_node_set_ints(n, "kernel_shape", w->window.kernel, (size_t)w->window.n) ||
      !hn_node_set_ints(n, "dilations", w->window.dilation, (size_t)w->window.n) ||
      !hn_node_set_ints(n, "pads", pads, 2 * (size_t)w->window.n))
    return hn_pass_memory(ctx), NULL;
  hn_node_drop_attr(n, "auto_pad");
  for (uint32_t i = 0; i < w->n; i++)
    if (!hn_inherit(ctx, n, w->part[i].out->producer)) return NULL;
  return n;
}

/* Can all numbers be read? Scaled ones may leave f32's range. */
static bool readable(const whole *w) {
  for (uint32_t i = 0; i < w->n; i++)
    if (!hn_known(w->part[i].conv->in[1]) || (hn_in(w->part[i].conv, 2) && !hn_known(w->part[i].conv->in[2])))
      return false;
  return true;
}

static hn_value *beside(const hone_node *add, const hn_value *v) { return add->in[add->in[0] == v]; }

static hn_pass_result visit(hn_pass_context *ctx, hone_node *add) {
  whole w;
  bool beyond;
  if (!hn_is_op(add, "Add") || !add->in[0] || !add->in[1] || !add->out[0] || within_larger(add) ||
      !find(add, ctx->options->lowered && !ctx->options->coarse, &w))
    return HN_PASS_NONE;
  /* A sum goes that returns its value under the value's own name: what stays must be able to bear it. */
  for (uint32_t i = 1; i < w.n; i++) {
    const hone_node *sum = w.part[i].out->users.ptr[0].node;
    if (!hn_can_replace(sum->out[0], beside(sum, w.part[i].out)) && sum->out[0]->is_output)
      return hn_pass_miss(ctx, "the sum '%.80s' is an output of the model, and so is its operand", sum->name);
  }
  if (!readable(&w)) return HN_PASS_NONE;
  hone_node *n = make_whole(ctx, &w, &beyond);
  if (!n) return beyond ? hn_pass_miss(ctx, "the sum of the weights would overflow") : HN_PASS_FAIL;
  hn_pass_hit(ctx, "%u convolutions of '%.80s' became one", w.n, n->in[0]->name);
  if (!hn_replace(ctx, w.part[0].conv->out[0], n->out[0])) return HN_PASS_FAIL;
  hn_remove_unread(w.part[0].conv, 0);
  for (uint32_t i = 1; i < w.n; i++) {
    hn_value *y = w.part[i].out;
    hone_node *sum = y->users.ptr[0].node;
    if (!hn_inherit(ctx, n, sum) || !hn_replace(ctx, sum->out[0], beside(sum, y))) return HN_PASS_FAIL;
    hn_remove_unread(sum, 3);
  }
  return HN_PASS_HIT;
}

HN_PASS(merge_convolutions) = {
    .name = "merge_convolutions",
    .level = 2,
    .about = "Conv(x, A) + Conv(x, B) -> Conv(x, A + B)",
    .visit = visit,
    .roots = HN_ROOTS("Add"),
};
