/* --scale, --mean, --std, --bgr, --resize, --crop, --letterbox, --layout: how pictures become inputs. */
#include "cli/options/preprocess.h"
#include "cli/terminal/term.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hone_status wrong(hone_error *error, const char *option, const char *wants, const char *got) {
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  snprintf(error->what, sizeof error->what, "--%s wants %s", option, wants);
  snprintf(error->got, sizeof error->got, "'%.100s'", got);
  return HONE_ERROR_USAGE;
}

/* A number, or a fraction such as 1/255; NULL: none begins here. */
static const char *number(const char *text, float *out) {
  char *end;
  double v = strtod(text, &end);
  if (end == text) return NULL;
  if (*end == '/') {
    const char *below = end + 1;
    const double by = strtod(below, &end);
    if (end == below || by == 0) return NULL;
    v /= by;
  }
  *out = (float)v;
  return isfinite(*out) ? end : NULL;
}

/* One number for all channels, or three. */
static bool channels(const char *text, float out[3]) {
  text = number(text, &out[0]);
  if (text && !*text) {
    out[1] = out[2] = out[0];
    return true;
  }
  for (int c = 1; text && c < 3; c++) text = *text == ',' ? number(text + 1, &out[c]) : NULL;
  return text && !*text;
}

/* "256" or "224x320", height first. */
static bool size_of(const char *text, int64_t *h, int64_t *w) {
  char *end;
  errno = 0;
  *h = strtoll(text, &end, 10);
  *w = 0;
  if (end == text || errno || *h < 1 || *h > 65535) return false;
  if (!*end) return true;
  if (*end != 'x' && *end != 'X') return false;
  text = end + 1;
  *w = strtoll(text, &end, 10);
  return end != text && !*end && !errno && *w >= 1 && *w <= 65535;
}

static hone_status tones(const cli_args *args, hone_preprocess *o, hone_error *error) {
  if (!args->scale && !args->mean && !args->deviation) return HONE_OK;
  *o = (hone_preprocess){.normalise = true, .scale = 1.0f / 255, .std = {1, 1, 1}};
  const char *end = args->scale ? number(args->scale, &o->scale) : "";
  if (!end || *end) return wrong(error, "scale", "a number or a fraction such as 1/255", args->scale);
  if (args->mean && !channels(args->mean, o->mean))
    return wrong(error, "mean", "one number, or three with commas between", args->mean);
  if (args->deviation && !channels(args->deviation, o->std))
    return wrong(error, "std", "one number, or three with commas between", args->deviation);
  for (int c = 0; c < 3; c++)
    if (o->std[c] == 0) return wrong(error, "std", "numbers other than 0", args->deviation);
  return HONE_OK;
}

hone_status cli_preprocess(const cli_args *args, hone_preprocess *o, hone_error *error) {
  const hone_status status = cli_preprocess_said(args, o, error);
  if (status == HONE_OK) cli_preprocess_arriving(args, o);
  return status;
}

void cli_preprocess_arriving(const cli_args *args, hone_preprocess *o) {
  if (args->input_layout)
    o->pixels = strcmp(args->input_layout, "nhwc") == 0 ? HONE_PIXELS_NHWC : HONE_PIXELS_NCHW;
  if (args->input_type && strcmp(args->input_type, "u8") == 0) o->bgr = false;
}

hone_status cli_preprocess_said(const cli_args *args, hone_preprocess *o, hone_error *error) {
  *o = (hone_preprocess){0};
  const hone_status status = tones(args, o, error);
  if (status != HONE_OK) return status;
  o->bgr = args->bgr;
  o->fit = args->letterbox ? HONE_FIT_LETTERBOX : HONE_FIT_STRETCH;
  if (args->pad > 255) return wrong(error, "pad", "a brightness from 0 to 255", "more");
  o->pad = args->pad >= 0 ? (uint8_t)args->pad : 114;
  if (args->resize && !size_of(args->resize, &o->resize_h, &o->resize_w))
    return wrong(error, "resize", "a size: 256, or HEIGHTxWIDTH", args->resize);
  if (args->crop && !size_of(args->crop, &o->crop_h, &o->crop_w))
    return wrong(error, "crop", "a size: 224, or HEIGHTxWIDTH", args->crop);
  if (o->crop_h && !o->crop_w) o->crop_w = o->crop_h;
  const bool nhwc = args->pixels && strcmp(args->pixels, "nhwc") == 0;
  if (args->pixels && !nhwc && strcmp(args->pixels, "nchw") != 0)
    return wrong(error, "layout", "nchw or nhwc", args->pixels);
  o->pixels = nhwc ? HONE_PIXELS_NHWC : args->pixels ? HONE_PIXELS_NCHW : HONE_PIXELS_AUTO;
  return HONE_OK;
}

static json_t *three(const float v[3]) {
  return json_pack("[o,o,o]", cli_real(v[0]), cli_real(v[1]), cli_real(v[2]));
}

static json_t *size_json(int64_t h, int64_t w) {
  if (!h) return json_null();
  return w ? json_pack("[I,I]", (json_int_t)h, (json_int_t)w) : json_integer((json_int_t)h);
}

json_t *cli_preprocess_json(const hone_preprocess *o) {
  static const char *const pixels[] = {"auto", "nchw", "nhwc"};
  return json_pack(
      "{s:s, s:o, s:o, s:o, s:s, s:o, s:o, s:s, s:o, s:s}", "normalisation",
      o->normalise ? "given" : "imagenet", "scale", o->normalise ? cli_real(o->scale) : cli_real(1.0 / 255),
      "mean", o->normalise ? three(o->mean) : json_pack("[f,f,f]", 0.485, 0.456, 0.406), "std",
      o->normalise ? three(o->std) : json_pack("[f,f,f]", 0.229, 0.224, 0.225), "colours",
      o->bgr ? "bgr" : "rgb", "resize", size_json(o->resize_h, o->resize_w), "crop",
      size_json(o->crop_h, o->crop_w), "fit", o->fit == HONE_FIT_LETTERBOX ? "letterbox" : "stretch", "pad",
      o->fit == HONE_FIT_LETTERBOX ? json_integer(o->pad) : json_null(), "layout", pixels[o->pixels]);
}

json_t *cli_preprocess_of_inputs(const cli_args *args) {
  hone_preprocess o;
  hone_error error;
  return args->inputs.n && cli_preprocess_said(args, &o, &error) == HONE_OK ? cli_preprocess_json(&o)
                                                                            : json_null();
}

/* Adds ", WORDS". */
static void more(char *buf, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void more(char *buf, size_t size, const char *format, ...) {
  size_t n = strlen(buf);
  if (n && n + 3 < size) n += (size_t)snprintf(buf + n, size - n, ", ");
  va_list ap;
  va_start(ap, format);
  vsnprintf(buf + n, size - n, format, ap);
  va_end(ap);
}

static void say_size(char *buf, size_t size, const char *what, int64_t h, int64_t w) {
  if (h && w)
    more(buf, size, "%s %lldx%lld", what, (long long)h, (long long)w);
  else if (h)
    more(buf, size, "%s %lld", what, (long long)h);
}

static void say_three(char *buf, size_t size, const char *what, const float v[3], float none) {
  if (v[0] == none && v[1] == none && v[2] == none) return;
  if (v[0] == v[1] && v[1] == v[2])
    more(buf, size, "%s %g", what, v[0]);
  else
    more(buf, size, "%s %g,%g,%g", what, v[0], v[1], v[2]);
}

void cli_preprocess_say(const hone_preprocess *o, char *buf, size_t size) {
  buf[0] = 0;
  say_size(buf, size, "resize", o->resize_h, o->resize_w);
  say_size(buf, size, "crop", o->crop_h, o->crop_w);
  if (o->fit == HONE_FIT_LETTERBOX)
    more(buf, size, "letterbox (%u)", o->pad);
  else
    more(buf, size, "stretch");
  if (o->bgr) more(buf, size, "bgr");
  if (!o->normalise) {
    more(buf, size, "as for ImageNet (grey: 1/255)");
  } else {
    more(buf, size, "scale %g", o->scale);
    say_three(buf, size, "mean", o->mean, 0);
    say_three(buf, size, "std", o->std, 1);
  }
  if (o->pixels) more(buf, size, o->pixels == HONE_PIXELS_NHWC ? "nhwc" : "nchw");
}
