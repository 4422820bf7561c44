/* verify must find what is wrong, name where, and say when it cannot tell. */
#include "base/fault.h"
#include "model/ir/graph.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <hone/hone.h>

static hone_model *zoo(const char *name, double width, int64_t size, uint64_t seed) {
  hone_model *m = NULL;
  hone_error e = {0};
  if (hone_zoo_build(name, &(hone_zoo_options){.batch = 1, .width = width, .size = size, .seed = seed}, &m,
                     &e) != HONE_OK)
    fail_msg("%s", e.what);
  return m;
}

static hone_verify_result verify(hone_model *a, hone_model *b, uint32_t inputs) {
  hone_verify_result r;
  hone_error e = {0};
  if (hone_verify(a, b, &(hone_verify_options){.inputs = inputs, .max_seconds = 60, .threads = 2}, &r, &e) !=
      HONE_OK) {
    char line[1200];
    hone_error_format(&e, line, sizeof line);
    fail_msg("%s", line);
  }
  return r;
}

static void test_same(void **state) {
  (void)state;
  static const struct {
    const char *name;
    double width;
    int64_t size;
  } nets[] = {{"resnet50", 0.1, 32}, {"mobilenetv2", 0.1, 32}, {"yolov3", 0.05, 32}, {"bert_base", 0.09, 16}};
  for (size_t i = 0; i < 4; i++) {
    hone_model *m = zoo(nets[i].name, nets[i].width, nets[i].size, 1), *o = NULL;
    hone_error e = {0};
    hone_verify_result r = verify(m, NULL, 10);
    if (r.verdict != HONE_VERDICT_SAME)
      fail_msg("%s: %s at '%s'", nets[i].name, r.reason, r.first_different_node);
    assert_int_equal(r.inputs, 10);
    assert_non_null(strstr(r.reference, "scalar"));
    assert_int_equal(hone_model_optimize(m, &(hone_optimize_options){.level = 2}, &o, NULL, &e), HONE_OK);
    r = verify(m, o, 3);
    if (r.verdict != HONE_VERDICT_SAME)
      fail_msg("%s optimised: %s at '%s'", nets[i].name, r.reason, r.first_different_node);
    hone_model_release(o);
    hone_model_release(m);
  }
}

/* The weights of one convolution are changed: the difference must be found there, behind all the layers that
 * agree. */
static void test_localised(void **state) {
  (void)state;
  hone_model *a = zoo("resnet50", 0.1, 64, 1), *b = zoo("resnet50", 0.1, 64, 1);
  const hone_node *node = b->graph->first;
  int convs = 0;
  for (; node; node = node->next)
    if (strcmp(node->op_type, "Conv") == 0 && ++convs == 30) break;
  assert_non_null(node);
  float *w = node->in[1]->constant->data;
  for (int64_t i = 0, n = hone_desc_count(&node->in[1]->constant->desc); i < n; i++) w[i] = -w[i];
  hone_verify_result r = verify(a, b, 3);
  assert_int_equal(r.verdict, HONE_VERDICT_DIFFERENT);
  assert_string_equal(r.first_different_node, node->name);
  hone_model_release(a);
  hone_model_release(b);
}

/* y = x * 0: equal answers that prove nothing. */
static void test_mistrusted(void **state) {
  (void)state;
  hone_model *m = hn_model_create("");
  assert_non_null(m);
  m->ir_version = 8;
  assert_true(hn_vec_push(&m->opsets, (hn_opset){"", 17}));
  hn_value *x = hn_value_create(m->graph, "x"), *y = hn_value_create(m->graph, "y");
  x->desc = hone_desc(HONE_DTYPE_F32, 2, (int64_t[]){4, 8});
  hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 0, NULL);
  hn_value *zero = hn_value_constant(m->graph, "zero", &d, &(float){0}, true);
  assert_true(hn_graph_add_input(m->graph, x) && hn_graph_add_output(m->graph, y));
  assert_non_null(hn_node_create(m->graph, NULL, "Mul", NULL, "mul", (hn_value *const[]){x, zero}, 2,
                                 (hn_value *const[]){y}, 1));
  hone_error e = {0};
  assert_int_equal(hn_model_resolve(m, &e), HONE_OK);
  assert_int_equal(hn_model_infer(m, &e), HONE_OK);
  hone_verify_result r = verify(m, NULL, 5);
  assert_int_equal(r.verdict, HONE_VERDICT_MISTRUSTED);
  assert_non_null(strstr(r.reason, "constant"));
  hone_model_release(m);
}

static bool stop_at_three(void *arg, uint32_t done, uint32_t total) {
  (void)total;
  *(uint32_t *)arg = done;
  return done < 3;
}

static void test_cancel(void **state) {
  (void)state;
  hone_model *m = zoo("mobilenetv2", 0.1, 32, 1);
  uint32_t seen = 0;
  hone_verify_result r;
  hone_error e = {0};
  hone_verify_options o = {.inputs = 50, .max_seconds = 60, .progress = stop_at_three, .progress_arg = &seen};
  assert_int_equal(hone_verify(m, NULL, &o, &r, &e), HONE_ERROR_CANCELLED);
  assert_int_equal(seen, 3);
  hone_model_release(m);
}

#ifdef HN_FAULTS
/* 0: found and localised; 1: not. In a process of its own: some failures read out of bounds, where a
 * sanitizer ends it, which is a way of being caught, too. */
static int try_fault(const char *fault, const char *net) {
  fflush(NULL);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    dup2(open("/dev/null", O_WRONLY), 2);
    hone_model *m = strcmp(net, "bert_base") == 0 ? zoo(net, 0.17, 19, 1)
                    : strcmp(net, "yolov3") == 0  ? zoo(net, 0.1, 64, 1)
                                                  : zoo(net, 0.3, 64, 1);
    hn_fault_set(fault);
    hone_verify_result r = verify(m, NULL, 2);
    _exit(r.verdict == HONE_VERDICT_DIFFERENT && r.first_different_node[0] ? 0 : 99);
  }
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) && WEXITSTATUS(status) == 99;
}
#endif

/* Failures on purpose in the code under test; the reference side has none of that code. */
static void test_faults(void **state) {
  (void)state;
#ifndef HN_FAULTS
  skip();
#else
  static const struct {
    const char *fault, *net;
  } faults[] = {
#include "cli/verify_faults.inc"
  };
  static const char *const nets[] = {"resnet50", "mobilenetv2", "yolov3", "bert_base"};
  int caught = 0;
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    int missed = try_fault(faults[i].fault, faults[i].net);
    for (size_t k = 0; k < 4 && missed; k++) missed = try_fault(faults[i].fault, nets[k]);
    if (missed) print_message("not run through by any network: %s\n", faults[i].fault);
    caught += !missed;
  }
  print_message("verify caught %d seeded faults\n", caught);
  assert_true(caught >= 20); /* which code the networks run through is the planner's choice */
  assert_int_equal(try_fault("no_such_fault", "mobilenetv2"),
                   1); /* and without one there is nothing to find */
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same),   cmocka_unit_test(test_localised), cmocka_unit_test(test_mistrusted),
      cmocka_unit_test(test_cancel), cmocka_unit_test(test_faults),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
