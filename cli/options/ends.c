#include "cli/options/ends.h"

#include "cli/options/labelled.h"
#include "cli/options/preprocess.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static hone_status wrong(hone_error *error, const char *option, const char *expected, const char *got) {
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  snprintf(error->what, sizeof error->what, "--%s knows no '%.100s'", option, got);
  snprintf(error->expected, sizeof error->expected, "%s", expected);
  return HONE_ERROR_USAGE;
}

/* "m.pipeline.json" of "m.onnx" and "m.hone"; false: there is none. */
static bool beside(const char *model, char *buf, size_t size) {
  const size_t n = strlen(model);
  const bool ending = n > 5 && (strcmp(model + n - 5, ".onnx") == 0 || strcmp(model + n - 5, ".hone") == 0);
  const int length = snprintf(buf, size, "%.*s.pipeline.json", (int)(ending ? n - 5 : n), model);
  return length > 0 && (size_t)length < size && access(buf, F_OK) == 0;
}

/* What options say of pictures, over what the file says. */
static hone_status pictures(const cli_args *args, hone_preprocess *o, hone_error *error) {
  hone_preprocess given;
  const hone_status status = cli_preprocess_said(args, &given, error);
  if (status != HONE_OK) return status;
  if (args->scale || args->mean || args->deviation) {
    o->normalise = given.normalise;
    o->scale = given.scale;
    memcpy(o->mean, given.mean, sizeof o->mean);
    memcpy(o->std, given.std, sizeof o->std);
  }
  if (args->resize) o->resize_h = given.resize_h, o->resize_w = given.resize_w;
  if (args->crop) o->crop_h = given.crop_h, o->crop_w = given.crop_w;
  if (args->bgr) o->bgr = true;
  if (args->letterbox) o->fit = HONE_FIT_LETTERBOX;
  if (args->pad >= 0) o->pad = given.pad;
  if (args->pixels) o->pixels = given.pixels;
  return HONE_OK;
}

/* "softmax,top-k" */
static hone_status chain(const char *text, hone_post *post, hone_error *error) {
  static const char *const expected =
      "softmax or sigmoid, a comma, then top-k or threshold; or argmax, ctc, boxes, none or auto";
  *post = (hone_post){.labels = post->labels, .n_labels = post->n_labels, .output = post->output};
  for (const char *word = text;; word++) {
    const size_t n = strcspn(word, ",");
    const bool last = !word[n];
    bool known = false;
    if (!last && word == text) {
      if (n == 7 && strncmp(word, "softmax", n) == 0) post->map = HONE_MAP_SOFTMAX, known = true;
      if (n == 7 && strncmp(word, "sigmoid", n) == 0) post->map = HONE_MAP_SIGMOID, known = true;
    }
    for (int k = 0; last && k < HONE_POST_KINDS; k++)
      if (strcmp(word, hone_post_kind_name((hone_post_kind)k)) == 0)
        post->kind = (hone_post_kind)k, known = true;
    if (last && post->map && post->kind != HONE_POST_TOP_K && post->kind != HONE_POST_THRESHOLD &&
        !(post->kind == HONE_POST_CTC && post->map == HONE_MAP_SOFTMAX))
      known = false;
    if (!known) return wrong(error, "post", expected, text);
    if (last) return HONE_OK;
    word += n;
  }
}

static hone_status outputs(const cli_args *args, hone_pipeline_spec *spec, hone_error *error) {
  hone_post *post = &spec->post;
  hone_boxes_options boxes;
  hone_status status = cli_labelled_boxes(args, &boxes, error);
  if (status == HONE_OK && args->post) status = chain(args->post, post, error);
  if (status != HONE_OK) return status;
  if (args->boxes) post->boxes.form = boxes.form;
  if (args->box_order) post->boxes.order = boxes.order;
  if (args->relative) post->boxes.relative = true;
  if (args->min_score > 0) post->boxes.min_score = post->least = args->min_score;
  if (args->nms_iou > 0) post->boxes.nms_iou = args->nms_iou;
  if (args->background) post->boxes.background = true;
  if (args->top) post->k = (uint32_t)(args->top < INT32_MAX ? args->top : INT32_MAX);
  if (post->kind == HONE_POST_AUTO && args->boxes)
    post->kind = HONE_POST_BOXES;
  else if (post->kind == HONE_POST_AUTO && args->top)
    post->kind = HONE_POST_TOP_K;
  return args->labels ? hone_pipeline_spec_labels(spec, args->labels, error) : HONE_OK;
}

hone_status cli_ends(const cli_args *args, const char *model, hone_pipeline_spec *out, char *used,
                     size_t size, hone_error *error) {
  *out = (hone_pipeline_spec){.preprocess.pad = 114};
  snprintf(used, size, "%s", args->pipeline ? args->pipeline : "");
  hone_status status = HONE_OK;
  if (args->pipeline || beside(model, used, size))
    status = hone_pipeline_spec_read(used, out, error);
  else
    used[0] = 0;
  if (status == HONE_OK) status = pictures(args, &out->preprocess, error);
  if (status == HONE_OK) status = outputs(args, out, error);
  if (status != HONE_OK) hone_pipeline_spec_free(out);
  return status;
}

hone_status cli_ends_workers(const cli_args *args, uint32_t workers[HONE_STAGES], hone_error *error) {
  static const char *const expected = "auto, or pre=N,post=N with N from 1 to 256";
  memset(workers, 0, HONE_STAGES * sizeof *workers);
  if (!args->workers || strcmp(args->workers, "auto") == 0) return HONE_OK;
  for (const char *at = args->workers;; at++) {
    const bool pre = strncmp(at, "pre=", 4) == 0, post = strncmp(at, "post=", 5) == 0;
    char *end;
    const long n = pre || post ? strtol(at + (pre ? 4 : 5), &end, 10) : 0;
    if (n < 1 || n > 256 || (*end && *end != ',')) return wrong(error, "workers", expected, args->workers);
    workers[pre ? HONE_STAGE_PRE : HONE_STAGE_POST] = (uint32_t)n;
    at = end;
    if (!*at) return HONE_OK;
  }
}
