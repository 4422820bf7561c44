/* What a run says of classes: a row of scores a sample, or a whole number. */
#include "api/eval.h"

#include "base/error.h"
#include "model/ops/common/op.h"
#include "runtime/post/post.h"

#include <math.h>

static bool is_choice(const hone_tensor_desc *d, int64_t rows) {
  return (hone_dtype_is_signed_int(d->dtype) || hone_dtype_is_unsigned_int(d->dtype)) &&
         hone_desc_count(d) == rows;
}

static hone_status no_output(const hn_evaluation *e, hone_error *error) {
  char text[128] = "no outputs";
  const hone_tensor *t = hone_context_output(e->context, 0);
  hn_fail(error, HONE_ERROR_INPUT, "no output holds scores of classes");
  hn_error_expected(error, "one with a row of scores a sample, or a whole number a sample");
  hn_error_got(error, "%s", t ? hone_desc_format(&t->desc, text, sizeof text) : text);
  return HONE_ERROR_INPUT;
}

/* After the first run, when all shapes are known. */
static hone_status find_output(hn_evaluation *e, hone_error *error) {
  const uint32_t n = hone_plan_outputs(e->plan), known = hone_dataset_classes(e->set);
  const hone_tensor *t = NULL;
  int64_t classes = 0;
  for (uint32_t i = 0; i < n && !classes; i++) {
    t = hone_context_output(e->context, e->output = i);
    classes = t ? hn_post_classes(&t->desc, e->rows) : 0;
  }
  for (uint32_t i = 0; i < n && !classes; i++) {
    t = hone_context_output(e->context, e->output = i);
    if (t && is_choice(&t->desc, e->rows)) classes = known;
  }
  if (!classes || classes > 1 << 24) return no_output(e, error);
  if (classes < known) {
    hn_fail(error, HONE_ERROR_INPUT, "the data has more classes than output '%s'",
            hone_plan_output_name(e->plan, e->output));
    hn_error_expected(error, "at most %lld", (long long)classes);
    hn_error_got(error, "%u, of which '%.60s' is the last", known, hone_dataset_class(e->set, known - 1));
    return HONE_ERROR_INPUT;
  }
  e->classes = (uint32_t)classes;
  e->scores = hn_malloc((size_t)classes * sizeof *e->scores);
  if (!e->scores) return hn_fail_memory(error, (uint64_t)classes * 4, "scores");
  return hone_scorer_open(HONE_TRUTH_CLASS, e->classes, hone_dataset_samples(e->set), &e->scorer, error);
}

static hone_status score_row(hn_evaluation *e, const hone_tensor *t, int64_t row, hone_error *error) {
  hone_sample sample;
  const uint64_t rank = e->rank[row];
  if (!hone_dataset_sample(e->set, rank, &sample))
    return hn_fail(error, HONE_ERROR_INTERNAL, "a sample is gone");
  if (!hone_dtype_is_float(t->desc.dtype)) {
    const int64_t chosen = hn_get_i64(t, row);
    return hone_scorer_add_choice(e->scorer, rank, sample.cls,
                                  chosen < 0 || chosen >= e->classes ? e->classes : (uint32_t)chosen, error);
  }
  for (int64_t k = 0; k < e->classes; k++) e->scores[k] = (float)hn_get_f64(t, row * e->classes + k);
  return hone_scorer_add_class(e->scorer, rank, sample.cls, e->scores, e->classes, error);
}

hone_status hn_eval_classes(hn_evaluation *e, int64_t rows, hone_error *error) {
  hone_status status = e->scorer ? HONE_OK : find_output(e, error);
  const hone_tensor *t = status == HONE_OK ? hone_context_output(e->context, e->output) : NULL;
  if (t && hone_dtype_is_float(t->desc.dtype) && hn_post_classes(&t->desc, e->rows) != e->classes)
    status = no_output(e, error);
  for (int64_t i = 0; status == HONE_OK && i < rows; i++) status = score_row(e, t, i, error);
  return status;
}
