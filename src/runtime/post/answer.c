/* One description of what is made of a run's outputs, done. */
#include "runtime/post/post.h"

#include "model/ops/common/op.h"

#include <math.h>
#include <string.h>

const char *hone_post_kind_name(hone_post_kind kind) {
  static const char *const names[] = {
      [HONE_POST_AUTO] = "auto",           [HONE_POST_NONE] = "none",     [HONE_POST_TOP_K] = "top-k",
      [HONE_POST_THRESHOLD] = "threshold", [HONE_POST_ARGMAX] = "argmax", [HONE_POST_CTC] = "ctc",
      [HONE_POST_BOXES] = "boxes"};
  return (unsigned)kind < HONE_POST_KINDS ? names[kind] : "";
}

const char *hone_post_label(const hone_post *post, uint32_t cls, uint32_t classes) {
  if (!post || !post->labels) return NULL;
  const uint64_t at = (uint64_t)cls + (classes && post->n_labels == (uint64_t)classes + 1);
  return at < post->n_labels ? post->labels[at] : NULL;
}

/* A run's outputs, and which sample is asked for. */
typedef struct outputs {
  const hone_tensor *const *out;
  const char *const *names;
  uint32_t n;
  int64_t rows, row;
} outputs;

static bool suits(hone_post_kind kind, const hone_tensor_desc *d, int64_t rows) {
  switch (kind) {
  case HONE_POST_ARGMAX: return d->rank >= 2 && hone_dtype_is_float(d->dtype);
  case HONE_POST_CTC: return (d->rank == 2 || d->rank == 3) && hone_dtype_is_float(d->dtype);
  default: return hn_post_classes(d, rows) > 0;
  }
}

static hone_status no_such(const hone_post *post, const outputs *o, hone_error *error) {
  static const char *const wanted[HONE_POST_KINDS] = {[HONE_POST_TOP_K] = "a row of scores a sample",
                                                      [HONE_POST_THRESHOLD] = "a row of scores a sample",
                                                      [HONE_POST_ARGMAX] = "scores of two dimensions or more",
                                                      [HONE_POST_CTC] = "samples x times x classes"};
  char text[128] = "no outputs of numbers";
  if (post->output && *post->output) {
    hn_fail(error, HONE_ERROR_INPUT, "the model has no output '%.100s' that is made of numbers",
            post->output);
    if (o->n) hn_error_hint(error, "its first output is '%.100s'", o->names[0]);
    return HONE_ERROR_INPUT;
  }
  hn_fail(error, HONE_ERROR_INPUT, "no output is what %s is made of", hone_post_kind_name(post->kind));
  hn_error_expected(error, "%s", wanted[post->kind] ? wanted[post->kind] : "numbers");
  if (o->n) hone_desc_format(&o->out[0]->desc, text, sizeof text);
  hn_error_got(error, "%s%s", text, o->n > 1 ? " and more" : "");
  return HONE_ERROR_INPUT;
}

/* The output of that name, or the first that suits the kind; -1: none. */
static int32_t find(const hone_post *post, hone_post_kind kind, const outputs *o) {
  const bool named = post->output && *post->output;
  for (uint32_t i = 0; i < o->n; i++)
    if (named ? strcmp(o->names[i], post->output) == 0 : suits(kind, &o->out[i]->desc, o->rows))
      return (int32_t)i;
  return -1;
}

/* All between 0 and 1, and 1 together. */
static bool probabilities(const float *p, uint32_t n) {
  double sum = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (!(p[i] >= 0) || p[i] > 1) return false;
    sum += (double)p[i];
  }
  return fabs(sum - 1) < 1e-2;
}

static hone_status map_scores(const hone_post *post, hone_post_kind kind, float *scores, uint32_t n,
                              hone_error *error) {
  const hone_tensor t = {hone_desc(HONE_DTYPE_F32, 1, (int64_t[]){n}), scores};
  hone_post_map map = post->map;
  if (map == HONE_MAP_AUTO)
    map = kind == HONE_POST_TOP_K && !probabilities(scores, n) ? HONE_MAP_SOFTMAX : HONE_MAP_NONE;
  if (map == HONE_MAP_SOFTMAX) return hone_post_softmax(&t, 0, scores, error);
  return map == HONE_MAP_SIGMOID ? hone_post_sigmoid(&t, scores, error) : HONE_OK;
}

static hone_status rank(const hone_post *post, hone_post_kind kind, const outputs *o, const hone_tensor *t,
                        hone_answer *answer, hone_error *error) {
  const int64_t classes = hn_post_classes(&t->desc, o->rows);
  if (classes < 1 || classes > INT32_MAX) {
    char text[128];
    hn_fail(error, HONE_ERROR_INPUT, "this output is no row of scores a sample");
    hn_error_got(error, "%s", hone_desc_format(&t->desc, text, sizeof text));
    return HONE_ERROR_INPUT;
  }
  const uint32_t n = (uint32_t)classes;
  const bool top = kind == HONE_POST_TOP_K;
  uint32_t k = post->k ? post->k : top ? 5 : n;
  if (k > n) k = n;
  float *scores = hn_malloc((size_t)n * sizeof *scores);
  answer->ranked = hn_malloc((size_t)k * sizeof *answer->ranked);
  hone_status status = scores && answer->ranked
                           ? HONE_OK
                           : hn_fail_memory(error, (uint64_t)n * sizeof *scores, "scores of classes");
  for (int64_t i = 0; status == HONE_OK && i < n; i++) scores[i] = (float)hn_get_f64(t, o->row * classes + i);
  if (status == HONE_OK) status = map_scores(post, kind, scores, n, error);
  const float least = top ? -INFINITY : post->least > 0 ? (float)post->least : 0.5f;
  if (status == HONE_OK)
    status = hone_post_top_k(scores, n, k, least, answer->ranked, &answer->n_ranked, error);
  hn_free(scores);
  answer->classes = n;
  return status;
}

/* The sample alone, without the dimension of samples where there is one. */
static hone_tensor sample_of(const hone_tensor *t, const outputs *o) {
  hone_tensor one = *t;
  const hone_tensor_desc *d = &t->desc;
  if (d->rank < 1 || d->dim[0] != o->rows) return one;
  one.desc = hone_desc(d->dtype, d->rank - 1, d->dim + 1);
  one.data = (char *)t->data + o->row * hone_desc_bytes(&one.desc);
  return one;
}

static hone_status map_of_classes(const hone_post *post, const outputs *o, const hone_tensor *t,
                                  hone_answer *answer, hone_error *error) {
  hone_tensor one = sample_of(t, o);
  const int32_t cut = t->desc.rank - one.desc.rank;
  int32_t axis = post->axis ? post->axis : 1, rank = 0;
  if (axis > 0) axis -= cut;
  if (axis < 0) axis += one.desc.rank;
  if (axis < 0 || axis >= one.desc.rank)
    return hn_fail(error, HONE_ERROR_INPUT, "argmax: a sample of '%.80s' has no axis %d",
                   post->output ? post->output : "the output", post->axis);
  int64_t dims[HONE_MAX_RANK];
  for (int32_t k = 0; k < one.desc.rank; k++)
    if (k != axis) dims[rank++] = one.desc.dim[k];
  answer->map.desc = hone_desc(HONE_DTYPE_I64, rank, dims);
  answer->map.data = hn_malloc((size_t)hone_desc_bytes(&answer->map.desc));
  if (!answer->map.data)
    return hn_fail_memory(error, (uint64_t)hone_desc_bytes(&answer->map.desc), "a map of classes");
  return hone_post_argmax(&one, axis, answer->map.data, NULL, error);
}

static hone_status boxes_of(const hone_post *post, const outputs *o, const hone_picture_map *picture,
                            hone_answer *answer, hone_error *error) {
  int32_t only = -1;
  hone_boxes_options b = post->boxes; /* boxes for people; what average precision wants is far more */
  if (!(b.min_score > 0)) b.min_score = 0.25;
  if (!(b.nms_iou > 0)) b.nms_iou = 0.45;
  if (post->output && *post->output && (only = find(post, HONE_POST_BOXES, o)) < 0)
    return no_such(post, o, error);
  return hone_post_boxes(only < 0 ? o->out : &o->out[only], only < 0 ? o->names : &o->names[only],
                         only < 0 ? o->n : 1, o->rows, o->row, 0, picture, &b, &answer->boxes, error);
}

static hone_status make(const hone_post *post, const outputs *o, const hone_picture_map *picture,
                        hone_answer *answer, hone_error *error) {
  if (answer->kind == HONE_POST_NONE) return HONE_OK;
  if (answer->kind == HONE_POST_BOXES) return boxes_of(post, o, picture, answer, error);
  const int32_t at = find(post, answer->kind, o);
  if (at < 0) return no_such(post, o, error);
  const hone_tensor *t = o->out[at];
  if (answer->kind == HONE_POST_ARGMAX) return map_of_classes(post, o, t, answer, error);
  if (answer->kind != HONE_POST_CTC) return rank(post, answer->kind, o, t, answer, error);
  const hone_ctc_options ctc = {.blank = post->blank,
                                .labels = post->labels,
                                .n_labels = post->n_labels,
                                .logits = post->map == HONE_MAP_SOFTMAX,
                                .time_major = post->time_major};
  return hone_post_ctc(t, t->desc.rank == 3 ? o->row : 0, &ctc, &answer->text, error);
}

hone_status hone_post_run(const hone_post *post, const hone_tensor *const *out, const char *const *names,
                          uint32_t n, int64_t rows, int64_t row, const hone_picture_map *picture,
                          hone_answer *answer, hone_error *error) {
  if (!post || !answer || (n && (!out || !names)))
    return hn_fail(error, HONE_ERROR_USAGE, "hone_post_run: post, out, names and answer may not be NULL");
  *answer = (hone_answer){.kind = post->kind};
  if (rows < 1 || row < 0 || row >= rows || (unsigned)post->kind >= HONE_POST_KINDS)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_post_run: no such sample, or no such kind");
  const outputs o = {out, names, n, rows, row};
  hone_status status = HONE_OK;
  for (uint32_t i = 0; status == HONE_OK && i < n; i++)
    status = hn_post_check("hone_post_run", out[i], error);
  if (status != HONE_OK) return status;
  if (post->kind == HONE_POST_AUTO)
    answer->kind = find(post, HONE_POST_TOP_K, &o) >= 0 ? HONE_POST_TOP_K : HONE_POST_NONE;
  status = make(post, &o, picture, answer, error);
  if (status != HONE_OK) hone_answer_free(answer);
  return status;
}

void hone_answer_free(hone_answer *a) {
  if (!a) return;
  hn_free(a->ranked);
  hn_free(a->map.data);
  hone_ctc_free(&a->text);
  hone_boxes_free(&a->boxes);
  *a = (hone_answer){0};
}
