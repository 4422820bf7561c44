/* Attention as ONNX's own operators say it: Concat and many nodes, Attention, TensorScatter. */
#include "decoder_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static hn_value *op(decoder_builder *b, const char *type, hn_value *x, hn_value *y) {
  return decoder_op(b, type, x, y);
}

static hn_value *ints(decoder_builder *b, int64_t n, const int64_t *of) {
  return net_constant(b->m, HONE_DTYPE_I64, 1, &n, of);
}

static hn_value *number(decoder_builder *b, int64_t of) {
  return net_constant(b->m, HONE_DTYPE_I64, 0, NULL, &of);
}

static hn_value *decimal(decoder_builder *b, float of) {
  hn_value *v = net_constant(b->m, HONE_DTYPE_F32, 0, NULL, &of);
  return b->z->halves ? decoder_to(b, v, HONE_DTYPE_F16) : v;
}

static hn_value *length(decoder_builder *b, hn_value *x, int64_t axis) { /* a number */
  return op(b, "Gather", op(b, "Shape", x, NULL), number(b, axis));
}

static hn_value *reach(decoder_builder *b, hn_value *from, hn_value *to) {
  return net_op(b->m, "Range", (hn_value *[]){from, to, number(b, 1)}, 3);
}

static hn_value *wider(decoder_builder *b, hn_value *x, int64_t axis) {
  return op(b, "Unsqueeze", x, ints(b, 1, &axis));
}

static hn_value *turned(decoder_builder *b, hn_value *x, const int64_t order[4]) {
  hn_value *y = op(b, "Transpose", x, NULL);
  assert_true(hn_node_set_ints(y->producer, "perm", order, 4));
  return y;
}

static hn_value *joined(decoder_builder *b, hn_value *x, hn_value *y, int64_t axis) {
  hn_value *z = op(b, "Concat", x, y);
  assert_true(hn_node_set_int(z->producer, "axis", axis));
  return z;
}

static hn_value *part(decoder_builder *b, hn_value *x, int64_t from, int64_t to, int64_t axis) {
  return net_op(b->m, "Slice", (hn_value *[]){x, ints(b, 1, &from), ints(b, 1, &to), ints(b, 1, &axis)}, 4);
}

/* ------------------------------------------------------------------ once for all layers */

static hn_value *places(decoder_builder *b, hn_value *mask, hn_value *past, hn_value *all,
                        const int64_t dim[2]) {
  const int64_t axis = 1, most = INT32_MAX;
  if (b->z->way == DECODER_PLACES_OF_WIDTH) return wider(b, reach(b, past, all), 0);
  if (b->z->way != DECODER_PLACES_OF_MASK) return net_input(b->m, "position_ids", HONE_DTYPE_I64, 2, dim);
  hn_value *sums = op(b, "Sub", op(b, "CumSum", mask, number(b, 1)), number(b, 1));
  return net_op(b->m, "Slice", (hn_value *[]){sums, wider(b, past, 0), ints(b, 1, &most), ints(b, 1, &axis)},
                4);
}

/* Which keys a token sees: those up to itself that the mask says, as exporters write it. */
static void masks(decoder_builder *b, hn_value *mask, hn_value *past, hn_value *all) {
  hn_value *keys = wider(b, reach(b, number(b, 0), length(b, mask, 1)), 0),
           *tokens = wider(b, reach(b, past, all), 1), *seen = op(b, "LessOrEqual", keys, tokens);
  if (b->z->way == DECODER_WINDOW_OF_WIDTH)
    seen = op(b, "And", seen, op(b, "Greater", keys, op(b, "Sub", tokens, number(b, DECODER_WINDOW))));
  if (b->z->way == DECODER_NO_MASK)
    b->seen = wider(b, wider(b, seen, 0), 0);
  else
    b->seen = op(b, "And", wider(b, wider(b, seen, 0), 0),
                 decoder_to(b, wider(b, wider(b, mask, 1), 1), HONE_DTYPE_BOOL));
  b->bias = net_op(b->m, "Where",
                   (hn_value *[]){b->seen, decimal(b, 0), decimal(b, b->z->halves ? -65504 : -3.4e38f)}, 3);
  if (b->z->way != DECODER_SLOPES_OF_WIDTH) return;
  hn_value *far = decoder_to(b, op(b, "Sub", keys, tokens), b->z->halves ? HONE_DTYPE_F16 : HONE_DTYPE_F32);
  b->bias = op(b, "Add", b->bias, op(b, "Mul", far, decimal(b, 0.02f)));
}

void decoder_own_begin(decoder_builder *b, hn_value *ids) {
  const int64_t *dim = ids->desc.dim;
  b->m->opsets.ptr[0].version = 24;
  if (b->z->form == DECODER_SCATTER) {
    b->places = net_input(b->m, "position_ids", HONE_DTYPE_I64, 2, dim);
    b->lengths = net_input(b->m, "write_indices", HONE_DTYPE_I64, 1, &b->batch);
    b->total = net_input(b->m, "nonpad_kv_seqlen", HONE_DTYPE_I64, 1, &b->batch);
    return;
  }
  const int64_t wide[2] = {b->batch, hn_model_symbol(b->m, "total")};
  hn_value *mask = net_input(b->m, "attention_mask", HONE_DTYPE_I64, 2, wide),
           *past = length(b, b->cache[0], 2), *all = op(b, "Add", past, length(b, ids, 1));
  b->places = places(b, mask, past, all, dim);
  masks(b, mask, past, all);
}

/* ------------------------------------------------------------------ a layer */

/* [batch, tokens, heads * size] -> [batch, heads, tokens, size] */
static hn_value *heads(decoder_builder *b, hn_value *x, int64_t n) {
  const int64_t shape[4] = {0, 0, n, b->z->size}, order[4] = {0, 2, 1, 3};
  return turned(b, op(b, "Reshape", x, ints(b, 4, shape)), order);
}

static hn_value *rotated(decoder_builder *b, hn_value *x) {
  const int64_t half = b->z->size / 2;
  if (b->z->places) return x;
  hn_value *c = wider(b, op(b, "Gather", b->cos, b->places), 1),
           *s = wider(b, op(b, "Gather", b->sin, b->places), 1), *l = part(b, x, 0, half, 3),
           *r = part(b, x, half, 2 * half, 3);
  return joined(b, op(b, "Sub", op(b, "Mul", l, c), op(b, "Mul", r, s)),
                op(b, "Add", op(b, "Mul", r, c), op(b, "Mul", l, s)), 3);
}

/* Each head as often as there are queries to it. */
static hn_value *repeated(decoder_builder *b, hn_value *x) {
  const int64_t times = b->z->heads / b->z->kv_heads, to[5] = {1, 1, times, 1, 1},
                shape[4] = {0, b->z->heads, -1, b->z->size};
  if (times == 1) return x;
  return op(b, "Reshape", op(b, "Expand", wider(b, x, 2), ints(b, 5, to)), ints(b, 4, shape));
}

static hn_value *spelled(decoder_builder *b, hn_value *q, hn_value *k, hn_value *v) {
  const int64_t order[4] = {0, 1, 3, 2};
  hn_value *scores = op(b, "MatMul", q, turned(b, repeated(b, k), order));
  scores = op(b, "Add", op(b, "Mul", scores, decimal(b, 1 / sqrtf((float)b->z->size))), b->bias);
  return op(b, "MatMul", op(b, "Softmax", scores, NULL), repeated(b, v));
}

hn_value *decoder_own_attention(decoder_builder *b, hn_value *q, hn_value *k, hn_value *v,
                                hn_value *const past[2], hn_value *present[2]) {
  const int64_t order[4] = {0, 2, 1, 3}, shape[3] = {0, 0, b->d};
  hn_value *y;
  q = rotated(b, heads(b, q, b->z->heads)), k = rotated(b, heads(b, k, b->z->kv_heads));
  v = heads(b, v, b->z->kv_heads);
  if (b->z->form == DECODER_CONCAT) {
    present[0] = joined(b, past[0], k, 2), present[1] = joined(b, past[1], v, -2);
    y = spelled(b, q, present[0], present[1]);
  } else if (b->z->form == DECODER_ATTENTION) {
    hone_node *n =
        decoder_node(b, "Attention", NULL, (hn_value *[]){q, k, v, b->seen, past[0], past[1]}, 6, 3);
    present[0] = n->out[1], present[1] = n->out[2], y = n->out[0];
  } else {
    for (int i = 0; i < 2; i++)
      present[i] = net_op(b->m, "TensorScatter", (hn_value *[]){past[i], i ? v : k, b->lengths}, 3);
    y = net_op(b->m, "Attention", (hn_value *[]){q, present[0], present[1], NULL, NULL, NULL, b->total}, 7);
    assert_true(hn_node_set_int(y->producer, "is_causal", 1));
  }
  return op(b, "Reshape", turned(b, y, order), ints(b, 3, shape));
}
