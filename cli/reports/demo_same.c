/* Do two rows of a demo give the same answers, bit for bit? */
#include "cli/reports/demo.h"
#include "cli/terminal/interrupts.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 2, EVERY = 10 };

typedef struct side {
  hone_engine *engine;
  hone_plan *plan;
  hone_context *context;
} side;

static hone_status open_side(const cli_demo_machine *m, const hone_demo_row *row, hone_model *model,
                             int64_t batch, side *s, hone_error *error) {
  const hone_engine_options e = {.device = m->of.device, .threads = m->of.threads, .tactics = row->tactics};
  const hone_plan_options p = {.level = 2,
                               .precision = row->precision ? row->precision : m->of.narrow,
                               .batch = batch,
                               .passes = row->passes,
                               .chains = row->chains,
                               .separate = row->separate};
  hone_status status = hone_engine_create(&e, &s->engine, error);
  if (status == HONE_OK) status = hone_plan_create(s->engine, model, &p, &s->plan, error);
  return status == HONE_OK ? hone_context_create(s->plan, &s->context, error) : status;
}

static void close_side(side *s) {
  hone_context_destroy(s->context);
  hone_plan_destroy(s->plan);
  hone_engine_destroy(s->engine);
}

/* Zeros of both signs, denormals, infinities and NaN in between. */
static void put_edges(hone_tensor *t, uint32_t round) {
  static const float edges[] = {0.0f, -0.0f, 1e-42f, -1e-42f, INFINITY, -INFINITY, NAN, 3.4e38f, -3.4e38f};
  float *x = t->data;
  const int64_t n = t->desc.dtype == HONE_DTYPE_F32 ? hone_desc_count(&t->desc) : 0;
  for (int64_t i = round % 7; i < n; i += 7)
    x[i] = edges[(size_t)(i / 7 + round) % (sizeof edges / sizeof *edges)];
}

static hone_status same_once(const side s[ROWS], uint32_t round, bool *same, hone_error *error) {
  const uint32_t n = hone_plan_inputs(s[0].plan);
  hone_data *data = calloc(n + 1u, sizeof *data);
  const hone_tensor **in = calloc(n + 1u, sizeof *in);
  hone_status status = data && in ? HONE_OK : HONE_ERROR_MEMORY;
  if (status != HONE_OK) *error = (hone_error){.status = status, .what = "out of memory for random inputs"};
  for (uint32_t i = 0; i < n && status == HONE_OK; i++) {
    status = hone_data_random(hone_plan_input_name(s[0].plan, i), hone_plan_input_desc(s[0].plan, i), 0,
                              1 + (uint64_t)round * n + i, &data[i], error);
    if (status == HONE_OK && round % EVERY == EVERY - 1) put_edges(&data[i].tensor, round + i);
    if (status == HONE_OK) in[i] = &data[i].tensor;
  }
  for (int k = 0; k < ROWS && status == HONE_OK; k++)
    status = hone_context_run(s[k].context, in, NULL, error);
  *same = status == HONE_OK;
  for (uint32_t i = 0; *same && i < hone_plan_outputs(s[0].plan); i++) {
    const hone_tensor *a = hone_context_output(s[0].context, i), *b = hone_context_output(s[1].context, i);
    *same = hone_desc_same_dims(&a->desc, &b->desc) && a->desc.dtype == b->desc.dtype &&
            memcmp(a->data, b->data, (size_t)hone_desc_bytes(&a->desc)) == 0;
  }
  for (uint32_t i = 0; data && i < n; i++) hone_data_free(&data[i]);
  free(data);
  free((void *)in);
  return status;
}

hone_status cli_demo_same(const cli_demo_machine *m, const hone_demo_row row[ROWS], int64_t batch,
                          cli_demo_equal *out, hone_error *error) {
  side s[ROWS] = {{0}};
  hone_model *model = NULL;
  const hone_zoo_options z = {.batch = batch, .size = m->of.size};
  hone_status status = hone_zoo_build(row[0].network, &z, &model, error);
  for (int k = 0; k < ROWS && status == HONE_OK; k++)
    status = open_side(m, &row[k], model, batch, &s[k], error);
  for (uint32_t i = 0; i < CLI_DEMO_INPUTS && status == HONE_OK && !cli_interrupted(); i++) {
    bool same = false;
    status = same_once(s, i, &same, error);
    out->inputs++;
    out->edges += i % EVERY == EVERY - 1;
    out->differ += status == HONE_OK && !same;
  }
  for (int k = 0; k < ROWS; k++) close_side(&s[k]);
  hone_model_release(model);
  return status;
}
