/* Running a context on labelled data: batches in, predictions out to a scorer. */
#include "api/eval.h"

#include "base/error.h"
#include "base/os.h"

#include <string.h>

/* Rows of the first dimension are samples, but where there is only a picture's three. */
static int64_t rows_of(const hone_tensor_desc *d) { return d->rank >= 2 && d->rank != 3 ? d->dim[0] : 1; }

static hone_status prepare_input(hn_evaluation *e, hone_error *error) {
  const hone_tensor_desc *d = hone_plan_input_desc(e->plan, e->o->input);
  const uint32_t n = hone_plan_inputs(e->plan);
  if (!d) return hn_fail(error, HONE_ERROR_USAGE, "hone_eval_run: the plan has no input %u", e->o->input);
  e->one = *d;
  e->rows = rows_of(d);
  if (e->rows > 1) {
    int64_t dims[HONE_MAX_RANK];
    memcpy(dims, d->dim, sizeof dims);
    dims[0] = 1;
    e->one = hone_desc(d->dtype, d->rank, dims);
  }
  const int64_t bytes = hone_desc_bytes(d);
  if (bytes <= 0 || e->rows < 1)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_eval_run: the input takes nothing");
  e->batch = (hone_tensor){*d, hn_aligned(HN_MEM_ALIGN, (size_t)bytes)};
  e->in = hn_calloc(n, sizeof *e->in);
  e->rank = hn_calloc((size_t)e->rows, sizeof *e->rank);
  e->map = hn_calloc((size_t)e->rows, sizeof *e->map);
  if (!e->batch.data || !e->in || !e->rank || !e->map)
    return hn_fail_memory(error, (uint64_t)bytes, "a batch of samples");
  memset(e->batch.data, 0, (size_t)bytes);
  for (uint32_t i = 0; i < n; i++) {
    e->in[i] = i == e->o->input ? &e->batch : e->o->others ? e->o->others[i] : NULL;
    if (!e->in[i])
      return hn_fail(error, HONE_ERROR_USAGE, "hone_eval_run: input '%s' was not given",
                     hone_plan_input_name(e->plan, i));
  }
  return HONE_OK;
}

/* Runs the first `rows` rows of the batch; what is behind them is what was there before. */
static hone_status run_rows(hn_evaluation *e, int64_t rows, hone_error *error) {
  const hone_status status = hone_context_run(e->context, e->in, NULL, error);
  if (status != HONE_OK) return status;
  return hone_dataset_truth(e->set) == HONE_TRUTH_BOXES ? hn_eval_boxes(e, rows, error)
                                                        : hn_eval_classes(e, rows, error);
}

/* One sample into its row; *good false: it cannot be read, which has been told. */
static hone_status load_row(hn_evaluation *e, uint64_t rank, int64_t row, bool *good, hone_error *error) {
  hone_data data = {0};
  hone_error why = {0};
  hone_sample sample;
  const hone_status status =
      hone_dataset_load(e->set, rank, &e->one, e->o->preprocess, &data, &e->map[row], &why);
  *good = status == HONE_OK;
  if (status == HONE_OK) {
    const size_t bytes = (size_t)hone_desc_bytes(&e->one);
    memcpy((char *)e->batch.data + (size_t)row * bytes, data.tensor.data, bytes);
    e->rank[row] = rank;
    hone_data_free(&data);
    return HONE_OK;
  }
  if (status != HONE_ERROR_INPUT && status != HONE_ERROR_UNSUPPORTED && status != HONE_ERROR_IO) {
    if (error) *error = why;
    return status;
  }
  e->left_out++;
  if (e->o->left_out && hone_dataset_sample(e->set, rank, &sample))
    e->o->left_out(e->o->arg, sample.name, &why);
  return HONE_OK;
}

static bool goes_on(hn_evaluation *e, uint64_t done) {
  const double spent = (double)(hn_now_ns() - e->begun) * 1e-9;
  if (e->o->progress && !e->o->progress(e->o->arg, done, e->wanted)) e->stopped = true;
  if (e->o->max_seconds > 0 && spent > e->o->max_seconds && e->scorer) e->stopped = true;
  return !e->stopped;
}

static hone_status run_all(hn_evaluation *e, hone_error *error) {
  const uint64_t whole = hone_dataset_samples(e->set), first = e->o->first,
                 every = e->o->every ? e->o->every : 1,
                 all = whole > first ? (whole - first + every - 1) / every : 0;
  hone_status status = HONE_OK;
  int64_t rows = 0;
  e->wanted = e->o->max_samples && e->o->max_samples < all ? e->o->max_samples : all;
  for (uint64_t i = 0; status == HONE_OK && i < e->wanted; i++) {
    bool good;
    status = load_row(e, first + i * all / e->wanted * every, rows, &good, error);
    if (status == HONE_OK && good) rows++;
    if (status != HONE_OK || (rows < e->rows && i + 1 < e->wanted) || !rows) continue;
    if (!goes_on(e, i)) break;
    status = run_rows(e, rows, error);
    rows = 0;
  }
  if (status == HONE_ERROR_CANCELLED) e->stopped = true;
  return e->stopped && e->scorer ? HONE_OK : status;
}

static hone_status answer(hn_evaluation *e, hone_eval_result *out, hone_error *error) {
  if (!e->scorer && e->stopped)
    return hn_fail(error, HONE_ERROR_CANCELLED, "stopped before any sample was measured");
  if (!e->scorer) {
    hn_fail(error, HONE_ERROR_INPUT, "none of %llu samples can be read", (unsigned long long)e->wanted);
    return HONE_ERROR_INPUT;
  }
  const hone_status status = hone_scorer_finish(e->scorer, out, error);
  if (status != HONE_OK) return status;
  out->wanted = e->wanted;
  out->left_out = e->left_out;
  out->stopped = e->stopped;
  out->seconds = (double)(hn_now_ns() - e->begun) * 1e-9;
  for (uint32_t i = 0; i < out->n_classes; i++) {
    const char *name = hone_dataset_class(e->set, i);
    if (name) out->classes[i].name = name;
  }
  return HONE_OK;
}

hone_status hone_eval_run(hone_context *context, const hone_dataset *set, const hone_eval_options *o,
                          hone_eval_result *out, hone_error *error) {
  static const hone_eval_options usual = {0};
  if (!context || !set || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_eval_run: context, set and out may not be NULL");
  *out = (hone_eval_result){0};
  if (hone_dataset_truth(set) == HONE_TRUTH_NONE)
    return hn_fail(error, HONE_ERROR_INPUT, "the data has no labels to hold the answers against");
  if (!hone_dataset_classes(set))
    return hn_fail(error, HONE_ERROR_INPUT, "the data has no boxes to be found");
  const uint64_t lost = hn_mem_lost();
  hn_evaluation e = {.context = context,
                     .plan = hone_context_plan(context),
                     .set = set,
                     .o = o ? o : &usual,
                     .begun = hn_now_ns()};
  hone_status status = prepare_input(&e, error);
  if (status == HONE_OK) status = run_all(&e, error);
  if (status == HONE_OK) status = answer(&e, out, error);
  status = hn_settle(status, lost, error);
  if (status != HONE_OK) hone_eval_free(out);
  hone_scorer_close(e.scorer);
  hn_free(e.scores);
  hn_free(e.rank);
  hn_free(e.map);
  hn_free(e.out);
  hn_free(e.names);
  hn_free(e.truth);
  hn_vec_free(&e.found);
  hn_free(e.in);
  hn_free(e.batch.data);
  return status;
}
