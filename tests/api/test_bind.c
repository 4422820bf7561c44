/* Which sizes open dimensions take, what is said where none fits, and branches of If whose shapes cannot
 * work. */
#include "net.h"
#include "model/bind.h"

#include <hone/data.h>
#include <hone/improve.h>
#include <hone/session.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

/* Binds; the shapes of the first inputs come out as text ("1x16000 2x1"), or the error as one line. */
static hone_status bound(const char *text, const hone_binding *b, uint32_t n, char *out, size_t size) {
  hn_model *m = net_parse("text", text), *fixed = NULL;
  hone_bound_shape shapes[4];
  hone_error e = {0};
  size_t at = 0;
  hone_status s = hone_model_bind(m, b, n, 0, &fixed, shapes, &e);
  out[0] = 0;
  if (s != HONE_OK) hone_error_format(&e, out, size);
  for (uint32_t i = 0; s == HONE_OK && i < hone_model_inputs(m) && i < 4; i++)
    for (int32_t k = 0; k < shapes[i].desc.rank; k++)
      at += (size_t)snprintf(out + at, size - at, "%s%lld",
                             k   ? "x"
                             : i ? " "
                                 : "",
                             (long long)shapes[i].desc.dim[k]);
  hn_model_destroy(fixed);
  hn_model_destroy(m);
  return s;
}

#define SPECTRUM(dims, span)                                                                                 \
  "graph g(%x: f32[" dims "]) -> (%y) {\n"                                                                   \
  "  const %w: f32[4x1x" span "] = rand(1)\n"                                                                \
  "  %u = Unsqueeze(%x, i64[1]{1})\n"                                                                        \
  "  %y = Conv(%u, %w) {strides=[160]}\n"                                                                    \
  "}\n"

static void lengths_that_fit_are_found(void **state) {
  (void)state;
  char t[1200];
  assert_int_equal(bound(SPECTRUM("NxT", "64"), NULL, 0, t, sizeof t), HONE_OK);
  assert_string_equal(t, "1x128"); /* the first fits */
  assert_int_equal(bound(SPECTRUM("NxT", "512"), NULL, 0, t, sizeof t), HONE_OK);
  assert_string_equal(t, "1x16000");
  assert_int_equal(bound(SPECTRUM("Nxsamples", "64"), NULL, 0, t, sizeof t), HONE_OK);
  assert_string_equal(t, "1x16000"); /* sound, by its name */
  /* Only one length works: fixed positions are added. */
  assert_int_equal(bound("graph g(%ids: i64[NxT]) -> (%y) {\n  const %p: f32[1x77x8] = rand(1)\n"
                         "  const %w: f32[9x8] = rand(2)\n  %e = Gather(%w, %ids)\n  %y = Add(%e, %p)\n}\n",
                         NULL, 0, t, sizeof t),
                   HONE_OK);
  assert_string_equal(t, "1x77");
  /* An open dimension that has to be as long as the batch, and has no name that says so. */
  assert_int_equal(
      bound("graph g(%x: f32[NxTx4], %h: f32[1xMx3]) -> (%y) {\n  const %w: f32[1x3x4] = rand(1)\n"
            "  const %r: f32[1x3x3] = rand(2)\n  %s = Transpose(%x) {perm=[1, 0, 2]}\n"
            "  %y = RNN(%s, %w, %r, _, _, %h) {hidden_size=3}\n}\n",
            NULL, 0, t, sizeof t),
      HONE_OK);
  assert_string_equal(t, "1x128x4 1x1x3");
  assert_int_equal(bound("graph g(%x: f32[Nx4], %h: f32[1xbatch_sizex4]) -> (%y) {\n  %y = Mul(%x, %h)\n}\n",
                         NULL, 0, t, sizeof t),
                   HONE_OK);
  assert_string_equal(t, "1x4 1x1x4");
}

static void errors_name_input_dimension_and_option(void **state) {
  (void)state;
  char t[1200];
  assert_int_equal(bound(SPECTRUM("NxT", "500000"), NULL, 0, t, sizeof t), HONE_ERROR_INPUT);
  assert_non_null(strstr(t, "a kernel that spans 500000"));
  assert_non_null(strstr(t, "dimension 1 ('T') of input 'x'"));
  assert_non_null(strstr(t, "--shape x=1xN"));
  hone_binding shape = {.input = "x", .rank = 2, .dim = {1, 100}};
  assert_int_equal(bound(SPECTRUM("NxT", "512"), &shape, 1, t, sizeof t), HONE_ERROR_INPUT);
  assert_non_null(strstr(t, "a kernel that spans 512"));
  assert_non_null(strstr(t, "--shape x=1x16000"));
  /* Nothing is open: nothing is to be given. */
  assert_int_equal(bound("graph g(%x: f32[1x4]) -> (%y) {\n  const %s: i64[1] = {4}\n"
                         "  %r = Reshape(%x, %s)\n  %y = Relu(%r)\n}\n",
                         &(hone_binding){.input = "x", .rank = 1, .dim = {4}}, 1, t, sizeof t),
                   HONE_ERROR_USAGE);
}

/* Two branches, of which each takes one length: as for rates of 16000 and 8000. */
#define RATES(cond)                                                                                          \
  "graph g(%x: f32[NxT], %rate: i64[]) -> (%y) {\n"                                                          \
  "  %c = Equal(" cond ", i64 16000)\n"                                                                      \
  "  %y = If(%c) {then_branch=graph yes() -> (%a) {\n"                                                       \
  "    const %v: f32[1x512] = rand(1)\n    %p = Mul(%x, %v)\n    %a = ReduceSum(%p, i64[1]{1})\n"            \
  "  }, else_branch=graph no() -> (%b) {\n"                                                                  \
  "    const %w: f32[1x256] = rand(2)\n    %q = Mul(%x, %w)\n    %b = ReduceSum(%q, i64[1]{1})\n"            \
  "  }}\n}\n"

static hone_status run_rate(const char *text, int level, int64_t length, int64_t rate, hone_error *e) {
  hn_model *m = net_parse("text", text);
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_context *context = NULL;
  hone_binding shape = {.input = "x", .rank = 2, .dim = {1, length}};
  float x[512];
  for (int i = 0; i < 512; i++) x[i] = (float)i / 512;
  hone_tensor in[2] = {{hone_desc(HONE_DTYPE_F32, 2, shape.dim), x},
                       {hone_desc(HONE_DTYPE_I64, 0, NULL), &rate}};
  hone_plan_options o = {.level = level, .bindings = &shape, .n_bindings = 1};
  assert_int_equal(hone_engine_create(NULL, &engine, NULL), HONE_OK);
  hone_status s = hone_plan_create(engine, m, &o, &plan, e);
  if (s == HONE_OK) s = hone_context_create(plan, &context, e);
  const hone_tensor *feeds[2] = {&in[0], &in[1]};
  if (s == HONE_OK) s = hone_context_run(context, feeds, NULL, e);
  if (s == HONE_OK) {
    const hone_tensor *y = hone_context_output(context, 0);
    assert_int_equal(y->desc.rank, 2);
    assert_true(((const float *)y->data)[0] != 0);
  }
  hone_context_destroy(context);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  hn_model_destroy(m);
  return s;
}

static void a_branch_that_is_not_taken_need_not_fit(void **state) {
  (void)state;
  for (int level = 0; level <= 2; level++) {
    hone_error e = {0};
    assert_int_equal(run_rate(RATES("%rate"), level, 512, 16000, &e), HONE_OK);
    assert_int_equal(run_rate(RATES("%rate"), level, 256, 8000, &e), HONE_OK);
    /* It may be taken: then the run says what is wrong, once. */
    assert_int_equal(run_rate(RATES("%rate"), level, 256, 16000, &e), HONE_ERROR_INPUT);
    assert_non_null(strstr(e.where, "Mul"));
    assert_int_equal(run_rate(RATES("%rate"), level, 512, 8000, &e), HONE_ERROR_INPUT);
    /* Neither can work: the plan says so. */
    assert_int_equal(run_rate(RATES("%rate"), level, 300, 16000, &e), HONE_ERROR_INPUT);
    /* The condition is a constant: only that branch counts. */
    assert_int_equal(run_rate(RATES("i64 16000"), level, 512, 1, &e), HONE_OK);
    assert_int_equal(run_rate(RATES("i64 16000"), level, 256, 1, &e), HONE_ERROR_INPUT);
    assert_int_equal(run_rate(RATES("i64 8000"), level, 256, 1, &e), HONE_OK);
  }
}

static void a_length_for_which_a_branch_works_is_found(void **state) {
  (void)state;
  char t[1200];
  assert_int_equal(bound(RATES("%rate"), NULL, 0, t, sizeof t), HONE_OK);
  assert_true(strcmp(t, "1x512") == 0);
}

/* What an If compares an input with is that input's value when nobody gives one; another integer is random.
 */
static void inputs_that_choose_a_branch_have_its_constant(void **state) {
  (void)state;
  hn_model *m = net_parse("text", RATES("%rate"));
  hone_data d = {0};
  hone_tensor_desc one = hone_desc(HONE_DTYPE_I64, 0, NULL);
  for (uint64_t seed = 1; seed < 4; seed++) {
    assert_int_equal(hone_data_for_input(m, 1, &one, seed, &d, NULL), HONE_OK);
    assert_int_equal(*(const int64_t *)d.tensor.data, 16000);
    hone_data_free(&d);
  }
  assert_int_equal(hone_data_for_input(m, 2, &one, 1, &d, NULL), HONE_ERROR_USAGE);
  hn_model_destroy(m);
  m = net_parse("text",
                "graph g(%x: i64[]) -> (%y) {\n  %y = Equal(%x, i64 16000)\n}\n"); /* chooses nothing */
  assert_int_equal(hone_data_for_input(m, 0, &one, 1, &d, NULL), HONE_OK);
  assert_in_range(*(const int64_t *)d.tensor.data, 0, 99);
  hone_data_free(&d);
  hn_model_destroy(m);
}

static void numbers_are_inputs(void **state) {
  (void)state;
  hone_data d = {0};
  hone_error e = {0};
  hone_tensor_desc ints = hone_desc(HONE_DTYPE_I64, 0, NULL), u8 = hone_desc(HONE_DTYPE_U8, 0, NULL),
                   row = hone_desc(HONE_DTYPE_F16, 1, (int64_t[]){3}),
                   open = hone_desc(HONE_DTYPE_F32, 1, (int64_t[]){-1});
  assert_int_equal(hone_data_load("-9007199254740993", "x", &ints, NULL, &d, &e), HONE_OK);
  assert_int_equal(*(const int64_t *)d.tensor.data, -9007199254740993); /* not through a double */
  hone_data_free(&d);
  assert_int_equal(hone_data_load("1.5e0", "x", &row, NULL, &d, &e), HONE_OK);
  for (int i = 0; i < 3; i++) assert_int_equal(((const uint16_t *)d.tensor.data)[i], 0x3e00);
  hone_data_free(&d);
  assert_int_equal(hone_data_load("1.5", "x", &ints, NULL, &d, &e), HONE_ERROR_INPUT);
  assert_int_equal(hone_data_load("256", "x", &u8, NULL, &d, &e), HONE_ERROR_INPUT);
  assert_int_equal(hone_data_load("1", "x", &open, NULL, &d, &e), HONE_ERROR_USAGE);
  for (int i = 0; i < 2; i++) {
    assert_int_not_equal(hone_data_load(i ? "./1" : "1x", "x", &ints, NULL, &d, &e), HONE_OK);
    assert_non_null(strstr(e.what, "cannot open"));
  }
}

/* Exporters list weights and target shapes as inputs with a value. A run has those values unless somebody
 * overrides them: what it costs is known. */
#define RESHAPED(target)                                                                                     \
  "graph g(%x: f32[1x4x6x6], %to: i64[4] = {" target "}) -> (%y: f32[?x?x?x?]) {\n"                          \
  "  const %w: f32[4x2x3x3] = rand(1)\n"                                                                     \
  "  %r = Reshape(%x, %to)\n"                                                                                \
  "  %y = Conv(%r, %w) \"conv\"\n"                                                                           \
  "}\n"

/* Callers count inputs that they must give before those that have a value. */
static void inputs_with_a_value_come_last(void **state) {
  (void)state;
  static const char text[] = "graph g(%a: f32[1] = {1}, %b: f32[1], %c: f32[1] = {2}, %d: f32[1]) -> (%y) {\n"
                             "  %p = Add(%a, %b)\n  %q = Add(%c, %d)\n  %y = Add(%p, %q)\n}\n",
                    *const names[] = {"b", "d", "a", "c"};
  hone_model *loaded = NULL;
  hone_error e = {0};
  assert_int_equal(hone_model_parse(text, strlen(text), &loaded, &e), HONE_OK);
  hn_model *made = net_parse("text", text); /* not by the functions of the API */
  for (int k = 0; k < 2; k++) {
    hone_port port;
    for (uint32_t i = 0; i < 4; i++) {
      assert_true(hone_model_input(k ? made : loaded, i, &port));
      assert_string_equal(port.name, names[i]);
      assert_int_equal(port.optional, i >= 2);
    }
    assert_false(hone_model_input(k ? made : loaded, 4, &port));
  }
  hn_model_destroy(made);
  hone_model_release(loaded);
}

static void inputs_with_a_value_count_with_it(void **state) {
  (void)state;
  const double expected[] = {2 * 9 * 2 * 4.0 * 10 * 4,
                             0}; /* what no shape fits is not counted, and no error */
  const char *const texts[] = {RESHAPED("1, 2, 12, 6"), RESHAPED("1, 7, 3, 3")};
  for (int i = 0; i < 2; i++) {
    hn_model *m = net_parse("text", texts[i]);
    hone_inspection seen;
    hone_error e = {0};
    assert_int_equal(hone_model_inspect(m, &seen, &e), HONE_OK);
    assert_int_equal(seen.n_nodes, 2);
    assert_true(seen.nodes[1].macs == expected[i] / 2);
    assert_string_equal(seen.nodes[1].name, "conv");
    assert_string_equal(seen.nodes[1].shape, i ? "?x4x?x?" : "1x4x10x4");
    hone_port port;
    assert_true(hone_model_input(m, 1, &port) && port.optional); /* the model stays as it was */
    hone_inspection_free(&seen);
    hn_model_destroy(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(inputs_with_a_value_come_last),
      cmocka_unit_test(inputs_with_a_value_count_with_it),
      cmocka_unit_test(lengths_that_fit_are_found),
      cmocka_unit_test(errors_name_input_dimension_and_option),
      cmocka_unit_test(a_branch_that_is_not_taken_need_not_fit),
      cmocka_unit_test(a_length_for_which_a_branch_works_is_found),
      cmocka_unit_test(inputs_that_choose_a_branch_have_its_constant),
      cmocka_unit_test(numbers_are_inputs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
