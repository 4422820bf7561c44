/* Greedy decoding of a recogniser's output. */
#include "runtime/post/post.h"

#include "base/vec.h"
#include "model/ops/common/op.h"

#include <math.h>
#include <string.h>

/* A sample's times: value c of time t lies at first + t * step + c. */
typedef struct series {
  const hone_tensor *in;
  int64_t times, classes, first, step;
} series;

static hone_status find(const hone_tensor *in, int64_t row, const hone_ctc_options *o, series *s,
                        hone_error *error) {
  hone_status status = hn_post_check("hone_post_ctc", in, error);
  if (status != HONE_OK) return status;
  const hone_tensor_desc *d = &in->desc;
  char text[128];
  if (d->rank != 2 && d->rank != 3) {
    hn_fail(error, HONE_ERROR_INPUT, "this output is no text");
    hn_error_expected(error, "samples x times x classes");
    hn_error_got(error, "%s", hone_desc_format(d, text, sizeof text));
    return HONE_ERROR_INPUT;
  }
  const bool many = d->rank == 3, by_time = many && o->time_major;
  const int64_t rows = many ? d->dim[by_time] : 1;
  *s = (series){.in = in, .times = d->dim[many && !by_time], .classes = d->dim[d->rank - 1]};
  s->first = row * s->classes * (by_time ? 1 : s->times);
  s->step = s->classes * (by_time ? rows : 1);
  if (row < 0 || row >= rows)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_post_ctc: there are %lld samples, and no sample %lld",
                   (long long)rows, (long long)row);
  if (s->classes >= 1 && s->classes <= UINT32_MAX && o->blank < s->classes) return HONE_OK;
  hn_fail(error, HONE_ERROR_INPUT, "class %u is to be the blank, and there is none", o->blank);
  hn_error_got(error, "%s", hone_desc_format(d, text, sizeof text));
  return HONE_ERROR_INPUT;
}

/* The most probable class at a time, and how probable it is. */
static uint32_t best_at(const series *s, int64_t time, bool logits, float *score) {
  const int64_t at = s->first + time * s->step;
  const float *f = s->in->desc.dtype == HONE_DTYPE_F32 ? (const float *)s->in->data + at : NULL;
  uint32_t best = 0;
  double most = f ? (double)f[0] : hn_get_f64(s->in, at), sum = 0;
  for (uint32_t c = 1; c < s->classes; c++) {
    const double v = f ? (double)f[c] : hn_get_f64(s->in, at + c);
    if (v > most || (isnan(most) && !isnan(v))) most = v, best = c;
  }
  for (uint32_t c = 0; logits && c < s->classes; c++)
    sum += exp((f ? (double)f[c] : hn_get_f64(s->in, at + c)) - most);
  *score = (float)(logits ? 1 / sum : most);
  return best;
}

static hone_status write_text(const hone_ctc_options *o, hone_ctc *out, hone_error *error) {
  size_t bytes = 1;
  char *to = NULL;
  for (int pass = 0; pass < 2; pass++) { /* counted, then written */
    if (pass && !(to = out->text = hn_malloc(bytes))) return hn_fail_memory(error, bytes, "a text");
    for (uint32_t i = 0; o->labels && i < out->n; i++) {
      const uint32_t c = out->classes[i], at = c - (c > o->blank);
      if (at >= o->n_labels || !o->labels[at]) {
        hn_fail(error, HONE_ERROR_INPUT, "class %u has no label", c);
        hn_error_expected(error, "a label for each class but the blank");
        hn_error_got(error, "%u labels", o->n_labels);
        return HONE_ERROR_INPUT;
      }
      const size_t n = strlen(o->labels[at]);
      if (!pass) bytes += n;
      for (size_t k = 0; pass && k < n; k++) *to++ = o->labels[at][k];
    }
  }
  *to = 0;
  return HONE_OK;
}

hone_status hone_post_ctc(const hone_tensor *in, int64_t row, const hone_ctc_options *o, hone_ctc *out,
                          hone_error *error) {
  if (!in || !o || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_post_ctc: in, options and out may not be NULL");
  *out = (hone_ctc){0};
  series s;
  hone_status status = find(in, row, o, &s, error);
  if (status != HONE_OK) return status;
  const size_t room = s.times ? (size_t)s.times : 1;
  out->classes = hn_malloc(room * sizeof *out->classes);
  out->steps = hn_malloc(room * sizeof *out->steps);
  out->scores = hn_malloc(room * sizeof *out->scores);
  if (!out->classes || !out->steps || !out->scores) {
    status = hn_fail_memory(error, room * sizeof *out->classes, "a text");
    goto done;
  }
  uint32_t before = o->blank;
  double sum = 0;
  for (int64_t t = 0; t < s.times; t++) {
    float score;
    const uint32_t c = best_at(&s, t, o->logits, &score);
    if (c != o->blank && c != before) {
      out->classes[out->n] = c;
      out->steps[out->n] = (uint32_t)t;
      out->scores[out->n++] = score;
      sum += (double)score;
    }
    before = c;
  }
  out->score = out->n ? sum / out->n : 0;
  status = write_text(o, out, error);
done:
  if (status != HONE_OK) hone_ctc_free(out);
  return status;
}

void hone_ctc_free(hone_ctc *t) {
  if (!t) return;
  hn_free(t->text);
  hn_free(t->classes);
  hn_free(t->steps);
  hn_free(t->scores);
  *t = (hone_ctc){0};
}
