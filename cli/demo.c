#include "cli/demo.h"

#include <stdlib.h>
#include <string.h>

enum { WARM = 3 };

hone_status cli_demo_machine_find(const cli_args *args, cli_demo_machine *m, hone_error *error) {
  *m = (cli_demo_machine){.device = cli_device_name(args),
                          .runs = args->runs > 0 ? (uint32_t)args->runs : 20,
                          .size = args->size};
  m->accelerator = strcmp(m->device, "cpu") != 0;
  m->narrow = m->accelerator ? "fp16" : "bf16";
  hone_status status = hone_device_about(m->device, NULL, error);
  if (status != HONE_OK) return status;
  if (!m->accelerator) {
    hone_roofs r;
    status = cli_roofs((uint32_t)args->threads, false, 0, &r, error);
    if (status != HONE_OK) return status;
    snprintf(m->name, sizeof m->name, "%s", r.cpu);
    m->threads = r.threads;
    m->f32_gflops = r.f32_gflops;
    m->narrow_gflops = r.bf16_gflops > 0 ? r.bf16_gflops : r.f32_gflops;
    m->gbs = r.dram_gbs;
    return HONE_OK;
  }
  hone_device_roofs r;
  status = cli_device_roofs(m->device, false, 0, &r, error);
  for (uint32_t i = 0; status == HONE_OK && i < r.count; i++) {
    if (strcmp(r.roof[i].name, "f32") == 0) m->f32_gflops = r.roof[i].gflops;
    if (strcmp(r.roof[i].name, "f16") == 0) m->narrow_gflops = r.roof[i].gflops;
    if (strcmp(r.roof[i].name, "DRAM") == 0) m->gbs = r.roof[i].gbs;
  }
  snprintf(m->name, sizeof m->name, "%s", r.device);
  return status;
}

typedef struct bench {
  hone_engine *engine;
  hone_model *model;
  hone_plan *plan;
  hone_context *context;
  hone_tensor *tensor;
  const hone_tensor **in;
  uint32_t n;
} bench;

static void bench_free(bench *b) {
  hone_context_destroy(b->context);
  hone_plan_destroy(b->plan);
  hone_model_release(b->model);
  hone_engine_destroy(b->engine);
  for (uint32_t i = 0; b->tensor && i < b->n; i++) free(b->tensor[i].data);
  free(b->tensor);
  free(b->in);
}

static hone_status no_memory(hone_error *error) {
  *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory for the demo's inputs"};
  return HONE_ERROR_MEMORY;
}

/* Random rows, a few of them repeated: making billions of random numbers would be most of the demo. */
static hone_status fill(hone_tensor *t, uint64_t seed, hone_error *error) {
  const int64_t bytes = hone_desc_bytes(&t->desc);
  hone_tensor_desc part = t->desc;
  if (part.rank > 0 && part.dim[0] > 4) part.dim[0] = 4;
  part = hone_desc(part.dtype, part.rank, part.dim);
  hone_data few = {0};
  t->data = aligned_alloc(64, ((size_t)bytes + 127) / 64 * 64);
  if (!t->data) return no_memory(error);
  hone_status status = hone_data_random("x", &part, 0, seed, &few, error);
  if (status != HONE_OK) return status;
  const int64_t n = hone_desc_bytes(&part);
  for (int64_t at = 0; at < bytes; at += n)
    memcpy((char *)t->data + at, few.tensor.data, (size_t)(bytes - at < n ? bytes - at : n));
  hone_data_free(&few);
  return HONE_OK;
}

static hone_status bench_open(const cli_demo_machine *m, const cli_demo_row *row, int64_t batch, bench *b,
                              hone_error *error) {
  const hone_engine_options e = {.device = m->device, .threads = m->threads, .tactics = row->tactics};
  const hone_zoo_options z = {.batch = batch, .size = m->size};
  const hone_plan_options p = {.level = 2,
                               .precision = row->precision ? row->precision : m->narrow,
                               .batch = batch,
                               .passes = row->passes,
                               .chains = row->chains,
                               .separate = row->separate};
  hone_status status = hone_engine_create(&e, &b->engine, error);
  if (status == HONE_OK) status = hone_zoo_build(row->network, &z, &b->model, error);
  if (status == HONE_OK) status = hone_plan_create(b->engine, b->model, &p, &b->plan, error);
  if (status != HONE_OK) return status;
  b->n = hone_plan_inputs(b->plan);
  b->tensor = calloc(b->n + 1, sizeof *b->tensor);
  b->in = calloc(b->n + 1, sizeof *b->in);
  if (!b->tensor || !b->in) return no_memory(error);
  for (uint32_t i = 0; i < b->n && status == HONE_OK; i++) {
    b->tensor[i].desc = *hone_plan_input_desc(b->plan, i);
    b->in[i] = &b->tensor[i];
    status = fill(&b->tensor[i], i + 1, error);
  }
  return status == HONE_OK ? hone_context_create(b->plan, &b->context, error) : status;
}

static hone_status time_runs(const cli_demo_machine *machine, uint32_t runs, bench *b, cli_demo_result *out,
                             hone_error *error) {
  cli_demo_machine limited = *machine, *m = &limited;
  limited.runs = runs;
  double *ms = calloc(m->runs, 3 * sizeof *ms);
  if (!ms) return no_memory(error);
  double *h2d = ms + m->runs, *end = h2d + m->runs, steps = 0, back = 0;
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < WARM + m->runs && status == HONE_OK; i++) {
    const double t = cli_now_ms();
    double in = 0;
    status = hone_context_run(b->context, b->in, NULL, error);
    if (i < WARM || status != HONE_OK) continue;
    end[i - WARM] = ms[i - WARM] = cli_now_ms() - t;
    if (m->accelerator) status = hone_context_times(b->context, &in, &steps, &back, error);
    h2d[i - WARM] = in * 1e3;
  }
  for (uint32_t i = 0; m->accelerator && i < m->runs && status == HONE_OK; i++) {
    status = hone_context_repeat(b->context, &steps, error);
    ms[i] = steps * 1e3;
  }
  out->ms = cli_median(ms, m->runs);
  out->h2d_ms = cli_median(h2d, m->runs);
  out->end_ms = cli_median(end, m->runs);
  out->measured = status == HONE_OK;
  free(ms);
  return status;
}

/* What stands around a part of a network: there its neighbours would be. */
static bool around(const char *type) {
  return strcmp(type, "Reformat") == 0 || strcmp(type, "Copy") == 0 || strcmp(type, "GlobalAveragePool") == 0;
}

static const char *behind_batch(const char *shape) {
  const char *dims = strchr(shape, '['), *x = strchr(dims ? dims + 1 : shape, 'x');
  return x ? x + 1 : shape;
}

static long channels(const char *shape) { return strtol(behind_batch(shape), NULL, 10); }

hone_status cli_demo_block_find(const cli_demo_machine *m, const char *network, int64_t batch,
                                const char *shape, cli_demo_block *out, hone_error *error) {
  hone_model *model = NULL, *bound = NULL;
  hone_inspection in = {0};
  const char *want = NULL;
  bool added = false, later = false;
  *out = (cli_demo_block){0};
  hone_status status =
      hone_zoo_build(network, &(hone_zoo_options){.batch = batch, .size = m->size}, &model, error);
  if (status == HONE_OK) status = hone_model_bind(model, NULL, 0, batch, &bound, NULL, error);
  if (status == HONE_OK) status = hone_model_inspect(bound, &in, error);
  out->name = status == HONE_OK ? calloc(in.n_nodes + 1u, sizeof *out->name) : NULL;
  if (status == HONE_OK && !out->name) status = no_memory(error);
  /* Image sizes may differ between part and network: its first sum of so many channels. */
  for (uint32_t i = 0; status == HONE_OK && i < in.n_nodes && !want; i++)
    if (strcmp(in.nodes[i].op_type, "Add") == 0 && channels(in.nodes[i].shape) == channels(shape))
      want = behind_batch(in.nodes[i].shape);
  for (uint32_t i = 0; status == HONE_OK && i < in.n_nodes && want; i++) {
    const char *type = in.nodes[i].op_type;
    if (strcmp(behind_batch(in.nodes[i].shape), want) != 0) continue;
    if (later) snprintf(out->name[out->n++], sizeof *out->name, "%s", in.nodes[i].name);
    added = added || strcmp(type, "Add") == 0;
    later = later || (added && strcmp(type, "Relu") == 0);
  }
  hone_inspection_free(&in);
  hone_model_release(bound);
  hone_model_release(model);
  return status;
}

void cli_demo_block_free(cli_demo_block *b) {
  free(b->name);
  *b = (cli_demo_block){0};
}

static bool in_block(const cli_demo_block *b, const hone_layer *l) {
  for (uint32_t i = 0; b && i < b->n; i++)
    for (size_t k = 0; k < l->onnx_node_count; k++)
      if (strcmp(b->name[i], l->onnx_nodes[k]) == 0) return true;
  return false;
}

/* By a profile: the time of the steps without what is around them, and the share of convolutions in it. */
static hone_status by_profile(bench *b, uint32_t runs, const cli_demo_block *block, double *ms, double *share,
                              double *block_ms, hone_error *error) {
  hone_facts *facts = hone_facts_create();
  hone_profile *p = NULL;
  double conv = 0, all = 0;
  if (!facts) return no_memory(error);
  hone_status status = hone_context_record(b->context, facts, runs, error);
  for (uint32_t i = 0; i < runs && status == HONE_OK; i++)
    status = hone_context_run(b->context, b->in, NULL, error);
  if (status == HONE_OK) status = hone_context_record_end(b->context, error);
  if (status == HONE_OK) status = hone_profile_create(facts, NULL, &p, error);
  for (size_t i = 0; status == HONE_OK && i < p->layer_count; i++) {
    const hone_layer *l = &p->layers[i];
    if (l->step < 0 || around(l->type)) continue;
    all += l->stats.p50;
    if (in_block(block, l)) *block_ms += l->stats.p50;
    if (strcmp(l->type, "Conv") == 0) conv += l->stats.p50;
  }
  *share = all > 0 ? conv / all : 0;
  *ms = all;
  hone_profile_destroy(p);
  hone_facts_destroy(facts);
  return status;
}

hone_status cli_demo_measure(const cli_demo_machine *m, const cli_demo_row *row, int64_t batch, bool shares,
                             const cli_demo_block *block, cli_demo_result *out, hone_error *error) {
  bench b = {0};
  *out = (cli_demo_result){.conv_share = -1};
  hone_status status = bench_open(m, row, batch, &b, error);
  for (uint32_t i = 0; status == HONE_OK && i < hone_plan_steps(b.plan); i++) {
    hone_step_info info;
    if (!hone_plan_step(b.plan, i, &info)) continue;
    if (m->accelerator && strcmp(info.tactic, "ref") == 0 && strcmp(info.op_type, "Copy") != 0)
      snprintf(out->why, sizeof out->why, "'%.80s' (%.40s) has no tactic on this device", info.name,
               info.op_type);
    if (row->part && around(info.op_type)) continue;
    out->steps++;
    snprintf(out->shape, sizeof out->shape, "%s", info.shape);
    out->flops += info.flops;
    out->moved += info.bytes > 0 ? info.bytes : 0;
  }
  if (status == HONE_OK && !out->why[0]) {
    double ms = 0, share = 0;
    /* A part's inputs are large on a GPU, and its time comes from the profile. */
    const bool large = row->part && m->accelerator;
    status = time_runs(m, large ? 1 : m->runs, &b, out, error);
    if (status == HONE_OK && (shares || row->part)) {
      status = by_profile(&b,
                          large       ? (m->runs < 8 ? m->runs : 8)
                          : row->part ? m->runs
                                      : 5,
                          block, &ms, &share, &out->block_ms, error);
      out->conv_share = share;
      out->steps_ms = ms;
      if (row->part) out->ms = ms;
    }
  } else if (status == HONE_ERROR_UNSUPPORTED) {
    snprintf(out->why, sizeof out->why, "%.200s", error->what);
    status = HONE_OK;
  }
  bench_free(&b);
  return status;
}
