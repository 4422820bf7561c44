/* Own cases for operators on arrays: elementwise, movement, reductions, products, gathering, losses,
 * transforms and strings. What the public suites leave out: dtypes, borders, old opsets, refusals, and
 * inference that knows little.
 *
 * A case is text: inputs "i32:2x3=1,2,3,4,5,6 f32:=0.5 -" are dtype, dimensions and values, or left out;
 * expected outputs read the same way, without values only dtype and dimensions count. */
#include "ops/op_case.h"

#include "model/ops/common/op.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct text_case {
  const char *op;
  int opset;
  const char *inputs, *attrs, *outputs; /* outputs NULL: must be refused */
} text_case;

enum { MAX_VALUES = 64 };

typedef struct spec {
  hone_dtype dtype;
  char dims[64];
  double value[MAX_VALUES];
  size_t n;
} spec;

static spec read_spec(char *word) {
  spec s = {0};
  char *colon = strchr(word, ':'), *equal = strchr(word, '=');
  assert_non_null(colon);
  *colon = 0;
  s.dtype = hone_dtype_from_name(word);
  assert_int_not_equal(s.dtype, HONE_DTYPE_NONE);
  if (equal) *equal = 0;
  snprintf(s.dims, sizeof s.dims, "%s", colon + 1);
  for (char *p = equal ? equal + 1 : NULL; p && *p;) {
    char *end;
    assert_true(s.n < MAX_VALUES);
    s.value[s.n++] = strtod(p, &end);
    p = *end == ',' ? end + 1 : end;
  }
  return s;
}

static hone_status run(op_case *c, const text_case *t, uint32_t n_out) {
  char copy[512], *save = NULL;
  op_begin(c, t->op, t->opset);
  snprintf(copy, sizeof copy, "%s", t->inputs);
  for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
    if (strcmp(word, "-") == 0) {
      op_skip(c);
      continue;
    }
    spec s = read_spec(word);
    op_in(c, s.dtype, s.dims, s.n ? s.value : NULL, 7);
  }
  op_attrs(c, t->attrs);
  return op_run(c, n_out);
}

static void check(const text_case *t) {
  op_case c;
  char copy[512], *save = NULL;
  spec want[OP_CASE_MAX];
  uint32_t n = 0;
  snprintf(copy, sizeof copy, "%s", t->outputs ? t->outputs : "");
  for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
    want[n++] = read_spec(word);
  hone_status status = run(&c, t, t->outputs ? n : 1);
  if ((status == HONE_OK) != (t->outputs != NULL))
    fail_msg("%s(%s) %s: %s", t->op, t->inputs, t->attrs, status ? c.error.what : "was not refused");
  if (!t->outputs)
    assert_true(status == HONE_ERROR_INPUT || status == HONE_ERROR_UNSUPPORTED ||
                status == HONE_ERROR_MEMORY);
  if (!t->outputs) assert_true(c.error.what[0]);
  for (uint32_t i = 0; i < n; i++)
    op_expect(&c, i, want[i].dtype, want[i].dims, want[i].n ? want[i].value : NULL,
              hone_dtype_is_float(want[i].dtype) ? 1e-6 : 0);
  op_end(&c);
}

#define CHECK_ALL(cases)                                                                                     \
  for (size_t i = 0; i < sizeof(cases) / sizeof *(cases); i++) check(&(cases)[i])

static void elementwise(void **state) {
  (void)state;
  static const text_case cases[] = {
      /* Integers wrap, and nothing traps. */
      {"Add", 14, "i8:2=127,-128 i8:2=1,-1", "", "i8:2=-128,127"},
      {"Mul", 14, "u16:1=65535 u16:1=65535", "", "u16:1=1"},
      {"Sub", 13, "u32:=0 u32:=1", "", "u32:=4294967295"},
      {"Div", 14, "i8:3=-128,7,-7 i8:3=-1,2,2", "", "i8:3=-128,3,-3"},
      {"Div", 13, "i64:2=-9223372036854775808,9 i64:=-1", "", "i64:2=-9223372036854775808,-9"},
      {"Div", 13, "i32:=1 i32:=0", "", NULL},
      {"Div", 14, "u8:2=1,2 u8:2=1,0", "", NULL},
      {"Div", 13, "f32:2=1,-1 f32:=0", "", "f32:2=inf,-inf"},
      {"Mod", 13, "i32:4=-7,7,-7,-2147483648 i32:4=3,-3,-3,-1", "", "i32:4=2,-2,-1,0"},
      {"Mod", 13, "i32:4=-7,7,-7,-2147483648 i32:4=3,-3,-3,-1", "fmod=1", "i32:4=-1,1,-1,0"},
      {"Mod", 13, "i8:=1 i8:=0", "", NULL},
      {"Mod", 13, "f32:=1 f32:=2", "", NULL},
      {"Mod", 28, "f32:5=-7,7,-7,inf,1 f32:5=3,-3,-3,2,0", "", "f32:5=2,-2,-1,nan,nan"},
      {"Mod", 28, "f64:3=5,-5,6 f64:3=inf,inf,-3", "", "f64:3=5,inf,0"},
      {"Mod", 28, "f16:2=-7,7 f16:=3", "fmod=1", "f16:2=-1,1"},
      {"Abs", 13, "i8:2=-128,-3", "", "i8:2=-128,3"},
      {"Neg", 13, "i64:1=-9223372036854775808", "", "i64:1=-9223372036854775808"},
      {"BitShift", 11, "u8:3=255,1,1 u8:3=8,7,255", "direction=s:LEFT", "u8:3=0,128,0"},
      {"BitShift", 11, "u64:1=1 u64:1=64", "direction=s:RIGHT", "u64:1=0"},
      {"BitShift", 11, "u8:1=1 u8:1=1", "direction=s:UP", NULL},
      {"BitShift", 11, "i8:1=1 i8:1=1", "direction=s:LEFT", NULL},
      {"BitShift", 28, "i8:5=-128,-3,5,-1,7 i8:5=7,1,1,8,-1", "direction=s:RIGHT", "i8:5=-1,-2,2,-1,0"},
      {"BitShift", 28, "i8:5=-128,-3,64,-1,7 i8:5=1,1,1,8,-1", "direction=s:LEFT", "i8:5=0,-6,-128,0,0"},
      {"BitShift", 28, "i64:2=-1,1 i64:2=63,63", "direction=s:LEFT",
       "i64:2=-9223372036854775808,-9223372036854775808"},
      {"BitCast", 26, "f32:2=1,-0.0", "to=6", "i32:2=1065353216,-2147483648"},
      {"BitCast", 26, "i8:1=-1", "to=2", "u8:1=255"},
      {"BitCast", 26, "f32:1=1", "to=7", NULL},
      {"BitCast", 26, "f32:1=1", "to=8", NULL},
      {"CumProd", 26, "i32:3=1,2,3 i64:=0", "", "i32:3=1,2,6"},
      {"CumProd", 26, "f32:2x2=1,2,3,4 i32:=-1", "exclusive=1 reverse=1", "f32:2x2=2,1,4,1"},
      {"BitwiseNot", 18, "i16:2=0,-1", "", "i16:2=-1,0"},
      {"Pow", 15, "i32:4=2,-1,2,3 i32:4=10,-3,-1,0", "", "i32:4=1024,-1,0,1"},
      {"Pow", 15, "i32:2=2,3 f32:=0.5", "", "i32:2=1,1"},
      {"Pow", 15, "f32:2=2,3 i64:=-1", "", "f32:2=0.5,0.333333333"},
      /* NaN goes through. */
      {"Relu", 14, "f32:3=nan,-1,2", "", "f32:3=nan,0,2"},
      {"Max", 13, "f32:3=nan,1,2 f32:3=1,nan,3", "", "f32:3=nan,nan,3"},
      {"Min", 13, "f64:3=nan,1,2 f64:3=1,nan,3", "", "f64:3=nan,nan,2"},
      {"Clip", 13, "f32:3=nan,-9,9 f32:=-1 f32:=1", "", "f32:3=nan,-1,1"},
      {"Clip", 13, "i8:3=-128,0,127 - i8:=5", "", "i8:3=-128,0,5"},
      {"Clip", 6, "f32:3=-2,0,2", "max=f:1", "f32:3=-2,0,1"},
      {"Clip", 12, "u8:3=1,5,9 u8:=7 u8:=3", "", "u8:3=3,3,3"}, /* the upper bound wins */
      {"Clip", 6, "f32:2=5,nan", "min=f:2 max=f:1", "f32:2=1,nan"},
      /* A bound that is left out: the largest finite f32 before opset 11, none since. */
      {"Clip", 6, "f32:4=-inf,nan,1,inf", "", "f32:4=-3.4028234663852886e38,nan,1,3.4028234663852886e38"},
      {"Clip", 10, "f32:3=-inf,1,inf", "min=f:0", "f32:3=0,1,3.4028234663852886e38"},
      {"Clip", 6, "f32:3=-inf,1,inf", "min=f:-inf max=f:inf", "f32:3=-inf,1,inf"},
      {"Clip", 6, "f16:3=-inf,1,inf", "", "f16:3=-inf,1,inf"}, /* that bound is beyond f16 */
      {"Clip", 11, "f32:4=-inf,nan,1,inf", "", "f32:4=-inf,nan,1,inf"},
      {"Clip", 13, "f32:3=-inf,1,inf f32:=0", "", "f32:3=0,1,inf"},
      {"Clip", 13, "bf16:3=-inf,1,inf - bf16:=0", "", "bf16:3=-inf,0,0"},
      /* A bound that is no number makes everything so. */
      {"Clip", 6, "f32:2=-1,inf", "min=f:nan", "f32:2=nan,nan"},
      {"Clip", 13, "f32:2=-1,inf - f32:=nan", "", "f32:2=nan,nan"},
      {"Clip", 13, "f16:2=-1,inf f16:=nan f16:=1", "", "f16:2=nan,nan"},
      {"Clip", 13, "f64:1=1 f64:=nan", "", "f64:1=nan"},
      {"Sign", 13, "f32:4=nan,-0.5,0,9", "", "f32:4=nan,-1,0,1"},
      {"IsInf", 20, "f16:3=inf,-inf,1", "detect_negative=0", "bool:3=1,0,0"},
      {"IsNaN", 13, "bf16:2=nan,1", "", "bool:2=1,0"},
      {"Less", 13, "u64:2=18446744073709551615,1 u64:=2", "", "bool:2=0,1"},
      {"Equal", 13, "bool:2=1,0 bool:=1", "", "bool:2=1,0"},
      {"Softplus", 22, "f32:2=1000,-1000", "", "f32:2=1000,0"},
      {"Mish", 18, "f32:2=1000,-1000", "", "f32:2=1000,0"},
      {"Round", 11, "f32:5=0.5,1.5,2.5,-0.5,-2.5", "", "f32:5=0,2,2,0,-2"},
      {"Sum", 8, "f16:1=2048 f16:1=1 f16:1=1", "", "f16:1=2050"}, /* rounded once */
      {"Mean", 8, "f32:2x1=1,2 f32:3=1,2,3", "", "f32:2x3=1,1.5,2,1.5,2,2.5"},
      {"Add", 14, "f32:2x0 f32:2x1", "", "f32:2x0"},
      {"Add", 14, "f32:2x3 f32:2", "", NULL},
      {"Add", 14, "f32:2 f64:2", "", NULL},
      {"Where", 16, "bool:2x1=1,0 i8:=5 i8:3=1,2,3", "", "i8:2x3=5,5,5,1,2,3"},
      {"Where", 16, "bool:=1 i8:= f32:=", "", NULL},
      {"PRelu", 16, "f32:1x2x2=-1,-1,-1,-1 f32:2x1=2,3", "", "f32:1x2x2=-2,-2,-3,-3"},
      {"PRelu", 6, "f32:1x2x2=-1,-1,-1,-1 f32:2=2,3", "", "f32:1x2x2=-2,-2,-3,-3"},
      {"PRelu", 16, "f32:2 f32:2x2", "", NULL},
      /* Opset 6: operands are placed by attributes. */
      {"Add", 6, "f32:2x3=0,0,0,0,0,0 f32:2=1,2", "broadcast=1 axis=0", "f32:2x3=1,1,1,2,2,2"},
      {"Add", 6, "f32:2x3=0,0,0,0,0,0 f32:3=1,2,3", "broadcast=1", "f32:2x3=1,2,3,1,2,3"},
      {"Mul", 6, "f32:2=3,4 f32:1=2", "broadcast=1", "f32:2=6,8"},
      {"Add", 6, "f32:2x3 f32:3", "", NULL},
      {"Add", 6, "f32:2x3 f32:2", "broadcast=1 axis=1", NULL},
      {"Add", 6, "f32:2x3 f32:2x3", "broadcast=1 axis=1", NULL},
  };
  CHECK_ALL(cases);
}

/* Heads of attention, what they read before it, and states that go on from call to call. */
static void attention(void **state) {
  (void)state;
  static const text_case cases[] = {
      {"Attention", 23, "f32:1x1x1x1=0 f32:1x1x2x1=1,2 f32:1x1x2x1=2,4", "", "f32:1x1x1x1=3"},
      {"Attention", 23, "f32:1x1x2x1=0,0 f32:1x1x2x1=1,2 f32:1x1x2x1=2,4", "is_causal=1", "f32:1x1x2x1=2,3"},
      {"Attention", 23, "f32:1x1x1x1=1 f32:1x1x2x1=1,3 f32:1x1x2x1=0,1 f32:1x2=2,0", "scale=f:1",
       "f32:1x1x1x1=0.5"},
      {"Attention", 23, "f32:1x1x1x1=1 f32:1x1x2x1=1,3 f32:1x1x2x1=0,1 bool:1x2=0,0", "", "f32:1x1x1x1=0"},
      /* A mask that is too short hides the rest. */
      {"Attention", 23, "f32:1x1x1x1=0 f32:1x1x3x1=1,1,1 f32:1x1x3x1=2,4,9 bool:1x2=1,1", "",
       "f32:1x1x1x1=3"},
      {"Attention", 23, "f32:1x1x1x1=0 f32:1x1x3x1 f32:1x1x3x1 bool:1x4", "", NULL},
      {"Attention", 23, "f32:1x1x1x1=0 f32:1x1x1x1=1 f32:1x1x1x2=2,4 - f32:1x1x1x1=5 f32:1x1x1x2=6,0",
       "is_causal=1", "f32:1x1x1x2=4,2 f32:1x1x2x1=5,1 f32:1x1x2x2=6,0,2,4 f32:1x1x1x2=0,0"},
      {"Attention", 23, "f32:1x1x1x1 f32:1x1x1x1 f32:1x1x1x1 - f32:1x1x1x1", "", NULL},
      {"Attention", 23, "f32:1x1x2=0,0 f32:1x1x1=1 f32:1x1x1=5", "q_num_heads=2 kv_num_heads=1",
       "f32:1x1x2=5,5"},
      {"Attention", 23, "f32:1x1x2 f32:1x1x1 f32:1x1x1", "q_num_heads=2", NULL},
      {"Attention", 23, "f32:1x3x1x1 f32:1x2x1x1 f32:1x2x1x1", "", NULL},
      {"Attention", 23, "f32:1x1x1x2 f32:1x1x1x3 f32:1x1x1x1", "", NULL},
      {"Attention", 24, "f32:1x1x1x1=0 f32:1x1x3x1=1,1,1 f32:1x1x3x1=2,4,9 - - - i64:1=2", "is_causal=1",
       "f32:1x1x1x1=3"},
      /* More queries than keys that count: the first sees none. */
      {"Attention", 24, "f32:1x1x2x1=0,0 f32:1x1x2x1=1,1 f32:1x1x2x1=2,4 - - - i64:1=1", "is_causal=1",
       "f32:1x1x2x1=0,2"},
      /* Numbers of keys that there are not. */
      {"Attention", 24, "f32:1x1x1x1=0 f32:1x1x2x1 f32:1x1x2x1 - - - i64:1=3", "", NULL},
      {"Attention", 24, "f32:1x1x1x1=0 f32:1x1x2x1 f32:1x1x2x1 - - - i64:1=-9223372036854775807",
       "is_causal=1", NULL},
      {"Attention", 25, "f32:1x1x3x1=0,0,0 f32:1x1x3x1=1,1,1 f32:1x1x3x1=2,4,8",
       "left_window_size=1 right_window_size=0 qk_matmul_output_mode=3",
       "f32:1x1x3x1=2,3,6 f32:1x1x3x1=1,1,1 f32:1x1x3x1=2,4,8 f32:1x1x3x3=1,0,0,0.5,0.5,0,0,0.5,0.5"},
      {"Attention", 25, "f32:1x1x1x1 f32:1x1x1x1 f32:1x1x1x1", "left_window_size=-2", NULL},
      {"RotaryEmbedding", 23, "f32:1x1x1x2=1,2 f32:1x1x1=0 f32:1x1x1=1", "", "f32:1x1x1x2=-2,1"},
      {"RotaryEmbedding", 23, "f32:1x1x4=1,2,3,4 f32:1x1x2=0,0 f32:1x1x2=1,1", "num_heads=1",
       "f32:1x1x4=-3,-4,1,2"},
      {"RotaryEmbedding", 23, "f32:1x1x4=1,2,3,4 f32:1x1x2=0,0 f32:1x1x2=1,1", "num_heads=1 interleaved=1",
       "f32:1x1x4=-2,1,-4,3"},
      {"RotaryEmbedding", 23, "f32:1x1x4=1,2,3,4 f32:2x1=1,0 f32:2x1=0,1 i64:1x1=1",
       "num_heads=1 rotary_embedding_dim=2", "f32:1x1x4=-2,1,3,4"},
      {"RotaryEmbedding", 23, "f32:1x1x1x2 f32:2x1 f32:2x1 i64:1x1=2", "", NULL},
      {"RotaryEmbedding", 23, "f32:1x1x1x2 f32:2x1 f32:2x1 i64:1x1=-1", "", NULL},
      {"RotaryEmbedding", 23, "f32:1x1x1x3 f32:1x1x1 f32:1x1x1", "", NULL},
      {"SwiGLU", 28, "f32:2=0,1 f32:2=5,2", "", "f32:2=0,1.46211716"},
      {"SwiGLU", 28, "f32:2 f32:1", "", NULL},
      {"TensorScatter", 24, "u8:1x3x1=1,2,3 u8:1x1x1=9 i64:1=2", "", "u8:1x3x1=1,2,9"},
      {"TensorScatter", 24, "f32:2x2x1=1,2,3,4 f32:2x1x1=8,9", "", "f32:2x2x1=8,2,9,4"},
      {"TensorScatter", 24, "u8:1x3x1=1,2,3 u8:1x2x1=8,9 i64:1=2", "mode=s:circular", "u8:1x3x1=9,2,8"},
      {"TensorScatter", 24, "u8:1x3x1=1,2,3 u8:1x2x1=8,9 i64:1=2", "", NULL},
      {"TensorScatter", 24, "u8:1x3x1=1,2,3 u8:1x2x1=8,9 i64:1=-1", "mode=s:circular", NULL},
      {"TensorScatter", 24, "u8:3x1 u8:1x1", "axis=0", NULL},
      {"CausalConvWithState", 27, "f32:1x1x3=1,2,3 f32:1x1x2=10,1", "", "f32:1x1x3=1,12,23 f32:1x1x1=3"},
      {"CausalConvWithState", 27, "f32:1x1x1=1 f32:1x1x3=100,10,1 f32:1=0.5 f32:1x1x2=3,4", "",
       "f32:1x1x1=341.5 f32:1x1x2=4,1"},
      {"CausalConvWithState", 27, "f32:1x1x1=1 f32:1x1x1=1", "activation=s:silu",
       "f32:1x1x1=0.731058579 f32:1x1x0"},
      {"CausalConvWithState", 27, "f32:1x2x3 f32:1x1x2", "", NULL},
      {"LinearAttention", 27, "f32:1x2x1=1,1 f32:1x2x1=1,2 f32:1x2x1=3,4",
       "update_rule=s:linear scale=f:1 q_num_heads=1 kv_num_heads=1", "f32:1x2x1=3,11 f32:1x1x1x1=11"},
      {"LinearAttention", 27, "f32:1x2x2=1,2,1,2 f32:1x2x1=1,2 f32:1x2x1=3,4 - - f32:1x2x1=0.5,0.5",
       "update_rule=s:delta scale=f:1 q_num_heads=2 kv_num_heads=1", "f32:1x2x2=1.5,3,2.5,5 f32:1x1x1x1=2.5"},
      {"LinearAttention", 27, "f32:1x1x1=1 f32:1x1x1=1 f32:1x1x1=3 f32:1x1x1x1=8 f32:1x1x1=-0.69314718",
       "update_rule=s:gated q_num_heads=1 kv_num_heads=1", "f32:1x1x1=7 f32:1x1x1x1=7"},
      /* Offsets move the taps down and right; outside and between pixels. */
      {"DeformConv", 19, "f32:1x1x2x2=1,2,3,4 f32:1x1x1x1=1 f32:1x2x2x2=0,0,0,0,0.5,1,0,-0.5", "",
       "f32:1x1x2x2=1.5,0,3,3.5"},
      {"DeformConv", 19, "f32:1x2x1=1,5 f32:1x2x1=2,3 f32:1x1x1=0.25 f32:1=1 f32:1x1x1=2", "",
       "f32:1x1x1=26.5"},
      {"DeformConv", 19, "f32:1x1x2x2 f32:1x1x1x1 f32:1x1x2x2", "", NULL},
      {"DeformConv", 19, "f32:1x1x2x2 f32:1x1x3x3 f32:1x18x1x1", "", NULL},
      {"LinearAttention", 27, "f32:1x1x1 f32:1x1x1 f32:1x1x1", "q_num_heads=1 kv_num_heads=1", NULL},
  };
  CHECK_ALL(cases);
}

static void casts(void **state) {
  (void)state;
  static const text_case cases[] = {
      {"Cast", 13, "f32:4=-1.7,-1,300,nan", "to=2", "u8:4=255,255,44,0"},
      {"Cast", 13, "f32:3=1e30,-1e30,nan", "to=6", "i32:3=2147483647,-2147483648,0"},
      {"Cast", 13, "f64:3=-1,1e30,9.5e18", "to=13",
       "u64:3=18446744073709551615,18446744073709551615,9500000000000000000"},
      {"Cast", 13, "f32:3=nan,0.3,-0", "to=9", "bool:3=1,1,0"},
      {"Cast", 13, "i32:2=-1,511", "to=3", "i8:2=-1,-1"},
      {"Cast", 13, "i32:1=16777217", "to=1", "f32:1=16777216"},
      {"Cast", 13, "f32:3=65519.99,65520,1e-9", "to=10", "f16:3=65504,inf,0"},
      /* Narrow floats: ties to even, subnormals, the largest number or what lies beyond it. */
      {"Cast", 19, "f32:6=17,19,1000,-0.001953125,nan,-inf", "to=17",
       "f8e4m3fn:6=16,20,448,-0.001953125,nan,-448"},
      {"Reshape", 21, "i4:2x3=-8,7,0,1,-1,2 i64:2=3,2", "", "i4:3x2=-8,7,0,1,-1,2"},
      {"Transpose", 23, "f4e2m1:2x2=0.5,-6,1.5,2", "", "f4e2m1:2x2=0.5,1.5,-6,2"},
      {"Transpose", 21, "u4:2x3=15,1,2,3,4,5", "", "u4:3x2=15,3,1,4,2,5"},
      {"Flatten", 23, "f8e4m3fn:2x1x2=1,448,-2,0", "", "f8e4m3fn:2x2=1,448,-2,0"},
      {"Unsqueeze", 24, "f8e8m0:2=1,4 i64:1=0", "", "f8e8m0:1x2=1,4"},
      {"Identity", 25, "u2:3=0,3,2", "", "u2:3=0,3,2"},
      {"Shape", 25, "i2:2x3=1,1,1,1,1,1", "", "i64:2=2,3"},
      {"Cast", 19, "f32:3=465,-465,inf", "to=17 saturate=0", "f8e4m3fn:3=nan,nan,nan"},
      {"Cast", 19, "f32:3=464,0.0009765625,0", "to=17 saturate=0", "f8e4m3fn:3=448,0,0"},
      {"Cast", 19, "f32:3=1000,inf,-3", "to=18", "f8e4m3fnuz:3=240,240,-3"},
      {"Cast", 19, "f32:3=1e9,inf,-3", "to=19 saturate=0", "f8e5m2:3=inf,inf,-3"},
      {"Cast", 19, "f32:3=1e9,inf,-3", "to=20 saturate=0", "f8e5m2fnuz:3=nan,nan,-3"},
      {"Cast", 24, "f32:4=1,1.5,5,1e39", "to=24", "f8e8m0:4=1,2,8,1.7014118346046923e38"},
      {"Cast", 24, "f32:3=1.4,1.5,5", "to=24 round_mode=s:nearest", "f8e8m0:3=1,2,4"},
      {"Cast", 24, "f32:3=1.4,1.5,5", "to=24 round_mode=s:down", "f8e8m0:3=1,1,4"},
      {"Cast", 24, "f32:1=1", "to=24 round_mode=s:even", NULL},
      {"Cast", 23, "f32:5=0.25,0.75,5,100,-1.25", "to=23", "f4e2m1:5=0,1,4,6,-1"},
      {"Cast", 28, "f32:3=7.4,0.125,-100", "to=27", "f6e2m3:3=7.5,0.125,-7.5"},
      {"Cast", 28, "f32:3=27,0.0625,-100", "to=28", "f6e3m2:3=28,0.0625,-28"},
      {"Cast", 21, "i32:4=-9,7,8,16", "to=22", "i4:4=7,7,-8,0"},
      {"Cast", 25, "f32:3=3.9,1,2", "to=25", "u2:3=3,1,2"},
      {"Cast", 21, "i4:3=-8,7,-1", "to=1", "f32:3=-8,7,-1"},
      {"Cast", 19, "f8e5m2:3=57344,-2,nan", "to=10", "f16:3=57344,-2,nan"},
      {"CastLike", 21, "u4:2=15,0 i8:1=0", "", "i8:2=15,0"},
      {"BitCast", 26, "f4e2m1:2=-6,0.5", "to=22", "i4:2=-1,1"},
      {"BitCast", 26, "i4:2=-1,1", "to=23", "f4e2m1:2=-6,0.5"},
      {"BitCast", 26, "i4:2=-1,1", "to=2", NULL},
      {"QuantizeLinear", 21, "f32:5=-100,-1,0.6,1,100 f32:=0.5 i4:=1", "", "i4:5=-8,-1,2,3,7"},
      {"QuantizeLinear", 25, "f32:3=-1,1,5 f32:=1", "output_dtype=25", "u2:3=0,1,3"},
      {"QuantizeLinear", 19, "f32:2=1000,3 f32:=2 f8e4m3fn:=0", "saturate=0", "f8e4m3fn:2=nan,1.5"},
      {"QuantizeLinear", 23, "f32:2=1000,3 f32:=2", "output_dtype=23", "f4e2m1:2=6,1.5"},
      {"DequantizeLinear", 21, "u4:2x2=15,1,2,3 f32:2=0.5,2 u4:2=1,0", "axis=0", "f32:2x2=7,0,4,6"},
      {"DequantizeLinear", 19, "f8e5m2:2=-4,0.5 f32:=3", "", "f32:2=-12,1.5"},
      {"Cast", 13, "f32:2=1.00390625,1.01171875", "to=16", "bf16:2=1,1.015625"}, /* ties to even */
      {"Cast", 13, "bool:2=1,0", "to=11", "f64:2=1,0"},
      {"Cast", 13, "f32:1", "to=99", NULL},
      {"Cast", 13, "f32:1", "to=14", NULL},
      {"Cast", 13, "f32:1", "", NULL},
      {"CastLike", 15, "f32:2=1.9,-1.9 i16:0", "", "i16:2=1,-1"},
  };
  CHECK_ALL(cases);
}

static void movement(void **state) {
  (void)state;
  static const text_case cases[] = {
      {"Reshape", 14, "f32:2x3 i64:=3", "", NULL},
      {"Reshape", 14, "f32:2x3 i64:2=-1,2", "", "f32:3x2"},
      {"Reshape", 14, "f32:0x3 i64:2=0,-1", "", "f32:0x3"},
      {"Reshape", 14, "f32:0x3 i64:3=3,0,2", "allowzero=1", "f32:3x0x2"},
      {"Reshape", 14, "f32:0x3 i64:2=0,-1", "allowzero=1", NULL},
      {"Reshape", 14, "f32:2x3 i64:2=-1,-1", "", NULL},
      {"Reshape", 14, "f32:2x3 i64:2=-2,-3", "", NULL},
      {"Reshape", 14, "f32:2x3 i64:3=2,3,0", "", NULL},
      {"Reshape", 14, "f32:2x3 i64:2=4611686018427387904,4", "", NULL},
      {"Reshape", 14, "f32:2x3 i64:2=-1,4", "", NULL},
      {"Reshape", 4, "f32:2x3=1,2,3,4,5,6", "shape=3,2", "f32:3x2=1,2,3,4,5,6"},
      {"Flatten", 13, "f32:2x3x4", "axis=3", "f32:24x1"},
      {"Flatten", 13, "f32:2x3x4", "axis=4", NULL},
      {"Squeeze", 13, "f32:1x2 i64:1=1", "", NULL},
      {"Squeeze", 11, "f32:1x2x1", "axes=0,-1", "f32:2"},
      {"Squeeze", 11, "f32:1x2x1", "axes=0,-3", NULL},
      {"Unsqueeze", 13, "f32:2 i64:2=0,-4", "", NULL},
      {"Unsqueeze", 13, "f32:2 i64:2=2,0", "", "f32:1x2x1"},
      {"Unsqueeze", 13, "f32:1x1x1x1x1x1x1x1 i64:1=0", "", NULL},
      {"Shape", 15, "f32:2x3x4", "start=-9 end=-1", "i64:2=2,3"},
      {"Shape", 15, "f32:2x3x4", "start=2 end=1", "i64:0"},
      {"Transpose", 13, "f32:2x3", "perm=0,0", NULL},
      {"Transpose", 13, "f32:2x3", "perm=0,", NULL},
      {"Transpose", 13, "f16:0x3", "", "f16:3x0"},
      {"Concat", 13, "i8:2=1,2 i8:0 i8:1=3", "axis=-1", "i8:3=1,2,3"},
      {"Concat", 13, "f32:2x2 f32:3x3", "axis=0", NULL},
      {"Concat", 13, "f32:2 f64:2", "axis=0", NULL},
      {"Concat", 13, "f32:", "axis=0", NULL},
      {"Split", 18, "f32:5=1,2,3,4,5", "num_outputs=3", "f32:2=1,2 f32:2=3,4 f32:1=5"},
      {"Split", 13, "f32:4 i64:2=1,2", "", NULL},
      {"Split", 13, "f32:4 i64:1=-4", "", NULL},
      {"Split", 11, "f32:2x3=1,2,3,4,5,6", "axis=1 split=1,2", "f32:2x1=1,4 f32:2x2=2,3,5,6"},
      {"Slice", 13, "f32:4=1,2,3,4 i64:1=9223372036854775807 i64:1=-9223372036854775808 - i64:1=-2", "",
       "f32:2=4,2"},
      {"Slice", 13,
       "f32:4=1,2,3,4 i64:1=-9223372036854775808 i64:1=9223372036854775807 - i64:1=9223372036854775807", "",
       "f32:1=1"},
      {"Slice", 13, "f32:4=1,2,3,4 i64:1=3 i64:1=-9 - i64:1=-9223372036854775808", "", "f32:1=4"},
      {"Slice", 13, "f32:4 i64:1=0 i64:1=1 - i64:1=0", "", NULL},
      {"Slice", 13, "f32:4x4 i64:2=0,0 i64:2=1,1 i64:2=0,-2", "", NULL},
      {"Slice", 13, "f32:4 i64:1=0 i64:2=1,1", "", NULL},
      {"Slice", 9, "f32:2x3=1,2,3,4,5,6", "starts=-2, ends=9, axes=1,", "f32:2x2=2,3,5,6"},
      {"Tile", 13, "f32:2 i64:1=4611686018427387904", "", NULL},
      {"Tile", 13, "f32:2 i64:1=-1", "", NULL},
      {"Tile", 13, "i8:2x1=1,2 i64:2=1,3", "", "i8:2x3=1,1,1,2,2,2"},
      {"Tile", 13, "i8:2x1 i64:2=0,3", "", "i8:0x3"},
      {"Expand", 13, "f32:3x1 i64:2=2,4", "", NULL},
      {"Expand", 13, "f32:2=1,2 i64:2=2,1", "", "f32:2x2=1,2,1,2"},
      {"Expand", 13, "f32:1 i64:2=4611686018427387904,8", "", NULL},
      {"ConstantOfShape", 20, "i64:1=-1", "", NULL},
      {"ConstantOfShape", 20, "i64:2=4611686018427387904,8", "", NULL},
      {"ConstantOfShape", 20, "i64:1=4611686018427387904", "", NULL},
      {"ConstantOfShape", 20, "i64:0", "", "f32:=0"},
      {"Pad", 18, "i32:3=1,2,3 i64:2=4,5", "mode=s:reflect", "i32:12=1,2,3,2,1,2,3,2,1,2,3,2"},
      {"Pad", 18, "i32:1=7 i64:2=1,2", "mode=s:reflect", "i32:4=7,7,7,7"},
      {"Pad", 19, "i32:3=1,2,3 i64:2=2,4", "mode=s:wrap", "i32:9=2,3,1,2,3,1,2,3,1"},
      {"Pad", 18, "i32:3=1,2,3 i64:2=-1,2", "mode=s:edge", "i32:4=2,3,3,3"},
      {"Pad", 18, "i32:2x2=1,2,3,4 i64:2=1,0 i32:=9 i64:1=-1", "", "i32:2x3=9,1,2,9,3,4"},
      {"Pad", 18, "i32:2 i64:2=-3,0", "", NULL},
      {"Pad", 18, "i32:0 i64:2=1,0", "mode=s:edge", NULL},
      {"Pad", 18, "i32:2 i64:2=9223372036854775807,9223372036854775807", "", NULL},
      {"Pad", 18, "i32:2 i64:1=1", "", NULL},
      {"Pad", 18, "i32:2 i64:2=1,1", "mode=s:mirror", NULL},
      {"Pad", 13, "i32:2 i64:2=1,1", "mode=s:wrap", NULL},
      {"Pad", 2, "f32:2=1,2", "pads=1,0 value=f:5", "f32:3=5,1,2"},
      {"Trilu", 14, "i8:2x2=1,2,3,4 i64:=9223372036854775807", "upper=0", "i8:2x2=1,2,3,4"},
      {"Trilu", 14, "i8:2x2=1,2,3,4 i64:=-9223372036854775808", "upper=0", "i8:2x2=0,0,0,0"},
      {"Trilu", 14, "i8:4", "", NULL},
      {"EyeLike", 9, "f32:2x3", "k=-1 dtype=9", "bool:2x3=0,0,0,1,0,0"},
      {"EyeLike", 9, "f32:2x3", "k=9223372036854775807", "f32:2x3=0,0,0,0,0,0"},
      {"ReverseSequence", 10, "f32:2x2=1,2,3,4 i64:2=2,1", "", "f32:2x2=3,2,1,4"},
      {"ReverseSequence", 10, "f32:2x2 i64:2=3,1", "", NULL},
      {"ReverseSequence", 10, "f32:2x2 i64:3=1,1,1", "", NULL},
      {"Range", 11, "i32:=5 i32:=-1 i32:=-2", "", "i32:3=5,3,1"},
      {"Range", 11, "f32:=0 f32:=1 f32:=0", "", NULL},
      {"Range", 11, "i64:=-9223372036854775808 i64:=9223372036854775807 i64:=1", "", NULL},
      {"Range", 11, "f32:=0 f32:=inf f32:=1", "", NULL},
      {"Range", 27, "f16:=2048 f16:=2056 f16:=2", "", "f16:4=2048,2050,2052,2054"},
      {"Range", 27, "bf16:=0 bf16:=2 bf16:=1", "stash_type=16", NULL},
      {"Range", 11, "f16:=0 f16:=2 f16:=1", "", NULL},
      {"SpaceToDepth", 28, "u8:1x2x2x2=1,2,3,4,5,6,7,8", "blocksize=2 mode=s:CRD",
       "u8:1x8x1x1=1,2,3,4,5,6,7,8"},
      {"SpaceToDepth", 28, "u8:1x2x2x2=1,2,3,4,5,6,7,8", "blocksize=2", "u8:1x8x1x1=1,5,2,6,3,7,4,8"},
      {"Range", 11, "f32:=nan f32:=1 f32:=1", "", "f32:0"},
  };
  CHECK_ALL(cases);
}

static void gathering(void **state) {
  (void)state;
  static const text_case cases[] = {
      {"Gather", 13, "f32:3=1,2,3 i64:2=-1,0", "", "f32:2=3,1"},
      {"Gather", 13, "f32:3 i64:1=3", "", NULL},
      {"Gather", 13, "f32:3 i64:1=-4", "", NULL},
      {"Gather", 13, "f32:0x2 i64:1=0", "", NULL},
      {"Gather", 13, "f32:2x0 i32:1=5", "", NULL},
      {"Gather", 13, "f32:3 f32:1=0", "", NULL},
      {"GatherElements", 13, "i8:2x2=1,2,3,4 i64:1x2=-1,0", "axis=0", "i8:1x2=3,2"},
      {"GatherElements", 13, "i8:2x2 i64:2x3", "axis=0", NULL},
      {"GatherElements", 13, "i8:2x2 i64:1x1=2", "axis=1", NULL},
      {"GatherND", 13, "f32:2x2=1,2,3,4 i64:1x2=-1,-2", "", "f32:1=3"},
      {"GatherND", 13, "f32:2x2 i64:1x3=0,0,0", "", NULL},
      {"GatherND", 13, "f32:2x2 i64:1x1=2", "", NULL},
      {"GatherND", 13, "f32:2x2 i64:3x1", "batch_dims=1", NULL},
      {"ScatterElements", 18, "f32:3=1,2,3 i64:3=0,0,-1 f32:3=5,4,9", "reduction=s:min", "f32:3=1,2,3"},
      {"ScatterElements", 16, "u8:2=200,1 i64:2=0,0 u8:2=100,1", "reduction=s:add", "u8:2=45,1"},
      {"ScatterElements", 16, "u8:2 i64:1=0 u8:1", "reduction=s:min", NULL}, /* came with opset 18 */
      {"ScatterElements", 18, "f32:2 i64:1=2 f32:1", "", NULL},
      {"ScatterElements", 18, "f32:2 i64:1=0 f32:2", "", NULL},
      {"ScatterElements", 18, "f32:2 i64:1=0 f64:1", "", NULL},
      {"ScatterND", 18, "i32:2x2=1,2,3,4 i64:2x1=1,1 i32:2x2=10,10,10,10", "reduction=s:mul",
       "i32:2x2=1,2,300,400"},
      {"ScatterND", 18, "i32:2x2 i64:1x1=-3 i32:1x2", "", NULL},
      {"ScatterND", 18, "i32:2x2 i64:1x1=0 i32:1x3", "", NULL},
      {"OneHot", 11, "f32:2=1.9,-4 i32:=3 i8:2=7,9", "", "i8:2x3=7,9,7,7,7,7"},
      {"OneHot", 11, "i64:1=0 i64:=-1 i8:2", "", NULL},
      {"Compress", 11, "i8:2x2=1,2,3,4 bool:1=1", "axis=1", "i8:2x1=1,3"},
      {"Compress", 11, "i8:2 bool:3=0,0,1", "axis=0", NULL},
      {"Compress", 11, "i8:2=1,2 bool:3=0,1,0", "axis=0", "i8:1=2"},
      {"NonZero", 13, "f32:2x2=0,-1,nan,0", "", "i64:2x2=0,1,1,0"},
      {"NonZero", 13, "bool:=1", "", "i64:0x1"},
      {"Unique", 11, "i32:5=3,1,3,2,1", "sorted=0", "i32:3=3,1,2 i64:3=0,1,3 i64:5=0,1,0,2,1 i64:3=2,2,1"},
      {"Unique", 11, "f32:0", "", "f32:0 i64:0 i64:0 i64:0"},
      {"Unique", 11, "i8:2x3=1,0,1,2,0,2", "axis=1", "i8:2x2=0,1,0,2 i64:2=1,0 i64:3=1,0,1 i64:2=1,2"},
      {"TopK", 11, "f32:5=1,3,3,nan,2 i64:1=3", "", "f32:3=nan,3,3 i64:3=3,1,2"},
      {"TopK", 11, "u64:3=18446744073709551615,1,2 i64:1=2", "largest=0", "u64:2=1,2 i64:2=1,2"},
      {"TopK", 11, "f32:2 i64:1=3", "", NULL},
      {"TopK", 11, "f32:2 i64:1=-1", "", NULL},
      {"TopK", 1, "f32:2x3=1,2,3,6,5,4", "k=1", "f32:2x1=3,6 i64:2x1=2,0"},
      {"ArgMax", 13, "i32:4=1,5,5,0", "select_last_index=1 keepdims=0", "i64:=2"},
      {"ArgMin", 13, "f32:2x2=1,0,0,1", "axis=-1", "i64:2x1=1,0"},
      {"ArgMax", 13, "f32:0", "", NULL},
      {"ArgMax", 13, "u64:2=1,18446744073709551615", "", "i64:1=1"},
  };
  CHECK_ALL(cases);
}

static void reductions_and_products(void **state) {
  (void)state;
  static const text_case cases[] = {
      {"ReduceSum", 13, "f32:2x2=1,2,3,4 i64:0", "noop_with_empty_axes=1", "f32:2x2=1,2,3,4"},
      {"ReduceSum", 13, "f32:2x2=1,2,3,4 i64:0", "", "f32:1x1=10"},
      {"ReduceSumSquare", 18, "f32:2=-2,3", "noop_with_empty_axes=1", "f32:2=4,9"},
      {"ReduceL1", 18, "i32:2=-2147483648,-3", "noop_with_empty_axes=1", "i32:2=-2147483648,3"},
      {"ReduceSum", 13, "f32:2x0 i64:1=1", "", "f32:2x1=0,0"},
      {"ReduceProd", 18, "i64:0", "keepdims=0", "i64:=1"},
      {"ReduceMax", 20, "i8:0", "keepdims=0", "i8:=-128"},
      {"ReduceMin", 20, "f32:0", "keepdims=0", "f32:=inf"},
      {"ReduceMax", 20, "bool:0", "keepdims=0", "bool:=0"},
      {"ReduceMin", 20, "bool:2=1,0", "keepdims=0", "bool:=0"},
      {"ReduceMax", 13, "f32:3=1,nan,2", "", "f32:1=nan"},
      {"ReduceMax", 18, "u64:2=1,18446744073709551615", "", "u64:1=18446744073709551615"},
      {"ReduceMean", 18, "i32:2=-3,-4", "", "i32:1=-3"},
      /* Of no elements: ONNX Runtime has 0 for the mean. */
      {"ReduceMean", 18, "f32:2x0 i64:1=1", "", "f32:2x1=nan,nan"},
      {"ReduceMax", 18, "f32:2x0 i64:1=1", "", "f32:2x1=-inf,-inf"},
      {"ReduceMin", 18, "i32:2x0 i64:1=1", "", "i32:2x1=2147483647,2147483647"},
      {"ReduceLogSumExp", 18, "f16:1x0 i64:1=1", "", "f16:1x1=-inf"},
      {"ReduceProd", 18, "f32:1x0 i64:1=1", "", "f32:1x1=1"},
      {"ReduceMean", 18, "f16:4=60000,60000,60000,60000", "", "f16:1=60000"},
      {"ReduceLogSumExp", 18, "f32:2=1000,1000", "", "f32:1=1000.6931763"},
      {"ReduceLogSumExp", 18, "f32:2=-inf,-inf", "", "f32:1=-inf"},
      {"ReduceSum", 11, "f32:2x3=1,2,3,4,5,6", "axes=0,-1 keepdims=0", "f32:=21"},
      {"ReduceSum", 11, "f32:2x3", "axes=2,", NULL},
      {"ReduceSum", 11, "f32:2x3", "axes=1,-1", NULL},
      {"CumSum", 14, "i32:3=1,2,3 i32:=0", "reverse=1 exclusive=1", "i32:3=5,3,0"},
      {"CumSum", 14, "f32:3 i64:=1", "", NULL},
      {"CumSum", 14, "f32:3 i64:2=0,0", "", NULL},
      {"MatMul", 13, "f32:2x0 f32:0x2", "", "f32:2x2=0,0,0,0"},
      {"MatMul", 13, "i32:2x2=1,2,3,4 i32:2=1,-1", "", "i32:2=-1,-1"},
      {"MatMul", 13, "u32:1x1=65536 u32:1x1=65536", "", "u32:1x1=0"},
      {"MatMul", 13, "f16:1x3=2048,1,1 f16:3x1=1,1,1", "", "f16:1x1=2050"},
      {"MatMul", 13, "f32:2x3 f32:2x3", "", NULL},
      {"MatMul", 13, "f32: f32:2", "", NULL},
      {"MatMul", 13, "f32:2x2x2 f32:3x2x2", "", NULL},
      {"Gemm", 13, "f16:1x2=2048,0.5 f16:2x1=1,1 f16:=0.5", "", "f16:1x1=2048"},
      {"Gemm", 13, "f32:1x2=1,2 f32:1x2=3,4 f32:1=1", "transB=1 alpha=f:2 beta=f:3", "f32:1x1=25"},
      {"Gemm", 13, "i32:2x1=1,2 i32:1x2=3,4 i32:2x1=10,20", "", "i32:2x2=13,14,26,28"},
      {"Gemm", 13, "f32:2x3 f32:3x2 f32:3", "", NULL},
      {"Gemm", 13, "f32:2x3x1 f32:3x2", "", NULL},
      {"Gemm", 6, "f32:1x1=2 f32:1x1=3 f32:1=1", "broadcast=1", "f32:1x1=7"},
      {"MatMulInteger", 10, "u8:2x2=1,2,3,4 i8:2x1=1,-1 u8:2=1,3", "", "i32:2x1=-1,-1"},
      {"MatMulInteger", 10, "u8:2x2 i8:2x1 u8:3", "", NULL},
      {"Softmax", 11, "f32:2x1x2=0,0,0,0", "",
       "f32:2x1x2=0.5,0.5,0.5,0.5"}, /* rows of two: axis 1 on, flattened */
      {"Softmax", 11, "f32:2x2x1=0,0,0,0", "axis=0", "f32:2x2x1=0.25,0.25,0.25,0.25"},
      {"Softmax", 13, "f32:2x2x1=0,0,0,0", "axis=0", "f32:2x2x1=0.5,0.5,0.5,0.5"},
      {"Softmax", 13, "f64:2=1000,1000", "", "f64:2=0.5,0.5"},
      {"LogSoftmax", 13, "f32:2=1000,0", "", "f32:2=0,-1000"},
      {"Hardmax", 13, "f32:3=1,2,2", "", "f32:3=0,1,0"},
      {"Softmax", 13, "f32:2", "axis=1", NULL},
      /* f16: exponentials and their sum are rounded before they are divided; the whole of it would be 0.6904.
       */
      {"Softmax", 13, "f16:6=-2,-1,-0.5,1.75,0,-0.75", "",
       "f16:6=0.0162200927734375,0.044097900390625,0.07275390625,0.68994140625,0.11993408203125,0.056640625"},
      {"Einsum", 12, "i32:2x2=1,2,3,4", "equation=s:ii", "i32:=5"},
      {"Einsum", 12, "f32:2=1,2 f32:3=1,2,3", "equation=s:i,j", "f32:2x3=1,2,3,2,4,6"},
      {"Einsum", 12, "f32:2x0 f32:0x2", "equation=s:ij,jk->ik", "f32:2x2=0,0,0,0"},
      {"Einsum", 12, "f32:1x2x1=3,4 f32:2=1,10", "equation=s:...i,...->...", "f32:1x2=3,40"},
      {"Einsum", 12, "f32:2x3 f32:2x3", "equation=s:ij,jk->ik", NULL},
      {"Einsum", 12, "f32:2x3", "equation=s:ij->ik", NULL},
      {"Einsum", 12, "f32:2x3", "equation=s:ij->ii", NULL},
      {"Einsum", 12, "f32:2x3", "equation=s:i", NULL},
      {"Einsum", 12, "f32:2x3", "equation=s:ij,jk", NULL},
      {"Einsum", 12, "f32:2x3", "equation=s:i5", NULL},
      {"Einsum", 12, "f32:2x3", "equation=s:ij-", NULL},
      {"Det", 11, "f32:2x2=0,1,1,0", "", "f32:=-1"},
      {"Det", 11, "f64:0x0", "", "f64:=1"},
      {"Det", 11, "f32:2x3", "", NULL},
  };
  CHECK_ALL(cases);
}

static void transforms_and_losses(void **state) {
  (void)state;
  static const text_case cases[] = {
      {"DFT", 17, "f32:1x3x1=1,2,3", "", "f32:1x3x2=6,0,-1.5,0.866025388,-1.5,-0.866025388"},
      {"DFT", 20, "f32:1x3x2=10,0,-2,2,-2,0 - i64:=1", "inverse=1 onesided=1", "f32:1x4x1=1,2,3,4"},
      {"DFT", 20, "f64:1x2x1=1,2 i64:=4", "onesided=1", "f64:1x3x2=3,0,1,-2,-1,0"},
      {"DFT", 17, "f32:1x3x2", "onesided=1", NULL},
      {"DFT", 17, "f32:1x3x3", "", NULL},
      {"DFT", 17, "f32:1x3x1", "axis=2", NULL},
      {"DFT", 17, "f32:1x3x1 i64:=0", "", NULL},
      {"DFT", 17, "f32:1x0x1 i64:=9223372036854775807", "", NULL},
      {"STFT", 17, "f32:1x4x1=1,2,3,4 i64:=2 f32:2=1,0.5", "", "f32:1x2x2x2=2,0,0,0,5,0,1,0"},
      {"STFT", 17, "f32:1x4x1 i64:=0 f32:2", "", NULL},
      {"STFT", 17, "f32:1x4x1 i64:=1 f32:5", "", NULL},
      {"HannWindow", 17, "i64:=4", "", "f32:4=0,0.5,1,0.5"},
      {"HannWindow", 17, "i64:=1", "periodic=0", "f32:1=1"},
      {"HannWindow", 17, "i64:=0", "", "f32:0"},
      {"HannWindow", 17, "i64:=-1", "", NULL},
      {"BlackmanWindow", 17, "i32:=3", "periodic=0 output_datatype=11", "f64:3=0,1,0"},
      {"NegativeLogLikelihoodLoss", 13, "f32:2x2=-1,-2,-3,-4 i64:2=0,1", "", "f32:=2.5"},
      {"NegativeLogLikelihoodLoss", 13, "f32:2x2=-1,-2,-3,-4 i64:2=0,-9", "ignore_index=-9 reduction=s:none",
       "f32:2=1,0"},
      {"NegativeLogLikelihoodLoss", 13, "f32:1x2=-1,-2 i64:1=0", "ignore_index=0", "f32:=nan"},
      {"NegativeLogLikelihoodLoss", 13, "f32:1x2 i64:1=2", "", NULL},
      {"NegativeLogLikelihoodLoss", 13, "f32:1x2 i64:1=-1", "", NULL},
      {"NegativeLogLikelihoodLoss", 13, "f32:1x2 i64:2=0,0", "", NULL},
      {"SoftmaxCrossEntropyLoss", 13, "f32:1x2=0,0 i64:1=1", "",
       "f32:=0.693147181 f32:1x2=-0.693147181,-0.693147181"},
      {"SoftmaxCrossEntropyLoss", 13, "f32:1x2 i64:1=1", "reduction=s:product", NULL},
      {"TfIdfVectorizer", 9, "i64:3=2,1,2",
       "mode=s:TFIDF min_gram_length=1 max_gram_length=2 max_skip_count=1 ngram_counts=0,2 "
       "ngram_indexes=0,2,1 "
       "pool_int64s=1,2,2,2 weights=F:1,2,3",
       "f32:3=1,3,4"},
      {"TfIdfVectorizer", 9, "i64:3",
       "mode=s:TF min_gram_length=1 max_gram_length=2 max_skip_count=1 ngram_counts=0,3 ngram_indexes=0, "
       "pool_int64s=1,2",
       NULL},
      {"Multinomial", 7, "f32:2x3=-inf,0,-inf,0,-inf,-inf", "sample_size=2 dtype=7", "i64:2x2=1,1,0,0"},
      {"Bernoulli", 15, "f32:2=0,1", "dtype=6", "i32:2=0,1"},
      {"RandomUniform", 1, "", "shape=4,", "f32:4"},
      {"RandomUniform", 1, "", "shape=-4,", NULL},
      {"RandomNormalLike", 1, "f32:2x3", "dtype=1", "f32:2x3"},
      {"RandomNormal", 1, "", "shape=4611686018427387904,4", NULL},
  };
  CHECK_ALL(cases);
}

/* Of one operand -0 stays -0, moved or summed up, as in ONNX Runtime; sums of products begin with 0. */
static void einsum_zeros(void **state) {
  (void)state;
  static const struct {
    text_case text;
    bool minus;
  } cases[] = {{{"Einsum", 12, "f32:1x2=-0,-0", "equation=s:ij->ji", ""}, true},
               {{"Einsum", 12, "f32:1x2=-0,-0", "equation=s:ij->i", ""}, true},
               {{"Einsum", 12, "f32:1x2=-0,0", "equation=s:ij->i", ""}, false},
               {{"Einsum", 12, "f32:1x0", "equation=s:ij->i", ""}, false},
               {{"Einsum", 12, "f32:1x2=-0,-0 f32:1x2=1,1", "equation=s:ij,ij->i", ""}, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    op_case c;
    assert_int_equal(run(&c, &cases[i].text, 1), HONE_OK);
    if (op_get(&c.out[0], 0) != 0 || !signbit(op_get(&c.out[0], 0)) == cases[i].minus)
      fail_msg("case %zu gives %g", i, op_get(&c.out[0], 0));
    op_end(&c);
  }
}

/* Draws with a seed repeat; their mean and variance are those of the distribution. */
static void random_numbers(void **state) {
  (void)state;
  op_case a, b;
  text_case normal = {"RandomNormal", 1, "", "shape=20000, seed=f:3 mean=f:2 scale=f:0.5", ""};
  assert_int_equal(run(&a, &normal, 1), HONE_OK);
  assert_int_equal(run(&b, &normal, 1), HONE_OK);
  assert_memory_equal(a.out[0].data, b.out[0].data, 20000 * sizeof(float));
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < 20000; i++) {
    double v = op_get(&a.out[0], i) - 2;
    sum += v;
    squares += v * v;
  }
  /* Five standard errors: 0.5 / sqrt(20000), and 0.25 sqrt(2 / 20000). */
  assert_true(fabs(sum / 20000) < 5 * 0.0036);
  assert_true(fabs(squares / 20000 - 0.25) < 5 * 0.0025);
  op_end(&a);
  op_end(&b);
}

static const hone_string *strings_of(op_case *c) { return c->out[0].data; }
static void give_strings(op_case *c, const char *dims, const char *const *list, int64_t n) {
  double zeros[MAX_VALUES] = {0};
  hone_tensor *t = op_in(c, HONE_DTYPE_BOOL, dims, zeros, 0);
  t->desc.dtype = HONE_DTYPE_STRING;
  t->data = realloc(t->data, (size_t)n * sizeof(hone_string) + 1);
  for (int64_t i = 0; i < n; i++) ((hone_string *)t->data)[i] = (hone_string){list[i], strlen(list[i])};
}
static void string_is(op_case *c, int64_t i, const char *want) {
  const hone_string *s = &strings_of(c)[i];
  assert_int_equal(s->len, strlen(want));
  assert_memory_equal(s->ptr, want, s->len);
}

static void strings(void **state) {
  (void)state;
  op_case c;
  op_begin(&c, "StringNormalizer", 10);
  give_strings(&c, "4", (const char *const[]){"STRASSE", "\xc3\x84RGER", "the", "\xff\x41"}, 4);
  op_attrs(&c, "case_change_action=s:LOWER stopwords=S:The");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  assert_int_equal(hone_desc_count(&c.out[0].desc), 3);
  string_is(&c, 0, "strasse");
  string_is(&c, 1, "\xc3\xa4rger");
  string_is(&c, 2, "\xff\x61");
  op_end(&c);

  op_begin(&c, "StringNormalizer", 10);
  give_strings(&c, "1x1", (const char *const[]){"a"}, 1);
  op_attrs(&c, "is_case_sensitive=1 stopwords=S:a");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, HONE_DTYPE_STRING, "1x1", NULL, 0);
  assert_int_equal(strings_of(&c)[0].len, 0);
  op_end(&c);

  op_begin(&c, "Cast", 13);
  op_in(&c, HONE_DTYPE_F32, "5", (const double[]){0.1f, 1e20, 100000, -INFINITY, -0.0}, 0);
  op_attrs(&c, "to=8");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  static const char *const printed[] = {"0.1", "1e+20", "100000", "-INF", "-0"};
  for (int64_t i = 0; i < 5; i++) string_is(&c, i, printed[i]);
  op_end(&c);

  op_begin(&c, "Cast", 13);
  give_strings(&c, "2", (const char *const[]){"-9223372036854775808", "7"}, 2);
  op_attrs(&c, "to=7");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  assert_true(((int64_t *)c.out[0].data)[0] == INT64_MIN);
  op_end(&c);

  for (int k = 0; k < 3; k++) { /* no numbers */
    op_begin(&c, "Cast", 13);
    give_strings(&c, "1", (const char *const[]){k == 0 ? "" : k == 1 ? "1x" : "x"}, 1);
    op_attrs(&c, "to=1");
    assert_int_equal(op_run(&c, 1), HONE_ERROR_INPUT);
    op_end(&c);
  }

  op_begin(&c, "StringConcat", 20);
  give_strings(&c, "2x1", (const char *const[]){"a", ""}, 2);
  give_strings(&c, "2", (const char *const[]){"x", "yz"}, 2);
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, HONE_DTYPE_STRING, "2x2", NULL, 0);
  static const char *const joined[] = {"ax", "ayz", "x", "yz"};
  for (int64_t i = 0; i < 4; i++) string_is(&c, i, joined[i]);
  op_end(&c);

  static const struct {
    const char *attrs, *given[2], *dims, *parts[8];
    double counts[2];
  } splits[] = {
      {"", {" a  b\tc ", ""}, "2x3", {"a", "b", "c", "", "", ""}, {3, 0}},
      {"maxsplit=1", {" a  b c ", "d"}, "2x2", {"a", "b c ", "d", ""}, {2, 1}},
      {"delimiter=s:--", {"--a----b", ""}, "2x4", {"", "a", "", "b", "", "", "", ""}, {4, 1}},
      {"delimiter=s:- maxsplit=0", {"a-b", "-"}, "2x1", {"a-b", "-"}, {1, 1}},
  };
  for (size_t k = 0; k < sizeof splits / sizeof *splits; k++) {
    op_begin(&c, "StringSplit", 20);
    give_strings(&c, "2", splits[k].given, 2);
    op_attrs(&c, splits[k].attrs);
    assert_int_equal(op_run(&c, 2), HONE_OK);
    op_expect(&c, 0, HONE_DTYPE_STRING, splits[k].dims, NULL, 0);
    for (int64_t i = 0; i < hone_desc_count(&c.out[0].desc); i++) string_is(&c, i, splits[k].parts[i]);
    op_expect(&c, 1, HONE_DTYPE_I64, "2", splits[k].counts, 0);
    op_end(&c);
  }

  op_begin(&c, "Equal", 19);
  give_strings(&c, "2", (const char *const[]){"a", "b"}, 2);
  give_strings(&c, "1", (const char *const[]){"b"}, 1);
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, HONE_DTYPE_BOOL, "2", (const double[]){0, 1}, 0);
  op_end(&c);
}

/* Inference that knows little: what flows through, and what must not be claimed. */
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
      spec s = read_spec(word);
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

/* DFT of lengths with every kind of factors, against the sums of its formula. A type that is computed in f32
 * is off by its roundings: a few for each factor, of numbers as large as the spectrum. */
static void transforms_of_any_length(void **state) {
  (void)state;
  static const int lengths[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 12, 13, 15,  16,  18,  20,  21,
                                22, 24, 26, 27, 32, 35, 37, 40, 45, 60, 63, 64, 100, 121, 169, 194, 210};
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
    for (int way = 0; way < 4; way++) {
      const bool inverse = way & 1, wide = way & 2;
      const int n = lengths[l];
      op_case c;
      char dims[32];
      op_begin(&c, "DFT", 17);
      snprintf(dims, sizeof dims, "1x%dx2", n);
      op_in(&c, wide ? HONE_DTYPE_F64 : HONE_DTYPE_F32, dims, NULL, (uint32_t)n);
      op_attrs(&c, inverse ? "inverse=1" : "");
      assert_int_equal(op_run(&c, 1), HONE_OK);
      for (int k = 0; k < n; k++) {
        double re = 0, im = 0, size = 0;
        for (int i = 0; i < n; i++) {
          double a = op_get(&c.in[0], 2 * i), b = op_get(&c.in[0], 2 * i + 1);
          double turn = (inverse ? 2 : -2) * M_PI * (double)((int64_t)i * k % n) / n;
          re += a * cos(turn) - b * sin(turn);
          im += a * sin(turn) + b * cos(turn);
          size += fabs(a) + fabs(b);
        }
        const double by = inverse ? 1.0 / n : 1, bound = (wide ? 1e-14 : 4e-7) * size * by;
        if (fabs(op_get(&c.out[0], 2 * k) - re * by) > bound ||
            fabs(op_get(&c.out[0], 2 * k + 1) - im * by) > bound)
          fail_msg("n %d, inverse %d, f64 %d: point %d is %g %+gi, not %g %+gi", n, inverse, wide, k,
                   op_get(&c.out[0], 2 * k), op_get(&c.out[0], 2 * k + 1), re * by, im * by);
      }
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
      cmocka_unit_test(elementwise),
      cmocka_unit_test(attention),
      cmocka_unit_test(casts),
      cmocka_unit_test(movement),
      cmocka_unit_test(gathering),
      cmocka_unit_test(reductions_and_products),
      cmocka_unit_test(transforms_and_losses),
      cmocka_unit_test(einsum_zeros),
      cmocka_unit_test(random_numbers),
      cmocka_unit_test(strings),
      cmocka_unit_test(unknown_shapes),
      cmocka_unit_test(transforms_of_any_length),
      cmocka_unit_test(named_dimensions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
