/* One classifier in f32, 16 bits, 8 bits and mixed: time, memory, and how many answers are right. */
#include "api/measure/bench.h"
#include "api/measure/median.h"
#include "api/measure/watch.h"
#include "base/error.h"
#include "base/mem.h"

#include <hone/data.h>
#include <hone/dataset.h>
#include <hone/eval.h>
#include <hone/layers.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNS = 20, CALIBRATION = 64, GENERATED = 32, INT8 = 2, MIXED = 3 /* rows */ };

typedef struct job {
  const hone_demo_machine *machine;
  const hone_int8_options *o;
  hone_model *model, *int8, *mixed;
  char calib[512];     /* a file of its own, to be removed; "": none */
  const char *samples; /* what calibration reads; NULL: random */
  uint32_t *expected;  /* f32's answers to the generated samples */
  uint32_t n_expected;
  uint8_t *outcomes[HONE_INT8_ROWS]; /* of each sample; NULL: not measured */
  uint64_t n_outcomes;
} job;

static hone_status no_memory(hone_error *error) {
  return hn_fail(error, HONE_ERROR_MEMORY, "out of memory for a demo");
}

/* ---- samples for calibration */

/* Evenly spread over the set. */
static hone_status stack(const job *j, const hone_tensor_desc *one, hone_tensor *all, hone_error *error) {
  const uint64_t n = hone_dataset_samples(j->o->set), most = n < CALIBRATION ? n : CALIBRATION;
  const int64_t bytes = hone_desc_bytes(one);
  int64_t dims[HONE_MAX_RANK] = {0};
  uint64_t kept = 0;
  char *data = hn_calloc((size_t)most + 1, (size_t)bytes);
  hone_status status = data ? HONE_OK : no_memory(error);
  for (uint64_t i = 0; i < most && status == HONE_OK; i++) {
    hone_data sample = {0};
    hone_error unread = {0};
    /* What cannot be read is left out here as it is where answers are counted. */
    if (hone_dataset_load(j->o->set, i * n / most, one, j->o->preprocess, &sample, NULL, &unread) != HONE_OK)
      continue;
    memcpy(data + kept++ * (uint64_t)bytes, sample.tensor.data, (size_t)bytes);
    hone_data_free(&sample);
  }
  if (status == HONE_OK && !kept)
    status = hn_fail(error, HONE_ERROR_INPUT, "no sample of the data can be read for calibration");
  for (int32_t k = 0; k < one->rank; k++) dims[k] = one->dim[k];
  dims[0] = (int64_t)kept;
  all->desc = hone_desc(one->dtype, one->rank, dims);
  all->data = data;
  return status;
}

/* The set's samples as one file that hone_quantize reads. */
static hone_status write_calibration(job *j, const hone_tensor_desc *input, hone_error *error) {
  hone_tensor_desc one = *input;
  hone_tensor all = {0};
  if (one.rank < 1) return hn_fail(error, HONE_ERROR_INPUT, "the input is no batch of samples");
  one.dim[0] = 1;
  one = hone_desc(one.dtype, one.rank, one.dim);
  const char *folder = getenv("TMPDIR");
  snprintf(j->calib, sizeof j->calib, "%s/hone-calib-XXXXXX.npy", folder && *folder ? folder : "/tmp");
  const int file = mkstemps(j->calib, 4);
  if (file < 0) {
    j->calib[0] = 0;
    return hn_fail(error, HONE_ERROR_IO, "cannot write samples for calibration in TMPDIR");
  }
  close(file);
  hone_status status = stack(j, &one, &all, error);
  if (status == HONE_OK) status = hone_data_save_npy(&all, j->calib, error);
  hn_free(all.data);
  j->samples = j->calib;
  return status;
}

/* ---- layers that stay in 16 bits */

static int by_loss(const void *pa, const void *pb) {
  const hone_layer_error *a = *(const hone_layer_error *const *)pa, *b = *(const hone_layer_error *const *)pb;
  if (a->own_snr_db != b->own_snr_db) return a->own_snr_db < b->own_snr_db ? -1 : 1;
  return (a->depth > b->depth) - (a->depth < b->depth);
}

static bool was_named(const hone_int8_table *out, const char *name) {
  for (uint32_t i = 0; i < out->kept; i++)
    if (strcmp(out->name[i], name) == 0) return true;
  return false;
}

static hone_status choose(const job *j, hone_int8_table *out, hone_error *error) {
  const hone_layers_options o = {
      .data = j->samples, .preprocess = j->o->preprocess, .threads = j->machine->threads, .batch = 1};
  const uint32_t tenth = out->layers / 10, most = tenth < 1                ? 1
                                                  : tenth < HONE_INT8_KEPT ? tenth
                                                                           : HONE_INT8_KEPT;
  hone_layers_report r = {0};
  hone_status status = hone_layers(j->model, j->int8, &o, &r, error);
  const hone_layer_error **order = status == HONE_OK ? hn_calloc(r.n_layers + 1u, sizeof *order) : NULL;
  if (status == HONE_OK && !order) status = no_memory(error);
  uint32_t n = 0;
  for (uint32_t i = 0; status == HONE_OK && i < r.n_layers; i++)
    if (isfinite(r.layer[i].own_snr_db) && r.layer[i].channels)
      order[n++] = &r.layer[i]; /* with weights of 8 bits */
  if (n) qsort(order, n, sizeof *order, by_loss);
  for (uint32_t i = 0; i < n && out->kept < most; i++)
    if (!was_named(out, order[i]->name) && strlen(order[i]->name) < sizeof *out->name)
      snprintf(out->name[out->kept++], sizeof *out->name, "%s", order[i]->name);
  hn_free(order);
  hone_layers_report_free(&r);
  return status;
}

static hone_status quantise(job *j, hone_int8_table *out, hone_error *error) {
  const char *skip[HONE_INT8_KEPT];
  hone_status status =
      hn_bench_quantise(j->machine, j->model, j->samples, NULL, 0, &j->int8, &out->layers, error);
  if (status == HONE_OK) status = choose(j, out, error);
  for (uint32_t i = 0; i < out->kept; i++) skip[i] = out->name[i];
  if (status == HONE_OK)
    status = hn_bench_quantise(j->machine, j->model, j->samples, skip, out->kept, &j->mixed, NULL, error);
  return status;
}

/* ---- answers */

static uint32_t largest(const float *v, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; i++)
    if (v[i] > v[best]) best = i;
  return (uint32_t)best;
}

/* The first row's answers are those that the others are held against. */
static hone_status agree(job *j, hn_bench *b, uint8_t **outcomes, hone_int8_row *row, hone_error *error) {
  const uint32_t wanted = j->o->samples ? j->o->samples : GENERATED;
  const bool first = !j->expected;
  hone_status status = HONE_OK;
  if (first && !(j->expected = hn_calloc(wanted, sizeof *j->expected))) return no_memory(error);
  if (!(*outcomes = hn_calloc(wanted, 1))) return no_memory(error);
  j->n_outcomes = wanted;
  for (uint32_t done = 0, run = 0; done < wanted && status == HONE_OK; run++) {
    hone_data made = {0};
    status = hone_data_random("x", &b->tensor[0].desc, 0, 1000 + run, &made, error);
    const hone_tensor *in[] = {&made.tensor};
    if (status == HONE_OK) status = hone_context_run(b->context, in, NULL, error);
    const hone_tensor *y = status == HONE_OK ? hone_context_output(b->context, 0) : NULL;
    const int64_t classes = y && y->desc.rank ? y->desc.dim[y->desc.rank - 1] : 0;
    if (status == HONE_OK && (classes < 1 || y->desc.dtype != HONE_DTYPE_F32))
      status = hn_fail(error, HONE_ERROR_INPUT, "the first output holds no scores of classes (f32)");
    const int64_t rows = classes > 0 ? hone_desc_count(&y->desc) / classes : 0;
    for (int64_t i = 0; i < rows && done < wanted; i++, done++) {
      const uint32_t answer = largest((const float *)y->data + i * classes, classes);
      if (first) j->expected[j->n_expected++] = answer;
      const bool right = answer == j->expected[done];
      (*outcomes)[done] = right ? HONE_OUTCOME_RIGHT : HONE_OUTCOME_WRONG;
      row->right += right;
      row->samples++;
    }
    if (status == HONE_OK && !rows) status = hn_fail(error, HONE_ERROR_INPUT, "the first output is empty");
    hone_data_free(&made);
  }
  return status;
}

static uint32_t different(const uint32_t *v, uint32_t n) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t k = 0;
    while (k < i && v[k] != v[i]) k++;
    found += k == i;
  }
  return found;
}

static hone_status judge(job *j, hn_bench *b, uint8_t **outcomes, hone_int8_row *row, hone_error *error) {
  hone_eval_result r = {0};
  hone_status status;
  if (!j->o->set)
    status = agree(j, b, outcomes, row, error);
  else {
    status =
        hone_eval_run(b->context, j->o->set, &(hone_eval_options){.preprocess = j->o->preprocess}, &r, error);
    row->right = r.right;
    row->samples = r.samples;
    *outcomes = r.outcomes;
    j->n_outcomes = r.n_outcomes;
    r.outcomes = NULL;
    hone_eval_free(&r);
  }
  if (status == HONE_OK && row->samples) {
    row->share = (double)row->right / (double)row->samples;
    hone_interval(row->right, row->samples, &row->low, &row->high);
  }
  return status;
}

/* ---- rows */

/* Opened and judged; false in row->measured: the device cannot do it. */
static hone_status open_row(job *j, hone_model *model, const char *precision, uint8_t **outcomes, hn_bench *b,
                            hone_int8_row *row, hone_error *error) {
  const hone_engine_options e = {.device = j->machine->device, .threads = j->machine->threads};
  const hone_plan_options p = {
      .level = 2, .precision = precision, .batch = j->o->batch > 0 ? j->o->batch : 1};
  hone_error failed = {0};
  uint64_t workspace;
  hone_status status = hn_bench_open(&e, model, &p, b, &failed);
  if (status == HONE_OK && b->n != 1)
    status = hn_fail(&failed, HONE_ERROR_INPUT, "the model has %u inputs, not one", b->n);
  if (status == HONE_OK) status = judge(j, b, outcomes, row, &failed);
  if (status == HONE_OK) {
    hone_plan_memory(b->plan, &row->activations, &row->weights, &workspace);
    row->measured = true;
  } else if (status == HONE_ERROR_UNSUPPORTED) {
    snprintf(row->why, sizeof row->why, "%.200s", failed.what);
    return HONE_OK;
  }
  if (status != HONE_OK && error) *error = failed;
  return status;
}

/* In turn, so that what the machine does meanwhile hits all rows alike. */
static hone_status time_rows(const job *j, hn_bench *b, hone_int8_table *out, hone_error *error) {
  enum { ROUNDS = 4 };
  const uint32_t runs = j->machine->runs ? j->machine->runs : RUNS, part = (runs + ROUNDS - 1) / ROUNDS,
                 all = part * ROUNDS;
  double *ms = hn_calloc(3 * (size_t)all * HONE_INT8_ROWS, sizeof *ms);
  hone_status status = ms ? HONE_OK : no_memory(error);
  for (uint32_t k = 0; k < ROUNDS * HONE_INT8_ROWS && status == HONE_OK; k++) {
    const uint32_t i = k % HONE_INT8_ROWS, round = k / HONE_INT8_ROWS;
    double *at = ms + 3 * (size_t)all * i + round * part;
    if (!out->row[i].measured) continue;
    if (!hn_watch_tell(j->o->watch, "measure", k, ROUNDS * HONE_INT8_ROWS)) status = hn_watch_stopped(error);
    if (status == HONE_OK) status = hn_bench_run(&b[i], part, at, at + all, at + 2 * all, error);
  }
  for (uint32_t i = 0; i < HONE_INT8_ROWS && status == HONE_OK; i++) {
    out->row[i].ms = hn_median_of(ms + 3 * (size_t)all * i, all);
    out->row[i].end_ms = hn_median_of(ms + 3 * (size_t)all * i + 2 * all, all);
  }
  hn_free(ms);
  return status;
}

/* The mixed row against that of 8 bits, sample by sample. */
static hone_status compare_rows(const job *j, hone_int8_table *out, hone_error *error) {
  if (!j->outcomes[INT8] || !j->outcomes[MIXED]) return HONE_OK;
  const hone_eval_result int8 = {.truth = HONE_TRUTH_CLASS,
                                 .outcomes = j->outcomes[INT8],
                                 .n_outcomes = j->n_outcomes},
                         mixed = {.truth = HONE_TRUTH_CLASS,
                                  .outcomes = j->outcomes[MIXED],
                                  .n_outcomes = j->n_outcomes};
  return hone_eval_compare(&int8, &mixed, &out->mixed, error);
}

static hone_status measure(job *j, hone_int8_table *out, hone_error *error) {
  const bool device = j->machine->device && strcmp(j->machine->device, "cpu") != 0;
  const char *narrow = j->machine->narrow ? j->machine->narrow : device ? "fp16" : "bf16";
  const struct {
    const char *label, *precision;
    hone_model *model;
  } rows[HONE_INT8_ROWS] = {{"FP32", "f32", j->model},
                            {strcmp(narrow, "fp16") == 0 ? "FP16" : "BF16", narrow, j->model},
                            {"INT8", "f32", j->int8},
                            {"mixed", narrow, j->mixed}};
  hn_bench b[HONE_INT8_ROWS] = {{0}};
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < HONE_INT8_ROWS && status == HONE_OK; i++) {
    out->row[i].label = rows[i].label;
    if (!hn_watch_tell(j->o->watch, rows[i].label, i, HONE_INT8_ROWS)) status = hn_watch_stopped(error);
    if (status == HONE_OK)
      status = open_row(j, rows[i].model, rows[i].precision, &j->outcomes[i], &b[i], &out->row[i], error);
  }
  if (status == HONE_OK) status = compare_rows(j, out, error);
  if (status == HONE_OK) status = time_rows(j, b, out, error);
  out->batch = b[0].n && b[0].tensor[0].desc.rank ? b[0].tensor[0].desc.dim[0] : 1;
  for (uint32_t i = 0; i < HONE_INT8_ROWS; i++) hn_bench_free(&b[i]);
  return status;
}

/* The network, and where its samples come from. */
static hone_status prepare(job *j, hone_error *error) {
  hone_status status = HONE_OK;
  j->samples = j->o->calib;
  j->model = j->o->model;
  if (!j->model)
    status = hone_zoo_build("mobilenetv2", &(hone_zoo_options){.size = j->machine->size}, &j->model, error);
  if (status != HONE_OK || j->samples || !j->o->set) return status;
  hone_model *bound = NULL;
  hone_port input;
  status = hone_model_bind(j->model, NULL, 0, 1, &bound, NULL, error);
  if (status == HONE_OK && !hone_model_input(bound, 0, &input))
    status = hn_fail(error, HONE_ERROR_INPUT, "the model has no input");
  if (status == HONE_OK) status = write_calibration(j, &input.desc, error);
  hone_model_release(bound);
  return status;
}

hone_status hone_int8_measure(const hone_demo_machine *m, const hone_int8_options *o, hone_int8_table *out,
                              hone_error *error) {
  if (!m || !o || !out)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_int8_measure needs a machine, options and a place for the result");
  job j = {.machine = m, .o = o};
  *out = (hone_int8_table){.labelled = o->set != NULL};
  hone_status status = prepare(&j, error);
  if (status == HONE_OK && !hn_watch_tell(o->watch, "quantise", 0, 0)) status = hn_watch_stopped(error);
  if (status == HONE_OK) status = quantise(&j, out, error);
  if (status == HONE_OK) status = measure(&j, out, error);
  out->answers = different(j.expected, j.n_expected);
  if (*j.calib) unlink(j.calib);
  hn_free(j.expected);
  for (int i = 0; i < HONE_INT8_ROWS; i++) hn_free(j.outcomes[i]);
  hone_model_release(j.mixed);
  hone_model_release(j.int8);
  if (!o->model) hone_model_release(j.model);
  return status;
}
