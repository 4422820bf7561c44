/* How well the samples stand for others: whether ranges still grow with each of them, how bright and how
 * different pictures are, what is repeated, and which classes are there. */
#include "improve/quantize/quantize.h"

#include "base/checksum.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>

enum { FEW_SAMPLES = 32, ALIKE_FROM = 8 /* samples */, UNEQUAL = 10 /* times as many of a class */ };
#define GROWTH 0.05        /* of a range, in the last quarter of the samples: it is counted */
#define GROWTH_OF_ALL 0.02 /* the same of all ranges in the mean: too much */
#define GROWTH_OF_ONE 0.25 /* or of one */
#define DARK 0.15          /* the brightest picture's mean; for white 1 less this */
#define ALIKE 0.015        /* deviation of the means, and of the contrasts */
#define FLAT (1.0 / 255)   /* contrast of a picture of one colour */

/* ---- while samples are read */

hone_status hn_quantize_cover_begin(hn_quantizing *q, const hn_quantize_samples *samples, hone_error *error) {
  const hone_dataset *set = hn_quantize_samples_classes(samples);
  hone_quantize_coverage *told = &q->cover.told;
  const uint32_t n = set ? hone_dataset_classes(set) : 0;
  if (n < 2) return HONE_OK;
  told->classes = n;
  told->boxes = hone_dataset_truth(set) == HONE_TRUTH_BOXES;
  q->cover.of_class = HN_NEW_ARRAY(&q->arena, uint32_t, n);
  q->cover.last = HN_NEW_ARRAY(&q->arena, uint32_t, n);
  return q->cover.of_class && q->cover.last ? HONE_OK : hn_fail_memory(error, n, "classes");
}

static void count_class(hn_quantize_cover *c, uint32_t cls, uint32_t i) {
  if (cls >= c->told.classes || c->last[cls] == i + 1) return;
  c->last[cls] = i + 1;
  c->of_class[cls]++;
}

static void look_at_picture(hn_quantize_cover *c, double light, double contrast) {
  hone_quantize_coverage *told = &c->told;
  told->darkest = told->pictures ? fmin(told->darkest, light) : light;
  told->brightest = told->pictures ? fmax(told->brightest, light) : light;
  told->pictures++;
  told->one_colour += contrast < FLAT;
  c->light += light, c->light_squares += light * light;
  c->contrast += contrast, c->contrast_squares += contrast * contrast;
}

hone_status hn_quantize_cover_add(hn_quantizing *q, const hn_quantize_samples *samples, uint32_t i,
                                  const hn_feed *feeds, uint32_t n_feeds, hone_error *error) {
  hn_quantize_cover *c = &q->cover;
  double light, contrast;
  uint64_t sum = 0;
  hone_sample sample;
  for (uint32_t k = 0; k < n_feeds; k++) {
    const hone_tensor *t = &feeds[k].data.tensor;
    const uint64_t of =
        hn_dtype_points(t->desc.dtype) ? 0 : hn_checksum(t->data, (size_t)hone_desc_bytes(&t->desc));
    sum = hn_hash(&of, sizeof of, sum);
  }
  if (!hn_vec_push(&c->sums, sum)) return hn_fail_memory(error, sizeof sum, "a sample");
  if (hn_quantize_samples_light(samples, &light, &contrast)) look_at_picture(c, light, contrast);
  if (!c->of_class || !hn_quantize_samples_labelled(samples, i, &sample)) return HONE_OK;
  if (!c->told.boxes) count_class(c, sample.cls, i);
  for (uint32_t k = 0; k < sample.n_boxes; k++) count_class(c, sample.boxes[k].cls, i);
  return HONE_OK;
}

static int by_size(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static double deviation(double sum, double squares, double n) {
  return sqrt(fmax(squares / n - sum / n * (sum / n), 0));
}

static hone_status count_classes(hn_quantizing *q, const hone_dataset *set, hone_error *error) {
  hn_quantize_cover *c = &q->cover;
  hone_quantize_coverage *told = &c->told;
  uint32_t rare = 0, common = 0, absent = 0;
  for (uint32_t i = 0; i < told->classes; i++) {
    const uint32_t n = c->of_class[i];
    if (!n && !told->missing++) absent = i;
    if (n && (!told->fewest || n < told->fewest)) told->fewest = n, rare = i;
    if (n > told->most) told->most = n, common = i;
  }
  told->rarest = hn_arena_strdup(&q->arena, told->fewest ? hone_dataset_class(set, rare) : "");
  told->commonest = hn_arena_strdup(&q->arena, told->most ? hone_dataset_class(set, common) : "");
  told->absent = hn_arena_strdup(&q->arena, told->missing ? hone_dataset_class(set, absent) : "");
  return told->rarest && told->commonest && told->absent ? HONE_OK : hn_fail_memory(error, 0, "classes");
}

hone_status hn_quantize_cover_end(hn_quantizing *q, const hn_quantize_samples *samples, hone_error *error) {
  hn_quantize_cover *c = &q->cover;
  hone_quantize_coverage *told = &c->told;
  const double n = told->pictures;
  if (c->sums.len) qsort(c->sums.ptr, c->sums.len, sizeof *c->sums.ptr, by_size);
  for (size_t i = 1; i < c->sums.len; i++) told->repeated += c->sums.ptr[i] == c->sums.ptr[i - 1];
  if (told->pictures) {
    told->brightness = c->light / n;
    told->spread = deviation(c->light, c->light_squares, n);
    told->contrast = c->contrast / n;
    told->contrast_spread = deviation(c->contrast, c->contrast_squares, n);
  }
  told->rarest = told->commonest = told->absent = "";
  told->known = true;
  return told->classes ? count_classes(q, hn_quantize_samples_classes(samples), error) : HONE_OK;
}

/* ---- what it means */

static hone_status judge_values(hn_quantizing *q, hone_error *error) {
  hone_status status = HONE_OK;
  for (size_t i = 0; i < q->ranges.len && status == HONE_OK; i++) {
    const hn_quantize_range *r = q->ranges.ptr[i];
    const hn_quantize_histogram *h = r->seen;
    if (r->value && r->value->is_input && h->count && h->least == h->most)
      status = hn_quantize_warn(q, error, "input '%s' is %g in all samples: give samples in which it changes",
                                r->name, h->least);
    if (h->odd && status == HONE_OK)
      status = hn_quantize_warn(q, error,
                                "'%s' holds %llu values that are infinite or no number: they were left out",
                                r->name, (unsigned long long)h->odd);
  }
  return status;
}

/* The samples before the last quarter. */
static uint32_t early_of(const hn_quantizing *q) { return q->samples_wanted - q->samples_wanted / 4; }

static void find_growth(hn_quantizing *q) {
  hone_quantize_coverage *told = &q->cover.told;
  const uint32_t early = early_of(q);
  double sum = 0;
  told->ranges = (uint32_t)q->ranges.len;
  told->most_grown = "";
  for (size_t i = 0; i < q->ranges.len; i++) {
    const hn_quantize_histogram *h = q->ranges.ptr[i]->seen;
    const double before = fmax(h->early_most, 0) - fmin(h->early_least, 0),
                 after = fmax(h->most, 0) - fmin(h->least, 0);
    const double growth = before > 0 ? after / before - 1 : after > 0 ? INFINITY : 0;
    told->grown += growth > GROWTH;
    sum += fmin(growth, 1);
    if (growth > told->most_growth) told->most_growth = growth, told->most_grown = q->ranges.ptr[i]->name;
  }
  told->growth = q->samples > early && told->ranges ? sum / told->ranges / (q->samples - early) : (double)NAN;
}

static hone_status judge_growth(hn_quantizing *q, hone_error *error) {
  const hone_quantize_coverage *told = &q->cover.told;
  const double all = told->growth * (q->samples - early_of(q));
  if (isnan(told->growth) || (all < GROWTH_OF_ALL && told->most_growth < GROWTH_OF_ONE)) return HONE_OK;
  return hn_quantize_warn(
      q, error,
      "ranges grew by %.2g %% in the mean in the last quarter of the samples, '%.80s' by %.0f %%: "
      "give more samples, of all kinds",
      100 * all, told->most_grown, fmin(told->most_growth * 100, 1e6));
}

static hone_status judge_number(hn_quantizing *q, hone_error *error) {
  const hone_quantize_coverage *told = &q->cover.told;
  hone_status status = HONE_OK;
  if (strcmp(q->calib, "random") == 0)
    status = hn_quantize_warn(q, error,
                              "ranges are those of random inputs, not of real data: give --calib real ones");
  else if (q->samples < FEW_SAMPLES)
    status = hn_quantize_warn(
        q, error, "%u sample%s are few: real data may lie outside of their ranges; give some hundred",
        q->samples, q->samples == 1 ? "" : "s");
  if (status == HONE_OK && q->stopped && q->samples < q->samples_wanted)
    status = hn_quantize_warn(q, error, "stopped after %u of %u samples: ranges are those of what was seen",
                              q->samples, q->samples_wanted);
  if (status == HONE_OK && told->repeated && told->repeated * 10 >= q->samples)
    status = hn_quantize_warn(
        q, error, "%u of %u samples are the same as another one: give different ones in their place",
        told->repeated, q->samples);
  return status;
}

static hone_status judge_pictures(hn_quantizing *q, hone_error *error) {
  const hone_quantize_coverage *told = &q->cover.told;
  hone_status status = HONE_OK;
  const bool dark = told->brightest<DARK, bright = told->darkest> 1 - DARK;
  if (!told->pictures) return HONE_OK;
  if (dark || bright)
    status = hn_quantize_warn(
        q, error,
        "all pictures are %s (%.0f to %.0f %% of white): give %s ones, too, if the model will see some",
        dark ? "dark" : "bright", 100 * told->darkest, 100 * told->brightest, dark ? "brighter" : "darker");
  if (status == HONE_OK && told->one_colour)
    status = hn_quantize_warn(
        q, error, "%u of %u pictures %s of one colour: leave them out, or look whether they are damaged",
        told->one_colour, told->pictures, told->one_colour == 1 ? "is" : "are");
  if (status == HONE_OK && told->pictures >= ALIKE_FROM && told->spread < ALIKE &&
      told->contrast_spread < ALIKE)
    status = hn_quantize_warn(
        q, error,
        "all pictures are alike (%.0f to %.0f %% of white, as much contrast): give ones of other scenes",
        100 * told->darkest, 100 * told->brightest);
  return status;
}

/* As many samples as classes can have one of each; so few that chance decides say nothing of how equal they
 * are. */
static hone_status judge_classes(hn_quantizing *q, hone_error *error) {
  const hone_quantize_coverage *told = &q->cover.told;
  if (!told->classes) return HONE_OK;
  if (told->missing && q->samples >= told->classes)
    return hn_quantize_warn(q, error, "%u of %u classes %s no sample ('%.60s'%s): add some of each",
                            told->missing, told->classes, told->missing == 1 ? "has" : "have", told->absent,
                            told->missing > 1 ? ", ..." : "");
  if (!told->boxes && q->samples / 4 >= told->classes && told->most / UNEQUAL >= told->fewest)
    return hn_quantize_warn(
        q, error, "classes are very unequal ('%.60s' has %u samples, '%.60s' %u): give about as many of each",
        told->commonest, told->most, told->rarest, told->fewest);
  return HONE_OK;
}

hone_status hn_quantize_cover_judge(hn_quantizing *q, hone_error *error) {
  const size_t before = q->warnings.len;
  hone_quantize_coverage *told = &q->cover.told;
  if (!told->known) told->rarest = told->commonest = told->absent = "";
  find_growth(q);
  hone_status status = judge_values(q, error);
  if (status == HONE_OK) status = judge_number(q, error);
  if (status == HONE_OK) status = judge_growth(q, error);
  if (status == HONE_OK) status = judge_pictures(q, error);
  if (status == HONE_OK) status = judge_classes(q, error);
  told->problems = (uint32_t)(q->warnings.len - before);
  return status;
}
