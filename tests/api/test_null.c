/* NULL for each pointer of each public function, all other arguments being good: nobody dies of it, and what
 * cannot be done without it is HONE_ERROR_USAGE. The calls are made from the headers (null_calls.sh). A
 * process each, so that the one that dies is named. */
#include "net.h"
#include "temporary.h"

#include <hone/hone.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { REFUSED_NOT = 10, SECONDS = 120 };

static struct {
  net_session s;
  hone_facts *facts;
  hone_profile *profile;
  hone_findings *findings;
  hone_thresholds *thresholds;
  hone_history *history;
  hone_writer *writer;
  hone_model *open;
  hone_shapes *shapes;
  hone_chain *chain;
  hone_server *server;
  char file[160];
} have;

/* Zeroed structs, buffers and arrays: whoever reads options finds the defaults. */
static uint64_t scratch[1 << 13], zeros[1 << 13]; /* results; what is only read */

static const void *named(const char *type) {
  static const char *const words[] = {"relu", "relu"};
  static hone_tensor_desc desc;
  static const hone_tensor *feeds[1];
  static float value[4];
  static hone_tensor tensor;
  static hone_int8_options demo; /* its own network takes a quarter of a minute */
  const char *t = strncmp(type, "const ", 6) == 0 ? type + 6 : type;
  desc = hone_desc(HONE_DTYPE_F32, 1, (const int64_t[]){4});
  tensor = (hone_tensor){.desc = desc, .data = value};
  feeds[0] = &tensor;
  demo.model = have.s.model, demo.samples = 1;
#define IS(name, object)                                                                                     \
  if (strcmp(t, name " *") == 0) return object
  IS("hone_model", have.s.model);
  IS("hone_engine", have.s.engine);
  IS("hone_plan", have.s.plan);
  IS("hone_context", have.s.context);
  IS("hone_facts", have.facts);
  IS("hone_profile", have.profile);
  IS("hone_findings", have.findings);
  IS("hone_thresholds", have.thresholds);
  IS("hone_history", have.history);
  IS("hone_writer", have.writer);
  IS("hone_shapes", have.shapes);
  IS("hone_chain", have.chain);
  IS("hone_server", have.server);
  IS("hone_node", have.s.model->graph->first);
  IS("hone_tensor_desc", &desc);
  IS("hone_tensor", &tensor);
  IS("hone_int8_options", &demo);
#undef IS
  if (strcmp(type, "const char *") == 0) return have.file;
  if (strcmp(type, "const char *const *") == 0) return words;
  if (strcmp(type, "const hone_tensor *const *") == 0) return feeds;
  return NULL;
}

static void *object(const char *type) {
  const void *p = named(type);
  return p ? (void *)(uintptr_t)p : strncmp(type, "const ", 6) == 0 ? zeros : scratch;
}

static hone_status sink(void *user, const char *data, size_t length, hone_error *error) {
  (void)user, (void)data, (void)length, (void)error;
  return HONE_OK;
}

static void done(void *arg, hone_context *context, hone_status status, const hone_error *error) {
  (void)arg, (void)context, (void)status, (void)error;
}

static int failures, functions;

/* In a process of its own; 0: it came back. */
static int outcome(int status) {
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void judge(const char *function, const char *argument, int result) {
  if (result == 0) return;
  failures++;
  if (result == REFUSED_NOT)
    printf("%s: %s NULL is not HONE_ERROR_USAGE\n", function, argument);
  else
    printf("%s: dies of %s NULL (%s %d)\n", function, argument, result < 0 ? "signal" : "exit", abs(result));
}

#define CALL(function, argument, must_refuse, expression)                                                    \
  static void function##_without_##argument(void) {                                                          \
    hone_status status = HONE_ERROR_USAGE;                                                                   \
    expression;                                                                                              \
    if ((must_refuse) && status != HONE_ERROR_USAGE) _exit(REFUSED_NOT);                                     \
  }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnonnull"
#include "null_calls.inc"
#pragma GCC diagnostic pop
#undef CALL

static const struct {
  const char *function, *argument;
  void (*call)(void);
} calls[] = {
#define CALL(function, argument, must_refuse, expression)                                                    \
  {#function, #argument, function##_without_##argument},
#include "null_calls.inc"
#undef CALL
};

static void nobody_dies_of_null(void **state) {
  (void)state;
  const char *last = "";
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    int status;
    fflush(NULL);
    functions += strcmp(calls[i].function, last) != 0;
    last = calls[i].function;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
      for (int k = 1; k < 32; k++) signal(k, SIG_DFL); /* cmocka would go on with the other tests */
      alarm(SECONDS);
      calls[i].call();
      _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    judge(calls[i].function, calls[i].argument, outcome(status));
  }
  printf("%zu calls of %d functions of %d\n", sizeof calls / sizeof *calls, functions, PUBLIC_FUNCTIONS);
  assert_int_equal(failures, 0);
  assert_true(functions > 150); /* the script reads the headers */
}

static bool make_shapes(void) {
  const hone_size_profile n = {.symbol = "N", .min = 1, .opt = 4, .max = 4};
  have.open = net_parse("open", "ir 8\nopset 17\ngraph g(%x: f32[N]) -> (%y) { %y = Relu(%x) }");
  return hone_shapes_create(have.s.engine, have.open,
                            &(hone_shapes_options){.profiles = &n, .n_profiles = 1, .capacity = 1},
                            &have.shapes, NULL) == HONE_OK;
}

static int begin(void **state) {
  (void)state;
  char folder[128];
  if (!mkdtemp(temporary(folder, sizeof folder, "hone-null")) || chdir(folder) != 0) return -1;
  snprintf(have.file, sizeof have.file, "%s/name", folder);
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 1, (const int64_t[]){4});
  net_finish(m, net_op(m, "Relu", (hn_value *const[]){x}, 1));
  have.s = net_open(m, 1, false, 1);
  have.facts = hone_facts_create();
  hone_facts_add_span(have.facts,
                      &(hone_span){.kind = HONE_SPAN_KERNEL, .name = "k", .step = -1, .end_ns = 1000});
  have.thresholds = hone_thresholds_create();
  static const char links[] = "{\"inputs\": {\"x\": \"tensor\"}, \"stages\": [{\"name\": \"s\", \"kind\": "
                              "\"softmax\", \"from\": \"x\"}]}";
  return hone_profile_create(have.facts, NULL, &have.profile, NULL) == HONE_OK &&
                 hone_diagnose(have.profile, NULL, &have.findings, NULL) == HONE_OK &&
                 hone_history_open("history.db", true, &have.history, NULL) == HONE_OK &&
                 hone_writer_open("written", &have.writer, NULL) == HONE_OK && make_shapes() &&
                 hone_chain_parse(have.s.engine, links, sizeof links - 1, NULL, NULL, &have.chain, NULL) ==
                     HONE_OK &&
                 hone_server_create(have.s.engine, NULL, &have.server, NULL) == HONE_OK
             ? 0
             : -1;
}

static int end(void **state) {
  (void)state;
  hone_server_destroy(have.server);
  hone_chain_destroy(have.chain);
  hone_writer_abandon(have.writer);
  hone_history_close(have.history);
  hone_findings_destroy(have.findings);
  hone_profile_destroy(have.profile);
  hone_thresholds_destroy(have.thresholds);
  hone_facts_destroy(have.facts);
  hone_shapes_destroy(have.shapes);
  hone_model_release(have.open);
  net_close(&have.s);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nobody_dies_of_null)};
  return cmocka_run_group_tests(tests, begin, end);
}
