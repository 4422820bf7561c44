#include "optimize/plan/plan.h"

#include "base/error.h"
#include "model/ir/eval.h"
#include "optimize/lower/lower.h"
#include "optimize/plan/line.h"
#include "optimize/plan/packed.h"
#include "optimize/plan/saved.h"
#include "optimize/plan/slices.h"
#include "optimize/step/choose.h"

#include <string.h>

/* ------------------------------------------------------------------ provenance */

static const char *step_fate(const hn_step *s, uint32_t origin) {
  return s->n_origin && s->origin[0] == origin ? "executed" : "fused";
}

static hone_status provenance(hn_plan *p, hone_error *error) {
  size_t n = p->model->source.len;
  p->node_step = HN_NEW_ARRAY(&p->arena, int32_t, n);
  p->node_fate = HN_NEW_ARRAY(&p->arena, const char *, n);
  if (!p->node_step || !p->node_fate) return hn_fail_memory(error, n, "provenance");
  for (size_t i = 0; i < n; i++) {
    p->node_step[i] = -1;
    p->node_fate[i] = "folded";
  }
  for (const hone_node *node = p->model->graph->first; node; node = node->next)
    for (uint32_t j = 0; j < node->n_origin; j++)
      if (node->origin[j] < n) p->node_fate[node->origin[j]] = "view"; /* what no step owns below */
  for (uint32_t k = 0; k < p->steps.len; k++) {
    const hn_step *s = &p->steps.ptr[k];
    for (uint32_t j = 0; j < s->n_origin; j++) {
      if (s->origin[j] >= n || p->node_step[s->origin[j]] >= 0) continue;
      p->node_step[s->origin[j]] = (int32_t)k;
      p->node_fate[s->origin[j]] = step_fate(s, s->origin[j]);
    }
  }
  return HONE_OK;
}

/* ------------------------------------------------------------------ building */

/* Constant nodes of the main graph become constants, at every level: they are no work. */
static hone_status absorb_constants(hn_model *m, hone_error *error) {
  for (hone_node *n = m->graph->first, *next; n; n = next) {
    next = n->next;
    if (!hn_is_op(n, "Constant") || n->n_out != 1 || !n->out[0] || n->out[0]->is_output) continue;
    const hone_tensor *shown = hn_constant_shown(n);
    if (shown) {
      hn_value *v = n->out[0];
      hn_node_remove(n);
      hn_value_set_constant(v, shown);
      continue;
    }
    hone_tensor result = {0}, *out = &result;
    hone_status status = hn_eval_node(n, NULL, &out, &m->arena, NULL, error);
    if (status != HONE_OK) return status;
    hn_value *v = n->out[0];
    int64_t bytes = hone_desc_bytes(&result.desc);
    hone_tensor *t = HN_NEW(&m->arena, hone_tensor);
    void *data = hn_arena_aligned(&m->arena, (size_t)bytes, HN_MEM_ALIGN);
    if (t && data) {
      if (bytes) memcpy(data, result.data, (size_t)bytes);
      *t = (hone_tensor){result.desc, data};
    }
    hn_free(result.data);
    if (!t || !data) return hn_fail_memory(error, (unsigned long long)bytes, "a constant");
    hn_node_remove(n);
    hn_value_set_constant(v, t);
  }
  return HONE_OK;
}

enum { HN_FP8_ARCH = 89 };

/* What is stored narrow is multiplied so at every level; what is stored in f32 is rounded from level 2 on. */
static hone_math math_of(const hn_plan_request *r) {
  if (r->level < 2) return HONE_MATH_STRICT;
  if (r->precision == HN_PRECISION_FP8) return HONE_MATH_FP8;
  if (r->precision == HN_PRECISION_BF16) return HONE_MATH_BF16;
  if (r->precision != HN_PRECISION_F32) return HONE_MATH_TF32;
  return r->level == 2 ? HONE_MATH_F32 : HONE_MATH_FAST;
}

/* The type in which the file stores its weights where that is one of 16 bits for all of them, else f32. Small
 * constants say nothing: exporters leave scales and bounds in f32. some: whether any are bf16. */
static hone_dtype stored_type(const hn_model *m, bool *some) {
  uint64_t bytes[HONE_DTYPE_COUNT] = {0};
  for (size_t i = 0; i < m->graph->values.len; i++) {
    const hn_value *v = m->graph->values.ptr[i];
    if (!v->constant || !hone_dtype_is_float(v->constant->desc.dtype)) continue;
    const int64_t n = hone_desc_bytes(&v->constant->desc);
    if (n >= HN_SMALL_CONSTANT) bytes[v->constant->desc.dtype] += (uint64_t)n;
  }
  uint64_t all = 0;
  for (int t = 0; t < HONE_DTYPE_COUNT; t++) all += bytes[t];
  *some = bytes[HONE_DTYPE_BF16] > 0;
  if (all && bytes[HONE_DTYPE_F16] == all) return HONE_DTYPE_F16;
  return all && bytes[HONE_DTYPE_BF16] == all ? HONE_DTYPE_BF16 : HONE_DTYPE_F32;
}

static hn_precision precision_of(const hn_model *model, const hn_backend *b) {
  bool some;
  const hone_dtype stored = stored_type(model, &some);
  if (stored == HONE_DTYPE_BF16 || (some && !b->asynchronous)) return HN_PRECISION_BF16;
  return stored == HONE_DTYPE_F16 && b->asynchronous ? HN_PRECISION_F16 : HN_PRECISION_F32;
}

hone_status hn_precision_parse(const char *name, const hn_backend *b, const hn_model *model,
                               hn_precision *out, hone_error *error) {
  static const struct {
    const char *name;
    hn_precision precision;
    bool on_cpu;
  } known[] = {{"f32", HN_PRECISION_F32, true},
               {"bf16", HN_PRECISION_BF16, true},
               {"fp16", HN_PRECISION_F16, true},
               {"tf32", HN_PRECISION_TF32, false},
               {"fp8", HN_PRECISION_FP8, false}};
  *out = precision_of(model, b);
  for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
    if (strcmp(name, known[i].name) == 0 && (known[i].on_cpu || b->asynchronous)) {
      *out = known[i].precision;
      return HONE_OK;
    }
  if (!name) return HONE_OK;
  hn_fail(error, HONE_ERROR_USAGE, "precision '%.32s' is not available on device %s", name, b->name);
  hn_error_expected(error, b->asynchronous ? "f32, tf32, fp16, bf16 or fp8" : "f32, fp16 or bf16");
  return HONE_ERROR_USAGE;
}

static bool reads_bf16(const hone_node *n) {
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i] && n->in[i]->desc.dtype == HONE_DTYPE_BF16) return true;
  return false;
}

/* Nodes of a file that is bf16 in part, and they are not. */
static bool keep_stored(hn_plan *p, const hn_model *m) {
  bool some;
  if (!m || p->precision != HN_PRECISION_BF16 || stored_type(m, &some) == HONE_DTYPE_BF16) return true;
  uint32_t n = p->n_f32_nodes;
  for (const hone_node *node = m->graph->first; node; node = node->next) n += !reads_bf16(node);
  const char **names = HN_NEW_ARRAY(&p->arena, const char *, n);
  if (!names) return n == 0;
  for (uint32_t i = 0; i < p->n_f32_nodes; i++) names[i] = p->f32_nodes[i];
  p->f32_nodes = names;
  for (const hone_node *node = m->graph->first; node; node = node->next)
    if (!reads_bf16(node) && !(names[p->n_f32_nodes++] = hn_arena_strdup(&p->arena, node->name)))
      return false;
  return true;
}

/* The names of nodes that stay f32, and room for what is decided: both are part of a saved plan. */
static hone_status keep_names(hn_plan *p, const hn_plan_request *r, hone_error *error) {
  p->decisions = HN_NEW(&p->arena, hn_decisions);
  p->f32_nodes = HN_NEW_ARRAY(&p->arena, const char *, r->n_f32_nodes);
  bool good = p->decisions && p->f32_nodes;
  for (uint32_t i = 0; i < r->n_f32_nodes && good; i++)
    good = (p->f32_nodes[p->n_f32_nodes++] = hn_arena_strdup(&p->arena, r->f32_nodes[i])) != NULL;
  good = good && keep_stored(p, r->stored);
  return good ? HONE_OK : hn_fail_memory(error, r->n_f32_nodes, "the plan");
}

/* e4m3 is computed with by chips of compute capability 8.9 and up, through cuBLASLt. */
static hone_status check_fp8(const hn_plan_request *r, hone_error *error) {
  if (r->precision != HN_PRECISION_FP8) return HONE_OK;
  const hone_machine *m = r->backend->machine(r->device);
  if (r->level < 3) {
    hn_fail(error, HONE_ERROR_USAGE, "precision fp8 belongs to level 3, and this is level %d", r->level);
    hn_error_hint(error, "add --level 3, or use fp16");
    return HONE_ERROR_USAGE;
  }
  if (m->arch >= HN_FP8_ARCH && m->libraries & HONE_LIB_CUBLASLT) return HONE_OK;
  if (m->arch < HN_FP8_ARCH)
    hn_fail(error, HONE_ERROR_UNSUPPORTED,
            "precision fp8 wants compute capability 8.9 or later, this is %u.%u", m->arch / 10, m->arch % 10);
  else
    hn_fail(error, HONE_ERROR_UNSUPPORTED, "precision fp8 wants cuBLASLt, which is not on this machine");
  hn_error_hint(error, "use fp16 or bf16 here");
  return HONE_ERROR_UNSUPPORTED;
}

/* What f32 values are stored as between steps. */
static hone_dtype storage_of(const hn_plan_request *r) {
  hone_dtype narrow = HONE_DTYPE_F32;
  if (r->precision == HN_PRECISION_F16 || r->precision == HN_PRECISION_FP8) narrow = HONE_DTYPE_F16;
  if (r->precision == HN_PRECISION_BF16) narrow = HONE_DTYPE_BF16;
  if (narrow == HONE_DTYPE_F32 || r->backend->asynchronous) return narrow;
  const bool may = r->level >= 2 && !r->reference && !r->separate;
  return may && r->backend->stores(r->backend->machine(r->device), narrow) ? narrow : HONE_DTYPE_F32;
}

/* Its memory counts under the name of the model's file, or of its graph. */
static void move_in(hn_plan *p) {
  const char *path = p->model->path, *graph = p->model->graph->name;
  if (!path || !path[0]) path = graph && graph[0] ? graph : "(in memory)";
  const char *slash = strrchr(path, '/');
  hn_mempool *device = p->backend->pool(p->device, false), *host = p->backend->pool(p->device, true);
  p->tenant.owner[0] = p->tenant.owner[1] = hn_mempool_join(device, slash ? slash + 1 : path);
  if (host != device) p->tenant.owner[1] = hn_mempool_join(host, slash ? slash + 1 : path);
}

static void move_out(hn_plan *p) {
  hn_mempool *device = p->backend->pool(p->device, false), *host = p->backend->pool(p->device, true);
  hn_mempool_leave(device, p->tenant.owner[0]);
  if (host != device) hn_mempool_leave(host, p->tenant.owner[1]);
}

hone_status hn_plan_build(const hn_plan_request *r, hn_plan **out, hone_error *error) {
  *out = NULL;
  bool built = false;
  hone_status status = check_fp8(r, error);
  if (status != HONE_OK) {
    hn_saved_free(r->saved);
    return status;
  }
  hn_plan *p = hn_calloc(1, sizeof *p);
  if (!p) {
    hn_saved_free(r->saved);
    return hn_fail_memory(error, sizeof *p, "the plan");
  }
  p->saved = r->saved;
  hn_decisions like = {0};
  if (r->like) like.list.ptr = r->like->list.ptr, like.list.len = r->like->list.len;
  p->follow = r->saved ? &r->saved->decisions : r->like ? &like : NULL;
  p->model = hn_model_retain(r->model);
  p->backend = r->backend;
  p->tactics = hn_registry_take(r->backend->tactics);
  p->device = r->device;
  move_in(p);
  p->machine = *r->backend->machine(r->device);
  p->level = r->level;
  p->precision = r->precision;
  p->math = math_of(r);
  p->storage = storage_of(r);
  p->reference = r->reference;
  p->separate = r->separate;
  p->preview = r->preview;
  p->prefer_memory = r->prefer_memory;
  p->lends = r->lends;
  p->tuned = r->tuned;
  p->chains = r->chains;
  p->fusions_off = r->fusions_off;
  p->ports = r->ports;
  if ((status = keep_names(p, r, error)) != HONE_OK) goto done;
  if ((status = hn_plan_masks(p, r->tactics, error)) != HONE_OK) goto done;
  if ((status = absorb_constants(p->model, error)) != HONE_OK) goto done;
  if ((status = hn_lower(p, error)) != HONE_OK) goto done;
  if ((status = hn_plan_gather_waits(p, error)) != HONE_OK) goto done;
  if (!r->keep_concats) hn_plan_elide(p);
  hn_plan_narrow_images(p);
  if (r->like && !p->saved) {
    p->follow = NULL;
    if (like.broken || like.at != like.list.len) {
      status = hn_fail(error, HONE_ERROR_UNSUPPORTED, "other shapes ask for other decisions");
      goto done;
    }
  }
  if ((status = hn_plan_settle(p, error)) != HONE_OK) goto done;
  if (p->saved && (status = hn_saved_settle(p, error)) != HONE_OK) goto done;
  if (r->best_slices && (*r->best_slices = hn_plan_slices(p, *r->best_slices, r->no_slices)) > 1) goto done;
  hone_reason why = {""};
  if (!hn_plan_set_slices(p, r->slices ? r->slices : 1, &why)) {
    status = p->saved ? hn_saved_misfit(p->saved, error, "it has no %u slices: %.120s", r->slices, why.text)
                      : hn_fail(error, HONE_ERROR_INTERNAL, "%u slices: %.120s", r->slices, why.text);
    goto done;
  }
  p->lanes = 1;
  if (!p->preview) {
    if ((status = hn_plan_needs(p, error)) != HONE_OK) goto done;
    if ((status = hn_plan_lanes(p, error)) != HONE_OK) goto done;
    if ((status = hn_plan_place(p, error)) != HONE_OK) goto done;
    if ((status = hn_plan_prepack(p, r, error)) != HONE_OK) goto done;
    if (p->backend->asynchronous && (status = hn_plan_prepare(p, error)) != HONE_OK) goto done;
  }
  status = provenance(p, error);
  built = true;
  p->tuned = NULL; /* was borrowed */
done:
  if (status == HONE_OK && built)
    *out = p;
  else
    hn_plan_free(p);
  return status;
}

void hn_plan_free(hn_plan *p) {
  if (!p) return;
  if (p->blob) p->backend->free(p->device, p->blob);
  hn_packed_let_go(&p->blocks);
  hn_moving_free(p->moving);
  move_out(p);
  hn_vec_free(&p->slots);
  hn_vec_free(&p->steps);
  hn_vec_free(&p->misses.list);
  hn_model_destroy(p->model);
  if (p->decisions) hn_vec_free(&p->decisions->list);
  hn_listing_drop(p->tactics);
  hn_saved_free(p->saved); /* after the model, whose constants lie in it */
  hn_arena_free(&p->arena);
  hn_free(p);
}

bool hn_plan_function(const hn_plan *p, const hone_node *n, hn_arena *arena, hone_pw_program *program) {
  return hn_lower_function(p, n, arena, program);
}
