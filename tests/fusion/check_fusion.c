/* check_fusion: what lowering makes of a graph, and whether that computes the same.
 *
 * usage: check_fusion CASES... [--filter TEXT] [--expect-failure]
 * A case is "== name", lines of what is expected, each optional, and a graph in the text form of models:
 *   steps: FusedAttention 1, MatMul 0   kinds of steps that must occur so often
 *   near: epilogue [c, y] an output     a near miss of this fusion at exactly these nodes, with this reason
 *   near: epilogue none                 there is none
 *   always: Conv 1                      steps with chains that are always made
 *   without: epilogue: Conv 1, Relu 1   steps with this fusion switched off
 *
 * Every case runs on three threads in every way below that the machine has, against the reference plan;
 * infinities and NaN must agree. All but `steps` is looked at on the scalar kernels: no machine's tactics
 * have a say. */
#include "base/half.h"
#include "base/rng.h"
#include "base/str.h"
#include "expect_failure.h"
#include "model/ir/text.h"
#include "model/operators.h"

#include <hone/session.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INPUTS = 12, THREADS = 3 };

static int failures;
static hn_rng rng;

static void fail(const char *name, const char *isa, const char *what) {
  printf("FAIL %s%s%s: %s\n", name, isa ? " on " : "", isa ? isa : "", what);
  failures++;
}

static void fill(hone_tensor *t) {
  const int64_t n = hone_desc_count(&t->desc);
  for (int64_t i = 0; i < n; i++) {
    const double u = hn_rng_unit(&rng);
    switch (t->desc.dtype) {
    case HONE_DTYPE_F32: ((float *)t->data)[i] = (float)(2 * u - 1); break;
    case HONE_DTYPE_F16: ((uint16_t *)t->data)[i] = hn_f32_to_f16((float)(2 * u - 1)); break;
    case HONE_DTYPE_BF16: ((uint16_t *)t->data)[i] = hn_f32_to_bf16((float)(2 * u - 1)); break;
    case HONE_DTYPE_BOOL: ((uint8_t *)t->data)[i] = u < 0.7; break;
    case HONE_DTYPE_I64: ((int64_t *)t->data)[i] = (int64_t)(u * 2); break;
    default:
      memset((char *)t->data + (size_t)i * hone_dtype_size(t->desc.dtype), 0, hone_dtype_size(t->desc.dtype));
    }
  }
}

/* "FusedAttention 1, MatMul 0" against the plan. */
static void count_steps(const char *name, const char *isa, const char *wanted, const hone_plan *plan) {
  while (*wanted) {
    char anchor[64], what[192];
    int want, used, have = 0;
    if (sscanf(wanted, " %63s %d%n", anchor, &want, &used) != 2) {
      fail(name, NULL, "a steps: line that cannot be read");
      return;
    }
    wanted += used + strspn(wanted + used, ", ");
    for (uint32_t i = 0; i < hone_plan_steps(plan); i++) {
      hone_step_info info;
      const size_t n = strlen(anchor);
      have += hone_plan_step(plan, i, &info) && strncmp(info.what, anchor, n) == 0 &&
              (info.what[n] == 0 || info.what[n] == ' ');
    }
    if (have != want) {
      snprintf(what, sizeof what, "%d steps of %s, not %d", have, anchor, want);
      fail(name, isa, what);
    }
  }
}

typedef struct expected {
  char steps[256];
  char line[12][256]; /* "near: ..." and "without: ..." */
  int n;
} expected;

static bool names(const char *fusion, size_t n, const char *pass) {
  return strlen(pass) == n && strncmp(fusion, pass, n) == 0;
}

/* "epilogue [c, y] an output", or "epilogue none", against what the plan tells. */
static void check_near(const char *name, const char *wanted, const hone_plan *plan) {
  const hone_rewrites *r = hone_plan_rewrites(plan);
  const size_t n = strcspn(wanted, " ");
  const char *nodes = strchr(wanted, '['), *end = nodes ? strchr(nodes, ']') : NULL;
  char what[900] = "";
  bool found = false;
  for (uint32_t i = 0; i < r->n; i++) {
    const hone_rewrite *w = &r->record[i];
    if (w->hit || !names(wanted, n, w->pass)) continue;
    const size_t used = strlen(what);
    snprintf(what + used, sizeof what - used, " {[%s] %s}", w->nodes, w->reason);
    found = found || !end ||
            (names(nodes + 1, (size_t)(end - nodes - 1), w->nodes) && strstr(w->reason, end + 2));
  }
  if (found == (end != NULL)) return;
  char line[1200];
  snprintf(line, sizeof line, "near misses are%s, not '%s'", *what ? what : " none", wanted);
  fail(name, NULL, line);
}

/* How a case runs. What another arithmetic may differ by: sums and softmax weights of random operands, seen
 * in the range of the output. */
typedef struct way {
  const char *isa, *tactics, *precision;
  int level;
  bool count; /* as in `steps:` */
  double bound;
  const char *passes;
  hone_chains chains;
} way;

static const way ways[] = {
    {NULL, NULL, NULL, 2, true, 2e-5, NULL, HONE_CHAINS_FASTER},
    {"amx", "-fused_attention", NULL, 3, false, 1e-4, NULL, HONE_CHAINS_FASTER}, /* x3 */
    {"amx", "-fused_attention", "bf16", 2, false, 3e-2, NULL, HONE_CHAINS_FASTER},
    {"avx512bf16", "-fused_attention,-gemm_tiles,-matmul_tiles", "bf16", 2, false, 3e-2, NULL,
     HONE_CHAINS_FASTER},
    {"avx512bf16", "-conv_gemm,-conv_winograd*,-gemm_tiles,-matmul_tiles", "fp16", 2, false, 3e-2, NULL,
     HONE_CHAINS_FASTER},
    {"avx512bf16", NULL, NULL, 2, true, 2e-5, NULL, HONE_CHAINS_FASTER},
    {"avx512", NULL, NULL, 2, true, 2e-5, NULL, HONE_CHAINS_FASTER},
    {"avx2", NULL, NULL, 2, true, 2e-5, NULL, HONE_CHAINS_FASTER},
    {"scalar", NULL, NULL, 2, true, 2e-5, NULL, HONE_CHAINS_FASTER}};

/* Element i of a float tensor. */
static float element(const hone_tensor *t, int64_t i) {
  if (t->desc.dtype == HONE_DTYPE_F16) return hn_f16_to_f32(((const uint16_t *)t->data)[i]);
  if (t->desc.dtype == HONE_DTYPE_BF16) return hn_bf16_to_f32(((const uint16_t *)t->data)[i]);
  return ((const float *)t->data)[i];
}

/* By what a reference that rounds after every operator may differ: some units of its type, of the range. */
static double rounding(hone_dtype d) { return d == HONE_DTYPE_F16 ? 4e-3 : d == HONE_DTYPE_BF16 ? 3e-2 : 0; }

/* Codes are those of the reference, or beside them where its number lies nearly in the middle between two:
 * few of them, as long as the arithmetic is that of f32. */
static void compare_codes(const char *name, const char *isa, const hone_tensor *got, const hone_tensor *want,
                          double bound) {
  const int64_t n = hone_desc_count(&want->desc);
  int64_t beside = 0;
  char what[160];
  for (int64_t i = 0; i < n; i++) {
    const bool is_signed = want->desc.dtype == HONE_DTYPE_I8;
    const int a = is_signed ? ((const int8_t *)got->data)[i] : ((const uint8_t *)got->data)[i],
              b = is_signed ? ((const int8_t *)want->data)[i] : ((const uint8_t *)want->data)[i];
    beside += a != b;
    if (abs(a - b) <= (bound < 1e-3 ? 1 : 16) && (bound >= 1e-3 || beside <= 1 + n / 50)) continue;
    snprintf(what, sizeof what, "code %lld is %d, not %d; %lld differ so far", (long long)i, a, b,
             (long long)beside);
    fail(name, isa, what);
    return;
  }
}

static void compare(const char *name, const char *isa, const hone_tensor *got, const hone_tensor *want,
                    double bound, bool split) {
  const int64_t n = hone_desc_count(&want->desc);
  double range = 1e-6;
  char what[160];
  if (got->desc.dtype != want->desc.dtype) fail(name, isa, "an output has another type");
  if (want->desc.dtype == HONE_DTYPE_U8 || want->desc.dtype == HONE_DTYPE_I8) {
    compare_codes(name, isa, got, want, bound);
    return;
  }
  if (!hone_dtype_is_float(want->desc.dtype) || want->desc.dtype == HONE_DTYPE_F64) return;
  bound = fmax(bound, rounding(want->desc.dtype));
  for (int64_t i = 0; i < n; i++)
    if (isfinite(element(want, i))) range = fmax(range, fabs(element(want, i)));
  for (int64_t i = 0; i < n; i++) {
    const float a = element(got, i), b = element(want, i);
    if (split && isnan(a) && isinf(b)) continue; /* docs/guide/precision.md: operands in two parts */
    if (isnan(a) ? isnan(b) : a == b || fabs((double)a - b) <= bound * range) continue;
    snprintf(what, sizeof what, "element %lld is %g, not %g", (long long)i, a, b);
    fail(name, isa, what);
    return;
  }
}

static hone_status run(const way *w, hone_model *m, bool reference, const hone_tensor *const *in,
                       hone_engine **e, hone_plan **p, hone_context **c, hone_error *error) {
  hone_engine_options eo = {.threads = THREADS, .isa = w->isa, .tactics = w->tactics};
  hone_plan_options po = {.level = reference ? 0 : w->level,
                          .reference = reference,
                          .precision = w->precision,
                          .passes = w->passes,
                          .chains = w->chains};
  hone_status s = hone_engine_create(&eo, e, error);
  if (s == HONE_OK) s = hone_plan_create(*e, m, &po, p, error);
  if (s == HONE_OK) s = hone_context_create(*p, c, error);
  return s == HONE_OK ? hone_context_run(*c, in, NULL, error) : s;
}

static void close_run(hone_engine **e, hone_plan **p, hone_context **c) {
  hone_context_destroy(*c);
  hone_plan_destroy(*p);
  hone_engine_destroy(*e);
  *c = NULL, *p = NULL, *e = NULL;
}

/* "epilogue: Conv 1, Relu 1": the plan without this fusion has these steps and the same answers; ": Conv 1":
 * nothing is switched off. Chains are made wherever they can be, as what is faster is the machine's. */
static hone_status check_without(const char *name, const char *wanted, hone_model *m,
                                 const hone_tensor *const *in, const hone_plan *reference,
                                 const hone_context *answers, hone_error *error) {
  hone_engine *e = NULL;
  hone_plan *p = NULL;
  hone_context *c = NULL;
  const size_t n = strcspn(wanted, ":");
  char passes[64];
  snprintf(passes, sizeof passes, "%s%.*s", n ? "-" : "", (int)n, wanted);
  const way w = {"scalar", NULL, NULL, 2, true, 2e-5, passes, HONE_CHAINS_ALWAYS};
  hone_status s = run(&w, m, false, in, &e, &p, &c, error);
  if (s == HONE_OK) {
    count_steps(name, passes, wanted + n + 1, p);
    for (uint32_t i = 0; i < hone_plan_outputs(reference); i++)
      compare(name, passes, hone_context_output(c, i), hone_context_output(answers, i), w.bound, false);
  }
  close_run(&e, &p, &c);
  return s;
}

static void check(const char *name, const expected *want, const char *text) {
  const char *steps = want->steps;
  hone_error error = {0};
  hn_model *m = NULL;
  hone_tensor data[MAX_INPUTS] = {0};
  const hone_tensor *in[MAX_INPUTS] = {NULL};
  hone_engine *e[2] = {NULL};
  hone_plan *p[2] = {NULL};
  hone_context *c[2] = {NULL};
  char line[900];
  hone_status s = hn_model_parse(name, text, strlen(text), &m, &error);
  if (s == HONE_OK) s = hn_model_ready(m, &error);
  rng = (hn_rng){7};
  for (size_t i = 0; s == HONE_OK && i < m->graph->inputs.len && i < MAX_INPUTS; i++) {
    data[i].desc = m->graph->inputs.ptr[i]->desc;
    data[i].data = aligned_alloc(64, ((size_t)hone_desc_bytes(&data[i].desc) + 64) / 64 * 64);
    fill(&data[i]);
    in[i] = &data[i];
  }
  if (s == HONE_OK) s = run(&ways[0], m, true, in, &e[0], &p[0], &c[0], &error);
  for (size_t k = 0; s == HONE_OK && k < sizeof ways / sizeof *ways; k++) {
    const way *w = &ways[k];
    s = run(w, m, false, in, &e[1], &p[1], &c[1], &error);
    if (s == HONE_OK) {
      if (w->count) count_steps(name, w->isa, steps, p[1]);
      for (uint32_t i = 0; i < hone_plan_outputs(p[0]); i++)
        compare(name, w->isa, hone_context_output(c[1], i), hone_context_output(c[0], i), w->bound,
                w->level == 3);
      for (int i = 0; i < want->n && w->isa && strcmp(w->isa, "scalar") == 0; i++)
        if (strncmp(want->line[i], "near: ", 6) == 0) check_near(name, want->line[i] + 6, p[1]);
    }
    close_run(&e[1], &p[1], &c[1]);
    if (s != HONE_OK && w->isa) s = HONE_OK, error = (hone_error){0}; /* not on this machine */
  }
  for (int i = 0; s == HONE_OK && i < want->n; i++) {
    const char *from = strncmp(want->line[i], "without: ", 9) == 0  ? want->line[i] + 9
                       : strncmp(want->line[i], "always: ", 8) == 0 ? want->line[i] + 6
                                                                    : NULL;
    if (from) s = check_without(name, from, m, in, p[0], c[0], &error);
  }
  hone_error_format(&error, line, sizeof line);
  if (s != HONE_OK) fail(name, NULL, line);
  hone_context_destroy(c[0]);
  hone_plan_destroy(p[0]);
  hone_engine_destroy(e[0]);
  for (int i = 0; i < MAX_INPUTS; i++) free(data[i].data);
  if (m) hone_model_release(m);
}

/* The cases of a file that the filter lets through; after a failure no more of them where one is what is
 * wanted. Returns how many were checked, -1 without the file. */
static int check_file(const char *file, const char *filter, bool one_failure) {
  FILE *f = fopen(file, "r");
  if (!f) return -1;
  char line[4096], name[128] = "";
  expected want = {0};
  hn_str text = {0};
  int cases = 0;
  for (bool more = true; more;) {
    more = fgets(line, sizeof line, f) != NULL;
    if (!more || strncmp(line, "== ", 3) == 0) {
      if (*name && strstr(name, filter) && !(one_failure && failures)) {
        check(name, &want, text.ptr ? text.ptr : "");
        cases++;
      }
      hn_str_free(&text);
      text = (hn_str){0};
      want = (expected){0};
      if (more) snprintf(name, sizeof name, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    } else if (strncmp(line, "steps: ", 7) == 0)
      snprintf(want.steps, sizeof want.steps, "%.*s", (int)strcspn(line + 7, "\n"), line + 7);
    else if ((strncmp(line, "near: ", 6) == 0 || strncmp(line, "without: ", 9) == 0 ||
              strncmp(line, "always: ", 8) == 0) &&
             want.n < 12)
      snprintf(want.line[want.n++], sizeof want.line[0], "%.*s", (int)strcspn(line, "\n"), line);
    else if (*name)
      hn_str_puts(&text, line);
  }
  hn_str_free(&text);
  fclose(f);
  return cases;
}

int main(int argc, char **argv) {
  const char *filter = "";
  bool expect_failure = false;
  int cases = 0, files = 0;
  for (int i = 1; i < argc; i++) { /* options first: files are read in the next round */
    if (strcmp(argv[i], "--filter") == 0 && i + 1 < argc)
      filter = argv[++i];
    else if (strcmp(argv[i], "--expect-failure") == 0)
      expect_failure = true;
    else
      argv[++files] = argv[i];
  }
  for (int i = 1, n = 0; i <= files && n >= 0; i++, cases += n)
    if ((n = check_file(argv[i], filter, expect_failure)) < 0) files = 0;
  if (!files) return fprintf(stderr, "usage: check_fusion CASES... [--filter TEXT] [--expect-failure]\n"), 2;
  printf("%d cases, %d failures\n", cases, failures);
  return expect_failure ? expected_failure(failures) : failures != 0 || cases == 0;
}
