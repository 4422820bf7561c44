/* Own cases for operators on strings. */
#include "ops/text_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const hone_string *strings_of(op_case *c) { return c->out[0].data; }

static void give_strings(op_case *c, const char *dims, const char *const *list, int64_t n) {
  double zeros[TEXT_VALUES] = {0};
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

static void tokens(void **state) {
  (void)state;
  op_case c;
  static const struct {
    const char *attrs, *given[3], *dims, *parts[15];
  } cases[] = {
      {"mark=0 mincharnum=1 pad_value=s:# tokenexp=s:[a-z]+",
       {"the fox", "!", "a"},
       "3x2",
       {"the", "fox", "#", "#", "a", "#"}},
      {"mark=0 mincharnum=2 pad_value=s:# tokenexp=s:[a-z]+", {"a b", "!", "a"}, "3x0", {NULL}},
      {"mark=1 mincharnum=1 pad_value=s:# tokenexp=s:.",
       {"\xc3\xa9\n", "", "b"},
       "3x4",
       {"\x02", "\xc3\xa9", "\n", "\x03", "\x02", "\x03", "#", "#", "\x02", "b", "\x03", "#"}},
      {"mark=0 mincharnum=1 pad_value=s:# tokenexp=s:a|ab|x*",
       {"ab", "xxa", "-"},
       "3x2",
       {"ab", "#", "xx", "a", "#", "#"}},
      {"mark=0 mincharnum=2 pad_value=s: separators=S:;,x+",
       {"axxbc;;de", "xx", "fg"},
       "3x2",
       {"bc", "de", "", "", "fg", ""}},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    op_begin(&c, "com.microsoft.Tokenizer", 1);
    give_strings(&c, "3", cases[k].given, 3);
    op_attrs(&c, cases[k].attrs);
    const hone_status s = op_run(&c, 1);
    if (s == HONE_ERROR_UNSUPPORTED) { /* without PCRE2 */
      op_end(&c);
      continue;
    }
    assert_int_equal(s, HONE_OK);
    op_expect(&c, 0, HONE_DTYPE_STRING, cases[k].dims, NULL, 0);
    for (int64_t i = 0; i < hone_desc_count(&c.out[0].desc); i++) string_is(&c, i, cases[k].parts[i]);
    op_end(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(strings),
      cmocka_unit_test(tokens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
