#include "cli/reports/plans.h"

#include "cli/terminal/clock.h"
#include "cli/terminal/interrupts.h"
#include "cli/terminal/median.h"
#include "cli/terminal/term.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
  hone_shape_plan plan;
  double measured_ms; /* < 0: not */
} row;

hone_status cli_plans_prepare(const cli_plans *p, hone_error *error) {
  uint64_t all = 1;
  for (uint32_t i = 0; i < p->n && all <= CLI_MOST_PLANS; i++) all *= hone_shapes_buckets(p->shapes, i, NULL);
  if (all <= CLI_MOST_PLANS) return hone_shapes_prepare(p->shapes, error);
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  snprintf(error->what, sizeof error->what, "the profiles have more than %d combinations of sizes",
           CLI_MOST_PLANS);
  snprintf(error->hint, sizeof error->hint, "take a larger step, or powers of two: --profile N=1:8:32");
  return HONE_ERROR_USAGE;
}

/* ------------------------------------------------------------------ measuring */

/* Runs of a context on random inputs. */
static hone_status time_runs(const cli_plans *p, hone_context *context, double *ms, hone_error *error) {
  const hone_plan *plan = hone_context_plan(context);
  const uint32_t n = hone_plan_inputs(plan), models = hone_model_inputs(p->session->model);
  const int64_t runs = p->args->runs;
  hone_data *data = calloc(n + 1, sizeof *data);
  const hone_tensor **in = calloc(n + 1, sizeof *in);
  double *times = calloc((size_t)runs + 1, sizeof *times);
  hone_status status = data && in && times ? HONE_OK : HONE_ERROR_MEMORY;
  if (status != HONE_OK) *error = (hone_error){.status = status, .what = "out of memory"};
  for (uint32_t i = 0; i < n && status == HONE_OK; i++)
    for (uint32_t k = 0; k < models && status == HONE_OK && !in[i]; k++) {
      hone_port port;
      if (!hone_model_input(p->session->model, k, &port) ||
          strcmp(port.name, hone_plan_input_name(plan, i)) != 0)
        continue;
      status = hone_data_for_input(p->session->model, k, hone_plan_input_desc(plan, i),
                                   p->args->seed ? (uint64_t)p->args->seed : 1, &data[i], error);
      in[i] = &data[i].tensor;
    }
  if (status == HONE_OK) status = hone_context_run(context, in, NULL, error); /* caches and pages */
  for (int64_t r = 0; r < runs && status == HONE_OK; r++) {
    const double start = cli_now_ms();
    status = hone_context_run(context, in, NULL, error);
    times[r] = cli_now_ms() - start;
  }
  if (status == HONE_OK) *ms = cli_median(times, (size_t)runs);
  for (uint32_t i = 0; data && i < n; i++) hone_data_free(&data[i]);
  free(data);
  free(in);
  free(times);
  return status;
}

static hone_status measure(const cli_plans *p, row *r, hone_error *error) {
  hone_context *context = NULL;
  r->measured_ms = -1;
  if (p->args->runs <= 0) return HONE_OK;
  hone_status status = hone_shapes_acquire(p->shapes, r->plan.size, &context, error);
  if (status != HONE_OK) return status;
  cli_cancellable(context);
  status = time_runs(p, context, &r->measured_ms, error);
  cli_cancellable(NULL);
  hone_shapes_release(p->shapes, context);
  return status;
}

/* ------------------------------------------------------------------ showing */

static json_t *dimension_json(const cli_plans *p, uint32_t i) {
  const char *reason = "";
  const int64_t *sizes = NULL;
  const bool pads = hone_shapes_pads(p->shapes, i, &reason);
  json_t *list = json_array();
  for (uint32_t k = 0; k < hone_shapes_buckets(p->shapes, i, &sizes); k++)
    json_array_append_new(list, json_integer(sizes[k]));
  return json_pack("{s:s, s:I, s:I, s:I, s:o, s:b, s:s}", "symbol", p->profile[i].symbol, "min",
                   (json_int_t)p->profile[i].min, "opt", (json_int_t)p->profile[i].opt, "max",
                   (json_int_t)p->profile[i].max, "sizes", list, "padded", (int)pads, "reason", reason);
}

static json_t *row_json(const cli_plans *p, const row *r) {
  json_t *size = json_object();
  for (uint32_t i = 0; i < p->n; i++)
    json_object_set_new(size, p->profile[i].symbol, json_integer(r->plan.size[i]));
  return json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:o}", "size", size, "plan_ms",
                   cli_real(r->plan.plan_s * 1e3), "plan_cpu_ms", cli_real(r->plan.plan_cpu_s * 1e3),
                   "own_bytes", (json_int_t)r->plan.own_bytes, "shared_bytes",
                   (json_int_t)r->plan.shared_bytes, "activation_bytes", (json_int_t)r->plan.arena_bytes,
                   "predicted_ms", cli_real(r->plan.predicted_s * 1e3), "measured_ms",
                   r->measured_ms < 0 ? json_null() : cli_real(r->measured_ms), "most_waste_pct",
                   cli_real(r->plan.most_waste_pct));
}

static json_t *document(const cli_plans *p, const row *rows, uint32_t n) {
  hone_shapes_counts c;
  hone_shapes_count(p->shapes, &c);
  json_t *dimensions = json_array(), *plans = json_array();
  for (uint32_t i = 0; i < p->n; i++) json_array_append_new(dimensions, dimension_json(p, i));
  for (uint32_t i = 0; i < n; i++) json_array_append_new(plans, row_json(p, &rows[i]));
  return json_pack("{s:s, s:s, s:I, s:o, s:o, s:I}", "model", p->path, "device", cli_device_name(p->args),
                   "threads", (json_int_t)cli_threads(p->session, p->args), "dimensions", dimensions, "plans",
                   plans, "bytes", (json_int_t)c.bytes);
}

static void size_text(const cli_plans *p, const row *r, char *buf, size_t size) {
  size_t at = 0;
  buf[0] = 0;
  for (uint32_t i = 0; i < p->n && at < size; i++) {
    const int n = snprintf(buf + at, size - at, "%s%.24s=%lld", i ? " " : "", p->profile[i].symbol,
                           (long long)r->plan.size[i]);
    at += n > 0 ? (size_t)n : 0;
  }
}

static void text(const cli_plans *p, const row *rows, uint32_t n) {
  char a[24], b[24], c[24], size[120];
  hone_shapes_counts counts;
  double both = 0;
  bool measured = false, any = false;
  cli_print("%-12s %s  (%s, threads: %u)\n", "model", p->path, cli_device_name(p->args),
            cli_threads(p->session, p->args));
  for (uint32_t i = 0; i < p->n; i++) {
    const char *reason = "";
    const hone_size_profile *f = &p->profile[i];
    const bool pads = hone_shapes_pads(p->shapes, i, &reason);
    any = any || pads;
    cli_print("%-12s %s from %lld to %lld, mostly %lld: ", i ? "" : "dimensions", f->symbol,
              (long long)f->min, (long long)f->max, (long long)f->opt);
    if (pads)
      cli_print("padded to the next size (proved)\n");
    else
      cli_print("not padded: %s\n", reason);
  }
  for (uint32_t i = 0; i < n; i++) measured = measured || rows[i].measured_ms >= 0;
  cli_print("\n%-20s %9s %9s %10s %10s %11s %10s %9s\n", "size", "plan ms", "cpu ms", "own", "shared",
            "activations", measured ? "run ms" : "predicted", "waste");
  for (uint32_t i = 0; i < n; i++) {
    const row *r = &rows[i];
    const double ms = r->measured_ms >= 0 ? r->measured_ms : r->plan.predicted_s * 1e3;
    size_text(p, r, size, sizeof size);
    cli_print("%-20s %9.1f %9.1f %10s %10s %11s %7.3g ms %7.0f %%\n", size, r->plan.plan_s * 1e3,
              r->plan.plan_cpu_s * 1e3, cli_bytes((double)r->plan.own_bytes, a),
              cli_bytes((double)r->plan.shared_bytes, b), cli_bytes((double)r->plan.arena_bytes, c), ms,
              r->plan.most_waste_pct);
    both += (double)(r->plan.own_bytes + r->plan.shared_bytes);
  }
  hone_shapes_count(p->shapes, &counts);
  cli_print(n == 1 ? "\n%u plan keeps %s; alone its constants would take %s\n"
                   : "\n%u plans keep %s; alone their constants would take %s\n",
            n, cli_bytes((double)counts.bytes, a), cli_bytes(both, b));
  if (any) cli_print("waste: of the work, where the smallest input is padded to that size\n");
}

static int by_size(const void *a, const void *b) {
  const row *x = a, *y = b;
  for (uint32_t i = 0; i < HONE_PROFILES; i++)
    if (x->plan.size[i] != y->plan.size[i]) return x->plan.size[i] < y->plan.size[i] ? -1 : 1;
  return 0;
}

int cli_plans_show(const cli_plans *p, hone_error *error, hone_status *status) {
  static row rows[CLI_MOST_PLANS + 1];
  uint32_t n = 0;
  while (n <= CLI_MOST_PLANS && hone_shapes_plan(p->shapes, n, &rows[n].plan)) n++;
  qsort(rows, n, sizeof *rows, by_size);
  for (uint32_t i = 0; i < n && *status == HONE_OK && !cli_interrupted(); i++)
    *status = measure(p, &rows[i], error);
  if (*status != HONE_OK) return 0;
  if (cli_interrupted()) return cli_end_interrupted(NULL);
  if (p->args->json) return cli_print_json(document(p, rows, n));
  text(p, rows, n);
  return cli_flush();
}
