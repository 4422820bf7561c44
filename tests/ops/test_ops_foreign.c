/* What comes from outside of numbers: patterns (RegexFullMatch), files of pictures (ImageDecoder); maps
 * (ZipMap, DictVectorizer); and the steps of training (Adagrad, Adam, Momentum). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <hone/session.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct run {
  hone_engine *engine;
  hone_plan *plan;
  hone_context *context;
  hone_error e;
} run;

static hone_status begin(run *r, const char *graph, int level) {
  char text[2048];
  *r = (run){0};
  snprintf(text, sizeof text,
           "opset 20\nopset \"ai.onnx.ml\" 3\nopset \"ai.onnx.preview.training\" 1\ngraph g%s\n", graph);
  hone_model *model = NULL;
  hone_status s = hone_engine_create(NULL, &r->engine, &r->e);
  if (!s) s = hone_model_parse(text, strlen(text), &model, &r->e);
  const hone_plan_options options = {.level = level, .reference = level == 0};
  if (!s) s = hone_plan_create(r->engine, model, &options, &r->plan, &r->e);
  hone_model_release(model);
  return s ? s : hone_context_create(r->plan, &r->context, &r->e);
}

static hone_status go(run *r, const hone_tensor *x) {
  return hone_context_run(r->context, (const hone_tensor *[]){x}, NULL, &r->e);
}

static void end(run *r) {
  hone_context_destroy(r->context);
  hone_plan_destroy(r->plan);
  hone_engine_destroy(r->engine);
}

static hone_tensor vector(hone_dtype dtype, int64_t n, const void *data) {
  return (hone_tensor){hone_desc(dtype, 1, &n), (void *)data};
}

#define REGEX(pattern) "(%x: string[3]) -> (%y) { %y = RegexFullMatch(%x) {pattern=\"" pattern "\"} }"

static hone_tensor words(hone_string *s, const char *a, const char *b, const char *c) {
  const char *said[] = {a, b, c};
  for (int i = 0; i < 3; i++) s[i] = (hone_string){said[i], strlen(said[i])};
  return vector(HONE_DTYPE_STRING, 3, s);
}

/* Whether this build has patterns: it says so when it has not. */
static bool has_patterns(void) {
  run r;
  const hone_status s = begin(&r, REGEX("a"), 2);
  const bool lacks = s == HONE_ERROR_UNSUPPORTED && strstr(r.e.what, "PCRE2");
  if (s && !lacks) fail_msg("%s", r.e.what);
  end(&r);
  if (lacks) print_message("SKIP: hone was built without PCRE2\n");
  return !lacks;
}

static void patterns_match_all_of_a_string(void **state) {
  (void)state;
  static const struct {
    const char *graph, *word[3];
    bool want[3];
  } cases[] = {
      {REGEX("a+b"), {"aab", "xaab", "aabx"}, {true, false, false}},
      {REGEX("(a|ab)(c|bcd)?"), {"abcd", "", "abc"}, {true, false, true}},
      {REGEX(".\\\\d$"),
       {"\xc3\xa9"
        "1",
        "a1\n",
        "\xff"
        "1"},
       {true, false, false}},
      {REGEX(""), {"", "a", "\n"}, {true, false, false}},
      {REGEX("[](?=*]+[[:digit:](*]"), {"](?=1", "(*", "a("}, {true, true, false}},
      {REGEX("\\\\Q(?=\\\\1\\\\E(?i:a)"), {"(?=\\1A", "(?=\\1a", "a"}, {true, true, false}},
      {REGEX("\\\\141[\\\\60-\\\\71]\\\\0?"), {"a7", "a/", "a"}, {true, false, false}},
      {REGEX("(a)(b)\\\\12[^\\\\101]?"), {"ab\n", "abA", "ab\nb"}, {true, false, true}},
      {REGEX("a\\x00b|c"), {"c", "a", "ab"}, {true, false, false}},
      {REGEX("(?P<n>a)(?<m>b)?(?i-s)C"), {"abc", "aC", "a"}, {true, true, false}},
  };
  if (!has_patterns()) return;
  for (size_t k = 0; k < 2 * sizeof cases / sizeof *cases; k++) {
    run r;
    hone_string s[3];
    const hone_tensor x = words(s, cases[k / 2].word[0], cases[k / 2].word[1], cases[k / 2].word[2]);
    if (begin(&r, cases[k / 2].graph, k % 2 ? 2 : 0) || go(&r, &x)) fail_msg("%s", r.e.what);
    const bool *y = hone_context_output(r.context, 0)->data;
    for (int i = 0; i < 3; i++)
      if (y[i] != cases[k / 2].want[i]) fail_msg("%s on '%s'", cases[k / 2].graph, cases[k / 2].word[i]);
    end(&r);
  }
}

/* Zeros are bytes like others, in patterns and in strings. */
#define CAST_MAP(type, more) "(%x: map_i64 " type ") -> (%y) { %y = ai.onnx.ml::CastMap(%x) {" more "} }"

/* The map 7: 1.5, -2 or 0: 4 of floats or strings, as each form; refusals. */
static void a_map_becomes_a_row(void **state) {
  (void)state;
  const int64_t keys[] = {7, 0}, below[] = {7, -2};
  const float numbers[] = {1.5f, 4};
  const hone_string texts[] = {{"1.5", 3}, {"4", 1}};
  static const struct {
    const char *graph;
    bool text;
    int64_t n;
    double is[8];
  } cases[] = {{CAST_MAP("f32", ""), false, 2, {4, 1.5}},
               {CAST_MAP("string", "cast_to=\"TO_FLOAT\""), true, 2, {4, 1.5}},
               {CAST_MAP("f32", "cast_to=\"TO_INT64\", map_form=\"SPARSE\", max_map=8"),
                false,
                8,
                {4, 0, 0, 0, 0, 0, 0, 1}},
               {CAST_MAP("f32", "map_form=\"SPARSE\", max_map=3"), false, 3, {4, 0, 0}}};
  hone_tensor k = vector(HONE_DTYPE_I64, 2, keys), f = vector(HONE_DTYPE_F32, 2, numbers),
              s = vector(HONE_DTYPE_STRING, 2, texts);
  run r;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int level = 0; level <= 2; level += 2) {
      hone_items items = {2, (const hone_tensor *[]){&k, cases[i].text ? &s : &f}};
      const hone_dtype type = cases[i].text ? HONE_DTYPE_STRING : HONE_DTYPE_F32;
      const hone_tensor x = {hone_desc((hone_dtype)(HONE_MAP_I64 | type), 0, NULL), &items};
      if (begin(&r, cases[i].graph, level) || go(&r, &x)) fail_msg("%s: %s", cases[i].graph, r.e.what);
      const hone_tensor *y = hone_context_output(r.context, 0);
      assert_int_equal(y->desc.rank, 2);
      assert_int_equal(y->desc.dim[0], 1);
      assert_int_equal(y->desc.dim[1], cases[i].n);
      for (int64_t c = 0; c < cases[i].n; c++) {
        const bool whole = y->desc.dtype == HONE_DTYPE_I64;
        const double got =
            whole ? (double)((const int64_t *)y->data)[c] : (double)((const float *)y->data)[c];
        if (got != cases[i].is[c]) fail_msg("%s: %g at %d", cases[i].graph, got, (int)c);
      }
      end(&r);
    }
  k = vector(HONE_DTYPE_I64, 2, below); /* no place for a key below 0 */
  hone_items items = {2, (const hone_tensor *[]){&k, &f}};
  const hone_tensor x = {hone_desc((hone_dtype)(HONE_MAP_I64 | HONE_DTYPE_F32), 0, NULL), &items};
  if (begin(&r, cases[3].graph, 2)) fail_msg("%s", r.e.what);
  assert_int_not_equal(go(&r, &x), HONE_OK);
  end(&r);
  static const char *const bad[] = {CAST_MAP("f32", "cast_to=\"TO_MARS\""),
                                    CAST_MAP("f32", "map_form=\"THIN\""),
                                    CAST_MAP("f32", "map_form=\"SPARSE\", max_map=0"), CAST_MAP("f64", ""),
                                    "(%x: f32[2]) -> (%y) { %y = ai.onnx.ml::CastMap(%x) }"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    if (!begin(&r, bad[i], 2)) fail_msg("%s is accepted", bad[i]);
    end(&r);
  }
}

static void zeros_do_not_end_strings(void **state) {
  (void)state;
  static const struct {
    const char *graph;
    bool pattern;
  } cases[] = {
      {REGEX("a\\x00b"), true},
      {"(%x: string[3]) -> (%y) { %y = ai.onnx.ml::LabelEncoder(%x) {keys_strings=[\"a\", \"a\\x00b\"], "
       "values_int64s=[0, 1], default_int64=0} }",
       false},
      {"(%x: string[3]) -> (%y) { %y = ai.onnx.ml::CategoryMapper(%x) {cats_strings=[\"a\", \"a\\x00b\"], "
       "cats_int64s=[0, 1], default_int64=0} }",
       false}};
  hone_string s[3] = {{"a\0b", 3}, {"a", 1}, {"a\0c", 3}};
  const hone_tensor x = vector(HONE_DTYPE_STRING, 3, s);
  for (size_t k = has_patterns() ? 0 : 1; k < sizeof cases / sizeof *cases; k++) {
    run r;
    if (begin(&r, cases[k].graph, 2) || go(&r, &x)) fail_msg("%s", r.e.what);
    const void *y = hone_context_output(r.context, 0)->data;
    for (int i = 0; i < 3; i++)
      assert_int_equal(cases[k].pattern ? ((const bool *)y)[i] : ((const int64_t *)y)[i], i == 0);
    end(&r);
  }
}

static void patterns_of_no_use_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *graph, *says;
  } cases[] = {{REGEX("(a"), "at byte 2"},     {REGEX("(a)\\\\1"), "a reference back"},
               {REGEX("(?=a)a"), "a group"},   {REGEX("(?P<n>a)(?P=n)"), "a group"},
               {REGEX("(?1)(a)"), "a group"},  {REGEX("(?<!a)a"), "a group"},
               {REGEX("(*COMMIT)a"), "(*"},    {REGEX("a++"), "possessive"},
               {REGEX("[\\\\1]"), "one digit"}};
  if (!has_patterns()) return;
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    run r;
    assert_int_not_equal(begin(&r, cases[k].graph, 2), HONE_OK);
    if (!strstr(r.e.what, cases[k].says)) fail_msg("%s: %s", cases[k].graph, r.e.what);
    end(&r);
  }
  /* A pattern that tries 2^40 ways ends with an error, soon. */
  run r;
  hone_string s[3];
  const hone_tensor x = words(s, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "", "");
  assert_int_equal(begin(&r, REGEX("(a|aa|aaa)+"), 2), HONE_OK);
  const hone_status status = go(&r, &x);
  if (status && !strstr(r.e.what, "steps")) fail_msg("%s", r.e.what);
  assert_int_equal(status, HONE_ERROR_UNSUPPORTED);
  end(&r);
}

/* A decoder of n bytes. */
static hone_status begin_image(run *r, int64_t n, const char *format, int level) {
  char graph[160];
  snprintf(graph, sizeof graph, "(%%x: u8[%lld]) -> (%%y) { %%y = ImageDecoder(%%x) {pixel_format=\"%s\"} }",
           (long long)n, format);
  return begin(r, graph, level);
}

/* 2 x 2: red and green above blue and white, rows from below, each filled up to 8 bytes. */
static const uint8_t bmp[] = {'B', 'M', 70, 0,   0,   0,   0, 0, 0, 0, 54,  0, 0,   0, 40, 0, 0,  0,
                              2,   0,   0,  0,   2,   0,   0, 0, 1, 0, 24,  0, 0,   0, 0,  0, 16, 0,
                              0,   0,   0,  0,   0,   0,   0, 0, 0, 0, 0,   0, 0,   0, 0,  0, 0,  0,
                              255, 0,   0,  255, 255, 255, 0, 0, 0, 0, 255, 0, 255, 0, 0,  0};
/* The same from above, 32 bits a pixel: red, green and blue in bytes 1 to 3. */
static const uint8_t masked[] = {'B', 'M', 82, 0, 0,   0,   0,   0,   0,   0,   66, 0,   0,   0,  40,  0, 0,
                                 0,   2,   0,  0, 0,   254, 255, 255, 255, 1,   0,  32,  0,   3,  0,   0, 0,
                                 16,  0,   0,  0, 0,   0,   0,   0,   0,   0,   0,  0,   0,   0,  0,   0, 0,
                                 0,   0,   0,  0, 255, 0,   0,   0,   0,   255, 0,  0,   0,   0,  255, 9, 255,
                                 0,   0,   9,  0, 255, 0,   9,   0,   0,   255, 9,  255, 255, 255};
static const char pnm[] = "P6 # two\n2 2\n255\n\xff\0\0\0\xff\0\0\0\xff\xff\xff\xff";

static void picture(const char *format, const void *file, int64_t n, int64_t channels, const char *want) {
  for (int level = 0; level < 3; level += 2) {
    run r;
    const hone_tensor x = vector(HONE_DTYPE_U8, n, file);
    if (begin_image(&r, n, format, level) || go(&r, &x)) fail_msg("%s", r.e.what);
    const hone_tensor *y = hone_context_output(r.context, 0);
    assert_int_equal(y->desc.rank, 3);
    assert_int_equal(y->desc.dim[0], 2);
    assert_int_equal(y->desc.dim[1], 2);
    assert_int_equal(y->desc.dim[2], channels);
    assert_memory_equal(y->data, want, (size_t)(4 * channels));
    end(&r);
  }
}

static void pictures_are_decoded(void **state) {
  (void)state;
  const char *rgb = "\xff\0\0\0\xff\0\0\0\xff\xff\xff\xff", *bgr = "\0\0\xff\0\xff\0\xff\0\0\xff\xff\xff";
  picture("RGB", bmp, sizeof bmp, 3, rgb);
  picture("BGR", bmp, sizeof bmp, 3, bgr);
  picture("RGB", masked, sizeof masked, 3, rgb);
  picture("Grayscale", pnm, sizeof pnm - 1, 1, "\x4c\x96\x1d\xff");
  picture("RGB", pnm, sizeof pnm - 1, 3, rgb);
}

static void bytes_that_are_no_picture_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t n;
    hone_status status;
    const char *says;
  } cases[] = {{"II*\0", 4, HONE_ERROR_UNSUPPORTED, "TIFF"},
               {"RIFF....WEBPVP8 ", 16, HONE_ERROR_UNSUPPORTED, "WebP"},
               {"hello", 5, HONE_ERROR_INPUT, "no picture"},
               {"P5 9", 4, HONE_ERROR_INPUT, "bad PNM"},
               {"P5 9 9 255 12", 13, HONE_ERROR_INPUT, "ends in its pixels"},
               {"\xff\xd8\xff", 3, HONE_ERROR_INPUT, "bad JPEG"},
               {"\x89PNG", 4, HONE_ERROR_INPUT, "bad PNG"}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    run r;
    const hone_tensor x = vector(HONE_DTYPE_U8, (int64_t)cases[k].n, cases[k].bytes);
    assert_int_equal(begin_image(&r, x.desc.dim[0], "RGB", 2), HONE_OK);
    assert_int_equal(go(&r, &x), cases[k].status);
    if (!strstr(r.e.what, cases[k].says)) fail_msg("%s", r.e.what);
    end(&r);
  }
  for (size_t n = 2; n < sizeof bmp; n++) { /* every truncation */
    run r;
    const hone_tensor x = vector(HONE_DTYPE_U8, (int64_t)n, bmp);
    assert_int_equal(begin_image(&r, x.desc.dim[0], "RGB", 2), HONE_OK);
    assert_int_equal(go(&r, &x), HONE_ERROR_INPUT);
    end(&r);
  }
}

static void rows_of_scores_become_maps(void **state) {
  (void)state;
  const float x[] = {0.25f, 0.75f, 1, 0};
  for (int level = 0; level < 3; level += 2) {
    run r;
    if (begin(&r, "(%x: f32[2x2]) -> (%y) { %y = ai.onnx.ml::ZipMap(%x) {classlabels_int64s=[7, -1]} }",
              level))
      fail_msg("%s", r.e.what);
    const hone_tensor in = {hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){2, 2}), (void *)x};
    assert_int_equal(go(&r, &in), HONE_OK);
    const hone_tensor *y = hone_context_output(r.context, 0);
    assert_string_equal(hone_dtype_name(y->desc.dtype), "seq map_i64 f32");
    const hone_items *list = y->data;
    assert_int_equal(list->count, 2);
    for (size_t i = 0; i < 2; i++) {
      assert_string_equal(hone_dtype_name(list->item[i]->desc.dtype), "map_i64 f32");
      const hone_items *map = list->item[i]->data;
      assert_int_equal(map->count, 2);
      assert_memory_equal(map->item[0]->data, ((const int64_t[]){7, -1}), 16);
      assert_memory_equal(map->item[1]->data, x + 2 * i, 8);
    }
    end(&r);
  }
}

static void a_map_becomes_a_vector(void **state) {
  (void)state;
  const hone_string key[] = {{"a", 1}, {"bc", 2}};
  const float value[] = {1, 2};
  hone_tensor k = vector(HONE_DTYPE_STRING, 2, key), v = vector(HONE_DTYPE_F32, 2, value);
  hone_items items = {2, (const hone_tensor *[]){&k, &v}};
  const hone_tensor x = {hone_desc((hone_dtype)(HONE_MAP_STRING | HONE_DTYPE_F32), 0, NULL), &items};
  run r;
  if (begin(&r,
            "(%x: map_string f32) -> (%y) { %y = ai.onnx.ml::DictVectorizer(%x) {string_vocabulary=["
            "\"bc\", \"\", \"a\"]} }",
            2))
    fail_msg("%s", r.e.what);
  assert_int_equal(go(&r, &x), HONE_OK);
  assert_memory_equal(hone_context_output(r.context, 0)->data, ((const float[]){2, 0, 1}), 12);
  v = vector(HONE_DTYPE_F32, 1, value); /* not as many values as keys */
  assert_int_not_equal(go(&r, &x), HONE_OK);
  end(&r);
  /* Nothing else computes with maps. */
  assert_int_equal(begin(&r, "(%x: map_string f32) -> (%y) { %y = OptionalHasElement(%x) }", 2),
                   HONE_ERROR_UNSUPPORTED);
  assert_non_null(strstr(r.e.what, "maps"));
  end(&r);
}

/* One parameter 2, gradient 3, rate 0.5; what is kept is 4 (and 5). */
static void training_steps(void **state) {
  (void)state;
#define STEP(op, inputs, outputs, more)                                                                      \
  "(%x: f64[1]) -> (" outputs ") { " outputs " = ai.onnx.preview.training::" op                              \
  "(f64[1]{0.5}, i64[1]{2}, %x, f64[1]{3}, " inputs ") {norm_coefficient=0.5" more "} }"
  const double g = 4; /* 3 + 0.5 * 2 */
  const struct {
    const char *graph;
    double x, kept;
  } cases[] = {
      {STEP("Adagrad", "f64[1]{4}", "%y, %k", ", decay_factor=0.5, epsilon=0.25"),
       2 - 0.25 * g / (sqrt(20) + 0.25), 20},
      {STEP("Momentum", "f64[1]{4}", "%y, %k", ", alpha=0.5, beta=0.25, mode=\"standard\""), 2 - 0.5 * 3, 3},
      {STEP("Momentum", "f64[1]{4}", "%y, %k", ", alpha=0.5, beta=0.25, mode=\"nesterov\""), 2 - 0.5 * 5.5,
       3},
      {STEP("Adam", "f64[1]{4}, f64[1]{5}", "%y, %k, %l",
            ", alpha=0.5, beta=0.75, epsilon=0.25, "
            "norm_coefficient_post=0.5"),
       0.5 * (2 - 0.5 * sqrt(1 - 0.5625) / 0.75 * 4 / (sqrt(7.75) + 0.25)), 4},
  };
  for (size_t k = 0; k < 2 * sizeof cases / sizeof *cases; k++) {
    run r;
    const double two = 2;
    const hone_tensor x = vector(HONE_DTYPE_F64, 1, &two);
    if (begin(&r, cases[k / 2].graph, k % 2 ? 2 : 0) || go(&r, &x)) fail_msg("%s", r.e.what);
    assert_true(fabs(*(const double *)hone_context_output(r.context, 0)->data - cases[k / 2].x) < 1e-12);
    assert_true(fabs(*(const double *)hone_context_output(r.context, 1)->data - cases[k / 2].kept) < 1e-12);
    end(&r);
  }
}

/* Numbers that are none or several, inputs that are left out, types without arithmetic. */
static void steps_of_no_use_are_refused(void **state) {
  (void)state;
#define ADAM(r, t, x, g)                                                                                     \
  "(%x: f32[1]) -> (%y) { %y, %k, %l = ai.onnx.preview.training::Adam(" r ", " t ", " x ", " g               \
  ", f32[1]{0}, f32[1]{0}) }"
  static const struct {
    const char *graph, *says;
  } cases[] = {{ADAM("f32[0]{}", "i64[1]{2}", "%x", "%x"), "input 0 is not one number"},
               {ADAM("f32[1]{1}", "i64[2]{1, 2}", "%x", "%x"), "input 1 is not one number"},
               {ADAM("_", "i64[1]{2}", "%x", "%x"), "input 0 is left out"},
               {ADAM("f32[1]{1}", "_", "%x", "%x"), "input 1 is left out"},
               {ADAM("f32[1]{1}", "i64[1]{2}", "%x", "_"), "input 3 is left out"},
               {ADAM("f32[1]{1}", "f32[1]{2}", "%x", "%x"), "input 1 has dtype f32"},
               {ADAM("f32[1]{1}", "i64[1]{2}", "string[1]{\"a\"}", "%x"), "input 2 has dtype string"}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    run r;
    assert_int_not_equal(begin(&r, cases[k].graph, 2), HONE_OK);
    if (!strstr(r.e.what, cases[k].says)) fail_msg("%s: %s", cases[k].graph, r.e.what);
    end(&r);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(patterns_match_all_of_a_string),
                                     cmocka_unit_test(zeros_do_not_end_strings),
                                     cmocka_unit_test(patterns_of_no_use_are_refused),
                                     cmocka_unit_test(pictures_are_decoded),
                                     cmocka_unit_test(bytes_that_are_no_picture_are_refused),
                                     cmocka_unit_test(rows_of_scores_become_maps),
                                     cmocka_unit_test(a_map_becomes_a_vector),
                                     cmocka_unit_test(a_map_becomes_a_row),
                                     cmocka_unit_test(training_steps),
                                     cmocka_unit_test(steps_of_no_use_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
