#include "model/padding.h"

#include "base/error.h"
#include "model/ir/eval.h"

#include <string.h>

/* Numbers made of sizes are computed; larger values, and all of them together, are not worth it. */
enum { FEW = 1024, ALL_BYTES = 8 << 20, MOST_IN = 64 };

typedef struct proof {
  int64_t wanted, size;
  bool parts; /* every part is asked for, not the first alone */
  hn_arena arena;
  hn_pad *state;                /* by value id */
  const hone_tensor **value[2]; /* by value id: known beforehand, in small and large */
  hn_budget budget;
  hone_reason *why;
} proof;

static const hone_tensor *known(const proof *p, int side, const hn_value *v) {
  return v->constant && !v->is_input ? v->constant : p->value[side][v->id];
}

/* ------------------------------------------------------------------ numbers made of sizes */

static const hone_tensor *compute(proof *p, int side, const hone_node *n) {
  const hone_tensor *in[16], *kept = NULL;
  hone_tensor by_shape[16], result = {0}, *out = &result;
  const bool by_desc = n->op->flags & HONE_OP_SHAPE_ONLY;
  if (n->op->flags & (HONE_OP_CONTROL | HONE_OP_ITEMS) || hn_draws(n) || n->n_out != 1 || !n->out[0] ||
      n->n_in > 16)
    return NULL;
  const int64_t count = hone_desc_count(&n->out[0]->desc);
  if (count < 0 || count > FEW || hn_dtype_points(n->out[0]->desc.dtype)) return NULL;
  for (uint32_t i = 0; i < n->n_in; i++) {
    in[i] = n->in[i] ? known(p, side, n->in[i]) : NULL;
    if (by_desc && n->in[i]) {
      if (!hone_desc_known(&n->in[i]->desc)) return NULL;
      by_shape[i] = (hone_tensor){n->in[i]->desc, NULL};
      in[i] = &by_shape[i];
    }
    if (n->in[i] && !in[i]) return NULL;
    if (in[i] && !by_desc && (!in[i]->data || hone_desc_count(&in[i]->desc) > FEW)) return NULL;
  }
  if (hn_eval_node(n, in, &out, &p->arena, &p->budget, NULL) != HONE_OK) return NULL;
  const int64_t bytes = hone_desc_bytes(&result.desc);
  hone_tensor *t = HN_NEW(&p->arena, hone_tensor);
  if (t && bytes >= 0 && (t->data = hn_arena_memdup(&p->arena, result.data, (size_t)bytes))) {
    t->desc = result.desc;
    kept = t;
  }
  hn_free(result.data);
  return kept;
}

/* Is a the beginning of b along the axis? all: and what follows it, again and again. */
static bool begins(const hone_tensor *a, const hone_tensor *b, const hn_pad *rows, bool all) {
  const size_t element = hone_dtype_size(a->desc.dtype);
  size_t outer = 1, inner = element;
  for (int32_t k = 0; k < rows->axis; k++) outer *= (size_t)a->desc.dim[k];
  for (int32_t k = rows->axis + 1; k < a->desc.rank; k++) inner *= (size_t)a->desc.dim[k];
  const size_t here = (size_t)a->desc.dim[rows->axis] * inner,
               there = (size_t)b->desc.dim[rows->axis] * inner;
  for (size_t i = 0; i < outer; i++)
    for (size_t at = 0; at + here <= (all ? there : here); at += here)
      if (memcmp((const char *)a->data + i * here, (const char *)b->data + i * there + at, here) != 0)
        return false;
  return true;
}

/* A node that can be computed beforehand in both models: what it gives is compared. */
static bool compare_values(proof *p, const hone_node *small, const hone_node *large) {
  const hone_tensor *a = compute(p, 0, small), *b = a ? compute(p, 1, large) : NULL;
  if (!b) return false;
  const uint32_t id = small->out[0]->id;
  hn_pad rows;
  hn_pad *state = &p->state[id];
  p->value[0][id] = a, p->value[1][id] = b;
  *state = (hn_pad){.kind = HN_PAD_SIZE};
  if (hone_desc_same_dims(&a->desc, &b->desc)) {
    if (memcmp(a->data, b->data, (size_t)hone_desc_bytes(&a->desc)) == 0) state->kind = HN_PAD_SAME;
  } else if (hn_pad_axis(&a->desc, &b->desc, p->wanted, p->size, &rows) && begins(a, b, &rows, p->parts)) {
    *state = rows;
    p->value[0][id] = p->value[1][id] = NULL; /* rows like any others */
  }
  return true;
}

/* ------------------------------------------------------------------ nodes */

/* Does a body read anything of the graphs around it that is not the same? */
static bool captures(const proof *p, const hn_graph *body, const hn_graph *main) {
  for (const hone_node *n = body->first; n; n = n->next) {
    for (uint32_t i = 0; i < n->n_in; i++)
      if (n->in[i] && n->in[i]->graph == main && p->state[n->in[i]->id].kind != HN_PAD_SAME) return true;
    for (uint32_t k = 0; k < n->n_attr; k++)
      if (n->attr[k].type == HONE_ATTR_GRAPH && captures(p, n->attr[k].g, main)) return true;
  }
  for (size_t i = 0; i < body->outputs.len; i++) {
    const hn_value *v = body->outputs.ptr[i];
    if (v->graph == main && p->state[v->id].kind != HN_PAD_SAME) return true;
  }
  return false;
}

static bool refuse(proof *p, const hone_node *n, const char *reason) {
  return hn_refuse(p->why, "node '%.60s' (%.30s) %.60s", n->name, n->op_type, reason);
}

/* The shapes of an output must be what the proof says of it. */
static bool fits(const proof *p, const hn_value *small, const hn_value *large, const hn_pad *said) {
  hn_pad is;
  if (said->kind == HN_PAD_SAME)
    return small->desc.rank == large->desc.rank &&
           (small->desc.rank < 0 || hone_desc_same_dims(&small->desc, &large->desc));
  return hn_pad_axis(&small->desc, &large->desc, p->wanted, p->size, &is) && is.axis == said->axis &&
         is.each == said->each;
}

static bool prove_node(proof *p, const hone_node *small, const hone_node *large) {
  hn_pad in[MOST_IN];
  const hone_tensor *value[2][MOST_IN];
  bool same = true, body = false, caught = false;
  if (p->parts && small->op->flags & HONE_OP_RANDOM) return refuse(p, small, "draws numbers once for all");
  /* Indices into the whole tensor begin alike, and go on otherwise. */
  if (p->parts && small->n_out > 1 && small->out[1] && strcmp(small->op_type, "MaxPool") == 0)
    return refuse(p, small, "gives places in the whole batch");
  if (compare_values(p, small, large)) return true;
  for (uint32_t i = 0; i < small->n_in; i++)
    same = same && (!small->in[i] || p->state[small->in[i]->id].kind == HN_PAD_SAME);
  for (uint32_t k = 0; k < small->n_attr; k++)
    if (small->attr[k].type == HONE_ATTR_GRAPH) {
      body = true;
      caught = caught || captures(p, small->attr[k].g, small->graph);
    }
  if (body && (caught || !same)) return refuse(p, small, "has a body that reads it");
  hn_pad out = {0};
  if (!same) {
    if (small->n_in > MOST_IN) return refuse(p, small, "has too many inputs to be looked at");
    for (uint32_t i = 0; i < small->n_in; i++) {
      in[i] = small->in[i] ? p->state[small->in[i]->id] : (hn_pad){0};
      value[0][i] = small->in[i] ? known(p, 0, small->in[i]) : NULL;
      value[1][i] = large->in[i] ? known(p, 1, large->in[i]) : NULL;
    }
    const hn_pad_node node = {small, large, in, value[0], value[1], p->wanted, p->size, p->parts};
    hone_reason why = {""};
    if (!hn_pad_rule(&node, &out, &why)) return refuse(p, small, why.text);
  }
  for (uint32_t i = 0; i < small->n_out; i++) {
    if (!small->out[i] || !large->out[i]) continue;
    hn_pad said = out;
    /* Further outputs have the axis where their shapes say it; recurrent ones elsewhere than output 0. */
    if (i && out.kind == HN_PAD_ROWS &&
        !hn_pad_axis(&small->out[i]->desc, &large->out[i]->desc, p->wanted, p->size, &said))
      return refuse(p, small, "has an output that does not follow it");
    if (!fits(p, small->out[i], large->out[i], &said))
      return refuse(p, small, "gives a shape that does not follow it");
    p->state[small->out[i]->id] = said;
  }
  return true;
}

/* What of the inputs is longer. */
static bool begin(proof *p, const hn_model *small, const hn_model *large, hn_pad *in) {
  for (size_t i = 0; i < small->graph->inputs.len; i++) {
    const hn_value *a = small->graph->inputs.ptr[i], *b = large->graph->inputs.ptr[i];
    hn_pad state = {0};
    if (!a->constant && !hone_desc_same_dims(&a->desc, &b->desc) &&
        !hn_pad_axis(&a->desc, &b->desc, p->wanted, p->size, &state))
      return hn_refuse(p->why, "input '%.60s' has it in more than one dimension", a->name);
    p->state[a->id] = state;
    if (in) in[i] = state;
  }
  return true;
}

static bool walk(proof *p, const hn_model *small, const hn_model *large, hn_pad *in, hn_pad *out) {
  if (!begin(p, small, large, in)) return false;
  const hone_node *a = small->graph->first, *b = large->graph->first;
  for (; a && b; a = a->next, b = b->next)
    if (!prove_node(p, a, b)) return false;
  for (size_t i = 0; i < small->graph->outputs.len; i++) {
    const hn_value *v = small->graph->outputs.ptr[i];
    if (p->state[v->id].kind == HN_PAD_SIZE)
      return hn_refuse(p->why, "output '%.60s' says how long it is", v->name);
    if (out) out[i] = p->state[v->id];
  }
  return true;
}

static hone_status prove(const hn_model *small, const hn_model *large, int64_t wanted, int64_t size,
                         bool parts, hn_pad *in, hn_pad *out, bool *proved, hone_reason *why,
                         hone_error *error) {
  proof p = {.wanted = wanted,
             .size = size,
             .parts = parts,
             .arena = {.limit = ALL_BYTES},
             .budget = {.deadline_ns = hn_now_ns() + 5000000000u, .max_bytes = 64u << 20},
             .why = why};
  const uint32_t n = small->next_value_id;
  *proved = false;
  why->text[0] = 0;
  p.state = hn_calloc(n + 1, sizeof *p.state);
  for (int side = 0; side < 2; side++) p.value[side] = hn_calloc(n + 1, sizeof **p.value);
  hone_status status = HONE_OK;
  if (!p.state || !p.value[0] || !p.value[1])
    status = hn_fail_memory(error, n * sizeof *p.state, "the proof that padding changes nothing");
  else if (small->next_value_id != large->next_value_id || small->graph->n_nodes != large->graph->n_nodes ||
           wanted < 1 || size < wanted || (parts && size % wanted))
    hn_refuse(why, "the models are not the same");
  else
    *proved = walk(&p, small, large, in, out);
  hn_free(p.state);
  for (int side = 0; side < 2; side++) hn_free((void *)p.value[side]);
  hn_arena_free(&p.arena);
  return status;
}

hone_status hn_prove_padding(const hn_model *small, const hn_model *large, int64_t wanted, int64_t size,
                             hn_pad *in, hn_pad *out, bool *proved, hone_reason *why, hone_error *error) {
  return prove(small, large, wanted, size, false, in, out, proved, why, error);
}

hone_status hn_prove_parts(const hn_model *small, const hn_model *large, int64_t wanted, int64_t size,
                           hn_pad *in, hn_pad *out, bool *proved, hone_reason *why, hone_error *error) {
  return prove(small, large, wanted, size, true, in, out, proved, why, error);
}
