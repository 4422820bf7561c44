/* See pattern.h. */
#include "cli/op/pattern.h"

#include "cli/op/answer.h"
#include "cli/op/numbers.h"

#include <hone/plugins.h>
#include <hone/text.h>

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CASES = 8, DRAWS = 3000, MOST_TEXT = 1 << 20, MOST_CONSTANT = 4096 };

typedef struct text {
  char *buf;
  size_t n;
} text;

static void put(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(text *t, const char *format, ...) {
  const size_t room = t->n < MOST_TEXT ? MOST_TEXT - t->n : 0;
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(room ? t->buf + t->n : NULL, room, format, args);
  va_end(args);
  t->n += n > 0 ? (size_t)n : 0;
}

static void put_type(text *t, const hone_tensor_desc *d) {
  put(t, "%s", hone_dtype_name(d->dtype));
  for (int32_t k = 0; k < d->rank; k++) put(t, "%s%lld", k ? "x" : "[", (long long)d->dim[k]);
  if (d->rank) put(t, "]");
}

/* One attempt: an operator's sample, and the nodes as a model. */
typedef struct attempt {
  const op_subject *s;
  const hone_pattern_desc *pattern;
  op_random *random;
  hone_engine *engine;
  op_sample sample;
  hone_model *model; /* with its shapes */
  op_pattern_result *to;
} attempt;

static void name_of(const attempt *a, uint32_t i, char *buf, size_t size) {
  op_subject named = *a->s; /* inputs are called as this pattern calls them */
  named.pattern = a->pattern;
  (void)op_input_name(&named, i, buf, size);
}

static uint32_t inputs_of(const hone_pattern_desc *p) {
  uint32_t n = 0;
  for (const char *c = p->inputs; *c; c++) n += *c == '%';
  return n;
}

/* Is there a "!%w" in the pattern? */
static bool wants_constant(const hone_pattern_desc *p, const char *name) {
  const size_t n = strlen(name);
  for (const char *c = p->text; (c = strstr(c, "!%")); c += 2)
    if (strncmp(c + 2, name, n) == 0 &&
        !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./",
                c[2 + n] ? c[2 + n] : ' '))
      return true;
  return false;
}

/* All inputs of the pattern, of one type; constant are those that the pattern wants so. */
static bool fits(attempt *a, hone_dtype dtype) {
  char name[80];
  if (a->sample.n_in != inputs_of(a->pattern)) return false;
  for (uint32_t i = 0; i < a->sample.n_in; i++) {
    const bool host = a->s->op->host_inputs >> i & 1;
    const hone_tensor_desc *d = &a->sample.in[i].desc;
    if (!d->dtype || (!host && op_measure_of(a->s->op, i) == OP_NO_MEASURE && d->dtype != dtype))
      return false;
    name_of(a, i, name, sizeof name);
    a->sample.constant[i] = wants_constant(a->pattern, name);
    if (a->sample.constant[i] && hone_desc_count(d) > MOST_CONSTANT) return false;
  }
  return true;
}

/* A constant that the operator has no attribute for is 1 in the nodes: other numbers show more. */
static void put_nodes(attempt *a, text *t, const char *nodes, bool vary) {
  static const char *const some[] = {"0.5", "2", "0.25", "3", "1.5"};
  while (*nodes) {
    const size_t n = strcspn(nodes, "\n") + 1, whole = strnlen(nodes, n);
    static const char one[] = " = {1}\n";
    const size_t end = sizeof one - 1;
    if (vary && strncmp(nodes, "const ", 6) == 0 && whole > end &&
        strncmp(nodes + whole - end, one, end) == 0)
      put(t, "%.*s = {%s}\n", (int)(whole - end), nodes,
          some[op_below(a->random, sizeof some / sizeof *some)]);
    else
      put(t, "%.*s", (int)whole, nodes);
    nodes += whole;
  }
}

static bool write_model(attempt *a, text *t, bool vary, hone_error *e) {
  char name[80], *nodes = NULL, *made = NULL;
  const char *comma = "";
  const op_sample *x = &a->sample;
  const hone_tensor_desc *input[OP_MOST];
  for (uint32_t i = 0; i < x->n_in; i++) input[i] = &x->in[i].desc;
  if (hone_pattern_nodes(a->pattern, x->node, input, x->n_in, &nodes, &made, e) != HONE_OK) return false;
  put(t, "opset 17\n");
  if (*a->s->op->domain) put(t, "opset \"%s\" %d\n", a->s->op->domain, a->s->op->since);
  put(t, "graph g(");
  for (uint32_t i = 0; i < x->n_in; i++) {
    if (x->constant[i]) continue;
    name_of(a, i, name, sizeof name);
    put(t, "%s%%%s: ", comma, name);
    put_type(t, &x->in[i].desc);
    comma = ", ";
  }
  put(t, ") -> (%%%s) {\n", made);
  for (uint32_t i = 0; i < x->n_in; i++) {
    if (!x->constant[i]) continue;
    name_of(a, i, name, sizeof name);
    put(t, "  const %%%s: ", name);
    put_type(t, &x->in[i].desc);
    put(t, " = {");
    for (int64_t k = 0; k < hone_desc_count(&x->in[i].desc); k++)
      put(t, "%s%.17g", k ? ", " : "", op_element(x->in[i].desc.dtype, x->in[i].data, k));
    put(t, "}\n");
  }
  put_nodes(a, t, nodes, vary);
  put(t, "}\n");
  hone_text_free(nodes);
  hone_text_free(made);
  return t->n < MOST_TEXT;
}

/* The nodes as a model, and the sample's operator as the pattern makes it of them. */
static bool prepare(attempt *a, bool vary, hone_error *e) {
  text t = {calloc(MOST_TEXT, 1), 0};
  hone_model *open = NULL;
  char *line = NULL, attrs[OP_TEXT];
  bool good = t.buf && write_model(a, &t, vary, e) && hone_model_parse(t.buf, t.n, &open, e) == HONE_OK &&
              hone_model_bind(open, NULL, 0, 0, &a->model, NULL, e) == HONE_OK &&
              hone_pattern_operator(a->pattern, a->model, &line, e) == HONE_OK;
  const char *brace = good ? strchr(line, '{') : NULL;
  snprintf(attrs, sizeof attrs, "%s", brace ? brace : "");
  attrs[strcspn(attrs, "\n")] = 0;
  good = good && op_sample_become(&a->sample, attrs, e);
  hone_text_free(line);
  hone_model_release(open);
  free(t.buf);
  return good;
}

static void feed(const attempt *a, const hone_plan *plan, const hone_tensor **in) {
  char name[80];
  for (uint32_t i = 0; i < hone_plan_inputs(plan) && i < OP_MOST; i++)
    for (uint32_t k = 0; k < a->sample.n_in; k++) {
      name_of(a, k, name, sizeof name);
      if (strcmp(hone_plan_input_name(plan, i), name) == 0) in[i] = &a->sample.in[k];
    }
}

static void differs(attempt *a, const char *what) {
  a->to->failed = true;
  snprintf(a->to->what, sizeof a->to->what, "%.390s", what);
  snprintf(a->to->text, sizeof a->to->text, "%s", a->sample.text);
}

/* False: one of the two cannot be computed; the error says why. */
static bool compare(attempt *a, hone_error *e) {
  hone_plan *plan = NULL;
  hone_context *context = NULL;
  const hone_tensor *in[OP_MOST] = {NULL};
  op_answer answer = {0};
  char what[300];
  const hone_plan_options options = {.level = 0, .reference = true};
  bool good = hone_plan_create(a->engine, a->model, &options, &plan, e) == HONE_OK;
  if (good) feed(a, plan, in);
  good = good && hone_context_create(plan, &context, e) == HONE_OK &&
         hone_context_run(context, in, NULL, e) == HONE_OK &&
         op_answer_make(&a->sample, a->random, &answer, e) == HONE_OK;
  const hone_tensor *y = good ? hone_context_output(context, 0) : NULL;
  if (y && (y->desc.dtype != a->sample.out[0].dtype || !hone_desc_same_dims(&y->desc, &a->sample.out[0]))) {
    char is[100], wanted[100];
    snprintf(what, sizeof what, "the nodes make %s, the operator %s",
             hone_desc_format(&y->desc, is, sizeof is),
             hone_desc_format(&a->sample.out[0], wanted, sizeof wanted));
    differs(a, what);
  } else if (y && !op_answer_right(&a->sample, &answer, 0, y->data, &a->to->worst, what, sizeof what))
    differs(a, what);
  a->to->cases += y != NULL;
  op_answer_free(&answer);
  hone_context_destroy(context);
  hone_plan_destroy(plan);
  return y != NULL;
}

static hone_dtype type_of(const hone_op_desc *op) {
  for (int d = HONE_DTYPE_F32; d < HONE_DTYPE_COUNT; d++)
    if (!op->types || op->types & HONE_TYPES(d)) return (hone_dtype)d;
  return HONE_DTYPE_F32;
}

static void try_all(const op_subject *s, const hone_pattern_desc *pattern, const op_shape *given,
                    uint32_t n_given, uint64_t seed, op_pattern_result *to) {
  static const op_values kinds[] = {OP_NORMAL, OP_SMALL, OP_NORMAL, OP_WIDE};
  const hone_engine_options eo = {.threads = 1, .tuning = "off"};
  op_random r = op_stream(seed, pattern->text);
  hone_error e = {0};
  attempt a = {.s = s, .pattern = pattern, .random = &r, .to = to};
  const hone_dtype dtype = type_of(s->op);
  const uint32_t n = inputs_of(pattern);
  uint32_t near = 0;
  if (hone_engine_create(&eo, &a.engine, &e) != HONE_OK) {
    snprintf(to->what, sizeof to->what, "%s", e.what);
    return;
  }
  for (int i = 0; i < DRAWS && to->cases < CASES && !to->failed && near < 100; i++) {
    const op_wish w = {.op = s->op,
                       .dtype = dtype,
                       .scheme = op_below(&r, op_schemes()),
                       .given = n_given >= n ? given : NULL,
                       .n_given = n_given >= n ? n_given : 0,
                       .n_inputs = n,
                       .exact = n_given >= n && i < 2,
                       .values = kinds[op_below(&r, sizeof kinds / sizeof *kinds)]};
    e = (hone_error){0};
    const bool drawn = op_sample_draw(&r, &w, &a.sample, &e) && fits(&a, dtype);
    const bool good = drawn && prepare(&a, i % 2, &e) && compare(&a, &e);
    near += drawn && !good;
    if (drawn && !good && !to->cases) snprintf(to->what, sizeof to->what, "%.300s", e.what);
    op_sample_free(&a.sample);
    hone_model_release(a.model);
    a.model = NULL;
  }
  if (!to->cases && !*to->what)
    snprintf(to->what, sizeof to->what, "no inputs were found that the operator takes (--shape NAME=DIMS)");
  hone_engine_destroy(a.engine);
}

hone_status op_pattern_try(const op_subject *s, const hone_pattern_desc *pattern, const op_shape *given,
                           uint32_t n_given, uint64_t seed, double max_seconds, op_pattern_result *out,
                           hone_error *error) {
  op_pattern_result *shared =
      mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int status = 0;
  *out = (op_pattern_result){0};
  *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "a process for the test cannot be started"};
  if (shared == MAP_FAILED) return error->status;
  const pid_t pid = fork();
  if (pid == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm((unsigned)max_seconds + 1);
    (void)dup2(2, 1); /* what the plugin prints is no part of the report */
    try_all(s, pattern, given, n_given, seed, shared);
    _exit(0);
  }
  if (pid > 0 && waitpid(pid, &status, 0) == pid) {
    *out = *shared;
    error->status = HONE_OK;
    if (!WIFEXITED(status) || WEXITSTATUS(status)) {
      out->failed = true;
      snprintf(out->what, sizeof out->what, "the operator %s while it was compared with its pattern",
               WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "did not come back"
                                                                  : "ended the process");
    }
  }
  (void)munmap(shared, sizeof *shared);
  return error->status;
}
