/* A plan becomes one for other sizes of its line, where it stands. */
#include "optimize/plan/line.h"
#include "optimize/plan/line_inside.h"
#include "optimize/plan/plan.h"

#include "base/error.h"
#include "model/ir/bytes.h"
#include "model/ir/eval.h"
#include "optimize/step/choose.h"
#include "optimize/step/shared.h"
#include "optimize/step/tactics.h"

#include <string.h>

/* Tables that a step keeps of shapes, at most, where they grow with them. */
enum { MOST_TABLES = 1 << 20 };

typedef struct moving_number {
  int64_t *at;
  uint32_t index;
} moving_number;

typedef struct moving_cost {
  double *at;
  uint32_t index;
} moving_cost;

typedef struct moving_real {
  float *at;
  uint32_t index;
} moving_real;

typedef struct moving_content {
  hn_content of;
  uint32_t index;
  size_t room;
  bool sure;              /* the line says what it is; else it is evaluated, too, and has to be that */
  HN_VEC(uint32_t) slots; /* whose bytes these are */
} moving_content;

struct hn_moving {
  const hn_line *line;
  int64_t at, placed; /* where it is; for what its memory is placed */
  int64_t vain;       /* for what that could not be done; INT64_MIN: nothing */
  HN_VEC(moving_number) numbers;
  HN_VEC(moving_cost) costs;
  HN_VEC(moving_real) reals;
  HN_VEC(hn_described) descs;
  HN_VEC(moving_content) contents;
  HN_VEC(uint32_t) steps;
  size_t *tables; /* [steps of the plan] room for what they pack of their own */
  uint64_t *room; /* [slots of the plan] bytes of the arena's that they are placed for */
};

void hn_moving_free(hn_moving *m) {
  if (!m) return;
  for (size_t i = 0; i < m->contents.len; i++) hn_vec_free(&m->contents.ptr[i].slots);
  hn_vec_free(&m->numbers);
  hn_vec_free(&m->costs);
  hn_vec_free(&m->reals);
  hn_vec_free(&m->descs);
  hn_vec_free(&m->contents);
  hn_vec_free(&m->steps);
  hn_free(m->tables);
  hn_free(m->room);
  hn_free(m);
}

/* ------------------------------------------------------------------ what moves */

static bool any_moves(const hn_line *l, hn_extent e) {
  for (uint32_t i = e.from; i < e.until; i++)
    if (l->slope[i]) return true;
  return false;
}

static bool reads_content(const hn_plan *p, const hn_moving *m, const hn_step *s) {
  for (uint32_t i = 0; i < s->desc.n_inputs + s->n_captured; i++) {
    if (s->in[i] == HN_NO_SLOT) continue;
    const uint32_t root = hn_slot_root(p, s->in[i]);
    for (size_t k = 0; k < m->contents.len; k++)
      for (size_t j = 0; j < m->contents.ptr[k].slots.len; j++)
        if (m->contents.ptr[k].slots.ptr[j] == root) return true;
  }
  return false;
}

static bool step_moves(const hn_plan *p, const hn_moving *m, const hn_numbers *w, uint32_t k) {
  const hn_line *l = m->line;
  const hn_step *s = &p->steps.ptr[k];
  const hn_step_extent *e = &w->steps.ptr[k];
  for (uint32_t i = e->reals.from; i < e->reals.until; i++)
    if (l->real_slope[i]) return true;
  for (uint32_t i = e->descs.from; i < e->descs.until; i++) {
    const hn_described *d = &w->descs.ptr[i];
    const uint32_t end = i + 1 < w->descs.len ? w->descs.ptr[i + 1].first : (uint32_t)w->at.len;
    if (any_moves(l, (hn_extent){d->first, end})) return true;
  }
  for (uint32_t i = 0; i < s->desc.n_parts; i++)
    if (any_moves(l, hn_numbers_of_node(w, s->desc.part[i].step->node))) return true;
  return any_moves(l, hn_numbers_of_node(w, s->desc.node)) || reads_content(p, m, s);
}

/* Slots that show the bytes of a constant which moves. */
static bool find_slots(const hn_plan *p, moving_content *c) {
  for (uint32_t i = 0; i < p->slots.len; i++) {
    const hn_slot *s = &p->slots.ptr[i];
    if (s->place != HN_PLACE_CONST || s->alias != HN_NO_SLOT || s->value != c->of.value || s->packed)
      continue;
    if (s->desc.layout != HONE_LAYOUT_ROW_MAJOR || s->deferred) return false;
    if (!hn_vec_push(&c->slots, i)) return false;
  }
  return true;
}

/* Sums of what grows evenly, and elements of it put together otherwise, grow evenly. */
static bool stays_even(const hone_node *n, const hn_content_kind kind[], const bool known[]) {
  static const char *const any[] = {"Add", "Sub", "Concat"};
  static const char *const first[] = {"Gather",   "Slice", "Squeeze", "Unsqueeze", "Reshape",
                                      "Identity", "Cast",  "Flatten", "Transpose"};
  uint32_t moves = 0, at = 0;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i] && known[n->in[i]->id] && kind[n->in[i]->id] != HN_CONTENT_FIXED) moves++, at = i;
  if (!moves) return true;
  for (size_t i = 0; i < sizeof any / sizeof *any; i++)
    if (hn_is_op(n, any[i])) return true;
  if (moves == 1 && hn_is_op(n, "Mul")) return true;
  for (size_t i = 0; i < sizeof first / sizeof *first; i++)
    if (moves == 1 && at == 0 && hn_is_op(n, first[i])) return true;
  return false;
}

/* Element by element, of parts of what is longer and of what is fixed: a part of that of what is longer. */
static bool stays_part(const hone_node *n, const hn_content_kind kind[], const bool known[]) {
  static const char *const each[] = {"Add",   "Sub",   "Mul",       "Div",     "Mod",
                                     "Less",  "Equal", "Greater",   "And",     "LessOrEqual",
                                     "Or",    "Not",   "Where",     "Cast",    "GreaterOrEqual",
                                     "Neg",   "Abs",   "Unsqueeze", "Squeeze", "Identity",
                                     "Trilu", "Max",   "Min",       "Sin",     "Cos"};
  const bool range = hn_is_op(n, "Range");
  for (uint32_t i = 0; i < n->n_in; i++) {
    const hn_value *v = n->in[i];
    if (v && known[v->id] && kind[v->id] == HN_CONTENT_EVEN && !(range && i == 1)) return false;
  }
  if (range) return true; /* whose end moves */
  for (size_t i = 0; i < sizeof each / sizeof *each; i++)
    if (hn_is_op(n, each[i])) return true;
  return false;
}

/* Is a constant what the line says at all sizes? sure: by value id, as kind and known are, of those before.
 */
static bool is_sure(const hn_content *c, const hn_content_kind kind[], const bool known[],
                    const bool sure[]) {
  const hone_node *n = c->made;
  if (!c->value->sized || !n) return true; /* of weights alone, or the sizes themselves */
  const hn_content_kind own = kind[c->value->id];
  bool parts = false;
  for (uint32_t i = 0; i < n->n_in; i++) {
    const hn_value *v = n->in[i];
    if (v && known[v->id] && (!sure[v->id] || kind[v->id] == HN_CONTENT_MADE)) return false;
    parts |= v && known[v->id] && kind[v->id] == HN_CONTENT_PART;
  }
  if (own == HN_CONTENT_PART) return stays_part(n, kind, known);
  return own != HN_CONTENT_MADE && !parts && stays_even(n, kind, known);
}

/* Constants that are not the same for all sizes, or might not be. */
static bool find_contents(hn_plan *p, const hn_numbers *w, hn_moving *m) {
  const hn_line *l = m->line;
  const uint32_t n = p->model->next_value_id + 1;
  bool *known = hn_calloc(n, sizeof *known), *sure = hn_calloc(n, sizeof *sure);
  hn_content_kind *kind = hn_calloc(n, sizeof *kind);
  bool good = known && sure && kind;
  for (uint32_t i = 0; i < l->n_contents && good; i++) {
    const hn_content *c = &w->contents.ptr[i];
    kind[c->value->id] = l->content[i].kind;
    const bool firm = sure[c->value->id] = is_sure(c, kind, known, sure);
    known[c->value->id] = true;
    const bool fixed = l->content[i].kind == HN_CONTENT_FIXED;
    if (fixed && firm) continue;
    good = hn_vec_push(&m->contents, (moving_content){.of = *c, .index = i, .sure = firm}) &&
           (fixed || find_slots(p, &m->contents.ptr[m->contents.len - 1]));
  }
  hn_free(known);
  hn_free(sure);
  hn_free(kind);
  return good;
}

static bool find_moving(hn_plan *p, const hn_numbers *w, hn_moving *m) {
  const hn_line *l = m->line;
  bool good = true;
  for (uint32_t i = 0; i < l->n && good; i++)
    if (l->slope[i]) good = hn_vec_push(&m->numbers, (moving_number){w->at.ptr[i], i});
  for (uint32_t i = 0; i < l->n_costs && good; i++)
    if (l->cost[i][1] != 0 || l->cost[i][2] != 0)
      good = hn_vec_push(&m->costs, (moving_cost){w->costs.ptr[i], i});
  for (uint32_t i = 0; i < l->n_reals && good; i++)
    if (l->real_slope[i]) good = hn_vec_push(&m->reals, (moving_real){w->reals.ptr[i], i});
  for (uint32_t i = 0; i < l->n_descs && good; i++)
    if (hn_line_moves(l, &l->desc[i])) good = hn_vec_push(&m->descs, w->descs.ptr[i]);
  good = good && find_contents(p, w, m);
  for (uint32_t k = 0; k < p->steps.len && good; k++)
    if (step_moves(p, m, w, k)) good = hn_vec_push(&m->steps, k);
  return good;
}

/* ------------------------------------------------------------------ constants */

static size_t bytes_at(const hn_line *l, const moving_content *c, int64_t t) {
  const hn_dims *d = &l->desc[l->content[c->index].desc];
  size_t n = hone_dtype_size(c->of.tensor->desc.dtype);
  for (int32_t i = 0; i < d->rank; i++) n *= (size_t)hn_line_number(l, d->first + (uint32_t)i, t);
  return n;
}

/* Room for what a constant is at the line's far end; what it is now moves there. */
static bool make_room(hn_plan *p, const hn_line *l, moving_content *c) {
  const size_t now = bytes_at(l, c, l->low), far = bytes_at(l, c, l->high), want = now > far ? now : far;
  if (want <= c->room || l->content[c->index].kind == HN_CONTENT_FIXED) return true;
  const int64_t have = hone_desc_bytes(&c->of.tensor->desc);
  void *data = hn_arena_aligned(&p->arena, want, HN_MEM_ALIGN);
  if (!data || have < 0 || (size_t)have > want) return false;
  memcpy(data, c->of.tensor->data, (size_t)have);
  c->of.tensor->data = data;
  p->constant_bytes += want - c->room;
  c->room = want;
  for (size_t i = 0; i < c->slots.len; i++) {
    p->slots.ptr[c->slots.ptr[i]].constant = data;
    for (uint32_t k = 0; k < p->slots.len; k++)
      if (p->slots.ptr[k].alias != HN_NO_SLOT && hn_slot_root(p, k) == c->slots.ptr[i])
        p->slots.ptr[k].constant = (const char *)data + p->slots.ptr[k].offset;
  }
  return true;
}

/* What steps see of constants, where those lie elsewhere now. */
static void show_constants(hn_plan *p) {
  for (size_t k = 0; k < p->steps.len; k++) {
    hn_step *s = &p->steps.ptr[k];
    hone_step_tensor *in = (hone_step_tensor *)(uintptr_t)s->desc.input;
    for (uint32_t i = 0; i < s->desc.n_inputs; i++)
      if (s->in[i] != HN_NO_SLOT && in[i].constant && p->slots.ptr[s->in[i]].place == HN_PLACE_CONST)
        in[i].constant = p->slots.ptr[s->in[i]].constant;
    for (uint32_t j = 0; j < s->desc.n_parts; j++) {
      const hone_step_part *part = &s->desc.part[j];
      hone_step_tensor *of = (hone_step_tensor *)(uintptr_t)part->step->input;
      for (uint32_t i = 0; i < part->step->n_inputs; i++)
        if (part->input[i] != HONE_PART_CHAINED && of[i].constant)
          of[i].constant = in[part->input[i]].constant;
    }
  }
}

/* Rows of a table, from wherever it lies: evaluation would first copy all of it to where it is aligned. */
static bool gather_rows(const moving_content *c, void *out) {
  const hone_node *n = c->of.made;
  if (!hn_is_op(n, "Gather") || hone_node_int(n, "axis", 0) != 0 || n->n_in != 2 || !n->in[0] || !n->in[1])
    return false;
  const hone_tensor *x = n->in[0]->constant, *at = n->in[1]->constant;
  if (!x || !x->data || n->in[0]->deferred || !at || !at->data || n->in[1]->deferred || x->desc.rank < 1 ||
      hn_dtype_points(x->desc.dtype) || x->desc.dtype != c->of.tensor->desc.dtype || !hn_is_aligned(at))
    return false;
  const int64_t rows = x->desc.dim[0], count = hone_desc_count(&at->desc);
  const int64_t bytes = hone_desc_bytes(&c->of.tensor->desc), all = hone_desc_bytes(&x->desc);
  if (rows < 1 || count < 1 || bytes != all / rows * count) return false;
  const size_t row = (size_t)(all / rows);
  for (int64_t i = 0; i < count; i++) {
    int64_t k = at->desc.dtype == HONE_DTYPE_I64   ? ((const int64_t *)at->data)[i]
                : at->desc.dtype == HONE_DTYPE_I32 ? ((const int32_t *)at->data)[i]
                                                   : rows;
    k += k < 0 ? rows : 0;
    if (k < 0 || k >= rows) return false;
    memcpy((char *)out + (size_t)i * row, (const char *)x->data + (size_t)k * row, row);
  }
  return true;
}

/* The constant once more, by the node that it was folded of: `out` has its bytes. */
static bool evaluate(const moving_content *c, void *out) {
  const hone_node *n = c->of.made;
  const hone_tensor *in[64];
  hone_tensor result[16] = {{.data = NULL}}, *list[16];
  hn_arena keep = {0};
  bool good = n && n->n_in <= 64 && n->n_out <= 16;
  if (good && gather_rows(c, out)) return true;
  for (uint32_t i = 0; good && i < n->n_in; i++) {
    in[i] = n->in[i] ? n->in[i]->constant : NULL;
    good = !n->in[i] || (in[i] && in[i]->data && !n->in[i]->deferred);
  }
  for (uint32_t i = 0; good && i < n->n_out; i++) list[i] = n->out[i] ? &result[i] : NULL;
  good = good && hn_eval_node(n, in, list, &keep, NULL, NULL) == HONE_OK;
  bool found = false;
  for (uint32_t i = 0; n && i < n->n_out && i < 16; i++) {
    const int64_t bytes = good && n->out[i] == c->of.value ? hone_desc_bytes(&result[i].desc) : -1;
    if (bytes >= 0 && hone_desc_same_dims(&result[i].desc, &c->of.tensor->desc) &&
        result[i].desc.dtype == c->of.tensor->desc.dtype) {
      if (bytes) memcpy(out, result[i].data, (size_t)bytes);
      found = true;
    }
    hn_free(result[i].data);
  }
  hn_arena_free(&keep);
  return found;
}

/* Evaluated, it is what it is. */
static bool comes_out(const moving_content *c) {
  const int64_t bytes = hone_desc_bytes(&c->of.tensor->desc);
  uint64_t few[32];
  if (bytes < 0) return false;
  void *again = (size_t)bytes <= sizeof few ? few : hn_malloc((size_t)bytes);
  const bool same = again && evaluate(c, again) && memcmp(again, c->of.tensor->data, (size_t)bytes) == 0;
  if (again != few) hn_free(again);
  return same;
}

static bool foretold(const hn_line *l, const moving_content *c, int64_t t, void *out) {
  const hn_line_content *k = &l->content[c->index];
  const hone_tensor_desc *d = &c->of.tensor->desc;
  if (k->kind == HN_CONTENT_FIXED) return true;
  if (k->kind == HN_CONTENT_PART)
    return hn_leading_block(out, d->dim, k->whole, k->dim, d->rank, hone_dtype_size(d->dtype), true);
  for (size_t i = 0; i < k->count; i++) {
    const int64_t x = k->base[i] + k->slope[i] * t;
    if (d->dtype == HONE_DTYPE_I64)
      ((int64_t *)out)[i] = x;
    else if (d->dtype == HONE_DTYPE_F32)
      ((float *)out)[i] = (float)x;
    else
      ((int32_t *)out)[i] = (int32_t)x;
  }
  return true;
}

/* What a condition, a remainder or a limit makes of sizes may be something else at one of them: what the
 * line says of it is what the plan was made for, so it has to be true. */
static bool set_content(const hn_line *l, const moving_content *c, int64_t t, void *out) {
  const uint64_t pattern = l->content[c->index].pattern;
  if (l->content[c->index].kind == HN_CONTENT_MADE)
    return evaluate(c, out) && (!pattern || hn_content_pattern(&c->of.tensor->desc, out) == pattern);
  return foretold(l, c, t, out) && (c->sure || comes_out(c));
}

/* ------------------------------------------------------------------ moving */

static bool set_numbers(hn_moving *m, int64_t t) {
  const hn_line *l = m->line;
  for (size_t i = 0; i < m->numbers.len; i++)
    *m->numbers.ptr[i].at = hn_line_number(l, m->numbers.ptr[i].index, t);
  for (size_t i = 0; i < m->descs.len; i++) {
    const hn_described *d = &m->descs.ptr[i];
    if (d->derived) hone_desc_set_layout(d->desc, d->desc->layout, d->dense ? 0 : d->desc->channel_pitch);
    if (d->slot) d->slot->bytes = (uint64_t)hone_desc_bytes(d->desc);
  }
  for (size_t i = 0; i < m->reals.len; i++) *m->reals.ptr[i].at = hn_line_real(l, m->reals.ptr[i].index, t);
  for (size_t i = 0; i < m->costs.len; i++) *m->costs.ptr[i].at = hn_line_cost(l, m->costs.ptr[i].index, t);
  for (size_t i = 0; i < m->contents.len; i++)
    if (!set_content(l, &m->contents.ptr[i], t, m->contents.ptr[i].of.tensor->data)) return false;
  m->at = t;
  return true;
}

/* Do the tactics take their steps, and within the memory that these have? */
static hone_status ask_steps(hn_plan *p, bool *taken, hone_error *error) {
  hn_moving *m = p->moving;
  *taken = true;
  for (size_t k = 0; k < m->steps.len && *taken; k++) {
    hn_step *s = &p->steps.ptr[m->steps.ptr[k]];
    hone_tactic_need need = {0};
    hone_reason why;
    if (s->kind != HN_STEP_TACTIC) continue;
    *taken = s->tactic->accepts(&s->desc, &p->machine, &why);
    if (!*taken || !s->tactic->need) continue;
    const hone_status status = s->tactic->need(&s->desc, &p->machine, &need, error);
    if (status != HONE_OK) return status;
    *taken = need.packed == s->need.packed && (s->shared_at ? need.blob_bytes == s->need.blob_bytes
                                                            : need.blob_bytes <= m->tables[m->steps.ptr[k]]);
    if (*taken && s->shared_at) {
      uint64_t key;
      size_t at;
      *taken = hn_tactic_shares(s->tactic, &s->desc, &p->machine, &at, &key) == s->sharing &&
               at == s->shared_at && key == s->shared_key;
    }
    if (!*taken) continue;
    s->need = need;
    if (need.workspace_bytes > p->workspace_bytes) p->workspace_bytes = need.workspace_bytes;
  }
  return HONE_OK;
}

/* What steps pack of shapes. */
static hone_status pack_steps(hn_plan *p, hone_error *error) {
  const hn_moving *m = p->moving;
  for (size_t k = 0; k < m->steps.len; k++) {
    hn_step *s = &p->steps.ptr[m->steps.ptr[k]];
    if (s->kind != HN_STEP_TACTIC || !s->tactic->prepack || !s->need.blob_bytes) continue;
    hone_step step = s->desc;
    step.own_only = s->shared_at > 0;
    const hone_status status = hn_tactic_pack(s->tactic, &step, &p->machine, (void *)(uintptr_t)s->blob,
                                              s->shared_at ? s->shared_at : s->need.blob_bytes, error);
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}

static bool in_arena(const hn_slot *s) { return s->alias == HN_NO_SLOT && s->place == HN_PLACE_ARENA; }

/* Where sizes shrink while others grow, a tensor may be larger than both at the far end and where it was. */
static bool has_room(const hn_plan *p) {
  for (uint32_t k = 0; k < p->slots.len; k++)
    if (in_arena(&p->slots.ptr[k]) && p->slots.ptr[k].bytes > p->moving->room[k]) return false;
  return true;
}

static hone_status go(hn_plan *p, int64_t t, bool *taken, hone_error *error) {
  *taken = set_numbers(p->moving, t) && has_room(p);
  hone_status status = *taken ? ask_steps(p, taken, error) : HONE_OK;
  if (status == HONE_OK && *taken) status = pack_steps(p, error);
  return status;
}

/* The arena for the far end, with room for what slots are now, which may be more: bytes says that. */
static hone_status place_arena(hn_plan *p, const uint64_t *bytes, hone_error *error) {
  for (uint32_t k = 0; k < p->slots.len; k++) {
    hn_slot *s = &p->slots.ptr[k];
    if (in_arena(s) && bytes[k] > s->bytes) s->bytes = bytes[k];
  }
  const hone_status status = hn_plan_place_again(p, error);
  for (uint32_t k = 0; k < p->slots.len; k++) p->moving->room[k] = p->slots.ptr[k].bytes;
  return status;
}

/* Room for the far end, in constants and in the arena. */
static hone_status place(hn_plan *p, bool *taken, hone_error *error) {
  hn_moving *m = p->moving;
  const int64_t now = m->at;
  uint64_t *bytes = hn_malloc((p->slots.len + 1) * sizeof *bytes);
  if (!bytes) return hn_fail_memory(error, p->slots.len * sizeof *bytes, "the memory plan");
  for (uint32_t k = 0; k < p->slots.len; k++) bytes[k] = p->slots.ptr[k].bytes;
  *taken = true;
  for (size_t i = 0; i < m->contents.len && *taken; i++) *taken = make_room(p, m->line, &m->contents.ptr[i]);
  show_constants(p);
  if (*taken) *taken = set_numbers(m, m->line->high);
  for (size_t k = 0; k < m->steps.len && *taken; k++) { /* tables that grow */
    hn_step *s = &p->steps.ptr[m->steps.ptr[k]];
    hone_tactic_need need = {0};
    size_t *room = &m->tables[m->steps.ptr[k]];
    if (s->kind != HN_STEP_TACTIC || s->shared_at || !s->tactic->need) continue;
    const hone_status status = s->tactic->need(&s->desc, &p->machine, &need, error);
    if (status != HONE_OK) {
      hn_free(bytes);
      return status;
    }
    if (need.blob_bytes <= *room) continue;
    void *blob =
        need.blob_bytes <= MOST_TABLES ? hn_arena_aligned(&p->arena, need.blob_bytes, HN_MEM_ALIGN) : NULL;
    *taken = blob != NULL;
    if (!*taken) break;
    if (s->need.blob_bytes) memcpy(blob, s->blob, s->need.blob_bytes < *room ? s->need.blob_bytes : *room);
    s->blob = blob;
    *room = need.blob_bytes;
  }
  hone_status status = HONE_OK;
  if (*taken) status = ask_steps(p, taken, error);
  if (status == HONE_OK && *taken) status = place_arena(p, bytes, error);
  hn_free(bytes);
  if (status == HONE_OK && *taken) m->placed = m->line->high;
  bool back = true;
  if (status == HONE_OK) status = go(p, now, &back, error);
  if (status == HONE_OK && !back)
    status = hn_fail(error, HONE_ERROR_INTERNAL, "a plan cannot be what it was");
  return status;
}

/* What a step packs of its own must be there to be packed again. */
static bool packs_again(const hn_plan *p, const hn_step *s) {
  if (s->kind != HN_STEP_TACTIC || s->shared_at || !s->need.blob_bytes) return true;
  for (uint32_t i = 0; i < s->desc.n_inputs && i < 32; i++) {
    if (s->in[i] == HN_NO_SLOT || !(s->need.packed >> i & 1)) continue;
    const hn_slot *slot = &p->slots.ptr[s->in[i]], *r = &p->slots.ptr[hn_slot_root(p, s->in[i])];
    const hone_tensor t = {slot->desc, (void *)(uintptr_t)slot->constant};
    if (r->place != HN_PLACE_CONST || r->deferred || r->packed || !slot->constant ||
        (!(s->need.bytewise >> i & 1) && !hn_is_aligned(&t)))
      return false;
  }
  return true;
}

/* A tactic that shares what it packed cannot have packed a constant that moves. */
static bool shares_still(const hn_plan *p, const hn_moving *m, const hn_step *s) {
  for (uint32_t i = 0; s->shared_at && i < s->desc.n_inputs && i < 32; i++) {
    if (s->in[i] == HN_NO_SLOT || !(s->need.packed >> i & 1)) continue;
    const uint32_t root = hn_slot_root(p, s->in[i]);
    for (size_t k = 0; k < m->contents.len; k++)
      for (size_t j = 0; j < m->contents.ptr[k].slots.len; j++)
        if (m->contents.ptr[k].slots.ptr[j] == root) return false;
  }
  return true;
}

/* Constants that are to be evaluated again come out as they are. */
static bool makes_same(const hn_moving *m) {
  for (size_t i = 0; i < m->contents.len; i++) {
    const moving_content *c = &m->contents.ptr[i];
    if ((m->line->content[c->index].kind == HN_CONTENT_MADE || !c->sure) && !comes_out(c)) return false;
  }
  return true;
}

bool hn_plan_attach(hn_plan *p, hone_tensor_desc *const *more, uint32_t n_more, const hn_line *l,
                    int64_t at) {
  hn_numbers w;
  hn_sample *s = NULL;
  hn_moving *m = hn_calloc(1, sizeof *m);
  bool good = m && !p->moving && hn_numbers_list(p, more, n_more, &w);
  if (m && !p->moving) {
    good = good && (s = hn_sample_of(&w)) && hn_line_fits(l, s, at);
    m->line = l;
    m->at = at;
    m->placed = m->vain = INT64_MIN;
    good = good && (m->tables = hn_calloc(p->steps.len + 1, sizeof *m->tables)) &&
           (m->room = hn_calloc(p->slots.len + 1, sizeof *m->room)) && find_moving(p, &w, m);
    for (uint32_t k = 0; good && k < p->slots.len; k++) m->room[k] = p->slots.ptr[k].bytes;
    for (size_t k = 0; good && k < p->steps.len; k++) m->tables[k] = p->steps.ptr[k].need.blob_bytes;
    for (size_t k = 0; good && k < m->steps.len; k++) {
      const hn_step *step = &p->steps.ptr[m->steps.ptr[k]];
      good = packs_again(p, step) && shares_still(p, m, step);
    }
    good = good && makes_same(m);
    hn_numbers_free(&w);
  }
  hn_sample_free(s);
  if (!good) {
    hn_moving_free(m);
    return false;
  }
  p->moving = m;
  return true;
}

hone_status hn_plan_move(hn_plan *p, const hn_line *l, int64_t at, bool *moved, hone_error *error) {
  hn_moving *m = p->moving;
  hone_status status = HONE_OK;
  *moved = false;
  if (!m || m->line != l || at < l->low || at > l->high) return HONE_OK;
  const int64_t now = m->at;
  if (at > m->placed) {
    bool taken = true;
    if (m->vain == l->high) return HONE_OK;
    m->vain = l->high;
    status = place(p, &taken, error);
    if (status != HONE_OK || !taken) return status;
    m->vain = INT64_MIN;
  }
  status = go(p, at, moved, error);
  if (status != HONE_OK || *moved) return status;
  bool back = true;
  status = go(p, now, &back, error);
  return status == HONE_OK && !back ? hn_fail(error, HONE_ERROR_INTERNAL, "a plan cannot be what it was")
                                    : status;
}

double hn_plan_excess(const hn_plan *p) {
  double with = 0, best = 0;
  for (size_t k = 0; k < p->steps.len; k++) {
    const hn_step *s = &p->steps.ptr[k];
    hn_candidate list[HN_MAX_CANDIDATES];
    if (s->kind != HN_STEP_TACTIC || !s->tactic->cost) continue;
    const uint32_t n = hn_accepting_tactics(p, &s->desc, list, NULL);
    if (!n) continue;
    with += s->tactic->cost(&s->desc, &p->machine);
    best += list[hn_cheapest(list, n)].predicted;
  }
  return best > 0 ? with / best : 1;
}
