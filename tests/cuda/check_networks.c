/* check_networks: a whole network of the zoo on a GPU (an emulated one will do) against the CPU.
 *
 * usage: check_networks NETWORK WIDTH SIZE PRECISION [--batch N] [--on-host N]
 * At most N (0) steps may be on the host. Two threads run a context each, again and again with inputs that
 * change, so that captured segments, lanes and copies that forget to wait for something show as wrong values.
 */
#include "skipped.h"
#include "api/api.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/strided.h"
#include "improve/values.h"
#include "runtime/context.h"

#include <hone/data.h>
#include <hone/hone.h>
#include <hone/session.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETS = 3, THREADS = 2, ROUNDS = 5, MOST = 8 };

typedef struct values {
  hone_data in[MOST];
  hone_tensor out[MOST];
} values;

typedef struct network {
  hone_plan *plan;
  double tolerance;
  uint32_t inputs, outputs;
  values set[SETS];
} network;

static int give_up(const hone_error *e) {
  printf("FAIL: %s%s%s\n", e->what, *e->where ? ", " : "", e->where);
  return 1;
}

static hone_status run(const network *n, hone_context *c, const values *v, hone_error *error) {
  const hone_tensor *in[MOST];
  for (uint32_t i = 0; i < n->inputs; i++) in[i] = &v->in[i].tensor;
  return hone_context_run(c, in, NULL, error);
}

/* Largest difference relative to the output's range. */
static double difference(const hone_tensor *got, const hone_tensor *want) {
  const int64_t n = hone_desc_count(&want->desc);
  const float *g = got->data, *w = want->data;
  double range = 0, most = 0;
  for (int64_t i = 0; i < n; i++) range = fmax(range, fabs((double)w[i]));
  for (int64_t i = 0; i < n; i++) {
    const double d = fabs((double)g[i] - (double)w[i]);
    if (!(d <= most)) most = isnan(d) ? INFINITY : d;
  }
  return most / range;
}

static void *run_context(void *arg) {
  const network *n = arg;
  hone_context *c = NULL;
  hone_error error = {0};
  hone_status s = hone_context_create(n->plan, &c, &error);
  for (int round = 0; round < ROUNDS && !s; round++) {
    const values *v = &n->set[round % SETS];
    s = run(n, c, v, &error);
    for (uint32_t i = 0; i < n->outputs && !s; i++) {
      const double d = difference(hone_context_output(c, i), &v->out[i]);
      if (d <= n->tolerance) continue;
      printf("FAIL: run %d, output %u: differs by %.3g of its range, tolerance %.3g\n", round, i, d,
             n->tolerance);
      hone_context_destroy(c);
      return NULL;
    }
  }
  if (s) give_up(&error);
  hone_context_destroy(c);
  return s ? NULL : arg;
}

/* ---- what a watcher is shown, step by step */

typedef struct shown {
  const hn_plan *cpu, *plan;
  hn_map kept; /* value name -> row-major hone_tensor, of the CPU */
  double tolerance;
  int compared, parts, wrong;
} shown;

static const hn_value *value_of(const hn_plan *p, const hn_step *s, uint32_t i, const hone_tensor *t) {
  const hn_value *v = hn_value_of_step(p, s, i);
  return v && t && t->data && t->desc.dtype == HONE_DTYPE_F32 && hone_desc_count(&t->desc) > 0 ? v : NULL;
}

static void keep_shown(void *arg, const hn_step *s, hone_tensor *const *out) {
  shown *q = arg;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    const hn_value *v = value_of(q->cpu, s, i, out[i]);
    if (v && !hn_map_has(&q->kept, v->name)) hn_map_set(&q->kept, v->name, hn_rows_of(out[i]));
  }
}

/* Every value that both sides name is the CPU's, and becomes exactly that. */
static void compare_shown(void *arg, const hn_step *s, hone_tensor *const *out) {
  shown *q = arg;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    const hn_value *v = value_of(q->plan, s, i, out[i]);
    const hone_tensor *want = v ? hn_map_get(&q->kept, v->name) : NULL;
    if (!want || !hone_desc_same_dims(&want->desc, &out[i]->desc)) continue;
    hone_tensor *got = hn_rows_of(out[i]);
    const double d = difference(got, want);
    q->compared++;
    q->parts += hn_strided_bytes(&out[i]->desc) > hone_desc_bytes(&out[i]->desc);
    if (d > q->tolerance && !q->wrong++) printf("FAIL: %s as shown differs by %.3g\n", v->name, d);
    hn_rows_put(want, out[i]);
    hn_rows_free(got);
  }
}

/* Values of parts of wider tensors, too, at least so many; and what the watcher writes is what later
 * steps read. */
static bool shows_what_it_makes(const network *n, hone_plan *cpu, int parts) {
  shown q = {.cpu = hn_api_plan(cpu), .plan = hn_api_plan(n->plan), .tolerance = n->tolerance};
  hone_context *host = NULL, *device = NULL;
  hone_error error = {0};
  hone_status s = hone_context_create(cpu, &host, &error);
  if (!s) s = hone_context_create(n->plan, &device, &error);
  if (!s) {
    hn_context_watch((struct hn_context *)hn_api_context(host), keep_shown, &q, false);
    s = run(n, host, &n->set[0], &error);
  }
  if (!s) {
    hn_context_watch((struct hn_context *)hn_api_context(device), compare_shown, &q, true);
    s = run(n, device, &n->set[0], &error);
  }
  for (uint32_t i = 0; i < n->outputs && !s; i++)
    q.wrong += !(difference(hone_context_output(device, i), &n->set[0].out[i]) <= n->tolerance);
  if (s) give_up(&error);
  printf("shown: %d values, %d of them parts of others, %d wrong\n", q.compared, q.parts, q.wrong);
  hone_context_destroy(host);
  hone_context_destroy(device);
  for (size_t i = 0; i < q.kept.cap; i++) hn_rows_free(q.kept.slot[i].value);
  hn_map_free(&q.kept);
  return !s && q.compared > 0 && q.parts >= parts && !q.wrong;
}

/* Inputs and what the CPU makes of them. */
static hone_status make_values(network *n, hone_plan *cpu, hone_error *error) {
  hone_context *c = NULL;
  n->inputs = hone_plan_inputs(cpu), n->outputs = hone_plan_outputs(cpu);
  hone_status s = n->inputs > MOST || n->outputs > MOST ? HONE_ERROR_INTERNAL : HONE_OK;
  if (!s) s = hone_context_create(cpu, &c, error);
  for (int k = 0; k < SETS && !s; k++) {
    values *v = &n->set[k];
    for (uint32_t i = 0; i < n->inputs && !s; i++)
      s = hone_data_random(hone_plan_input_name(cpu, i), hone_plan_input_desc(cpu, i), 100, (uint64_t)k + 1,
                           &v->in[i], error);
    if (!s) s = run(n, c, v, error);
    for (uint32_t i = 0; i < n->outputs && !s; i++) {
      v->out[i] = *hone_context_output(c, i);
      const size_t bytes = (size_t)hone_desc_bytes(&v->out[i].desc);
      v->out[i].data = memcpy(hn_aligned(64, bytes), v->out[i].data, bytes);
    }
  }
  hone_context_destroy(c);
  return s;
}

static int count_host_steps(const hone_plan *plan) {
  const hn_plan *p = hn_api_plan(plan);
  int n = 0;
  for (size_t i = 0; i < p->steps.len; i++) {
    const hn_step *s = &p->steps.ptr[i];
    if (!hn_step_falls_back(s)) continue;
    printf("on the host: step %s (%s)\n", s->desc.name, s->desc.anchor);
    for (uint32_t k = 0; k < s->n_refused; k++) printf("  %s: %s\n", s->refused[k].by, s->refused[k].text);
    n++;
  }
  return n;
}

/* What a resize makes for a Concat is written in its place: such a Concat copies the other input alone. */
static int count_whole_concats(const hone_plan *plan) {
  const hn_plan *p = hn_api_plan(plan);
  int n = 0;
  for (size_t i = 0; i < p->steps.len; i++) {
    const hn_step *s = &p->steps.ptr[i];
    if (s->kind != HN_STEP_TACTIC || strcmp(s->desc.anchor, "Concat") || s->desc.n_inputs < 2) continue;
    printf("FAIL: %s copies all of its inputs\n", s->desc.name);
    n++;
  }
  return n;
}

int main(int argc, char **argv) {
  if (argc < 5) {
    fprintf(stderr,
            "usage: check_networks NETWORK WIDTH SIZE PRECISION [--batch N] [--on-host N] [--parts N]\n");
    return 2;
  }
  static network n;
  const char *precision = argv[4];
  int64_t batch = 2, on_host = 0, parts = 0; /* values that are parts of others */
  for (int i = 5; i + 1 < argc; i += 2)
    *(!strcmp(argv[i], "--batch")   ? &batch
      : !strcmp(argv[i], "--parts") ? &parts
                                    : &on_host) = atoll(argv[i + 1]);
  const hone_zoo_options zoo = {.batch = batch, .width = atof(argv[2]), .size = atoll(argv[3]), .seed = 1};
  hone_model *model = NULL;
  hone_engine *engine[2] = {NULL};
  hone_plan *cpu = NULL;
  hone_error error = {0};
  hone_status s = hone_engine_create(&(hone_engine_options){.device = "cuda", .threads = 2, .tuning = "off"},
                                     &engine[1], &error);
  if (s == HONE_ERROR_MISSING) {
    printf("SKIP: %s\n", error.what);
    return SKIPPED;
  }
  if (!s) s = hone_engine_create(&(hone_engine_options){.threads = 2, .tuning = "off"}, &engine[0], &error);
  if (!s) s = hone_zoo_build(argv[1], &zoo, &model, &error);
  /* A pass that plans of devices do without: both are to have the same values. */
  const hone_plan_options same = {.level = -1, .passes = "-conv_before_resize"};
  if (!s) s = hone_plan_create(engine[0], model, &same, &cpu, &error);
  if (!s) s = make_values(&n, cpu, &error);
  if (!s)
    s = hone_plan_create(engine[1], model, &(hone_plan_options){.level = -1, .precision = precision}, &n.plan,
                         &error);
  if (s) return give_up(&error);
  n.tolerance = !strcmp(precision, "f32")    ? 1e-4
                : !strcmp(precision, "bf16") ? 1.0 / 32
                : !strcmp(precision, "fp16") ? 1.0 / 128
                                             : 1.0 / 256;
  pthread_t thread[THREADS];
  const int host = count_host_steps(n.plan);
  int good = host <= on_host && !count_whole_concats(n.plan);
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&thread[i], NULL, run_context, &n)) return 6;
  for (int i = 0; i < THREADS; i++) {
    void *result = NULL;
    pthread_join(thread[i], &result);
    good &= result != NULL;
  }
  good &= shows_what_it_makes(&n, cpu, (int)parts);
  for (int k = 0; k < SETS; k++) {
    for (uint32_t i = 0; i < n.inputs; i++) hone_data_free(&n.set[k].in[i]);
    for (uint32_t i = 0; i < n.outputs; i++) hn_free(n.set[k].out[i].data);
  }
  printf("%s %s: %u steps, %d of them on the host, %s\n", argv[1], precision, hone_plan_steps(n.plan), host,
         good ? "good" : "FAIL");
  hone_plan_destroy(cpu);
  hone_plan_destroy(n.plan);
  hone_engine_destroy(engine[0]);
  hone_engine_destroy(engine[1]);
  hone_model_release(model);
  return !good;
}
