/* M.pipeline.json: what happens before and behind a model. */
#include "base/arena.h"
#include "base/error.h"
#include "base/json_read.h"

#include <hone/file.h>
#include <hone/pipeline.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 20, LABELS_BYTES = 64 << 20, MOST_LABELS = 1000000, MOST_SIDE = 65535 };

typedef struct reader {
  const char *text, *path;
  size_t length;
  hn_arena *arena;
  hone_pipeline_spec *spec;
  hone_error *error;
  hone_status status; /* the first error's */
  char at[48];        /* of the object that is read: "pre", "post/1" */
} reader;

/* The member `key` (NULL: the object itself) is wrong. */
static void wrong(reader *r, const char *key, const char *expected, const char *what, ...)
    __attribute__((format(printf, 4, 5)));
static void wrong(reader *r, const char *key, const char *expected, const char *what, ...) {
  if (r->status != HONE_OK) return;
  char place[160], message[200];
  int line, column;
  va_list args;
  va_start(args, what);
  vsnprintf(message, sizeof message, what, args);
  va_end(args);
  snprintf(place, sizeof place, "%s%s%s", r->at, *r->at && key ? "/" : "", key ? key : "");
  hn_json_place(r->text, r->length, place, &line, &column);
  r->status = hn_fail(r->error, HONE_ERROR_INPUT, "%s", message);
  hn_error_where(r->error, "%.200s:%d:%d", r->path, line, column);
  if (expected) hn_error_expected(r->error, "%s", expected);
}

static void no_memory(reader *r, size_t bytes) {
  if (r->status == HONE_OK) r->status = hn_fail_memory(r->error, bytes, "a pipeline's description");
}

/* Members that nobody reads would be misspelt ones. */
static void check_members(reader *r, const json_t *o, const char *allowed) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)o, key, value) {
    const size_t n = strlen(key);
    bool known = false;
    for (const char *word = allowed; *word && !known; word += strcspn(word, " "), word += *word == ' ')
      known = strcspn(word, " ") == n && strncmp(word, key, n) == 0;
    if (!known) wrong(r, key, allowed, "there is no member \"%.60s\"", key);
  }
}

static bool flag(reader *r, const json_t *o, const char *key) {
  const json_t *v = json_object_get(o, key);
  if (v && !json_is_boolean(v)) wrong(r, key, "true or false", "\"%s\" is neither true nor false", key);
  return json_is_true(v);
}

static double number(reader *r, const json_t *o, const char *key, double least, double most,
                     double otherwise) {
  const json_t *v = json_object_get(o, key);
  if (!v) return otherwise;
  const double d = json_is_number(v) ? json_number_value(v) : (double)NAN;
  if (d >= least && d <= most) return d;
  char range[60];
  snprintf(range, sizeof range, "a number from %g to %g", least, most);
  wrong(r, key, range, "\"%s\" is no such number", key);
  return otherwise;
}

static int64_t whole(reader *r, const json_t *o, const char *key, int64_t least, int64_t most,
                     int64_t otherwise) {
  const json_t *v = json_object_get(o, key);
  if (!v) return otherwise;
  if (json_is_integer(v) && json_integer_value(v) >= least && json_integer_value(v) <= most)
    return json_integer_value(v);
  char range[80];
  snprintf(range, sizeof range, "a whole number from %lld to %lld", (long long)least, (long long)most);
  wrong(r, key, range, "\"%s\" is no such number", key);
  return otherwise;
}

/* A member that is one of the words; *which is its place among them. False: it is not there. */
static bool word(reader *r, const json_t *o, const char *key, const char *const *words, size_t n,
                 const char *expected, size_t *which) {
  const json_t *v = json_object_get(o, key);
  if (!v) return false;
  for (size_t i = 0; i < n && json_is_string(v); i++)
    if (strcmp(json_string_value(v), words[i]) == 0) {
      *which = i;
      return true;
    }
  wrong(r, key, expected, "\"%s\" knows no such word", key);
  return false;
}

/* ---- pre */

/* 0.5, or "1/255". */
static bool real_of(const json_t *v, float *out) {
  double d = json_is_number(v) ? json_number_value(v) : (double)NAN;
  if (json_is_string(v)) {
    char *end;
    d = strtod(json_string_value(v), &end);
    if (end != json_string_value(v) && *end == '/') {
      const char *below = end + 1;
      const double by = strtod(below, &end);
      d = end == below || by == 0 ? (double)NAN : d / by;
    }
    if (end == json_string_value(v) || *end) return false;
  }
  *out = (float)d;
  return isfinite(*out);
}

static void channels(reader *r, const json_t *o, const char *key, float out[3]) {
  const json_t *v = json_object_get(o, key);
  bool good = !v || real_of(v, &out[0]);
  if (v && good) out[1] = out[2] = out[0];
  if (json_is_array(v)) {
    good = json_array_size(v) == 3;
    for (size_t c = 0; good && c < 3; c++) good = real_of(json_array_get(v, c), &out[c]);
  }
  if (!good) wrong(r, key, "a number, or three", "\"%s\" is no number for each channel", key);
}

/* N, or [HEIGHT, WIDTH]. */
static void size_of(reader *r, const json_t *o, const char *key, int64_t *h, int64_t *w) {
  const json_t *v = json_object_get(o, key);
  if (!v) return;
  const json_t *a = json_is_array(v) ? json_array_get(v, 0) : v, *b = json_array_get(v, 1);
  *h = json_integer_value(a);
  *w = json_integer_value(b);
  const bool pair = json_is_array(v) && json_array_size(v) == 2 && json_is_integer(a) && json_is_integer(b);
  const bool good = pair ? *w >= 1 && *w <= MOST_SIDE : json_is_integer(v);
  if (!good || *h < 1 || *h > MOST_SIDE)
    wrong(r, key, "a size: 256, or [HEIGHT, WIDTH]", "\"%s\" is no size", key);
}

static void read_pre(reader *r, const json_t *o) {
  hone_preprocess *p = &r->spec->preprocess;
  static const char *const layouts[] = {"auto", "nchw", "nhwc"};
  size_t layout = 0;
  snprintf(r->at, sizeof r->at, "pre");
  if (!json_is_object(o)) {
    wrong(r, NULL, "an object", "\"pre\" is no object");
    return;
  }
  check_members(r, o, "resize crop scale mean std bgr letterbox pad layout");
  if (json_object_get(o, "scale") || json_object_get(o, "mean") || json_object_get(o, "std")) {
    p->normalise = true;
    p->scale = 1.0f / 255;
    p->std[0] = p->std[1] = p->std[2] = 1;
  }
  const json_t *scale = json_object_get(o, "scale");
  if (scale && !real_of(scale, &p->scale))
    wrong(r, "scale", "a number, or a fraction such as \"1/255\"", "\"scale\" is no number");
  channels(r, o, "mean", p->mean);
  channels(r, o, "std", p->std);
  for (int c = 0; p->normalise && c < 3; c++)
    if (p->std[c] == 0) wrong(r, "std", "numbers other than 0", "\"std\" is 0");
  size_of(r, o, "resize", &p->resize_h, &p->resize_w);
  size_of(r, o, "crop", &p->crop_h, &p->crop_w);
  if (p->crop_h && !p->crop_w) p->crop_w = p->crop_h;
  p->bgr = flag(r, o, "bgr");
  p->fit = flag(r, o, "letterbox") ? HONE_FIT_LETTERBOX : HONE_FIT_STRETCH;
  p->pad = (uint8_t)whole(r, o, "pad", 0, 255, 114);
  if (word(r, o, "layout", layouts, 3, "auto, nchw or nhwc", &layout)) p->pixels = (hone_pixels)layout;
}

/* ---- labels */

static hone_status add_labels(hn_arena *arena, const char *path, char *text, size_t size, hone_post *post,
                              hone_error *error) {
  uint32_t n = 0;
  for (size_t i = 0; i < size; i++) n += text[i] == '\n' || i + 1 == size;
  if (n > MOST_LABELS) {
    hn_fail(error, HONE_ERROR_INPUT, "too many labels");
    hn_error_where(error, "%s", path);
    return HONE_ERROR_INPUT;
  }
  const char **labels = HN_NEW_ARRAY(arena, const char *, n + 1);
  uint32_t k = 0;
  for (size_t at = 0; labels && at < size && k < n;) {
    const char *stop = memchr(text + at, '\n', size - at);
    size_t length = stop ? (size_t)(stop - text) - at : size - at;
    const size_t next = at + length + 1;
    while (length && text[at + length - 1] == '\r') length--;
    if (!(labels[k++] = hn_arena_strndup(arena, text + at, length))) labels = NULL;
    at = next;
  }
  if (!labels) return hn_fail_memory(error, size, "labels");
  post->labels = labels;
  post->n_labels = k;
  return HONE_OK;
}

static hone_status labels_of_file(hn_arena *arena, const char *path, hone_post *post, hone_error *error) {
  char *text = NULL;
  size_t size = 0;
  hone_status status = hone_file_read(path, LABELS_BYTES, &text, &size, error);
  if (status == HONE_OK) status = add_labels(arena, path, text, size, post, error);
  hone_file_free(text);
  return status;
}

/* A list of names, or a file beside the description. */
static void read_labels(reader *r, const json_t *o) {
  const json_t *v = json_object_get(o, "labels");
  hone_post *post = &r->spec->post;
  if (!v || r->status != HONE_OK) return;
  if (json_is_string(v)) {
    const char *name = json_string_value(v), *slash = strrchr(r->path, '/');
    const int folder = slash && name[0] != '/' ? (int)(slash - r->path) + 1 : 0;
    const char *path = hn_arena_printf(r->arena, "%.*s%s", folder, r->path, name);
    if (!path)
      no_memory(r, strlen(name));
    else
      r->status = labels_of_file(r->arena, path, post, r->error);
    return;
  }
  const size_t n = json_array_size(v);
  const char **labels = HN_NEW_ARRAY(r->arena, const char *, n + 1);
  if (!labels) no_memory(r, n * sizeof *labels);
  for (size_t i = 0; labels && i < n; i++) {
    const char *name = json_string_value(json_array_get(v, i));
    if (!name) break;
    if (!(labels[post->n_labels++] = hn_arena_strdup(r->arena, name))) no_memory(r, strlen(name));
  }
  post->labels = labels;
  if (!json_is_array(v) || post->n_labels < n)
    wrong(r, "labels", "a file, or a list of names", "\"labels\" is neither");
}

/* ---- post */

static void read_boxes(reader *r, const json_t *o) {
  static const char *const orders[] = {"usual", "xyxy", "yxyx", "cxcywh"};
  hone_boxes_options *b = &r->spec->post.boxes;
  const char *forms[HONE_BOX_FORMS];
  size_t form = 0, order = 0;
  for (int i = 0; i < HONE_BOX_FORMS; i++) forms[i] = hone_box_form_name((hone_box_form)i);
  word(r, o, "form", forms, HONE_BOX_FORMS,
       "auto, xyxy-score-class, lists, nms, boxes-scores, yolov3, yolov8 or nanodet", &form);
  word(r, o, "order", orders, 4, "usual, xyxy, yxyx or cxcywh", &order);
  b->form = (hone_box_form)form;
  b->order = (hone_box_order)order;
  b->relative = flag(r, o, "relative");
  b->background = flag(r, o, "background");
  b->min_score = number(r, o, "min_score", 0, 1, 0);
  b->nms_iou = number(r, o, "iou", 0, 1, 0);
}

static void read_last(reader *r, const json_t *o, size_t op) {
  static const struct {
    hone_post_kind kind;
    const char *members;
  } ops[] = {{HONE_POST_TOP_K, "op output labels k"},
             {HONE_POST_THRESHOLD, "op output labels least k"},
             {HONE_POST_ARGMAX, "op output labels axis"},
             {HONE_POST_CTC, "op output labels blank time_major"},
             {HONE_POST_BOXES, "op output labels form order relative background min_score iou"},
             {HONE_POST_NONE, "op"}};
  hone_post *post = &r->spec->post;
  post->kind = ops[op].kind;
  check_members(r, o, ops[op].members);
  post->k = (uint32_t)whole(r, o, "k", 1, INT32_MAX, 0);
  post->least = number(r, o, "least", 0, 1e30, 0);
  post->axis = (int32_t)whole(r, o, "axis", -HONE_MAX_RANK, HONE_MAX_RANK, 0);
  post->blank = (uint32_t)whole(r, o, "blank", 0, INT32_MAX, 0);
  post->time_major = flag(r, o, "time_major");
  const json_t *output = json_object_get(o, "output");
  if (output && !json_is_string(output))
    wrong(r, "output", "the name of an output", "\"output\" is no text");
  else if (output && !(post->output = hn_arena_strdup(r->arena, json_string_value(output))))
    no_memory(r, json_string_length(output));
  if (post->kind == HONE_POST_BOXES) read_boxes(r, o);
  read_labels(r, o);
}

/* softmax or sigmoid, and one that ends the chain. */
static void read_post(reader *r, const json_t *chain) {
  static const char *const ops[] = {"top-k", "threshold", "argmax",  "ctc",
                                    "boxes", "none",      "softmax", "sigmoid"};
  static const char *const expected = "softmax or sigmoid, then top-k, threshold, argmax, ctc, boxes or none";
  hone_post *post = &r->spec->post;
  bool ended = false;
  snprintf(r->at, sizeof r->at, "post");
  if (!json_is_array(chain)) wrong(r, NULL, "a list of steps", "\"post\" is no list");
  for (size_t i = 0; r->status == HONE_OK && i < json_array_size(chain); i++) {
    const json_t *o = json_array_get(chain, i);
    size_t op = 0;
    snprintf(r->at, sizeof r->at, "post/%zu", i);
    if (!json_object_get(o, "op")) {
      wrong(r, NULL, "{\"op\": \"top-k\"}", "this step has no \"op\"");
    } else if (word(r, o, "op", ops, sizeof ops / sizeof *ops, expected, &op)) {
      if (ended || (op >= 6 && i))
        wrong(r, "op", expected, "%s cannot come here", ops[op]);
      else if (op < 6)
        read_last(r, o, op);
      else
        check_members(r, o, "op");
      if (op >= 6) post->map = op == 6 ? HONE_MAP_SOFTMAX : HONE_MAP_SIGMOID;
      ended = op < 6;
      if (ended && i && op != 0 && op != 1 && !(op == 3 && post->map == HONE_MAP_SOFTMAX))
        wrong(r, "op", "top-k or threshold", "%s takes its output as it is", ops[op]);
    }
  }
  if (json_array_size(chain) && !ended) wrong(r, NULL, expected, "the chain does not end");
  /* Scores are taken as they are where a chain says so by leaving softmax out. */
  if (ended && post->map == HONE_MAP_AUTO && post->kind != HONE_POST_TOP_K) post->map = HONE_MAP_NONE;
}

static void read_root(reader *r, const json_t *root) {
  if (!json_is_object(root)) {
    wrong(r, NULL, "{\"pre\": {...}, \"post\": [...]}", "this is no object");
    return;
  }
  check_members(r, root, "pre post");
  const json_t *pre = json_object_get(root, "pre"), *post = json_object_get(root, "post");
  if (pre) read_pre(r, pre);
  if (post) read_post(r, post);
}

hone_status hone_pipeline_spec_parse(const char *text, size_t length, const char *path,
                                     hone_pipeline_spec *out, hone_error *error) {
  if (!text || !path || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_pipeline_spec_parse: text, path and out may not be NULL");
  const uint64_t lost = hn_mem_lost();
  json_error_t where;
  *out = (hone_pipeline_spec){.impl = hn_calloc(1, sizeof(hn_arena))};
  if (!out->impl) return hn_fail_memory(error, sizeof(hn_arena), "a pipeline's description");
  out->preprocess.pad = 114;
  json_t *root = hn_json_load(text, length, JSON_REJECT_DUPLICATES, &where);
  reader r = {.text = text, .path = path, .length = length, .arena = out->impl, .spec = out, .error = error};
  if (root) {
    read_root(&r, root);
  } else {
    r.status = hn_fail(error, HONE_ERROR_INPUT, "no JSON: %.120s", where.text);
    hn_error_where(error, "%.200s:%d:%d", path, where.line, where.column);
  }
  json_decref(root);
  r.status = hn_settle(r.status, lost, error);
  if (r.status != HONE_OK) hone_pipeline_spec_free(out);
  return r.status;
}

hone_status hone_pipeline_spec_read(const char *path, hone_pipeline_spec *out, hone_error *error) {
  if (!path || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_pipeline_spec_read: path and out may not be NULL");
  char *text = NULL;
  size_t size = 0;
  *out = (hone_pipeline_spec){0};
  hone_status status = hone_file_read(path, MOST_BYTES, &text, &size, error);
  if (status == HONE_OK) status = hone_pipeline_spec_parse(text, size, path, out, error);
  hone_file_free(text);
  return status;
}

hone_status hone_pipeline_spec_labels(hone_pipeline_spec *spec, const char *path, hone_error *error) {
  if (!spec || !path)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_pipeline_spec_labels: spec and path may not be NULL");
  if (!spec->impl && !(spec->impl = hn_calloc(1, sizeof(hn_arena))))
    return hn_fail_memory(error, sizeof(hn_arena), "labels");
  return labels_of_file(spec->impl, path, &spec->post, error);
}

void hone_pipeline_spec_free(hone_pipeline_spec *spec) {
  if (!spec) return;
  if (spec->impl) hn_arena_free(spec->impl);
  hn_free(spec->impl);
  *spec = (hone_pipeline_spec){0};
}
