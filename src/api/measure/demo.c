/* What a part of a network takes, planned in one way or another. */
#include "api/measure/bench.h"
#include "base/error.h"
#include "base/mem.h"

#include <hone/measure.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 20 };

static bool accelerator(const hone_demo_machine *m) { return m->device && strcmp(m->device, "cpu") != 0; }

static uint32_t runs_of(const hone_demo_machine *m) { return m->runs ? m->runs : RUNS; }

static const char *precision_of(const hone_demo_machine *m, const hone_demo_row *row) {
  return row->precision ? row->precision : m->narrow ? m->narrow : accelerator(m) ? "fp16" : "bf16";
}

static hone_status no_memory(hone_error *error) {
  return hn_fail(error, HONE_ERROR_MEMORY, "out of memory for a part of a network");
}

/* The row's network: of the zoo, or that in codes of 8 bits. Release *out. */
static hone_status build(const hone_demo_machine *m, const hone_demo_row *row, int64_t batch,
                         hone_model **out, hone_error *error) {
  /* Samples are a row each: the batch stays open until they have been seen. */
  const hone_zoo_options z = {.batch = row->codes ? 0 : batch, .size = m->size, .boxes = row->boxes};
  hone_model *network = NULL;
  hone_status status = hone_zoo_build(row->network, &z, &network, error);
  if (status != HONE_OK || !row->codes) {
    *out = network;
    return status;
  }
  status = hn_bench_quantise(m, network, NULL, NULL, 0, out, NULL, error);
  hone_model_release(network);
  return status;
}

static hone_status open_row(const hone_demo_machine *m, const hone_demo_row *row, int64_t batch,
                            hone_model **model, hn_bench *b, hone_error *error) {
  const hone_engine_options e = {.device = m->device, .threads = m->threads, .tactics = row->tactics};
  const hone_plan_options p = {.level = 2,
                               .precision = precision_of(m, row),
                               .batch = batch,
                               .passes = row->passes,
                               .chains = row->chains,
                               .separate = row->separate};
  const hone_status status = build(m, row, batch, model, error);
  return status == HONE_OK ? hn_bench_open(&e, *model, &p, b, error) : status;
}

/* What stands around a part of a network: there its neighbours would be, with codes in and out of one in
 * codes.
 */
static bool around(const hone_step_info *s) {
  return s->role == HONE_STEP_REFORMAT || s->role == HONE_STEP_COPY ||
         strcmp(s->op_type, "GlobalAveragePool") == 0 || strcmp(s->op_type, "QLinearAveragePool") == 0 ||
         strcmp(s->op_type, "QuantizeLinear") == 0 || strcmp(s->op_type, "DequantizeLinear") == 0;
}

static const char *behind_batch(const char *shape) {
  const char *dims = strchr(shape, '['), *x = strchr(dims ? dims + 1 : shape, 'x');
  return x ? x + 1 : shape;
}

static long channels(const char *shape) { return strtol(behind_batch(shape), NULL, 10); }

hone_status hone_demo_block_find(const hone_demo_machine *m, const char *network, int64_t batch,
                                 const char *shape, hone_demo_block *out, hone_error *error) {
  if (!m || !network || !shape || !out)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_demo_block_find needs a machine, a network, a shape and a place for the result");
  hone_model *model = NULL, *bound = NULL;
  hone_inspection in = {0};
  const char *want = NULL;
  bool added = false, later = false;
  *out = (hone_demo_block){0};
  hone_status status =
      hone_zoo_build(network, &(hone_zoo_options){.batch = batch, .size = m->size}, &model, error);
  if (status == HONE_OK) status = hone_model_bind(model, NULL, 0, batch, &bound, NULL, error);
  if (status == HONE_OK) status = hone_model_inspect(bound, &in, error);
  out->name = status == HONE_OK ? hn_calloc(in.n_nodes + 1u, sizeof *out->name) : NULL;
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

void hone_demo_block_free(hone_demo_block *b) {
  if (!b) return;
  hn_free(b->name);
  *b = (hone_demo_block){0};
}

static bool in_block(const hone_demo_block *b, const hone_layer *l) {
  for (uint32_t i = 0; b && i < b->n; i++)
    for (size_t k = 0; k < l->onnx_node_count; k++)
      if (strcmp(b->name[i], l->onnx_nodes[k]) == 0) return true;
  return false;
}

/* What finds the boxes, and what turns the heads for it. */
static bool finds_boxes(const hone_layer *l, const hone_step_info *step) {
  bool behind = step->role == HONE_STEP_REFORMAT && strncmp(l->name, "head", 4) == 0;
  for (size_t k = 0; k < l->onnx_node_count; k++)
    behind = behind || strncmp(l->onnx_nodes[k], "detect/", 7) == 0;
  return behind;
}

/* By a profile: the time of the steps without what is around a part, and the share of convolutions in it. */
static hone_status by_profile(hn_bench *b, uint32_t runs, const hone_demo_row *row,
                              const hone_demo_block *block, double *ms, double *share, double *block_ms,
                              hone_error *error) {
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
    hone_step_info step;
    if (l->step < 0 || !hone_plan_step(b->plan, (uint32_t)l->step, &step)) continue;
    if (!row->boxes && around(&step)) continue;
    all += l->stats.p50;
    if (row->boxes ? finds_boxes(l, &step) : in_block(block, l)) *block_ms += l->stats.p50;
    if (strcmp(l->type, "Conv") == 0) conv += l->stats.p50;
  }
  *share = all > 0 ? conv / all : 0;
  *ms = all;
  hone_profile_destroy(p);
  hone_facts_destroy(facts);
  return status;
}

hone_status hone_demo_measure(const hone_demo_machine *m, const hone_demo_row *row, int64_t batch,
                              bool shares, const hone_demo_block *block, hone_demo_result *out,
                              hone_error *error) {
  if (!m || !row || !row->network || !out)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_demo_measure needs a machine, a row with a network and a place for the result");
  hn_bench b = {0};
  hn_bench_times times = {0};
  hone_model *model = NULL;
  hone_error failed = {0};
  *out = (hone_demo_result){.conv_share = -1};
  hone_status status = open_row(m, row, batch, &model, &b, &failed);
  for (uint32_t i = 0; status == HONE_OK && i < hone_plan_steps(b.plan); i++) {
    hone_step_info info;
    if (!hone_plan_step(b.plan, i, &info)) continue;
    if (accelerator(m) && !row->hosted && strcmp(info.tactic, "ref") == 0 && info.role != HONE_STEP_COPY)
      snprintf(out->why, sizeof out->why, "'%.80s' (%.40s) has no tactic on this device", info.name,
               info.op_type);
    if (row->part && around(&info)) continue;
    out->steps++;
    snprintf(out->shape, sizeof out->shape, "%s", info.shape);
    out->flops += info.flops;
    out->moved += info.bytes > 0 ? info.bytes : 0;
  }
  if (status == HONE_OK && !out->why[0]) {
    double ms = 0, share = 0;
    uint64_t arena = 0, constants = 0, workspace = 0;
    hone_plan_memory(b.plan, &arena, &constants, &workspace);
    out->memory = (double)(arena + constants + workspace);
    /* A part's inputs are large on a GPU, and its time comes from the profile. */
    const bool large = row->part && accelerator(m);
    status = hn_bench_time(&b, large ? 1 : runs_of(m), &times, &failed);
    out->ms = times.ms;
    out->h2d_ms = times.h2d_ms;
    out->end_ms = times.end_ms;
    out->measured = status == HONE_OK;
    if (status == HONE_OK && (shares || row->part || row->boxes)) {
      status = by_profile(&b,
                          large       ? (runs_of(m) < 8 ? runs_of(m) : 8)
                          : row->part ? runs_of(m)
                                      : 5,
                          row, block, &ms, &share, &out->block_ms, &failed);
      out->conv_share = share;
      out->steps_ms = ms;
      if (row->part) out->ms = ms;
    }
  } else if (status == HONE_ERROR_UNSUPPORTED) {
    snprintf(out->why, sizeof out->why, "%.200s", failed.what);
    status = HONE_OK;
  }
  hn_bench_free(&b);
  hone_model_release(model);
  if (status != HONE_OK && error) *error = failed;
  return status;
}
