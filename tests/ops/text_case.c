#include "ops/text_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

text_spec text_read(char *word) {
  text_spec s = {0};
  char *colon = strchr(word, ':'), *equal = strchr(word, '=');
  assert_non_null(colon);
  *colon = 0;
  s.dtype = hone_dtype_from_name(word);
  assert_int_not_equal(s.dtype, HONE_DTYPE_NONE);
  if (equal) *equal = 0;
  snprintf(s.dims, sizeof s.dims, "%s", colon + 1);
  for (char *p = equal ? equal + 1 : NULL; p && *p;) {
    char *end;
    assert_true(s.n < TEXT_VALUES);
    s.value[s.n++] = strtod(p, &end);
    p = *end == ',' ? end + 1 : end;
  }
  return s;
}

hone_status text_run(op_case *c, const text_case *t, uint32_t n_out) {
  char copy[512], *save = NULL;
  op_begin(c, t->op, t->opset);
  snprintf(copy, sizeof copy, "%s", t->inputs);
  for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
    if (strcmp(word, "-") == 0) {
      op_skip(c);
      continue;
    }
    text_spec s = text_read(word);
    op_in(c, s.dtype, s.dims, s.n ? s.value : NULL, 7);
  }
  op_attrs(c, t->attrs);
  return op_run(c, n_out);
}

void text_check(const text_case *t) {
  op_case c;
  char copy[512], *save = NULL;
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
  for (uint32_t i = 0; i < n; i++)
    op_expect(&c, i, want[i].dtype, want[i].dims, want[i].n ? want[i].value : NULL,
              hone_dtype_is_float(want[i].dtype) ? 1e-6 : 0);
  op_end(&c);
}
