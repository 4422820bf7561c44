/* The nodes of a file that a node stands for: each once, in the order in which they came, and thousands of
 * them taken over one after the other in a time and a memory that grow as they do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include "base/str.h"
#include "model/ir/graph.h"
#include "optimize/passes/optimize.h"
#include "optimize/passes/common/report.h"

enum { MANY = 4000 };

/* A model of MANY nodes in its file, of which the graph has none. */
static hn_model *begin(void) {
  hn_model *m = net_parse("text", "ir 8\nopset 17\ngraph g(%x: f32[1]) -> (%y) {\n  %y = Neg(%x)\n}\n");
  m->source.len = 0;
  for (int i = 0; i < MANY; i++) assert_true(hn_vec_push(&m->source, (hn_source_node){.name = ""}));
  return m;
}

static hone_node *node(hn_model *m, const uint32_t *origin, uint32_t n) {
  hone_node *made = hn_node_create(m->graph, NULL, "Neg", "", "n", NULL, 0, NULL, 0);
  assert_non_null(made);
  assert_true(hn_node_set_origin(made, origin, n));
  return made;
}

static void one_node_takes_over_all(void **state) {
  (void)state;
  hn_model *m = begin();
  hone_node *all = node(m, NULL, 0), *of[MANY];
  for (uint32_t i = 0; i < MANY; i++) of[i] = node(m, (const uint32_t[]){i}, 1);
  const size_t before = m->arena.used;
  for (int again = 0; again < 2; again++)
    for (uint32_t i = 0; i < MANY; i++) assert_true(hn_node_inherit(all, of[i]));
  assert_int_equal(all->n_origin, MANY);
  for (uint32_t i = 0; i < MANY; i++) assert_int_equal(all->origin[i], i);
  assert_true(m->origins.looked_at <= 2 * MANY + 20); /* all of the first round, then each of the second */
  assert_true(m->arena.used - before <= 8 * MANY * sizeof(uint32_t));
  hn_model_destroy(m);
}

/* Two nodes by turns, and one that is told anew what it stands for: marks of the other do not count. */
static void nodes_are_told_apart(void **state) {
  (void)state;
  hn_model *m = begin();
  uint32_t list[40];
  for (uint32_t i = 0; i < 40; i++) list[i] = i;
  hone_node *a = node(m, list, 20), *b = node(m, list + 20, 20), *both = node(m, list + 10, 20);
  for (int again = 0; again < 3; again++) {
    assert_true(hn_node_inherit(a, both));
    assert_true(hn_node_inherit(b, both));
    assert_int_equal(a->n_origin, 30);
    assert_int_equal(b->n_origin, 30);
    for (uint32_t i = 0; i < 30; i++) assert_int_equal(a->origin[i], i);
    for (uint32_t i = 0; i < 30; i++) assert_int_equal(b->origin[i], i < 20 ? i + 20 : i - 10);
  }
  assert_true(hn_node_inherit(a, both)); /* has the marks */
  assert_true(hn_node_set_origin(a, list + 10, 30));
  assert_true(hn_node_inherit(a, node(m, list, 20)));
  assert_int_equal(a->n_origin, 40);
  for (uint32_t i = 0; i < 40; i++) assert_int_equal(a->origin[i], i < 30 ? i + 10 : i - 30);
  hn_model_destroy(m);
}

/* Of a few and of the beginning of many, the same. */
static void nothing_comes_twice(void **state) {
  (void)state;
  for (uint32_t have = 0; have <= 20; have++) {
    hn_model *m = begin();
    uint32_t list[25];
    for (uint32_t i = 0; i < 25; i++) list[i] = 100 + i;
    hone_node *n = node(m, list, have);
    assert_true(hn_node_inherit(n, node(m, list + have / 2, 5)));
    const uint32_t want = have / 2 + 5 > have ? have / 2 + 5 : have;
    assert_int_equal(n->n_origin, want);
    for (uint32_t i = 0; i < want; i++) assert_int_equal(n->origin[i], list[i]);
    hn_model_destroy(m);
  }
}

/* Bytes of the record of passes over that many equal nodes, which become one. */
static size_t recorded(int n) {
  hn_str text = {0};
  hone_error e = {0};
  hn_pass_report report = {0};
  hn_str_puts(&text, "ir 8\nopset 17\ngraph g(%x: f32[1]) -> (%y) {\n");
  for (int i = 0; i < n; i++) hn_str_printf(&text, "  %%a%d = Neg(%%x)\n", i);
  for (int i = 0; i < n; i++) hn_str_printf(&text, "%s%%a%d", i ? ", " : "  %y = Sum(", i);
  hn_str_puts(&text, ")\n}\n");
  hn_model *m = net_parse("text", text.ptr);
  const hn_optimize_options options = {.level = 2};
  if (hn_optimize(m, &options, &report, &e) != HONE_OK) fail_msg("%s", e.what);
  assert_int_equal(m->graph->n_nodes, 2);
  assert_int_equal(m->graph->first->n_origin, n);
  const size_t bytes = report.arena.used;
  hn_pass_report_free(&report);
  hn_model_destroy(m);
  hn_str_free(&text);
  return bytes;
}

static void the_record_of_merged_nodes_grows_with_them(void **state) {
  (void)state;
  const size_t few = recorded(500), many = recorded(2000);
  assert_true(few > 500 && many <= 6 * few);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_node_takes_over_all),
      cmocka_unit_test(nodes_are_told_apart),
      cmocka_unit_test(nothing_comes_twice),
      cmocka_unit_test(the_record_of_merged_nodes_grows_with_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
