/* Own cases for transforms and losses; DFT against its formula. */
#include "ops/text_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

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
      {"HannWindow", 17, "i64:=1", "", "f32:1=0"},
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

/* The sum of a real signal and the sum of alternating signs have no imaginary part at all. */
static void real_points_of_real_signals(void **state) {
  (void)state;
  for (int n = 1; n <= 30; n++)
    for (int inverse = 0; inverse < 2; inverse++) {
      op_case c;
      char dims[32];
      op_begin(&c, "DFT", 17);
      snprintf(dims, sizeof dims, "1x%dx1", n);
      op_in(&c, HONE_DTYPE_F32, dims, NULL, (uint32_t)n);
      op_attrs(&c, inverse ? "inverse=1" : "");
      assert_int_equal(op_run(&c, 1), HONE_OK);
      assert_true(op_get(&c.out[0], 1) == 0);
      if (n % 2 == 0) assert_true(op_get(&c.out[0], n + 1) == 0);
      op_end(&c);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(transforms_and_losses),
      cmocka_unit_test(transforms_of_any_length),
      cmocka_unit_test(real_points_of_real_signals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
