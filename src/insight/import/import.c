/* The one entry: finds out the format, opens and unpacks, joins the files of a run. */
#include "insight/import/import.h"

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SNIFFED = 65536 };

/* ---- telling formats apart */

bool hn_sniff_has(const hn_sniff *s, const char *text) {
  return memmem(s->data, s->size, text, strlen(text)) != NULL;
}

char hn_sniff_first(const hn_sniff *s) {
  for (size_t i = 0; i < s->size; i++)
    if (s->data[i] > ' ') return (char)s->data[i];
  return 0;
}

static void lower_name(const char *path, char *out, size_t size) {
  const char *slash = strrchr(path, '/');
  snprintf(out, size, "%s", slash ? slash + 1 : path);
  for (; *out; out++)
    if (*out >= 'A' && *out <= 'Z') *out = (char)(*out + 32);
}

static hone_status all_formats(hone_error *error, hone_status status) {
  char list[sizeof error->hint] = "formats:";
  size_t at = strlen(list);
  const hone_import_format *format;
  for (size_t i = 0; (format = hone_import_format_at(i)) && at < sizeof list; i++)
    at += (size_t)snprintf(list + at, sizeof list - at, " %s", format->name);
  hn_error_hint(error, "%s", list);
  return status;
}

static hone_status find_named(const hn_listing *importers, const char *name, const struct hn_importer **out,
                              hone_error *error) {
  *out = hn_listing_find(importers, name);
  if (*out) return HONE_OK;
  return all_formats(error, hn_fail(error, HONE_ERROR_USAGE, "there is no format '%s'", name));
}

static hone_status find_format(const hn_listing *importers, hn_source *source, const struct hn_importer **out,
                               hone_error *error) {
  static const uint8_t none[1];
  char name[256];
  lower_name(source->path, name, sizeof name);
  size_t n = hn_source_ahead(source, SNIFFED);
  if (source->status) return source->status;
  if (!n) {
    hone_status status = hn_fail(error, HONE_ERROR_INPUT, "the file is empty");
    hn_error_where(error, "%s", source->path);
    return status;
  }
  hn_sniff sniff = {name, n ? source->at : none, n < SNIFFED ? n : SNIFFED};
  int best = 0;
  for (uint32_t i = 0; i < importers->n; i++) {
    const struct hn_importer *importer = importers->unit[i];
    const int sure = importer->sniff(&sniff);
    if (sure > best) {
      best = sure;
      *out = importer;
    }
  }
  if (best) return HONE_OK;
  hone_status status = hn_fail(error, HONE_ERROR_INPUT, "this file is of no format that hone knows");
  hn_error_where(error, "%s", source->path);
  return all_formats(error, status);
}

/* ---- a run of several files */

typedef struct run {
  hn_import in;
  const hn_listing *importers;
  const struct hn_importer *importer; /* of the files so far; NULL: none yet */
  const char *first;                  /* the file that decided it */
} run;

static hone_status choose(run *r, const struct hn_importer *importer, const char *path, hone_error *error) {
  if (r->importer == importer) return HONE_OK;
  if (r->importer) {
    hone_status status = hn_fail(error, HONE_ERROR_USAGE, "'%s' is of %s, but '%s' of %s", r->first,
                                 r->importer->format.name, path, importer->format.name);
    hn_error_expected(error, "files of one run of one tool");
    hn_error_hint(error, "hone compare sets two profiles beside each other");
    return status;
  }
  r->importer = importer;
  r->first = path;
  if (importer->state_size && !(r->in.state = hn_arena_alloc(&r->in.arena, importer->state_size)))
    return hn_fail_memory(error, importer->state_size, "an importer");
  return HONE_OK;
}

static hone_status read_one(run *r, const char *path, const void *bytes, size_t size, hone_error *error) {
  const struct hn_importer *importer = NULL;
  hn_source source;
  hone_status status = hn_source_open(&source, path, bytes, size, r->in.options->max_bytes, error);
  if (status) return status;
  status = r->in.options->format ? find_named(r->importers, r->in.options->format, &importer, error)
                                 : find_format(r->importers, &source, &importer, error);
  if (!status) status = choose(r, importer, path, error);
  if (!status && importer->read) status = importer->read(&r->in, &source, error);
  hn_source_close(&source);
  if (status || importer->read) return status;
  if (!bytes && strcmp(path, "-") != 0) return importer->open(&r->in, path, error);
  status = hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s files are databases and must lie in a file",
                   importer->format.name);
  hn_error_where(error, "%s", path);
  return status;
}

static hone_status finish(run *r, hone_error *error) {
  hn_import *in = &r->in;
  hone_status status = r->importer->finish ? r->importer->finish(in, error) : HONE_OK;
  if (status && error && !error->where[0]) hn_error_where(error, "%s", r->first);
  if (status) return status;
  if (!in->complete) {
    if (!in->meta.tool) in->meta.tool = r->importer->format.name;
    if (in->options->model) in->meta.model = in->options->model;
    hone_facts_set_meta(in->facts, &in->meta);
  }
  status = hone_facts_check(in->facts, error);
  if (!status) {
    size_t spans, stats;
    hone_facts_spans(in->facts, &spans);
    hone_facts_step_stats(in->facts, &stats);
    if (spans || stats) return HONE_OK;
    status = hn_fail(error, HONE_ERROR_INPUT, "the file holds no measured time");
  }
  hn_error_where(error, "%s", r->first);
  return status;
}

static hone_status import(const char *const *paths, size_t n, const void *bytes, size_t size,
                          const hone_import_options *options, hone_facts **facts, hone_error *error) {
  static const hone_import_options defaults = {0};
  const uint64_t lost = hn_mem_lost();
  *facts = NULL;
  if (!n) return hn_fail(error, HONE_ERROR_USAGE, "no file to import");
  run r = {.in = {.options = options ? options : &defaults, .meta = {.opt_level = -1}},
           .importers = hn_registry_take(&hn_importers)};
  r.in.facts = hone_facts_create();
  hone_status status = r.in.facts ? HONE_OK : hn_fail_memory(error, 0, "the facts of a run");
  for (size_t i = 0; i < n && !status; i++) status = read_one(&r, paths[i], bytes, size, error);
  if (!status) status = finish(&r, error);
  if (r.importer && r.importer->destroy && r.in.state) r.importer->destroy(r.in.state);
  hn_map_free(&r.in.steps);
  hn_map_free(&r.in.labels);
  hn_listing_drop(r.importers);
  status = hn_settle(status, lost, error);
  if (status)
    hone_facts_destroy(r.in.facts);
  else
    *facts = r.in.facts;
  hn_arena_free(&r.in.arena);
  return status;
}

hone_status hone_import_files(const char *const *paths, size_t n, const hone_import_options *options,
                              hone_facts **facts, hone_error *error) {
  if (!paths || !facts)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_import_files: paths and facts may not be NULL");
  return import(paths, n, NULL, 0, options, facts, error);
}

hone_status hone_import_memory(const char *name, const void *bytes, size_t size,
                               const hone_import_options *options, hone_facts **facts, hone_error *error) {
  if (!name || !facts)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_import_memory: name and facts may not be NULL");
  return import(&name, 1, bytes ? bytes : "", size, options, facts, error);
}

/* ---- helpers */

int32_t hn_import_step(hn_import *in, const char *name, const hone_step_fact *step) {
  intptr_t known = (intptr_t)hn_map_get(&in->steps, name);
  if (known) return (int32_t)(known - 1);
  hone_step_fact row = step ? *step : (hone_step_fact){.anchor_node = -1};
  row.name = hn_arena_strdup(&in->arena, name);
  int32_t index = row.name ? hone_facts_add_step(in->facts, &row) : -1;
  if (index < 0 || !hn_map_set(&in->steps, row.name, (void *)(intptr_t)(index + 1))) return -1;
  return index;
}

const char *hn_import_label(hn_import *in, const char *name) {
  uintptr_t met = (uintptr_t)hn_map_get(&in->labels, name);
  const char *key = met ? name : hn_arena_strdup(&in->arena, name);
  const char *label = key;
  /* A file may hold a name like "x #2" itself. */
  do {
    if (met && label) label = hn_import_say(in, "%.980s #%llu", name, (unsigned long long)met + 1);
    met++;
  } while (label && hn_map_has(&in->steps, label));
  return label && hn_map_set(&in->labels, key, (void *)met) ? label : NULL;
}

const char *hn_import_text(hn_import *in, const char *text) {
  return text ? hn_arena_strdup(&in->arena, text) : NULL;
}

const char *hn_import_say(hn_import *in, const char *format, ...) {
  char text[1024];
  va_list ap;
  va_start(ap, format);
  vsnprintf(text, sizeof text, format, ap);
  va_end(ap);
  return hn_arena_strdup(&in->arena, text);
}

static int64_t dim(const int64_t *dims, size_t rank, size_t i) {
  return i < rank && dims[i] > 0 ? dims[i] : 0;
}

void hn_import_conv(const hn_conv_shape *s, hone_step_fact *step) {
  int64_t channels_in = dim(s->in, s->in_rank, 1), channels_out = dim(s->weight, s->weight_rank, 0);
  if (!channels_out) channels_out = dim(s->out, s->out_rank, 1);
  if (channels_in <= INT32_MAX) step->channels_in = (int32_t)channels_in;
  if (channels_out <= INT32_MAX) step->channels_out = (int32_t)channels_out;
  if (s->weight_rank < 3 || s->out_rank != s->weight_rank) return;
  /* Each output element is a sum over C/group * kernel products. */
  double flops = 2;
  for (size_t i = 0; i < s->out_rank; i++) flops *= (double)dim(s->out, s->out_rank, i);
  for (size_t i = 1; i < s->weight_rank; i++) flops *= (double)dim(s->weight, s->weight_rank, i);
  if (flops > 0 && flops < 1e18) step->flops = (uint64_t)flops;
}
