/* Inference of shapes where little is known. */
#include "ops/text_case.h"
#include "model/ops/common/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What flows through, and what must not be claimed. */
typedef struct partial {
  text_case t;
  uint32_t hide_dims, hide_rank, known;
  int32_t rank;
  int64_t dim[4]; /* -1: must be unknown */
} partial;

static void unknown_shapes(void **state) {
  (void)state;
  static const partial cases[] = {
      {{"Reshape", 14, "f32:2x3 i64:2=0,-1", "", ""}, 1, 0, 2, 2, {-1, -1}},
      {{"Reshape", 14, "f32:2x3 i64:2=0,-1", "", ""}, 0, 1, 2, 2, {-1, -1}},
      {{"Reshape", 14, "f32:2x3 i64:2=6,1", "", ""}, 1, 0, 2, 2, {6, 1}},
      {{"Reshape", 14, "f32:2x3 i64:2=0,-1", "", ""}, 0, 0, 0, 2, {-1, -1}},
      {{"Reshape", 14, "f32:2x3 i64:2=0,-1", "", ""}, 2, 0, 0, -1, {0}},
      {{"Flatten", 13, "f32:2x3", "", ""}, 1, 0, 0, 2, {-1, -1}},
      {{"Flatten", 13, "f32:2x3", "", ""}, 0, 1, 0, 2, {-1, -1}},
      {{"Concat", 13, "f32:2x3 f32:2x4", "axis=1", ""}, 1, 0, 0, 2, {2, -1}},
      {{"Concat", 13, "f32:2x3 f32:2x4", "axis=1", ""}, 0, 1, 0, 2, {2, -1}},
      {{"Slice", 13, "f32:4x5 i64:1=1 i64:1=3 i64:1=0", "", ""}, 0, 0, 8, 2, {-1, 5}},
      {{"Slice", 13, "f32:4x5 i64:1=0 i64:1=2147483647 i64:1=0", "", ""}, 0, 0, 14, 2, {4, 5}},
      {{"Gather", 13, "f32:4x5 i64:2=0,1", "axis=1", ""}, 2, 0, 0, 2, {4, -1}},
      {{"Gather", 13, "f32:4x5 i64:2=0,1", "axis=1", ""}, 0, 2, 0, -1, {0}},
      {{"Expand", 13, "f32:3x1 i64:3=2,1,4", "", ""}, 0, 0, 0, 3, {-1, 3, -1}},
      {{"Expand", 13, "f32:3x1 i64:3=2,3,4", "", ""}, 1, 0, 2, 3, {2, 3, 4}},
      {{"Pad", 18, "f32:3x1 i64:4=0,1,0,1", "", ""}, 1, 0, 2, 2, {-1, -1}},
      {{"Pad", 18, "f32:3x1 i64:4=0,1,0,1", "", ""}, 0, 0, 0, 2, {-1, -1}},
      {{"Tile", 13, "f32:3x1 i64:2=2,0", "", ""}, 1, 0, 2, 2, {-1, 0}},
      {{"ReduceSum", 13, "f32:3x2 i64:1=1", "", ""}, 0, 0, 0, 2, {-1, -1}},
      {{"ReduceSum", 13, "f32:3x2 i64:1=1", "keepdims=0", ""}, 0, 0, 0, -1, {0}},
      {{"MatMul", 13, "f32:3x2 f32:2x4", "", ""}, 1, 0, 0, 2, {-1, 4}},
      {{"Gemm", 13, "f32:3x2 f32:2x4", "", ""}, 0, 1, 0, 2, {-1, 4}},
      {{"TopK", 11, "f32:3x2 i64:1=1", "", ""}, 0, 0, 0, 2, {3, -1}},
      {{"Split", 18, "f32:6 i64:1=6", "", ""}, 0, 0, 0, 1, {-1}},
      {{"Split", 18, "f32:6", "num_outputs=1", ""}, 1, 0, 0, 1, {-1}},
      {{"OneHot", 11, "i64:2 i64:=3 f32:2", "", ""}, 0, 0, 0, 2, {2, -1}},
      {{"Range", 11, "i64:=1 i64:=3 i64:=1", "", ""}, 0, 0, 3, 1, {-1}},
      {{"Attention", 23, "f32:1x2x3x4 f32:1x1x5x4 f32:1x1x5x6", "", ""}, 4, 0, 0, 4, {1, 2, 3, -1}},
      {{"Attention", 23, "f32:1x3x4 f32:1x5x4 f32:1x5x6", "q_num_heads=2 kv_num_heads=2", ""},
       1,
       0,
       0,
       3,
       {-1, -1, 6}},
      {{"Attention", 23, "f32:1x2x3x4 f32:1x1x5x4 f32:1x1x5x6", "", ""}, 0, 1, 0, -1, {0}},
      {{"RotaryEmbedding", 23, "f32:1x2x3x4 f32:1x3x2 f32:1x3x2", "", ""}, 6, 1, 0, -1, {0}},
      {{"LinearAttention", 27, "f32:1x2x6 f32:1x2x3 f32:1x2x4",
        "update_rule=s:linear q_num_heads=2 kv_num_heads=1", ""},
       4,
       0,
       0,
       3,
       {1, 2, -1}},
      {{"CausalConvWithState", 27, "f32:1x2x3 f32:2x1x4", "", ""}, 0, 1, 0, 3, {-1, 2, -1}},
      {{"TensorScatter", 24, "f32:2x3x1 f32:2x1x1", "", ""}, 0, 2, 0, 3, {2, 3, 1}},
      {{"SwiGLU", 28, "f32:2x3 f32:2x3", "", ""}, 1, 0, 0, 2, {2, 3}},
      {{"Shape", 15, "f32:2x3", "", ""}, 1, 0, 0, 1, {2}},
      {{"Shape", 15, "f32:2x3", "", ""}, 0, 1, 0, 1, {-1}},
      {{"Einsum", 12, "f32:2x3 f32:3x4", "equation=s:ij,jk->ki", ""}, 1, 0, 0, 2, {4, -1}},
      {{"DFT", 17, "f32:1x6x1 i64:=4", "onesided=1", ""}, 0, 0, 0, 3, {1, -1, 2}},
      {{"Add", 14, "f32:2x3 f32:3", "", ""}, 1, 0, 0, 2, {-1, 3}},
      {{"Add", 6, "f32:2x3 f32:2", "broadcast=1 axis=0", ""}, 2, 0, 0, 2, {2, 3}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const partial *p = &cases[i];
    op_case c;
    char copy[512], *save = NULL;
    op_begin(&c, p->t.op, p->t.opset);
    snprintf(copy, sizeof copy, "%s", p->t.inputs);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
      text_spec s = text_read(word);
      op_in(&c, s.dtype, s.dims, s.n ? s.value : NULL, 7);
    }
    op_attrs(&c, p->t.attrs);
    if (op_infer(&c, 1, p->hide_dims, p->hide_rank, p->known) != HONE_OK)
      fail_msg("%s %s: %s", p->t.op, p->t.inputs, c.error.what);
    const hone_tensor_desc *got = &c.out[0].desc;
    bool same = got->rank == p->rank;
    for (int32_t d = 0; same && d < p->rank; d++)
      same = p->dim[d] < 0 ? got->dim[d] < 0 : got->dim[d] == p->dim[d];
    char text[96];
    if (!same)
      fail_msg("case %zu, %s %s: inferred %s", i, p->t.op, p->t.inputs,
               hone_desc_format(got, text, sizeof text));
    op_end(&c);
  }
}

/* A named dimension keeps its name where it is the same number. */
static void named_dimensions(void **state) {
  (void)state;
  op_case c;
  op_begin(&c, "Reshape", 14);
  op_in(&c, HONE_DTYPE_F32, "2x3x4", NULL, 1);
  op_in(&c, HONE_DTYPE_I64, "2", (const double[]){-1, 12}, 0);
  assert_int_equal(op_infer(&c, 1, 0, 0, 2), HONE_OK);
  hone_tensor_desc x = {.dtype = HONE_DTYPE_F32, .rank = 3, .dim = {-5, 3, 4}}, y = {.rank = -1};
  const hone_tensor_desc *in[] = {&x, &c.in[1].desc};
  const hone_tensor *value[] = {NULL, &c.in[1]};
  hone_tensor_desc *out[] = {&y};
  hone_infer io = {c.node, 2, 1, in, value, out};
  assert_int_equal(c.node->op->infer(&io, &c.error), HONE_OK);
  assert_int_equal(y.dim[0], -5);
  assert_int_equal(y.dim[1], 12);
  op_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(unknown_shapes),
      cmocka_unit_test(named_dimensions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
