/* Writing a saved plan. */
#include "optimize/plan/saved.h"
#include "optimize/plan/plan.h"

#include "base/checksum.h"
#include "base/error.h"
#include "model/ir/bytes.h"
#include "model/onnx/onnx.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ bytes */

static void put32(hn_str *s, uint32_t v) { hn_str_append(s, (const char *)&v, sizeof v); }
static void put64(hn_str *s, uint64_t v) { hn_str_append(s, (const char *)&v, sizeof v); }
static void put_real(hn_str *s, double v) { hn_str_append(s, (const char *)&v, sizeof v); }
static void put_text(hn_str *s, const char *t) {
  uint32_t n = (uint32_t)strlen(t);
  put32(s, n);
  hn_str_append(s, t, n);
}

/* ------------------------------------------------------------------ constants */

typedef enum state { UNTOUCHED = 0, PACKED = 1, KEPT = 2, OTHER = 4 } state;

typedef struct constants {
  const hn_plan *plan;
  uint8_t *state;          /* by value id: bits of how its slots are used */
  const void **at;         /* by value id: bytes that a kept slot holds */
  size_t largest;          /* of those that are left out */
  const hn_value *missing; /* whose bytes are gone but would be needed */
} constants;

static hone_status look_at_constants(constants *c, hone_error *error) {
  const hn_plan *p = c->plan;
  size_t n = p->model->next_value_id;
  c->state = hn_calloc(n, 1);
  c->at = hn_calloc(n, sizeof *c->at);
  if (!c->state || !c->at) return hn_fail_memory(error, n, "saving a plan");
  for (size_t i = 0; i < p->slots.len; i++) {
    const hn_slot *s = &p->slots.ptr[i];
    if (s->place != HN_PLACE_CONST || s->alias != HN_NO_SLOT || !s->value) continue;
    uint8_t *state = &c->state[s->value->id];
    if (s->desc.layout != HONE_LAYOUT_ROW_MAJOR)
      *state |= OTHER; /* lowering reads the value to make this one */
    else if (s->packed)
      *state |= PACKED;
    else if (s->desc.dtype != s->value->desc.dtype)
      *state |= OTHER; /* as the file has it, not as the graph */
    else {
      *state |= KEPT;
      c->at[s->value->id] = s->constant;
    }
  }
  return HONE_OK;
}

static bool leave_out(void *self, const hn_value *v, hone_tensor *t) {
  constants *c = self;
  if (v->graph != c->plan->model->graph) return false;
  uint8_t state = c->state[v->id];
  if (state == PACKED) {
    size_t bytes = (size_t)hone_desc_bytes(&t->desc);
    if (bytes > c->largest) c->largest = bytes;
    return true;
  }
  if (state & KEPT)
    t->data = (void *)(uintptr_t)c->at[v->id];
  else if (!t->data && hn_value_make_bytes(v))
    *t = *v->constant;
  if (t->data || hone_desc_bytes(&t->desc) == 0) return false;
  c->missing = v;
  return true;
}

/* ------------------------------------------------------------------ meta */

typedef HN_VEC(const hone_tactic_desc *) tactic_list;

static uint32_t number_of(tactic_list *list, const hone_tactic_desc *t) {
  if (!t) return UINT32_MAX;
  for (uint32_t i = 0; i < list->len; i++)
    if (list->ptr[i] == t) return i;
  return hn_vec_push(list, t) ? (uint32_t)list->len - 1 : UINT32_MAX - 1;
}

static void put_origins(hn_str *s, const hn_graph *g) {
  for (const hone_node *n = g->first; n; n = n->next) {
    put32(s, n->n_origin);
    for (uint32_t i = 0; i < n->n_origin; i++) put32(s, n->origin[i]);
    for (uint32_t i = 0; i < n->n_attr; i++)
      if (n->attr[i].type == HONE_ATTR_GRAPH) put_origins(s, n->attr[i].g);
  }
}

/* Constants in f32 of which the file has 16 bits: patterns ask for the type of small ones, lowering for that
 * of large ones whose bytes were not made. */
static hone_dtype half_of(const hn_value *v) {
  const hone_dtype was = hn_value_was_half(v);
  const bool asked =
      was != HONE_DTYPE_NONE && (v->deferred || hone_desc_bytes(&v->constant->desc) < HN_BYTES_LARGE);
  return asked ? was : HONE_DTYPE_NONE;
}

static void put_halves(hn_str *s, const hn_graph *g) {
  uint32_t n = 0;
  for (size_t i = 0; i < g->values.len; i++) n += half_of(g->values.ptr[i]) != HONE_DTYPE_NONE;
  put32(s, n);
  for (size_t i = 0; i < g->values.len; i++) {
    const hone_dtype was = half_of(g->values.ptr[i]);
    if (was == HONE_DTYPE_NONE) continue;
    put_text(s, g->values.ptr[i]->name);
    put32(s, (uint32_t)was);
  }
}

static hone_status write_meta(const hn_plan *p, size_t largest, hn_str *out, hone_error *error) {
  const hn_decisions *d = p->decisions;
  tactic_list list = {0};
  hn_str body = {0};
  put32(&body, (uint32_t)d->list.len);
  for (size_t i = 0; i < d->list.len; i++) {
    put32(&body, number_of(&list, d->list.ptr[i].tactic));
    put_real(&body, d->list.ptr[i].estimate.seconds);
    put_real(&body, d->list.ptr[i].estimate.predicted);
    put32(&body, d->list.ptr[i].estimate.measured);
  }
  put32(&body, (uint32_t)p->steps.len);
  for (size_t i = 0; i < p->steps.len; i++) {
    const hn_step *s = &p->steps.ptr[i];
    put32(&body, number_of(&list, s->tactic));
    put32(&body, s->threads);
    put32(&body, s->tuned);
    put_real(&body, s->predicted_s);
    put64(&body, hn_saved_hash(s->signature));
    put64(&body, s->blob_offset);
    put64(&body, s->need.blob_bytes);
    put64(&body, s->need.workspace_bytes);
  }
  put32(out, (uint32_t)p->level);
  put32(out, (uint32_t)p->precision);
  put32(out, p->prefer_memory);
  put32(out, (uint32_t)p->chains);
  put32(out, p->fusions_off);
  put32(out, p->slices);
  put64(out, largest);
  const hn_model *m = p->model;
  while (!m->path[0] && m->borrowed_from) m = m->borrowed_from;
  put_text(out, m->path);
  put32(out, p->n_f32_nodes);
  for (uint32_t i = 0; i < p->n_f32_nodes; i++) put_text(out, p->f32_nodes[i]);
  put32(out, (uint32_t)p->model->source.len);
  for (size_t i = 0; i < p->model->source.len; i++) {
    put_text(out, p->model->source.ptr[i].name);
    put_text(out, p->model->source.ptr[i].op_type);
  }
  put_origins(out, p->model->graph);
  put_halves(out, p->model->graph);
  put32(out, (uint32_t)list.len);
  for (size_t i = 0; i < list.len; i++) {
    put_text(out, list.ptr[i]->name);
    put32(out, (uint32_t)list.ptr[i]->version);
  }
  if (body.len) hn_str_append(out, body.ptr, body.len);
  bool failed = out->failed || body.failed || d->failed;
  hn_str_free(&body);
  hn_vec_free(&list);
  return failed ? hn_fail_memory(error, out->len, "saving a plan") : HONE_OK;
}

/* ------------------------------------------------------------------ the file */

static hone_status pad(hn_writer *w, uint64_t *at, uint64_t to, hone_error *error) {
  static const char zeros[HN_SAVED_PAGE];
  hone_status status = HONE_OK;
  for (; *at < to && status == HONE_OK;) {
    size_t n = to - *at < sizeof zeros ? (size_t)(to - *at) : sizeof zeros;
    status = hn_writer_write(w, zeros, n, error);
    *at += n;
  }
  return status;
}

static hone_status write_all(const hn_saved_head *h, const hn_str *meta, const hn_str *graph,
                             const void *blob, const char *path, hone_error *error) {
  hn_writer w;
  hone_status status = hn_writer_open(path, &w, error);
  if (status != HONE_OK) return status;
  struct part {
    uint64_t at, bytes;
    const void *data;
  } part[] = {{0, sizeof *h, h},
              {h->meta_at, h->meta_bytes, meta->ptr},
              {h->graph_at, h->graph_bytes, graph->ptr},
              {h->blob_at, h->blob_bytes, blob}};
  uint64_t at = 0;
  for (size_t i = 0; i < sizeof part / sizeof *part && status == HONE_OK; i++) {
    status = pad(&w, &at, part[i].at, error);
    if (status == HONE_OK && part[i].bytes)
      status = hn_writer_write(&w, part[i].data, (size_t)part[i].bytes, error);
    at += part[i].bytes;
  }
  if (status == HONE_OK) return hn_writer_commit(&w, error);
  hn_writer_abandon(&w);
  return status;
}

/* The blob in one piece, of a plan that shares some of it. */
static void bring_together(const hn_plan *p, char *blob) {
  memset(blob, 0, (size_t)p->blob_bytes);
  for (size_t i = 0; i < p->steps.len; i++) {
    const hn_step *s = &p->steps.ptr[i];
    const size_t own = s->shared ? s->shared_at : s->need.blob_bytes;
    if (!s->blob) continue;
    memcpy(blob + s->blob_offset, s->blob, own);
    if (s->shared) memcpy(blob + s->blob_offset + own, s->shared, s->need.blob_bytes - own);
  }
}

hone_status hn_saved_write(const hn_plan *p, const char *path, hone_error *error) {
  const uint64_t lost = hn_mem_lost();
  hn_str meta = {0}, graph = {0};
  constants c = {.plan = p};
  if (p->reference || !p->decisions || p->saved)
    return hn_fail(error, HONE_ERROR_USAGE,
                   p->saved ? "a saved plan cannot be saved again: copy its file"
                            : "a plan of references is not worth saving");
  hone_status status = look_at_constants(&c, error);
  hn_onnx_filter filter = {leave_out, &c};
  if (status == HONE_OK) status = hn_onnx_save_memory(p->model, &filter, &graph, error);
  if (status == HONE_OK && c.missing)
    status =
        hn_fail(error, HONE_ERROR_UNSUPPORTED,
                "the plan has packed '%.80s' and reads it elsewhere: it cannot be saved", c.missing->name);
  if (status == HONE_OK) status = write_meta(p, c.largest, &meta, error);
  void *fetched = NULL;
  const bool parts = p->blocks.len || p->twin_bytes;
  if (status == HONE_OK && (p->backend->asynchronous || parts) && p->blob_bytes) {
    fetched = hn_aligned(HN_MEM_ALIGN, (size_t)p->blob_bytes);
    if (!fetched)
      status = hn_fail_memory(error, p->blob_bytes, "saving a plan");
    else if (p->backend->asynchronous)
      status = hn_plan_download(p, fetched, error);
    else
      bring_together(p, fetched);
  }
  const void *blob = fetched ? fetched : p->blob;
  status = hn_settle(status, lost, error); /* nothing is written of a plan that is told of in part */
  if (status == HONE_OK) {
    hn_saved_head h;
    memset(&h, 0, sizeof h);
    memcpy(h.magic, HN_SAVED_MAGIC, sizeof h.magic);
    h.format = HN_SAVED_FORMAT, h.head_bytes = sizeof h;
    h.meta_at = HN_SAVED_PAGE, h.meta_bytes = meta.len;
    h.graph_at = hn_round_up(h.meta_at + h.meta_bytes, HN_MEM_ALIGN), h.graph_bytes = graph.len;
    h.blob_at = hn_round_up(h.graph_at + h.graph_bytes, HN_SAVED_PAGE), h.blob_bytes = p->blob_bytes;
    h.file_bytes = h.blob_at + h.blob_bytes;
    h.meta_sum = hn_checksum(meta.ptr, meta.len);
    h.graph_sum = hn_checksum(graph.ptr, graph.len);
    h.blob_sum = hn_checksum(blob, (size_t)p->blob_bytes);
    snprintf(h.version, sizeof h.version, "%s", hone_version());
    h.isa = p->machine.isa, h.threads = p->machine.threads;
    h.l1 = p->machine.l1, h.l2 = p->machine.l2, h.l3 = p->machine.l3;
    h.dram = (uint64_t)p->machine.dram_bytes;
    h.head_sum = hn_checksum(&h, offsetof(hn_saved_head, head_sum));
    status = write_all(&h, &meta, &graph, blob, path, error);
  }
  hn_free(fetched);
  hn_free(c.state);
  hn_free((void *)c.at);
  hn_str_free(&meta);
  hn_str_free(&graph);
  return status;
}
