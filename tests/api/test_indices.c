/* Indices outside of their axis: the tactics of Gather, Scatter and their relations refuse them in the
 * reference's words, wherever among the indices they stand and however many threads read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include <stdio.h>
#include <string.h>

enum { INDICES = 40000 }; /* several tasks */

static const struct {
  const char *text, *op;
  int64_t rank, dim[2], axis; /* of the indices; the axis' elements */
} cases[] = {
    {"opset 18\ngraph g(%i: i64[40000]) -> (%y) {\n%y = Gather(f32[7]{0, 1, 2, 3, 4, 5, 6}, %i)\n}\n",
     "Gather",
     1,
     {INDICES},
     7},
    {"opset 18\ngraph g(%i: i64[1x40000]) -> (%y) {\n%y = GatherElements(f32[1x7]{0, 1, 2, 3, 4, 5, 6}, %i) "
     "{axis=1}\n}\n",
     "GatherElements",
     2,
     {1, INDICES},
     7},
    {"opset 18\ngraph g(%i: i64[20000x2]) -> (%y) {\n%y = GatherND(f32[2x2]{0, 1, 2, 3}, %i)\n}\n",
     "GatherND",
     2,
     {INDICES / 2, 2},
     2},
    {"opset 18\ngraph g(%i: i64[2x20000]) -> (%y) {\n%u = Cast(%i) {to=1}\n%y = ScatterElements(f32[2x7]{0, "
     "1, 2, "
     "3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, %i, %u) {axis=1}\n}\n",
     "ScatterElements",
     2,
     {2, INDICES / 2},
     7},
    {"opset 18\ngraph g(%i: i64[40000x1]) -> (%y) {\n%u = Cast(%i) {to=1}\n%v = Reshape(%u, "
     "i64[1]{40000})\n%y = "
     "ScatterND(f32[7]{0, 1, 2, 3, 4, 5, 6}, %i, %v)\n}\n",
     "ScatterND",
     2,
     {INDICES, 1},
     7},
    {"opset 18\ngraph g(%i: i64[1x40000]) -> (%y) {\n%u = Expand(f32[1]{9}, i64[2]{1, 40000})\n"
     "%y = ScatterElements(f32[1x7]{0, 1, 2, 3, 4, 5, 6}, %i, %u) {axis=1}\n}\n",
     "ScatterElements",
     2,
     {1, INDICES},
     7},
    {"opset 18\ngraph g(%i: i64[4x10000]) -> (%y) {\n%u = Expand(f32[1]{9}, i64[2]{4, 10000})\n"
     "%x = Expand(f32[1]{8}, i64[2]{7, 10000})\n%y = ScatterElements(%x, %i, %u) {axis=0}\n}\n",
     "ScatterElements",
     2,
     {4, INDICES / 4},
     7},
    {"opset 18\ngraph g(%i: i64[20000x2]) -> (%y) {\n%u = Expand(f32[1]{9}, i64[1]{20000})\n"
     "%y = ScatterND(f32[2x2]{0, 1, 2, 3}, %i, %u)\n}\n",
     "ScatterND",
     2,
     {INDICES / 2, 2},
     2},
};

/* What a run says. */
static hone_status say(size_t k, bool reference, int64_t *index, char *said, size_t size) {
  net_session s = net_open(net_parse("indices", cases[k].text), 2, reference, 3);
  const hone_tensor in = {hone_desc(HONE_DTYPE_I64, (int32_t)cases[k].rank, cases[k].dim), index};
  const hone_tensor *inputs[] = {&in};
  hone_error e = {0};
  const hone_status status = hone_context_run(s.context, inputs, NULL, &e);
  snprintf(said, size, "%s", status == HONE_OK ? "" : e.what);
  hone_step_info info;
  for (uint32_t i = 0; i < hone_plan_steps(s.plan); i++) {
    assert_true(hone_plan_step(s.plan, i, &info));
    if (!reference && !strcmp(info.op_type, cases[k].op)) assert_string_not_equal(info.tactic, "ref");
  }
  net_close(&s);
  return status;
}

static void indices_outside_are_refused_as_by_the_reference(void **state) {
  static int64_t index[INDICES];
  static const int64_t places[] = {0, 1, INDICES / 2 + 3, INDICES - 1};
  (void)state;
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    const int64_t axis = cases[k].axis, values[] = {axis, -axis - 1, INT64_MAX, INT64_MIN, axis - 1, -axis};
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
      for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
        char want[512], got[512];
        memset(index, 0, sizeof index);
        index[INDICES - 2] = axis + 1, index[places[p]] = values[v];
        if (v >= 4) index[INDICES - 2] = 0;
        const hone_status status = say(k, true, index, want, sizeof want);
        assert_int_equal(status, v >= 4 ? HONE_OK : HONE_ERROR_INPUT);
        assert_int_equal(say(k, false, index, got, sizeof got), status);
        assert_string_equal(got, want);
      }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(indices_outside_are_refused_as_by_the_reference),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
