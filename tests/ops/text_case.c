#include "ops/text_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

text_spec text_read(char *word) {
  text_spec s = {.seed = -1};
  char *colon = strchr(word, ':'), *equal = strchr(word, '='), *wave = strchr(word, '~');
  assert_non_null(colon);
  *colon = 0;
  s.dtype = hone_dtype_from_name(word);
  assert_int_not_equal(s.dtype, HONE_DTYPE_NONE);
  if (equal) *equal = 0;
  if (wave) *wave = 0, s.seed = atoi(wave + 1);
  snprintf(s.dims, sizeof s.dims, "%s", colon + 1);
  for (char *p = equal ? equal + 1 : NULL; p && *p;) {
    char *end;
    assert_true(s.n < TEXT_VALUES);
    s.value[s.n++] = strtod(p, &end);
    p = *end == ',' ? end + 1 : end;
  }
  return s;
}

static void fill(hone_tensor *t, int seed) {
  const bool whole = !hone_dtype_is_float(t->desc.dtype);
  for (int64_t i = 0, n = hone_desc_count(&t->desc); i < n; i++) {
    const int64_t r = (37 * i + 11 * seed) % (whole ? 256 : 64);
    op_set(t, i, whole ? (double)(r - (t->desc.dtype == HONE_DTYPE_I8 ? 128 : 0)) : (double)(r - 32) / 32);
  }
}

hone_status text_run(op_case *c, const text_case *t, uint32_t n_out) {
  char copy[1024], *save = NULL;
  op_begin(c, t->op, t->opset);
  snprintf(copy, sizeof copy, "%s", t->inputs);
  for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
    if (strcmp(word, "-") == 0) {
      op_skip(c);
      continue;
    }
    text_spec s = text_read(word);
    hone_tensor *in = op_in(c, s.dtype, s.dims, s.n ? s.value : NULL, 7);
    if (s.seed >= 0) fill(in, s.seed);
  }
  op_attrs(c, t->attrs);
  return op_run(c, n_out);
}

static void check(const text_case *t, double near, bool relative) {
  op_case c;
  char copy[1024], *save = NULL;
  text_spec want[OP_CASE_MAX];
  uint32_t n = 0;
  snprintf(copy, sizeof copy, "%s", t->outputs ? t->outputs : "");
  for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
    want[n++] = text_read(word);
  hone_status status = text_run(&c, t, t->outputs ? n : 1);
  if ((status == HONE_OK) != (t->outputs != NULL))
    fail_msg("%s(%s) %s: %s", t->op, t->inputs, t->attrs, status ? c.error.what : "was not refused");
  if (!t->outputs)
    assert_true(status == HONE_ERROR_INPUT || status == HONE_ERROR_UNSUPPORTED ||
                status == HONE_ERROR_MEMORY);
  if (!t->outputs) assert_true(c.error.what[0]);
  for (uint32_t i = 0; i < n; i++) {
    double largest = 1;
    for (size_t k = 0; k < want[i].n && relative; k++)
      if (fabs(want[i].value[k]) > largest && isfinite(want[i].value[k])) largest = fabs(want[i].value[k]);
    op_expect(&c, i, want[i].dtype, want[i].dims, want[i].n ? want[i].value : NULL,
              hone_dtype_is_float(want[i].dtype) ? near * largest : 0);
  }
  op_end(&c);
}

void text_check(const text_case *t) { check(t, 1e-6, false); }

void text_check_near(const text_case *t, double near) { check(t, near, true); }
