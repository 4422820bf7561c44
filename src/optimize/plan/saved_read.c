/* Loading a saved plan. Nothing of the file is used as a size or an index before it was compared with what is
 * there. */
#include "optimize/plan/saved.h"
#include "optimize/plan/plan.h"

#include "base/checksum.h"
#include "base/error.h"
#include "base/map.h"
#include "model/onnx/onnx.h"
#include "model/operators.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ errors */

#define AGAIN "make it again: hone optimize MODEL -o M.hone"

static hone_status damaged(const char *path, uint64_t at, hone_error *error, const char *what) {
  hn_fail(error, HONE_ERROR_INPUT, "the saved plan is damaged: %s", what);
  hn_error_where(error, "%s: byte %llu", path, (unsigned long long)at);
  hn_error_hint(error, AGAIN);
  return HONE_ERROR_INPUT;
}

hone_status hn_saved_misfit(const hn_saved *s, hone_error *error, const char *format, ...) {
  char text[200];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  hn_fail(error, HONE_ERROR_INPUT, "the saved plan does not fit this build of hone: %s", text);
  hn_error_where(error, "%s", s->path);
  hn_error_hint(error, AGAIN);
  return HONE_ERROR_INPUT;
}

/* The file is sound, but for another machine or another hone. */
static hone_status foreign(const char *path, hone_error *error, const char *what, const char *expected,
                           const char *got) {
  hn_fail(error, HONE_ERROR_INPUT, "the saved plan is for another %s", what);
  hn_error_where(error, "%s", path);
  hn_error_expected(error, "%s", expected);
  hn_error_got(error, "%s", got);
  hn_error_hint(error, strcmp(what, "number of threads") == 0 ? "-t %s, or " AGAIN : AGAIN, got);
  return HONE_ERROR_INPUT;
}

/* ------------------------------------------------------------------ head */

bool hn_saved_is(const char *path) {
  char magic[8];
  return hn_file_begin(path, magic, sizeof magic) == sizeof magic &&
         memcmp(magic, HN_SAVED_MAGIC, sizeof magic) == 0;
}

static bool inside(uint64_t at, uint64_t bytes, uint64_t whole) { return at <= whole && bytes <= whole - at; }

static hone_status read_head(const char *path, const hn_file *f, hn_saved_head *h, hone_error *error) {
  char got[64], expected[64];
  if (f->size < sizeof *h) return damaged(path, f->size, error, "it ends within its head");
  memcpy(h, f->data, sizeof *h);
  if (memcmp(h->magic, HN_SAVED_MAGIC, sizeof h->magic) != 0) {
    hn_fail(error, HONE_ERROR_INPUT, "not a saved plan");
    hn_error_where(error, "%s", path);
    return HONE_ERROR_INPUT;
  }
  if (h->format != HN_SAVED_FORMAT) {
    snprintf(expected, sizeof expected, "%d", HN_SAVED_FORMAT);
    snprintf(got, sizeof got, "%u", h->format);
    return foreign(path, error, "format version", expected, got);
  }
  if (h->head_sum != hn_checksum(h, offsetof(hn_saved_head, head_sum)))
    return damaged(path, 0, error, "the checksum of its head is another than was recorded");
  h->version[sizeof h->version - 1] = 0;
  if (h->file_bytes != f->size) {
    damaged(path, f->size, error, h->file_bytes > f->size ? "it is cut short" : "something follows its end");
    hn_error_expected(error, "%llu bytes", (unsigned long long)h->file_bytes);
    hn_error_got(error, "%zu bytes", f->size);
    return HONE_ERROR_INPUT;
  }
  if (h->head_bytes != sizeof *h || !inside(h->meta_at, h->meta_bytes, f->size) ||
      !inside(h->graph_at, h->graph_bytes, f->size) || !inside(h->blob_at, h->blob_bytes, f->size) ||
      h->blob_at % HN_SAVED_PAGE)
    return damaged(path, 0, error, "a part lies outside of the file");
  return HONE_OK;
}

hone_status hn_saved_peek(const char *path, hn_saved_head *out, hone_error *error) {
  hn_file f;
  hone_status status = hn_file_map(path, NULL, HN_FILE_PLAN, &f, error);
  if (status != HONE_OK) return status;
  status = read_head(path, &f, out, error);
  hn_file_unmap(&f);
  return status;
}

static void isa_text(uint32_t isa, char *buf, size_t size) {
  static const char *const names[] = {"avx2", "avx512", "avx512vnni", "avx512bf16", "amx", "avxvnni"};
  size_t n = 0;
  snprintf(buf, size, "scalar");
  for (uint32_t i = 0; i < 32 && n < size; i++)
    if (isa >> i & 1)
      n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? " " : "",
                            i < sizeof names / sizeof *names ? names[i] : "?");
}

static hone_status check_machine(const char *path, const hn_saved_head *h, const hone_machine *m,
                                 hone_error *error) {
  char expected[96], got[96];
  if (strcmp(h->version, hone_version()) != 0)
    return foreign(path, error, "version of hone", hone_version(), h->version);
  if (h->isa != m->isa) {
    const bool gpu = strcmp(m->device, "cpu") != 0;
    isa_text(m->isa, expected, sizeof expected);
    isa_text(h->isa, got, sizeof got);
    return foreign(path, error, gpu ? "device" : "processor", gpu ? m->device : expected,
                   h->isa ? got : "none: scalar code, or an accelerator (--device)");
  }
  if (h->threads != m->threads) {
    snprintf(expected, sizeof expected, "%u", m->threads);
    snprintf(got, sizeof got, "%u", h->threads);
    return foreign(path, error, "number of threads", expected, got);
  }
  if (h->l1 != m->l1 || h->l2 != m->l2 || h->l3 != m->l3) {
    snprintf(expected, sizeof expected, "caches of %zu, %zu and %zu bytes", m->l1, m->l2, m->l3);
    snprintf(got, sizeof got, "%llu, %llu and %llu", (unsigned long long)h->l1, (unsigned long long)h->l2,
             (unsigned long long)h->l3);
    return foreign(path, error, "processor", expected, got);
  }
  if (h->dram != (uint64_t)m->dram_bytes) {
    snprintf(expected, sizeof expected, "%.3g GB/s from memory", m->dram_bytes / 1e9);
    snprintf(got, sizeof got, "%.3g", (double)h->dram / 1e9);
    return foreign(path, error, "processor", expected, got);
  }
  return HONE_OK;
}

/* ------------------------------------------------------------------ checksums */

typedef struct summing {
  const uint8_t *data;
  size_t size;
  uint64_t *sums;
} summing;

static void sum_piece(void *arg, int64_t task, uint32_t thread) {
  summing *s = arg;
  (void)thread;
  s->sums[task] = hn_checksum_piece(s->data, s->size, (size_t)task);
}

static hone_status check_part(const hn_saved *s, const hn_backend *backend, hn_device *device, uint64_t at,
                              uint64_t bytes, uint64_t want, const char *what, hone_error *error) {
  size_t n = hn_checksum_pieces((size_t)bytes);
  summing k = {s->file.data + at, (size_t)bytes, hn_malloc(n * sizeof *k.sums)};
  if (!k.sums) return hn_fail_memory(error, n * sizeof *k.sums, "checking a saved plan");
  backend->parallel(device, (int64_t)n, sum_piece, &k);
  uint64_t got = hn_checksum_join(k.sums, n, (size_t)bytes);
  hn_free(k.sums);
  char text[96];
  snprintf(text, sizeof text, "the checksum of its %s is another than was recorded", what);
  return got == want ? HONE_OK : damaged(s->path, at, error, text);
}

/* ------------------------------------------------------------------ meta */

typedef struct reader {
  const uint8_t *at, *end;
  bool bad;
} reader;

static bool take(reader *r, void *to, size_t size) {
  if (r->bad || (size_t)(r->end - r->at) < size) {
    memset(to, 0, size);
    return !(r->bad = true);
  }
  memcpy(to, r->at, size);
  r->at += size;
  return true;
}

static uint32_t take32(reader *r) {
  uint32_t v;
  take(r, &v, sizeof v);
  return v;
}
static uint64_t take64(reader *r) {
  uint64_t v;
  take(r, &v, sizeof v);
  return v;
}
static double take_real(reader *r) {
  double v;
  take(r, &v, sizeof v);
  return v;
}

static const char *take_text(reader *r, hn_arena *a) {
  uint32_t n = take32(r);
  if (r->bad || (size_t)(r->end - r->at) < n) {
    r->bad = true;
    return "";
  }
  const char *s = hn_arena_strndup(a, (const char *)r->at, n);
  r->at += n;
  if (!s) r->bad = true;
  return s ? s : "";
}

/* A count of things of at least `size` bytes each. */
static uint32_t take_count(reader *r, size_t size) {
  uint32_t n = take32(r);
  if (n > (size_t)(r->end - r->at) / size) r->bad = true;
  return r->bad ? 0 : n;
}

static void take_origins(reader *r, hn_graph *g, uint32_t sources) {
  for (hone_node *n = g->first; n && !r->bad; n = n->next) {
    uint32_t count = take_count(r, 4);
    uint32_t *list = HN_NEW_ARRAY(&g->model->arena, uint32_t, count);
    for (uint32_t i = 0; i < count && list; i++)
      if ((list[i] = take32(r)) >= sources) r->bad = true;
    if (!list) r->bad = true;
    n->origin = list;
    n->n_origin = list ? count : 0;
    n->origin_room = 0;
    for (uint32_t i = 0; i < n->n_attr && !r->bad; i++)
      if (n->attr[i].type == HONE_ATTR_GRAPH) take_origins(r, n->attr[i].g, sources);
  }
}

/* The backend's tactics by the numbers of the file. */
typedef struct tactics {
  const hone_tactic_desc **list;
  uint32_t n;
} tactics;

static const hone_tactic_desc *take_tactic(reader *r, const tactics *t) {
  uint32_t i = take32(r);
  if (i == UINT32_MAX) return NULL;
  if (i >= t->n) r->bad = true;
  return r->bad ? NULL : t->list[i];
}

static hone_status read_decisions(hn_saved *s, reader *r, hone_error *error) {
  tactics t = {.n = take_count(r, 8)};
  t.list = HN_NEW_ARRAY(&s->arena, const hone_tactic_desc *, t.n);
  if (!t.list) return hn_fail_memory(error, t.n, "a saved plan");
  for (uint32_t i = 0; i < t.n && !r->bad; i++) {
    const char *name = take_text(r, &s->arena);
    int32_t version = (int32_t)take32(r);
    if (r->bad) break;
    t.list[i] = hn_tactic_find(s->tactics, name, version);
    if (!t.list[i])
      return hn_saved_misfit(s, error, "it has no tactic '%.60s' of version %d", name, (int)version);
  }
  uint32_t n = take_count(r, 24);
  for (uint32_t i = 0; i < n && !r->bad; i++) {
    hn_decision d = {.tactic = take_tactic(r, &t)};
    d.estimate.seconds = take_real(r);
    d.estimate.predicted = take_real(r);
    d.estimate.measured = take32(r) != 0;
    if (!hn_vec_push(&s->decisions.list, d)) return hn_fail_memory(error, n * sizeof d, "a saved plan");
  }
  s->n_steps = take_count(r, 52);
  s->step = HN_NEW_ARRAY(&s->arena, hn_saved_step, s->n_steps);
  if (!s->step) return hn_fail_memory(error, s->n_steps * sizeof *s->step, "a saved plan");
  for (uint32_t i = 0; i < s->n_steps && !r->bad; i++) {
    hn_saved_step *k = &s->step[i];
    k->tactic = take_tactic(r, &t);
    k->threads = take32(r);
    k->tuned = take32(r) != 0;
    k->predicted = take_real(r);
    k->what = take64(r);
    k->blob_offset = take64(r);
    k->blob_bytes = take64(r);
    k->workspace_bytes = take64(r);
    if (!inside(k->blob_offset, k->blob_bytes, s->head.blob_bytes) || k->blob_offset % HN_MEM_ALIGN)
      r->bad = true;
  }
  return HONE_OK;
}

static void take_halves(reader *r, const hn_graph *g, hn_arena *arena) {
  const uint32_t n = take_count(r, 8);
  for (uint32_t k = 0, at = 0; k < n && !r->bad; k++) {
    const char *name = take_text(r, arena);
    const uint32_t type = take32(r), all = (uint32_t)g->values.len;
    if (r->bad || (type != HONE_DTYPE_F16 && type != HONE_DTYPE_BF16)) break;
    for (uint32_t i = 0; i < all; i++, at++) /* they come in about the graph's order */
      if (strcmp(g->values.ptr[at % all]->name, name) == 0) {
        g->values.ptr[at % all]->was = (hone_dtype)type;
        break;
      }
  }
}

static hone_status read_sources(hn_saved *s, reader *r, hone_error *error) {
  hn_model *m = s->model;
  uint32_t n = take_count(r, 8);
  m->source.len = 0;
  for (uint32_t i = 0; i < n && !r->bad; i++) {
    const char *name = take_text(r, &m->arena), *type = take_text(r, &m->arena);
    if (!hn_vec_push(&m->source, (hn_source_node){name, type}))
      return hn_fail_memory(error, n * sizeof(hn_source_node), "a saved plan");
  }
  take_origins(r, m->graph, (uint32_t)m->source.len);
  if (!r->bad) take_halves(r, m->graph, &m->arena);
  return HONE_OK;
}

static hone_status read_meta(hn_saved *s, const hn_backend *backend, hone_error *error) {
  const hn_saved_head *h = &s->head;
  const uint8_t *begin = s->file.data + h->meta_at;
  reader r = {begin, begin + h->meta_bytes, false};
  hone_status status = HONE_OK;
  s->level = (int)take32(&r);
  uint32_t precision = take32(&r);
  s->precision = precision <= HN_PRECISION_FP8 ? (hn_precision)precision : HN_PRECISION_F32;
  if (precision > HN_PRECISION_FP8 || (!backend->asynchronous && precision > HN_PRECISION_F16)) r.bad = true;
  s->prefer_memory = take32(&r) != 0;
  uint32_t chains = take32(&r);
  s->chains = chains <= HONE_CHAINS_ALWAYS ? (hone_chains)chains : HONE_CHAINS_FASTER;
  s->fusions_off = take32(&r);
  s->slices = take32(&r);
  uint64_t absent = take64(&r);
  if (s->level > 3 || s->level < 0 || absent > (uint64_t)1 << 40) r.bad = true;
  if (!s->slices || (s->slices > 1 && backend->asynchronous)) r.bad = true;
  s->source_path = take_text(&r, &s->arena);
  s->n_f32_nodes = take_count(&r, 4);
  s->f32_nodes = HN_NEW_ARRAY(&s->arena, const char *, s->n_f32_nodes);
  if (!s->f32_nodes) return hn_fail_memory(error, s->n_f32_nodes, "a saved plan");
  for (uint32_t i = 0; i < s->n_f32_nodes; i++) s->f32_nodes[i] = take_text(&r, &s->arena);
  if (!r.bad) {
    s->absent_bytes = (size_t)absent;
    s->absent = hn_zeros(s->absent_bytes);
    if (!s->absent) return hn_fail_memory(error, absent, "a saved plan");
    status = hn_onnx_load_partial(s->file.data + h->graph_at, (size_t)h->graph_bytes, s->path, s->absent,
                                  s->absent_bytes, &s->model, error);
  }
  if (status == HONE_OK && !r.bad) status = read_sources(s, &r, error);
  if (status == HONE_OK && !r.bad) status = read_decisions(s, &r, error);
  if (status == HONE_OK && (r.bad || r.at != r.end))
    status = damaged(s->path, h->meta_at + (uint64_t)(r.at - begin), error,
                     "what it says of its steps is no sense");
  return status;
}

/* ------------------------------------------------------------------ the file */

/* Maps and checks a file for this device, up to a plan request that hn_plan_build takes. */
static hone_status read_plan(const char *path, const hn_backend *backend, hn_device *device, hn_saved **out,
                             hone_error *error) {
  *out = NULL;
  hn_saved *s = hn_calloc(1, sizeof *s);
  if (!s) return hn_fail_memory(error, sizeof *s, "a saved plan");
  s->tactics = hn_registry_take(backend->tactics);
  hone_status status = hn_file_map(path, NULL, HN_FILE_PLAN, &s->file, error);
  if (status == HONE_OK && !(s->path = hn_arena_strdup(&s->arena, path)))
    status = hn_fail_memory(error, strlen(path), "a saved plan");
  const hn_saved_head *h = &s->head;
  if (status == HONE_OK) status = read_head(path, &s->file, &s->head, error);
  if (status == HONE_OK) status = check_machine(path, h, backend->machine(device), error);
  if (status == HONE_OK)
    status = check_part(s, backend, device, h->meta_at, h->meta_bytes, h->meta_sum, "list of steps", error);
  if (status == HONE_OK)
    status = check_part(s, backend, device, h->graph_at, h->graph_bytes, h->graph_sum, "graph", error);
  if (status == HONE_OK)
    status = check_part(s, backend, device, h->blob_at, h->blob_bytes, h->blob_sum, "packed weights", error);
  if (status == HONE_OK) status = read_meta(s, backend, error);
  if (status == HONE_OK) status = hn_model_ready(s->model, error);
  if (status == HONE_OK)
    *out = s;
  else
    hn_saved_free(s);
  return status;
}

void hn_saved_free(hn_saved *s) {
  if (!s) return;
  hn_model_destroy(s->model);
  hn_listing_drop(s->tactics);
  hn_vec_free(&s->decisions.list);
  hn_zeros_free(s->absent, s->absent_bytes);
  hn_file_unmap(&s->file);
  hn_arena_free(&s->arena);
  hn_free(s);
}

hone_status hn_saved_open(const char *path, const hn_backend *backend, hn_device *device, hn_plan **out,
                          hone_error *error) {
  hn_saved *s;
  *out = NULL;
  hone_status status = read_plan(path, backend, device, &s, error);
  if (status != HONE_OK) return status;
  hn_plan_request request = {.backend = backend,
                             .device = device,
                             .model = s->model,
                             .level = s->level,
                             .precision = s->precision,
                             .f32_nodes = s->f32_nodes,
                             .n_f32_nodes = s->n_f32_nodes,
                             .prefer_memory = s->prefer_memory,
                             .chains = s->chains,
                             .fusions_off = s->fusions_off,
                             .slices = s->slices,
                             .own_model = true,
                             .saved = s};
  return hn_plan_build(&request, out, error); /* takes s */
}

/* ------------------------------------------------------------------ following */

uint64_t hn_saved_hash(const char *signature) {
  return signature ? hn_hash(signature, strlen(signature), 0) : 0;
}

hone_status hn_saved_settle(hn_plan *p, hone_error *error) {
  const hn_saved *s = p->saved;
  hone_reason why;
  if (s->decisions.broken) return hn_saved_misfit(s, error, "%s", s->decisions.broken);
  if (s->decisions.at != s->decisions.list.len || p->steps.len != s->n_steps)
    return hn_saved_misfit(s, error, "it has %zu steps, the plan %u", p->steps.len, s->n_steps);
  for (uint32_t i = 0; i < s->n_steps; i++) {
    hn_step *k = &p->steps.ptr[i];
    const hn_saved_step *w = &s->step[i];
    bool tactic = k->kind == HN_STEP_TACTIC;
    if (tactic != (w->tactic != NULL) || hn_saved_hash(k->signature) != w->what)
      return hn_saved_misfit(s, error, "step %u (%s) is another one", i, k->desc.anchor);
    if (!tactic) continue;
    if (strcmp(w->tactic->anchor, k->desc.anchor) != 0 || !w->tactic->accepts(&k->desc, &p->machine, &why))
      return hn_saved_misfit(s, error, "%s refuses step %u (%s)", w->tactic->name, i, k->desc.anchor);
    k->tactic = w->tactic;
    k->threads = w->threads <= p->machine.threads ? w->threads : 0;
    k->tuned = w->tuned;
    k->predicted_s = w->predicted;
  }
  return HONE_OK;
}

hone_status hn_saved_attach(hn_plan *p, hone_error *error) {
  const hn_saved *s = p->saved;
  const uint8_t *blob = s->file.data + s->head.blob_at;
  if (p->blob_bytes != s->head.blob_bytes)
    return hn_saved_misfit(s, error, "its weights take %llu bytes, the plan's %llu",
                           (unsigned long long)p->blob_bytes, (unsigned long long)s->head.blob_bytes);
  for (uint32_t i = 0; i < s->n_steps; i++) {
    hn_step *k = &p->steps.ptr[i];
    if (k->blob_offset != s->step[i].blob_offset || k->need.blob_bytes != s->step[i].blob_bytes)
      return hn_saved_misfit(s, error, "step %u (%s) packs otherwise", i, k->desc.anchor);
    if (k->tactic && k->need.workspace_bytes < s->step[i].workspace_bytes)
      return hn_saved_misfit(s, error, "step %u (%s) was packed for more scratch memory than it gets", i,
                             k->desc.anchor);
    if (k->tactic && k->need.blob_bytes) k->blob = blob + k->blob_offset;
  }
  return HONE_OK;
}
