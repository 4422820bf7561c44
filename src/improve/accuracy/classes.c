/* One class a sample: Top-1, Top-5, what was taken for what. */
#include "improve/accuracy/scorer.h"

#include <math.h>
#include <stdlib.h>

static hone_status check(const hone_scorer *s, uint64_t sample, uint32_t truth, hone_error *error) {
  if (!s || s->truth != HONE_TRUTH_CLASS)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_scorer_add: this scorer takes no classes");
  if (sample >= s->n_samples || truth >= s->n_classes)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_scorer_add: no such sample or class");
  return HONE_OK;
}

static hone_status add(hone_scorer *s, uint64_t sample, uint32_t truth, uint32_t chosen, bool within5,
                       hone_error *error) {
  if (!hn_vec_push(&s->decisions, (hn_decision){truth, chosen}))
    return hn_fail_memory(error, sizeof *s->decisions.ptr, "a decision");
  s->right += chosen == truth;
  s->right5 += within5;
  s->outcomes[sample] = chosen == truth ? HONE_OUTCOME_RIGHT : HONE_OUTCOME_WRONG;
  return HONE_OK;
}

hone_status hone_scorer_add_class(hone_scorer *s, uint64_t sample, uint32_t truth, const float *scores,
                                  uint32_t n, hone_error *error) {
  hone_status status = check(s, sample, truth, error);
  if (status == HONE_OK && (!scores || n != s->n_classes))
    status = hn_fail(error, HONE_ERROR_USAGE, "hone_scorer_add_class wants %u scores", s->n_classes);
  if (status != HONE_OK) return status;
  uint32_t best = 0, before = 0;
  const float own = scores[truth];
  for (uint32_t k = 0; k < n; k++) {
    if (isnan(scores[best]) ? !isnan(scores[k]) : scores[k] > scores[best]) best = k;
    before += isnan(own) ? k != truth : scores[k] > own || (scores[k] == own && k < truth);
  }
  if (isnan(scores[best])) best = n; /* nothing was chosen */
  return add(s, sample, truth, best, !isnan(own) && before < 5, error);
}

hone_status hone_scorer_add_choice(hone_scorer *s, uint64_t sample, uint32_t truth, uint32_t chosen,
                                   hone_error *error) {
  const hone_status status = check(s, sample, truth, error);
  if (status != HONE_OK) return status;
  s->choices = true;
  return add(s, sample, truth, chosen, false, error);
}

void hone_interval(uint64_t right, uint64_t n, double *low, double *high) {
  const double z = 1.959963984540054, p = n ? (double)right / (double)n : 0, count = n ? (double)n : 1;
  const double middle = p + z * z / (2 * count), below = 1 + z * z / count;
  const double reach = z * sqrt(p * (1 - p) / count + z * z / (4 * count * count));
  if (low) *low = n && right ? (middle - reach) / below : 0;
  if (high) *high = n && right < n ? (middle + reach) / below : 1;
}

static int by_pair(const void *a, const void *b) {
  const hn_decision *x = a, *y = b;
  if (x->truth != y->truth) return x->truth < y->truth ? -1 : 1;
  return x->chosen < y->chosen ? -1 : x->chosen > y->chosen;
}

/* Runs of equal pairs: what each class was most often mistaken for. */
static hone_status mistakes(const hone_scorer *s, hone_eval_result *out, hone_error *error) {
  const size_t n = s->decisions.len;
  hn_decision *sorted = hn_malloc((n ? n : 1) * sizeof *sorted);
  if (!sorted) return hn_fail_memory(error, n * sizeof *sorted, "a result");
  for (size_t i = 0; i < n; i++) sorted[i] = s->decisions.ptr[i];
  if (n) qsort(sorted, n, sizeof *sorted, by_pair);
  for (size_t i = 0, next; i < n; i = next) {
    for (next = i; next < n && by_pair(&sorted[i], &sorted[next]) == 0;) next++;
    hone_eval_class *c = &out->classes[sorted[i].truth];
    if (sorted[i].chosen == sorted[i].truth || next - i <= c->mistakes) continue;
    c->mistakes = next - i;
    c->taken_for = sorted[i].chosen;
  }
  hn_free(sorted);
  return HONE_OK;
}

hone_status hn_scorer_finish_classes(const hone_scorer *s, hone_eval_result *out, hone_error *error) {
  const double n = (double)s->decisions.len;
  out->samples = s->decisions.len;
  out->right = s->right;
  out->right5 = s->right5;
  for (size_t i = 0; i < s->decisions.len; i++) {
    const hn_decision *d = &s->decisions.ptr[i];
    out->classes[d->truth].samples++;
    out->classes[d->truth].right += d->chosen == d->truth;
    if (d->chosen < s->n_classes) out->classes[d->chosen].predicted++;
  }
  hn_scorer_shares(out);
  out->top1 = n > 0 ? (double)s->right / n : (double)NAN;
  out->top5 = n > 0 && s->n_classes > 5 && !s->choices ? (double)s->right5 / n : (double)NAN;
  out->f1_micro = out->top1; /* a sample in which nothing was chosen is a miss, too */
  hone_interval(s->right, s->decisions.len, &out->top1_low, &out->top1_high);
  return mistakes(s, out, error);
}
