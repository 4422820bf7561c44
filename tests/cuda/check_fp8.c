/* check_fp8: a product in e4m3 on a GPU (an emulated one in CI) is the product of the very codes: each
 * operand over its own scale, so that its largest number is 448, rounded to the nearest of 4 bits, ties to
 * even. Prints what is wrong; exit 1 when something is. */
#include "skipped.h"
#include "base/half.h"
#include "base/narrow.h"
#include "base/rng.h"
#include "model/ir/text.h"
#include "model/operators.h"
#include "tactics/device_step.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M = 37, K = 65, N = 48 };

static uint16_t x[M * K], y[M * N];
static float w[K * N];
static int failures;

static float most_of(const float *v, int n) {
  float most = 0;
  for (int i = 0; i < n; i++) most = fmaxf(most, fabsf(v[i]));
  return most;
}

/* What the codes of n numbers are worth. */
static void round_all(const float *v, int n, double *to) {
  const hn_narrow_rule rule = {.powers = HN_NARROW_NEAREST};
  const float most = most_of(v, n), scale = most > 0 ? most / 448 : 1, inverse = 1 / scale;
  for (int i = 0; i < n; i++)
    to[i] =
        (double)hn_narrow_to_f32(HONE_DTYPE_F8E4M3FN,
                                 hn_narrow_from_f64(HONE_DTYPE_F8E4M3FN, (double)(v[i] * inverse), rule)) *
        (double)scale;
}

static void compare(const char *name) {
  static float wide[M * K];
  static double a[M * K], b[K * N];
  for (int i = 0; i < M * K; i++) wide[i] = hn_f16_to_f32(x[i]);
  round_all(wide, M * K, a);
  round_all(w, K * N, b);
  int rounded = 0, wrong = 0;
  for (int m = 0; m < M; m++)
    for (int n = 0; n < N; n++) {
      double want = 0, exact = 0, size = 0;
      for (int k = 0; k < K; k++) {
        want += a[m * K + k] * b[k * N + n];
        exact += (double)wide[m * K + k] * (double)w[k * N + n];
        size += fabs(a[m * K + k] * b[k * N + n]);
      }
      const double got = (double)hn_f16_to_f32(y[m * N + n]);
      /* The result's rounding to f16, and a few codes that another division of the scale puts elsewhere. */
      if (!(fabs(got - want) <= 0x1p-10 * fabs(want) + 2e-3 * size + 0x1p-24)) wrong++;
      rounded += fabs(exact - want) > 4e-3 * size;
    }
  const bool dull = rounded < M * N / 2 && most_of(wide, M * K) > 0;
  printf("%-18s the codes show in %d of %d results%s, %d are wrong\n", name, rounded, M * N,
         dull ? ": too few" : "", wrong);
  failures += dull;
  failures += wrong != 0;
}

static void run(const char *name, const device_place *place, const hone_tactic_desc *t,
                const hone_step *step) {
  hone_error e = {0};
  const void *in[2] = {x, w};
  void *out[1] = {y};
  memset(y, 0xff, sizeof y);
  if (device_run_step(place, t, step, in, out, false, &e)) {
    printf("FAIL %s: %s\n", name, e.what);
    failures++;
    return;
  }
  compare(name);
}

static const hone_tactic_desc *find(const hn_listing *all, const char *name) {
  for (uint32_t i = 0; i < all->n; i++)
    if (!strcmp(((const hone_tactic_desc *)all->unit[i])->name, name)) return all->unit[i];
  return NULL;
}

static void check(const device_place *place, const hone_tactic_desc *t, const hone_node *node) {
  const int64_t dx[] = {M, K}, dw[] = {K, N}, dy[] = {M, N};
  const hone_step_tensor in[] = {{hone_desc(HONE_DTYPE_F16, 2, dx), NULL},
                                 {hone_desc(HONE_DTYPE_F32, 2, dw), w}};
  const hone_step_tensor out[] = {{hone_desc(HONE_DTYPE_F16, 2, dy), NULL}};
  hone_step step = {
      HONE_DESC_HEAD(hone_step), .anchor = "MatMul", .name = "it",   .node = node,  .n_inputs = 2,
      .n_anchor_inputs = 2,      .input = in,        .n_outputs = 1, .output = out, .math = HONE_MATH_FP8};
  hone_reason why = {""};
  hn_rng rng = {11};
  const hone_machine *machine = place->backend->machine(place->device);
  for (int i = 0; i < K * N; i++) w[i] = hn_rng_normal(&rng);
  if (!t->accepts(&step, machine, &why)) {
    printf("FAIL: %s\n", why.text);
    failures++;
    return;
  }
  static const float sizes[] = {1, 0x1p-10f, 1000};
  for (int s = 0; s < 3; s++) {
    char name[32];
    snprintf(name, sizeof name, "times %g", (double)sizes[s]);
    /* Cubes: most numbers are far below the largest, some below the type's smallest. */
    for (int i = 0; i < M * K; i++) {
      const float v = hn_rng_normal(&rng);
      x[i] = hn_f32_to_f16(sizes[s] * v * v * v / 4);
    }
    run(name, place, t, &step);
  }
  memset(x, 0, sizeof x);
  run("zeros", place, t, &step);
  step.math = HONE_MATH_BF16;
  if (t->accepts(&step, machine, &why)) printf("FAIL: e4m3 without its licence\n"), failures++;
}

int main(void) {
  static const char text[] = "ir 8\nopset 17\ngraph g(%x: f32[37x65], %w: f32[65x48]) -> (%y) {\n"
                             "  %y = MatMul(%x, %w)\n}\n";
  device_place place;
  hone_error e = {0};
  hn_model *m = NULL;
  const hone_status s = device_open(&place, "cuda", &e);
  if (s == HONE_ERROR_MISSING) {
    printf("SKIP: %s\n", e.what);
    return SKIPPED;
  }
  if (s || hn_model_parse("fp8", text, strlen(text), &m, &e) || hn_model_ready(m, &e)) {
    printf("FAIL: %s\n", e.what);
    return 1;
  }
  const hone_machine *machine = place.backend->machine(place.device);
  const bool there = machine->arch >= 89 && machine->libraries & HONE_LIB_CUBLASLT;
  const hn_listing *all = hn_registry_take(place.backend->tactics);
  const hone_tactic_desc *t = find(all, "cublaslt_fp8_matmul");
  if (there && t) check(&place, t, m->graph->first);
  if (!t) printf("FAIL: no such tactic\n"), failures++;
  hn_listing_drop(all);
  hn_model_destroy(m);
  device_close(&place);
  if (!there) {
    printf("SKIP: no e4m3 on this machine\n");
    return SKIPPED;
  }
  printf("%d failures\n", failures);
  return failures != 0;
}
