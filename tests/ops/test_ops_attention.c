/* Own cases for attention and what stands around it: masks, caches, rotations, states that go on. */
#include "ops/text_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

/* Scores that f16 cannot hold: 1501.46 would be 1501, and its weight 0.731. */
static void scores_of_halves(void **state) {
  (void)state;
  static const text_case cases[] = {
      {"com.microsoft.MultiHeadAttention", 1, "f16:1x1x1=1500 f16:1x2x1=1,1.0009765625 f16:1x2x1=0,1",
       "num_heads=1", "f16:1x1x1=0.8125"},
      {"com.microsoft.Attention", 1, "f16:1x2x1=1,1.0009765625 f16:1x3=1500,1,1024 f16:3=0,0,-1024",
       "num_heads=1", "f16:1x2x1=0.8125,0.8125"},
      {"com.microsoft.PackedAttention", 1,
       "f16:2x1=1,1.0009765625 f16:1x3=1500,1,1024 f16:3=0,0,-1024 i32:1x2=0,1 i32:2=0,2", "num_heads=1",
       "f16:2x1=0.8125,0.8125"},
      {"com.microsoft.PackedMultiHeadAttention", 1,
       "f16:2x1=1500,1500 f16:2x1=1,1.0009765625 f16:2x1=0,1 - i32:1x2=0,1 i32:2=0,2", "num_heads=1",
       "f16:2x1=0.8125,0.8125"},
  };
  CHECK_ALL(cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(scores_of_halves),
      cmocka_unit_test(attention),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
