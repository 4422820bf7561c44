/* Scorers: opened, closed, finished; shares and F1, which all kinds have. */
#include "improve/accuracy/scorer.h"

#include <math.h>
#include <string.h>

hone_status hone_scorer_open(hone_truth truth, uint32_t classes, uint64_t samples, hone_scorer **out,
                             hone_error *error) {
  if (!out) return hn_fail(error, HONE_ERROR_USAGE, "hone_scorer_open: out may not be NULL");
  *out = NULL;
  if (truth == HONE_TRUTH_NONE || !classes)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_scorer_open: nothing to be scored");
  hone_scorer *s = hn_calloc(1, sizeof *s);
  if (s) s->outcomes = hn_calloc(samples ? samples : 1, 1);
  if (s) s->truths = hn_calloc(classes, sizeof *s->truths);
  if (!s || !s->outcomes || !s->truths) {
    hone_scorer_close(s);
    return hn_fail_memory(error, samples, "outcomes");
  }
  s->truth = truth;
  s->n_classes = classes;
  s->n_samples = samples;
  *out = s;
  return HONE_OK;
}

void hone_scorer_close(hone_scorer *s) {
  if (!s) return;
  hn_vec_free(&s->decisions);
  hn_vec_free(&s->found);
  hn_free(s->outcomes);
  hn_free(s->truths);
  hn_free(s);
}

void hone_eval_free(hone_eval_result *r) {
  if (!r) return;
  hn_free(r->classes);
  hn_free(r->outcomes);
  *r = (hone_eval_result){0};
}

static double share(uint64_t part, uint64_t of) { return of ? (double)part / (double)of : (double)NAN; }

void hn_scorer_shares(hone_eval_result *out) {
  uint64_t right = 0, predicted = 0, samples = 0, present = 0;
  double sum = 0;
  for (uint32_t i = 0; i < out->n_classes; i++) {
    hone_eval_class *c = &out->classes[i];
    c->precision = share(c->right, c->predicted);
    c->recall = share(c->right, c->samples);
    c->f1 = share(2 * c->right, c->samples + c->predicted);
    right += c->right, predicted += c->predicted, samples += c->samples;
    if (c->samples) present++, sum += c->f1;
  }
  out->f1_macro = present ? sum / (double)present : (double)NAN;
  out->f1_micro = share(2 * right, samples + predicted);
}

hone_status hone_scorer_finish(const hone_scorer *s, hone_eval_result *out, hone_error *error) {
  if (!s || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_scorer_finish: scorer and out may not be NULL");
  *out = (hone_eval_result){.truth = s->truth, .n_classes = s->n_classes, .n_outcomes = s->n_samples};
  out->classes = hn_calloc(s->n_classes, sizeof *out->classes);
  out->outcomes = hn_calloc(s->n_samples ? s->n_samples : 1, 1);
  hone_status status =
      out->classes && out->outcomes ? HONE_OK : hn_fail_memory(error, s->n_samples, "a result");
  if (status == HONE_OK) {
    if (s->n_samples) memcpy(out->outcomes, s->outcomes, s->n_samples);
    for (uint32_t i = 0; i < s->n_classes; i++) out->classes[i].name = "";
    status = s->truth == HONE_TRUTH_BOXES ? hn_scorer_finish_boxes(s, out, error)
                                          : hn_scorer_finish_classes(s, out, error);
  }
  if (status != HONE_OK) hone_eval_free(out);
  return status;
}
