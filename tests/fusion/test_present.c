/* Which operators a graph has, and which spellings that rules out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include "optimize/match/present.h"

static const char text[] =
    "ir 8\nopset 17\ngraph g(%x: f32[2x3], %c: bool[]) -> (%y) {\n"
    "  %a = Relu(%x)\n  %b = Relu(%a)\n  %d = ReduceMean(%b)\n"
    "  %y = If(%c) {then_branch=graph t() -> (%u) { %u = Neg(%d) }, else_branch=graph e() -> (%v) {\n"
    "    %v = Abs(%d) }}\n}\n";

static void names_are_listed_once(void **state) {
  (void)state;
  hn_model *m = net_parse("text", text);
  hn_present outer = {0}, all = {0};
  assert_true(hn_present_add(&outer, m->graph, false));
  assert_true(hn_present_add(&all, m->graph, true));
  assert_int_equal(outer.len, 3);
  assert_int_equal(all.len, 5);
  assert_true(hn_present_any(&outer, (const char *const[]){"Conv", "If", NULL}));
  assert_false(hn_present_any(&outer, (const char *const[]){"Neg", "Rel", "Relu6", "Reduce", NULL}));
  assert_true(hn_present_any(&all, (const char *const[]){"Neg", NULL}));
  assert_false(hn_present_any(&all, (const char *const[]){NULL}));
  hn_vec_free(&outer);
  hn_vec_free(&all);
  hone_model_release(m);
}

static void spellings_need_an_operator_of_each_line(void **state) {
  (void)state;
  hn_model *m = net_parse("text", text);
  hn_present p = {0};
  assert_true(hn_present_add(&p, m->graph, false));
  assert_true(hn_spelling_may_match(&p, "%y = Relu(%x)"));
  assert_true(hn_spelling_may_match(&p, "%y = Conv|Relu(%x)"));
  assert_true(hn_spelling_may_match(&p, "%a = Relu|Clip(%x, ?%l)\n%y = ReduceMean(%a)\n"));
  assert_false(hn_spelling_may_match(&p, "%a = Relu(%x)\n%y = ReduceSum|Reduce|ReduceMeans(%a)"));
  assert_false(hn_spelling_may_match(&p, "%a = Conv(%x)\n%y = Relu(%a)"));
  assert_false(hn_spelling_may_match(&p, "%y = Relu6(%x)"));
  /* What is spelled otherwise is left to who reads it. */
  assert_true(hn_spelling_may_match(&p, "%y = com.microsoft::Gelu(%x)"));
  assert_true(hn_spelling_may_match(&p, "where a = Conv(%x)\n%y = Relu(%x)"));
  assert_true(hn_spelling_may_match(&p, ""));
  hn_vec_free(&p);
  hone_model_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_are_listed_once),
      cmocka_unit_test(spellings_need_an_operator_of_each_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
