/* Boxes: which of those found are right at each IoU, and the precision that this is on average. */
#include "improve/accuracy/scorer.h"

#include <math.h>
#include <stdlib.h>

enum { IOUS = HN_SCORER_IOUS, MOST = 100 /* of a class and a picture, as COCO counts */ };

static double iou_at(int k) { return 0.5 + 0.05 * k; }

static double overlap(const hone_detection *d, const hone_box *t) {
  const double w = fmin(d->x1, t->x1) - fmax(d->x0, t->x0), h = fmin(d->y1, t->y1) - fmax(d->y0, t->y0);
  const double own = (d->x1 - d->x0) * (d->y1 - d->y0), theirs = (t->x1 - t->x0) * (t->y1 - t->y0);
  if (!(w > 0) || !(h > 0)) return 0;
  return w * h / (t->crowd ? own : own + theirs - w * h);
}

/* The box of the truth that a found one is, at this IoU; -1: none. One that counts goes before a crowd, and
 * only a crowd is taken twice. */
static int64_t claim(const hone_box *truth, uint32_t n, const hone_detection *d, double iou,
                     const bool *taken) {
  for (int crowd = 0; crowd < 2; crowd++) {
    double best = fmin(iou, 1 - 1e-10);
    int64_t found = -1;
    for (uint32_t i = 0; i < n; i++) {
      if (truth[i].cls != d->cls || truth[i].crowd != (crowd == 1) || (taken[i] && !truth[i].crowd)) continue;
      const double by = overlap(d, &truth[i]);
      if (by < best) continue;
      best = by;
      found = i;
    }
    if (found >= 0) return found;
  }
  return -1;
}

static int by_class_and_score(const void *a, const void *b) {
  const hn_found *x = a, *y = b;
  if (x->cls != y->cls) return x->cls < y->cls ? -1 : 1;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

/* Those of the scorer's classes, by class and falling score. */
static hone_status sorted(const hone_scorer *s, const hone_detection *found, uint32_t n, hn_found **out,
                          uint32_t *kept, hone_error *error) {
  *kept = 0;
  *out = hn_malloc((n ? n : 1) * sizeof **out);
  if (!*out) return hn_fail_memory(error, n * sizeof **out, "boxes");
  for (uint32_t i = 0; i < n; i++)
    if (found[i].cls < s->n_classes && !isnan(found[i].score))
      (*out)[(*kept)++] = (hn_found){.score = found[i].score, .cls = found[i].cls, .order = i};
  if (*kept) qsort(*out, *kept, sizeof **out, by_class_and_score);
  return HONE_OK;
}

static hone_status match(hone_scorer *s, const hone_box *truth, uint32_t n, const hone_detection *found,
                         hn_found *list, uint32_t kept, bool *taken, hone_error *error) {
  for (int k = 0; k < IOUS; k++) {
    for (uint32_t i = 0; i < n; i++) taken[i] = false;
    for (uint32_t i = 0; i < kept; i++) {
      const int64_t is = claim(truth, n, &found[list[i].order], iou_at(k), taken);
      if (is < 0) continue;
      taken[is] = true;
      if (truth[is].crowd)
        list[i].ignored |= (uint16_t)(1 << k);
      else
        list[i].right |= (uint16_t)(1 << k);
    }
  }
  for (uint32_t i = 0, rank = 0; i < kept; i++) {
    rank = i && list[i].cls == list[i - 1].cls ? rank + 1 : 0;
    if (rank >= MOST) continue;
    list[i].order = s->found.len;
    if (!hn_vec_push(&s->found, list[i])) return hn_fail_memory(error, sizeof *list, "boxes");
  }
  return HONE_OK;
}

hone_status hone_scorer_add_boxes(hone_scorer *s, uint64_t sample, const hone_box *truth, uint32_t n_truth,
                                  const hone_detection *found, uint32_t n_found, hone_error *error) {
  if (!s || s->truth != HONE_TRUTH_BOXES)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_scorer_add_boxes: this scorer takes no boxes");
  if (sample >= s->n_samples || (n_truth && !truth) || (n_found && !found))
    return hn_fail(error, HONE_ERROR_USAGE, "hone_scorer_add_boxes: no such sample, or no boxes");
  for (uint32_t i = 0; i < n_truth; i++)
    if (truth[i].cls >= s->n_classes)
      return hn_fail(error, HONE_ERROR_USAGE, "hone_scorer_add_boxes: no class %u", truth[i].cls);
  hn_found *list = NULL;
  uint32_t kept = 0;
  bool *taken = hn_calloc(n_truth ? n_truth : 1, sizeof *taken);
  hone_status status =
      taken ? sorted(s, found, n_found, &list, &kept, error) : hn_fail_memory(error, n_truth, "boxes");
  if (status == HONE_OK) status = match(s, truth, n_truth, found, list, kept, taken, error);
  for (uint32_t i = 0; status == HONE_OK && i < n_truth; i++) s->truths[truth[i].cls] += !truth[i].crowd;
  s->boxed += status == HONE_OK;
  hn_free(list);
  hn_free(taken);
  return status;
}

/* Precision and recall after each of a class's boxes, the former never rising again. Returns their number. */
static size_t curve(const hn_found *f, size_t n, int k, uint64_t truths, double *precision, double *recall) {
  size_t m = 0;
  uint64_t right = 0;
  for (size_t i = 0; i < n; i++) {
    if (f[i].ignored >> k & 1) continue;
    right += f[i].right >> k & 1;
    m++;
    precision[m - 1] = (double)right / (double)m;
    recall[m - 1] = (double)right / (double)truths;
  }
  for (size_t i = m; i-- > 1;) precision[i - 1] = fmax(precision[i - 1], precision[i]);
  return m;
}

static double points101(const double *precision, const double *recall, size_t n) {
  double sum = 0;
  size_t i = 0;
  for (int k = 0; k <= 100; k++) {
    while (i < n && recall[i] < k * 0.01) i++;
    if (i < n) sum += precision[i];
  }
  return sum / 101;
}

static double area(const double *precision, const double *recall, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += (recall[i] - (i ? recall[i - 1] : 0)) * precision[i];
  return sum;
}

/* The score from which on F1 of all classes is largest, and what each class has from there. */
static int by_score(const void *a, const void *b) {
  const hn_found *x = a, *y = b;
  return x->score > y->score ? -1 : x->score < y->score;
}

static void best_f1(hn_found *f, size_t n, hone_eval_result *out) {
  uint64_t right = 0, counted = 0;
  double best = -1;
  if (n) qsort(f, n, sizeof *f, by_score);
  for (size_t i = 0; i < n; i++) {
    right += f[i].right & 1;
    counted += !(f[i].ignored & 1);
    const double f1 = 2 * (double)right / (double)(out->truths + counted ? out->truths + counted : 1);
    if ((i + 1 < n && f[i + 1].score == f[i].score) || f1 <= best) continue;
    best = f1;
    out->confidence = f[i].score;
  }
  for (size_t i = 0; i < n && f[i].score >= out->confidence; i++) {
    hone_eval_class *c = &out->classes[f[i].cls];
    c->predicted += !(f[i].ignored & 1);
    c->right += f[i].right & 1;
  }
  hn_scorer_shares(out);
}

/* One class: its boxes, sorted. */
static void average(const hn_found *f, size_t n, hone_eval_class *c, double *scratch, double *at75) {
  double *precision = scratch, *recall = scratch + n;
  double sum = 0;
  for (int k = 0; k < IOUS; k++) {
    const size_t m = curve(f, n, k, c->samples, precision, recall);
    const double ap = points101(precision, recall, m);
    sum += ap;
    if (k == 0) c->ap50 = ap, c->ap50_voc = area(precision, recall, m);
    if (k == 5) *at75 = ap;
  }
  c->ap = sum / IOUS;
}

static void means(const hn_found *f, size_t n, hone_eval_result *out, double *scratch) {
  double ap = 0, ap50 = 0, ap75 = 0, voc = 0, at75 = 0;
  uint32_t present = 0;
  size_t begin = 0;
  for (uint32_t i = 0; i < out->n_classes; i++) {
    hone_eval_class *c = &out->classes[i];
    size_t end = begin;
    while (end < n && f[end].cls == i) end++;
    c->ap = c->ap50 = c->ap50_voc = (double)NAN;
    if (c->samples) {
      average(f + begin, end - begin, c, scratch, &at75);
      ap += c->ap, ap50 += c->ap50, ap75 += at75, voc += c->ap50_voc;
      present++;
    }
    begin = end;
  }
  const double of = present ? present : (double)NAN;
  out->map = ap / of, out->map50 = ap50 / of, out->map75 = ap75 / of, out->map50_voc = voc / of;
}

hone_status hn_scorer_finish_boxes(const hone_scorer *s, hone_eval_result *out, hone_error *error) {
  const size_t n = s->found.len;
  hn_found *f = hn_malloc((n ? n : 1) * sizeof *f);
  double *scratch = hn_malloc((n ? n : 1) * 2 * sizeof *scratch);
  const hone_status status = f && scratch ? HONE_OK : hn_fail_memory(error, n * sizeof *f, "a result");
  if (status == HONE_OK) {
    for (size_t i = 0; i < n; i++) f[i] = s->found.ptr[i];
    if (n) qsort(f, n, sizeof *f, by_class_and_score);
    for (uint32_t i = 0; i < s->n_classes; i++) {
      out->classes[i].samples = s->truths[i];
      out->truths += s->truths[i];
    }
    out->samples = s->boxed;
    out->detections = n;
    out->top1 = out->top5 = out->top1_low = out->top1_high = (double)NAN;
    means(f, n, out, scratch);
    best_f1(f, n, out);
  }
  hn_free(f);
  hn_free(scratch);
  return status;
}
