/* prepare: pictures become a model's input: size, colours, numbers, batches of equal size. */
#include "api/chain/chain.h"
#include "base/error.h"
#include "runtime/data/data.h"

#include <math.h>
#include <string.h>

enum { SIDE_MOST = 16384, BATCH_MOST = 4096 };
enum { FIT_STRETCH, FIT_LETTERBOX, FIT_LEFT };
static const char *const fits[] = {"stretch", "letterbox", "left", NULL};

typedef struct settings {
  int64_t height, width, limit, least, multiple, narrowest, widest, batch;
  int fit;
  bool bgr;
  double scale, pad;
  float mean[3], std[3];
  /* What the model wants: */
  hone_dtype dtype;
  bool last; /* channels are the last dimension */
  int64_t channels;
} settings;

static const settings defaults = {.multiple = 1, .batch = 1, .scale = 1.0 / 255, .std = {1, 1, 1}};
static const hn_member members[] = {
    {"height", HN_MEMBER_COUNT, offsetof(settings, height), 1, SIDE_MOST, NULL},
    {"width", HN_MEMBER_COUNT, offsetof(settings, width), 1, SIDE_MOST, NULL},
    {"limit", HN_MEMBER_COUNT, offsetof(settings, limit), 1, SIDE_MOST, NULL},
    {"least", HN_MEMBER_COUNT, offsetof(settings, least), 1, SIDE_MOST, NULL},
    {"multiple", HN_MEMBER_COUNT, offsetof(settings, multiple), 1, 4096, NULL},
    {"narrowest", HN_MEMBER_COUNT, offsetof(settings, narrowest), 1, SIDE_MOST, NULL},
    {"widest", HN_MEMBER_COUNT, offsetof(settings, widest), 1, SIDE_MOST, NULL},
    {"batch", HN_MEMBER_COUNT, offsetof(settings, batch), 1, BATCH_MOST, NULL},
    {"fit", HN_MEMBER_WORD, offsetof(settings, fit), 0, 0, fits},
    {"bgr", HN_MEMBER_FLAG, offsetof(settings, bgr), 0, 0, NULL},
    {"scale", HN_MEMBER_REAL, offsetof(settings, scale), -1e6, 1e6, NULL},
    {"pad", HN_MEMBER_REAL, offsetof(settings, pad), 0, 255, NULL},
    {"mean", HN_MEMBER_THREE, offsetof(settings, mean), 0, 0, NULL},
    {"std", HN_MEMBER_THREE, offsetof(settings, std), 0, 0, NULL},
    {0}};

static hone_status ready(hone_chain *c, hn_stage *s, hone_error *error) {
  settings *o = s->settings;
  const hone_tensor_desc *d = hn_stage_wanted(c, s);
  o->dtype = d && d->dtype ? d->dtype : HONE_DTYPE_F32;
  o->channels = 3;
  for (int k = 0; k < 3; k++)
    if (o->std[k] == 0) return hn_stage_fail(c, s, HONE_ERROR_INPUT, error, "a deviation (std) of 0");
  if (d && d->rank >= 0 && d->rank != 4) {
    char text[128];
    hn_stage_fail(c, s, HONE_ERROR_INPUT, error, "what reads '%s' is no input for pictures", s->name);
    hn_error_expected(error, "an input of 4 dimensions");
    hn_error_got(error, "%s", hone_desc_format(d, text, sizeof text));
    return HONE_ERROR_INPUT;
  }
  if (!d || d->rank < 0) return HONE_OK;
  o->last = d->dim[1] != 1 && d->dim[1] != 3 && (d->dim[3] == 1 || d->dim[3] == 3);
  const int64_t channels = d->dim[o->last ? 3 : 1], h = d->dim[o->last ? 1 : 2], w = d->dim[o->last ? 2 : 3];
  if (channels == 1) o->channels = 1;
  if (!o->height && h > 0 && !o->limit && !o->least) o->height = h;
  if (!o->width && w > 0 && !o->limit && !o->least) o->width = w;
  if (o->width && !o->height) return hn_stage_fail(c, s, HONE_ERROR_INPUT, error, "a width without a height");
  return HONE_OK;
}

/* The size of a picture's tensor, and how much of its width the picture fills. */
typedef struct sized {
  int64_t h, w, shown;
  uint32_t item;
} sized;

static int64_t to_multiple(double side, int64_t multiple) {
  const int64_t n = llround(side / (double)multiple);
  return (n < 1 ? 1 : n) * multiple;
}

static sized free_size(const settings *o, int64_t h, int64_t w) {
  const double shorter = (double)(h < w ? h : w), longer = (double)(h < w ? w : h);
  double by = 1;
  if (o->least && shorter < (double)o->least) by = (double)o->least / shorter;
  if (o->limit && longer * by > (double)o->limit) by = (double)o->limit / longer;
  const int64_t width = to_multiple((double)w * by, o->multiple);
  return (sized){to_multiple((double)h * by, o->multiple), width, width, 0};
}

static sized size_of(const settings *o, const hone_tensor *picture) {
  const int64_t h = picture->desc.dim[0], w = picture->desc.dim[1];
  if (!o->height) return free_size(o, h, w);
  const int64_t natural = (int64_t)ceil((double)o->height * (double)w / (double)h - 1e-9);
  sized s = {o->height, o->width, o->width, 0};
  if (!o->width) {
    const int64_t most = o->widest ? o->widest : SIDE_MOST;
    s.shown = natural < 1 ? 1 : natural > most ? most : natural;
    s.w = s.shown > o->narrowest ? s.shown : o->narrowest;
    s.w = (s.w + o->multiple - 1) / o->multiple * o->multiple;
  } else if (o->fit == FIT_LEFT)
    s.shown = natural < 1 ? 1 : natural > s.w ? s.w : natural;
  return s;
}

static hone_tensor_desc desc_of(const settings *o, int64_t n, int64_t h, int64_t w) {
  const int64_t first[] = {n, o->channels, h, w}, last[] = {n, h, w, o->channels};
  return hone_desc(o->dtype, 4, o->last ? last : first);
}

/* What a pixel of that brightness is in the tensor. */
static float bar(const settings *o, int64_t channel) {
  if (o->dtype == HONE_DTYPE_U8) return rintf((float)o->pad);
  return ((float)o->pad * (float)o->scale - o->mean[channel]) / o->std[channel];
}

/* One picture into row r of its batch. */
static hone_status put(hn_arena *arena, const settings *o, const hone_tensor *picture, const sized *s,
                       const hone_tensor *batch, uint32_t r, hone_picture_map *map, hone_error *error) {
  hone_preprocess p = {.fit = o->fit == FIT_LETTERBOX ? HONE_FIT_LETTERBOX : HONE_FIT_STRETCH,
                       .pad = (uint8_t)lrint(o->pad),
                       .bgr = o->bgr,
                       .normalise = true,
                       .scale = (float)o->scale,
                       .pixels = o->last ? HONE_PIXELS_NHWC : HONE_PIXELS_NCHW};
  memcpy(p.mean, o->mean, sizeof p.mean);
  memcpy(p.std, o->std, sizeof p.std);
  const hn_picture seen = {picture->desc.dim[1], picture->desc.dim[0], picture->data};
  const hone_tensor_desc want = desc_of(o, 1, s->h, s->shown);
  hone_tensor made;
  hone_status status = hn_picture_tensor(&seen, &want, &p, arena, &made, map, error);
  if (status != HONE_OK) return status;
  map->tensor_width = s->w;
  const size_t size = hone_dtype_size(o->dtype);
  const int64_t lines = o->last ? s->h : o->channels * s->h, per = o->last ? o->channels : 1;
  const size_t from = (size_t)(s->shown * per) * size, line = (size_t)(s->w * per) * size;
  char *to = (char *)batch->data + (size_t)r * (size_t)lines * line;
  float v[3] = {0};
  hone_tensor bars = {0}; /* may be v itself */
  if (from < line) {      /* converted once, a pixel */
    for (int64_t k = 0; k < o->channels; k++) v[k] = bar(o, k);
    const hone_tensor f32 = {hone_desc(HONE_DTYPE_F32, 1, &o->channels), v};
    status = hn_tensor_convert(&f32, o->dtype, arena, &bars, error);
  }
  for (int64_t i = 0; i < lines && status == HONE_OK; i++) {
    memcpy(to + (size_t)i * line, (const char *)made.data + (size_t)i * from, from);
    const char *pixel = o->last ? bars.data : (char *)bars.data + (size_t)(i / s->h) * size;
    for (size_t at = from; at < line; at += size * (size_t)per)
      memcpy(to + (size_t)i * line + at, pixel, size * (size_t)per);
  }
  return status;
}

/* Pictures of one size stand next to each other, then cut into batches: full ones, and powers of two of what
 * is left, so that few plans are needed. */
static uint32_t batches_of(const settings *o, const sized *s, uint32_t n, uint32_t *length) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n;) {
    uint32_t same = 1;
    while (i + same < n && s[i + same].h == s[i].h && s[i + same].w == s[i].w) same++;
    for (i += same; same;) {
      uint32_t take = 1;
      while (take * 2 <= same && take * 2 <= o->batch) take *= 2;
      if (same >= o->batch) take = (uint32_t)o->batch;
      if (length) length[count] = take;
      count++;
      same -= take;
    }
  }
  return count;
}

static void sort_by_size(sized *s, uint32_t n) {
  for (uint32_t i = 1; i < n; i++) { /* stable; there are few */
    const sized x = s[i];
    uint32_t k = i;
    for (; k && (s[k - 1].w > x.w || (s[k - 1].w == x.w && s[k - 1].h > x.h)); k--) s[k] = s[k - 1];
    s[k] = x;
  }
}

static hone_status run(hone_chain *c, const hn_stage *stage, const hn_passed *const *in, hn_passed *out,
                       hone_error *error) {
  const settings *o = stage->settings;
  const uint32_t n = in[0]->n;
  sized *s = HN_NEW_ARRAY(&c->scratch, sized, n + 1);
  uint32_t *length = HN_NEW_ARRAY(&c->scratch, uint32_t, n + 1),
           *item = HN_NEW_ARRAY(&c->arena, uint32_t, n + 1);
  out->map = HN_NEW_ARRAY(&c->arena, hone_picture_map, n + 1);
  out->items = n;
  if (!s || !length || !item || !out->map) return hn_fail_memory(error, n * sizeof *s, stage->name);
  for (uint32_t i = 0; i < n; i++) {
    s[i] = size_of(o, &in[0]->picture[i]);
    s[i].item = i;
    if (s[i].h > SIDE_MOST || s[i].w > 4 * SIDE_MOST)
      return hn_stage_fail(c, stage, HONE_ERROR_INPUT, error,
                           "a picture of %lld x %lld would become %lld x %lld",
                           (long long)in[0]->picture[i].desc.dim[0], (long long)in[0]->picture[i].desc.dim[1],
                           (long long)s[i].h, (long long)s[i].w);
  }
  sort_by_size(s, n);
  hone_status status = hn_passed_batches(c, out, batches_of(o, s, n, length), error);
  uint32_t at = 0;
  for (uint32_t b = 0; b < out->n && status == HONE_OK; b++) {
    hone_chain_batch *batch = &out->batch[b];
    batch->tensor.desc = desc_of(o, length[b], s[at].h, s[at].w);
    batch->item = item + at;
    batch->n = length[b];
    const int64_t bytes = hone_desc_bytes(&batch->tensor.desc);
    batch->tensor.data = bytes > 0 ? hn_chain_take(c, out, (size_t)bytes) : NULL;
    if (!batch->tensor.data) return hn_fail_memory(error, (uint64_t)bytes, stage->name);
    for (uint32_t r = 0; r < length[b] && status == HONE_OK; r++, at++) {
      item[at] = s[at].item;
      hn_arena arena = {0};
      status = put(&arena, o, &in[0]->picture[s[at].item], &s[at], &batch->tensor, r, &out->map[s[at].item],
                   error);
      hn_arena_free(&arena);
    }
  }
  return status;
}

const hn_link hn_link_prepare = {.name = "prepare",
                                 .makes = HONE_CHAIN_TENSORS,
                                 .n_reads = 1,
                                 .reads = {{"from", HONE_CHAIN_PICTURES}},
                                 .members = members,
                                 .size = sizeof(settings),
                                 .defaults = &defaults,
                                 .ready = ready,
                                 .run = run};
