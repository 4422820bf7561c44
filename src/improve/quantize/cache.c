/* What the samples held, as JSON beside the output: another method, target or list of operators then needs no
 * run. Of the bins only those between the first and the last that hold something are written. */
#include "improve/quantize/quantize.h"

#include "base/checksum.h"
#include "base/error.h"
#include "base/os.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "hone ranges"
enum { VERSION = 1 };

static uint64_t mix(uint64_t h, uint64_t v) { return (h ^ v) * 0x9e3779b97f4a7c15u ^ (h >> 29); }

uint64_t hn_quantize_model_mark(const hn_model *m) {
  uint64_t h = 1;
  for (const hone_node *n = m->graph->first; n; n = n->next) {
    h = hn_hash(n->op_type, strlen(n->op_type), h);
    for (uint32_t i = 0; i < n->n_in; i++)
      if (n->in[i]) h = hn_hash(n->in[i]->name, strlen(n->in[i]->name), h);
    for (uint32_t i = 0; i < n->n_out; i++)
      if (n->out[i]) h = hn_hash(n->out[i]->name, strlen(n->out[i]->name), h);
  }
  for (size_t i = 0; i < m->graph->values.len; i++) {
    const hn_value *v = m->graph->values.ptr[i];
    if (!hn_quantize_is_constant(v) || !hn_value_needed(v) || v->desc.dtype == HONE_DTYPE_STRING ||
        !v->constant->data)
      continue;
    h = mix(h, hn_checksum(v->constant->data, (size_t)hone_desc_bytes(&v->constant->desc)));
  }
  return h;
}

/* ---- writing */

static json_t *word(uint64_t v) { return json_sprintf("%016llx", (unsigned long long)v); }

static json_t *range_json(const hn_quantize_range *r) {
  const hn_quantize_histogram *h = r->seen;
  int first = 0, last = HN_QUANTIZE_BINS;
  json_t *bins = json_array();
  while (first < HN_QUANTIZE_BINS && !h->bin[first]) first++;
  while (last > first && !h->bin[last - 1]) last--;
  for (int i = first; i < last; i++) json_array_append_new(bins, json_integer((json_int_t)h->bin[i]));
  return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:i, s:o}", "name", r->name, "least",
                   h->least, "most", h->most, "early_least", h->early_least, "early_most", h->early_most,
                   "reach", h->reach, "count", (json_int_t)h->count, "zeros", (json_int_t)h->zeros, "odd",
                   (json_int_t)h->odd, "first", first, "bins", bins);
}

static json_t *coverage_json(const hone_quantize_coverage *c) {
  return json_pack("{s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:i, s:i, s:b, s:i, s:i, s:s, s:s, s:s}",
                   "repeated", (int)c->repeated, "pictures", (int)c->pictures, "darkest", c->darkest,
                   "brightest", c->brightest, "brightness", c->brightness, "spread", c->spread, "contrast",
                   c->contrast, "contrast_spread", c->contrast_spread, "one_colour", (int)c->one_colour,
                   "classes", (int)c->classes, "missing", (int)c->missing, "boxes", c->boxes, "fewest",
                   (int)c->fewest, "most", (int)c->most, "rarest", c->rarest, "commonest", c->commonest,
                   "absent", c->absent);
}

static json_t *means_json(const hn_quantize_means *m) {
  json_t *sums = json_array();
  for (int64_t c = 0; c < m->channels; c++) json_array_append_new(sums, json_real(m->sums[c]));
  return json_pack("{s:s, s:b, s:I, s:o}", "name", m->name, "last", m->last, "count", (json_int_t)m->count,
                   "sums", sums);
}

hone_status hn_quantize_ranges_write(const hn_quantizing *q, const char *path, uint64_t model,
                                     uint64_t samples, hone_error *error) {
  hn_mem_foreign_begin();
  json_t *values = json_array(), *means = json_array();
  for (size_t i = 0; i < q->ranges.len; i++) json_array_append_new(values, range_json(q->ranges.ptr[i]));
  for (size_t i = 0; i < q->means.len; i++) json_array_append_new(means, means_json(q->means.ptr[i]));
  json_t *root =
      json_pack("{s:s, s:i, s:o, s:o, s:s, s:i, s:o, s:o, s:o*}", "format", FORMAT, "version", VERSION,
                "model", word(model), "samples_of", word(samples), "calib", q->calib, "samples",
                (int)q->samples, "values", values, "means", means, "coverage", coverage_json(&q->cover.told));
  char *text = root ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
  json_decref(root);
  if (!text) {
    hn_mem_foreign_end();
    return hn_fail_memory(error, 0, "the file of ranges");
  }
  hone_status status = hn_file_write(path, text, strlen(text), error);
  free(text);
  return status;
}

/* ---- reading */

static bool is_word(const json_t *v, uint64_t mark) {
  char buf[20];
  snprintf(buf, sizeof buf, "%016llx", (unsigned long long)mark);
  return json_is_string(v) && strcmp(json_string_value(v), buf) == 0;
}

static const json_t *named(const json_t *list, const char *name) {
  size_t i;
  json_t *o;
  json_array_foreach(list, i, o) {
    const char *s = json_string_value(json_object_get(o, "name"));
    if (s && strcmp(s, name) == 0) return o;
  }
  return NULL;
}

static double real(const json_t *o, const char *key) { return json_number_value(json_object_get(o, key)); }
static uint64_t whole(const json_t *o, const char *key) {
  const json_int_t v = json_integer_value(json_object_get(o, key));
  return v > 0 ? (uint64_t)v : 0;
}

/* A range that values of f32 can have had. */
static bool is_possible(const hn_quantize_histogram *h) {
  const double ends[] = {h->least, h->most, h->early_least, h->early_most};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
    if (!(fabs(ends[i]) <= (double)FLT_MAX)) return false;
  return h->least <= h->most && h->reach >= 0 && h->reach <= 2 * (double)FLT_MAX;
}

static bool take_range(const json_t *values, const hn_quantize_range *r, bool *damaged) {
  const json_t *o = named(values, r->name), *bins = json_object_get(o, "bins");
  const size_t first = (size_t)whole(o, "first"), n = json_array_size(bins);
  hn_quantize_histogram *h = r->seen;
  if (!o || !json_is_array(bins) || first > HN_QUANTIZE_BINS || n > HN_QUANTIZE_BINS - first) return false;
  *h = (hn_quantize_histogram){.reach = real(o, "reach"),
                               .count = whole(o, "count"),
                               .zeros = whole(o, "zeros"),
                               .odd = whole(o, "odd"),
                               .least = real(o, "least"),
                               .most = real(o, "most"),
                               .early_least = real(o, "early_least"),
                               .early_most = real(o, "early_most")};
  for (size_t i = 0; i < n; i++) {
    const json_int_t v = json_integer_value(json_array_get(bins, i));
    h->bin[first + i] = v > 0 ? (uint64_t)v : 0;
  }
  *damaged = !is_possible(h);
  return !*damaged;
}

static uint32_t small(const json_t *o, const char *key) {
  const uint64_t v = whole(o, key);
  return v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
}

static const char *words(hn_quantizing *q, const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  return hn_arena_strdup(&q->arena, s ? s : "");
}

/* What the samples were like; files that were written before they said so have none of it. */
static bool take_coverage(hn_quantizing *q, const json_t *o) {
  if (!json_is_object(o)) return true;
  hone_quantize_coverage *c = &q->cover.told;
  *c = (hone_quantize_coverage){.known = true,
                                .repeated = small(o, "repeated"),
                                .pictures = small(o, "pictures"),
                                .darkest = real(o, "darkest"),
                                .brightest = real(o, "brightest"),
                                .brightness = real(o, "brightness"),
                                .spread = real(o, "spread"),
                                .contrast = real(o, "contrast"),
                                .contrast_spread = real(o, "contrast_spread"),
                                .one_colour = small(o, "one_colour"),
                                .classes = small(o, "classes"),
                                .missing = small(o, "missing"),
                                .boxes = json_is_true(json_object_get(o, "boxes")),
                                .fewest = small(o, "fewest"),
                                .most = small(o, "most"),
                                .rarest = words(q, o, "rarest"),
                                .commonest = words(q, o, "commonest"),
                                .absent = words(q, o, "absent")};
  return c->rarest && c->commonest && c->absent;
}

static bool take_means(const json_t *means, hn_quantize_means *m) {
  size_t i;
  json_t *o;
  json_array_foreach(means, i, o) {
    const json_t *sums = json_object_get(o, "sums");
    const char *name = json_string_value(json_object_get(o, "name"));
    if (!name || strcmp(name, m->name) != 0 || json_is_true(json_object_get(o, "last")) != m->last ||
        json_array_size(sums) != (size_t)m->channels)
      continue;
    for (int64_t c = 0; c < m->channels; c++) m->sums[c] = json_number_value(json_array_get(sums, (size_t)c));
    m->count = whole(o, "count");
    return true;
  }
  return false;
}

static void forget(hn_quantizing *q) {
  for (size_t i = 0; i < q->ranges.len; i++) *q->ranges.ptr[i]->seen = (hn_quantize_histogram){0};
  for (size_t i = 0; i < q->means.len; i++) {
    memset(q->means.ptr[i]->sums, 0, (size_t)q->means.ptr[i]->channels * sizeof(double));
    q->means.ptr[i]->count = 0;
  }
}

static hone_status impossible(const char *path, const char *name, hone_error *error) {
  hn_fail(error, HONE_ERROR_INPUT, "the file of ranges is damaged: '%.100s' cannot have held that", name);
  hn_error_where(error, "%s", path);
  hn_error_expected(error, "least <= most, and both numbers of f32");
  hn_error_hint(error, "--again runs the samples once more and writes it anew");
  return HONE_ERROR_INPUT;
}

hone_status hn_quantize_ranges_read(hn_quantizing *q, const char *path, uint64_t model, uint64_t samples,
                                    bool *fits, hone_error *error) {
  hn_file file;
  json_error_t bad;
  *fits = false;
  if (!hn_path_exists(path)) return HONE_OK;
  hone_status status = hn_file_map(path, NULL, HN_FILE_CACHE, &file, error);
  if (status != HONE_OK) return status;
  hn_mem_foreign_begin();
  json_t *root = json_loadb((const char *)file.data, file.size, 0, &bad);
  if (!root) hn_mem_foreign_end();
  hn_file_unmap(&file);
  const char *format = json_string_value(json_object_get(root, "format"));
  if (!format || strcmp(format, FORMAT) != 0) {
    json_decref(root);
    hn_fail(error, HONE_ERROR_INPUT, "this is no file of ranges: it would be written over");
    hn_error_where(error, "%s", path);
    hn_error_hint(error, "name another file (--ranges FILE)");
    return HONE_ERROR_INPUT;
  }
  const char *calib = json_string_value(json_object_get(root, "calib"));
  *fits = json_integer_value(json_object_get(root, "version")) == VERSION && calib &&
          is_word(json_object_get(root, "model"), model) &&
          (!samples || is_word(json_object_get(root, "samples_of"), samples));
  bool damaged = false;
  for (size_t i = 0; i < q->ranges.len && *fits; i++) {
    *fits = take_range(json_object_get(root, "values"), q->ranges.ptr[i], &damaged);
    if (damaged) status = impossible(path, q->ranges.ptr[i]->name, error);
  }
  for (size_t i = 0; i < q->means.len && *fits; i++)
    *fits = take_means(json_object_get(root, "means"), q->means.ptr[i]);
  if (*fits) {
    q->samples = q->samples_wanted = (uint32_t)whole(root, "samples");
    if (!(q->calib = hn_arena_strdup(&q->arena, calib)) ||
        !take_coverage(q, json_object_get(root, "coverage")))
      status = hn_fail_memory(error, strlen(calib), "ranges");
  } else {
    forget(q);
  }
  json_decref(root);
  return status;
}
