/* rotate: turns the pictures of which a classifier says that they need it. */
#include "api/chain/chain.h"
#include "base/error.h"

#include <string.h>

typedef struct settings {
  int64_t class_id;
  double threshold;
  int angle;
} settings;

static const char *const angles[] = {"180", "90", "270", NULL};
static const settings defaults = {.class_id = 1, .threshold = 0.9};
static const hn_member members[] = {
    {"class", HN_MEMBER_COUNT, offsetof(settings, class_id), 0, 1e6, NULL},
    {"threshold", HN_MEMBER_REAL, offsetof(settings, threshold), -1e6, 1e6, NULL},
    {"angle", HN_MEMBER_WORD, offsetof(settings, angle), 0, 0, angles},
    {0}};
enum { BY_180, BY_90, BY_270 }; /* clockwise */

static hone_status turn(hone_chain *c, hn_passed *out, uint32_t i, const hone_tensor *from, int angle,
                        hone_error *error) {
  const int64_t h = from->desc.dim[0], w = from->desc.dim[1];
  const bool across = angle != BY_180;
  const hone_status status =
      hn_chain_picture(c, out, &out->picture[i], across ? w : h, across ? h : w, error);
  if (status != HONE_OK) return status;
  const uint8_t *p = from->data;
  uint8_t *q = out->picture[i].data;
  for (int64_t y = 0; y < h; y++)
    for (int64_t x = 0; x < w; x++, p += 3) {
      const int64_t to = angle == BY_180  ? (h - 1 - y) * w + w - 1 - x
                         : angle == BY_90 ? x * h + h - 1 - y
                                          : (w - 1 - x) * h + y;
      memcpy(q + to * 3, p, 3);
    }
  return HONE_OK;
}

static hone_status keep(hone_chain *c, hn_passed *out, uint32_t i, const hone_tensor *from,
                        hone_error *error) {
  const hone_status status =
      hn_chain_picture(c, out, &out->picture[i], from->desc.dim[0], from->desc.dim[1], error);
  if (status == HONE_OK) memcpy(out->picture[i].data, from->data, (size_t)hone_desc_bytes(&from->desc));
  return status;
}

/* The class is the row's greatest, and sure enough. */
static bool says(const settings *o, const float *row, int64_t n) {
  const float v = row[o->class_id];
  for (int64_t i = 0; i < n; i++)
    if (row[i] > v) return false;
  return (double)v > o->threshold;
}

static hone_status ask(hone_chain *c, const hn_stage *s, const hn_passed *scores, uint32_t n, bool *wanted,
                       hone_error *error) {
  const settings *o = s->settings;
  for (uint32_t b = 0; b < scores->n; b++)
    for (uint32_t r = 0; r < scores->batch[b].n; r++) {
      const hone_chain_batch *batch = &scores->batch[b];
      const float *row;
      int64_t count;
      const hone_status status = hn_batch_row(c, s, batch, r, &row, &count, error);
      if (status != HONE_OK) return status;
      if (o->class_id >= count)
        return hn_stage_fail(c, s, HONE_ERROR_INPUT, error, "class %lld of '%s', which has %lld",
                             (long long)o->class_id, scores->name, (long long)count);
      if (batch->item[r] < n) wanted[batch->item[r]] = says(o, row, count);
    }
  return HONE_OK;
}

static hone_status run(hone_chain *c, const hn_stage *s, const hn_passed *const *in, hn_passed *out,
                       hone_error *error) {
  const settings *o = s->settings;
  const uint32_t n = in[1]->n;
  bool *wanted = HN_NEW_ARRAY(&c->scratch, bool, n + 1);
  out->picture = HN_NEW_ARRAY(&c->arena, hone_tensor, n + 1);
  out->n = out->items = n;
  if (!wanted || !out->picture) return hn_fail_memory(error, n * sizeof *out->picture, s->name);
  hone_status status = ask(c, s, in[0], n, wanted, error);
  for (uint32_t i = 0; i < n && status == HONE_OK; i++)
    status = wanted[i] ? turn(c, out, i, &in[1]->picture[i], o->angle, error)
                       : keep(c, out, i, &in[1]->picture[i], error);
  return status;
}

const hn_link hn_link_rotate = {.name = "rotate",
                                .makes = HONE_CHAIN_PICTURES,
                                .n_reads = 2,
                                .reads = {{"scores", HONE_CHAIN_TENSORS}, {"from", HONE_CHAIN_PICTURES}},
                                .members = members,
                                .size = sizeof(settings),
                                .defaults = &defaults,
                                .run = run};
