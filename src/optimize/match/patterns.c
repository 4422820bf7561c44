#include "optimize/match/patterns.h"

#include "base/error.h"
#include "model/operators.h"
#include "optimize/match/condition.h"
#include "optimize/match/match.h"
#include "optimize/match/present.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATTERN(name) extern const hone_pattern_desc hn_pattern_##name;
#include "optimize/match/patterns.def"
#undef PATTERN

static const void *const builtin[] = {
#define PATTERN(name) &hn_pattern_##name,
#include "optimize/match/patterns.def"
#undef PATTERN
};

enum { MAX_SPELLINGS = 16, BUILTIN = sizeof builtin / sizeof *builtin };

static const char *pattern_key(const void *unit) { return ((const hone_pattern_desc *)unit)->name; }

/* Several may make one operator, with other attributes. */
static void pattern_label(const void *unit, char *buf, size_t size) {
  const hone_pattern_desc *d = unit;
  snprintf(buf, size, "%s of this text (%016llx)", d->name,
           (unsigned long long)hn_hash(d->text, strlen(d->text), 0));
}

/* Are these values that one spelling or another reads and does not make? What it makes is gone with its
 * nodes. */
static bool inputs_known(const hone_pattern_desc *d, const hn_pattern *spelling, uint32_t n,
                         hn_pattern_place *place, hone_error *error) {
  for (const char *p = d->inputs; *p;) {
    const size_t len = strcspn(p, " ");
    bool found = false, made = false;
    for (uint32_t k = 0; k < n && !found; k++)
      for (uint32_t i = 0; i < spelling[k].n_names && !found; i++) {
        const bool same = *p == '%' && strlen(spelling[k].names[i]) == len - 1 &&
                          memcmp(spelling[k].names[i], p + 1, len - 1) == 0;
        found = same && spelling[k].made_by[i] < 0;
        made = made || same;
      }
    *place = (hn_pattern_place){d->inputs, 1, (int)(p - d->inputs) + 1};
    if (len && !found && made)
      return hn_fail(error, HONE_ERROR_INPUT,
                     "'%.*s' is made by the pattern's own nodes; an input is a value that they only read",
                     len < 80 ? (int)len : 80, p),
             false;
    if (len && !found)
      return hn_fail(error, HONE_ERROR_INPUT, "the pattern has no '%.*s'", len < 80 ? (int)len : 80, p),
             false;
    p += len + strspn(p + len, " ");
  }
  return true;
}

hone_status hn_pattern_check(const hone_pattern_desc *d, hn_pattern_place *place, hone_error *error) {
  hn_arena arena = {0};
  uint32_t n = 0;
  hn_pattern_text text = {.name = d->name, .text = d->text, .settings = d->settings};
  hn_pattern *p = HN_NEW_ARRAY(&arena, hn_pattern, MAX_SPELLINGS);
  hone_status status = p ? hn_pattern_compile_all(&text, &arena, p, MAX_SPELLINGS, &n, error)
                         : hn_fail_memory(error, sizeof *p * MAX_SPELLINGS, "a pattern");
  *place = (hn_pattern_place){text.in_settings ? d->settings : d->text, text.line, text.column};
  if (status == HONE_OK && !inputs_known(d, p, n, place, error)) status = HONE_ERROR_INPUT;
  hn_arena_free(&arena);
  return status;
}

/* The first operator of ONNX's own domain that nobody knows; NULL: none. */
static const hn_line *unknown_in(const hn_pattern *p, const hn_listing *operators, const char **op) {
  for (uint32_t i = 0; i < p->n_lines; i++)
    for (uint32_t k = 0; k < p->line[i].n_op && !*p->line[i].domain; k++) {
      int64_t opset;
      *op = p->line[i].op[k];
      if (!hn_op_newest(operators, "", *op, &opset)) return &p->line[i];
    }
  return NULL;
}

hone_status hn_pattern_operators(const hone_pattern_desc *d, hn_pattern_place *place, hone_error *error) {
  hn_arena arena = {0};
  uint32_t n = 0;
  const char *op = NULL;
  hn_pattern_text text = {.name = d->name, .text = d->text, .settings = d->settings};
  hn_pattern *p = HN_NEW_ARRAY(&arena, hn_pattern, MAX_SPELLINGS);
  const hn_listing *operators = hn_registry_take(&hn_operators);
  hone_status status = p ? hn_pattern_compile_all(&text, &arena, p, MAX_SPELLINGS, &n, error)
                         : hn_fail_memory(error, sizeof *p * MAX_SPELLINGS, "a pattern");
  for (uint32_t k = 0; k < n && status == HONE_OK; k++) {
    const hn_line *l = unknown_in(&p[k], operators, &op);
    if (!l) continue;
    *place = (hn_pattern_place){d->text, l->line, l->column};
    status = hn_fail(error, HONE_ERROR_INPUT, "there is no operator '%.80s'", op);
  }
  hn_listing_drop(operators);
  hn_arena_free(&arena);
  return status;
}

static hone_status pattern_check(const void *unit, hone_error *error) {
  const hone_pattern_desc *d = unit;
  hn_pattern_place ignored;
  hone_status status = hn_check_desc("pattern", d->name, d->struct_size, d->abi, sizeof *d, error);
  if (status != HONE_OK) return status;
  if (!d->name || !*d->name || !d->text || !d->inputs)
    return hn_fail(error, HONE_ERROR_USAGE, "pattern %.80s has no name, text or inputs",
                   d->name ? d->name : "?");
  return hn_pattern_check(d, &ignored, error);
}

static const hn_kind kind = {
    .noun = "pattern", .key = pattern_key, .label = pattern_label, .check = pattern_check};
hn_registry hn_patterns = HN_REGISTRY(&kind, builtin);

typedef struct spelling {
  const hone_pattern_desc *desc;
  uint32_t index; /* in the registry */
  const hn_pattern *pattern;
} spelling;

typedef HN_VEC(spelling) spelling_list;

typedef struct candidate {
  hone_match match;
  const hone_pattern_desc *desc;
  uint32_t index;  /* of the pattern in the registry */
  uint32_t order;  /* of the root in the graph */
  const char *why; /* near misses */
} candidate;

typedef HN_VEC(candidate) candidate_list;

/* The spellings of a built-in pattern that may match. */
static hone_status compile_known(const hone_pattern_desc *d, uint32_t index, const hn_present *present,
                                 hn_arena *arena, spelling_list *out, hone_error *error) {
  for (const char *text = d->text, *cut; text; text = cut ? cut + 4 : NULL) {
    cut = strstr(text, "\nor\n");
    uint32_t n = 0;
    char *part = hn_arena_strndup(arena, text, cut ? (size_t)(cut - text) : strlen(text));
    if (part && !hn_spelling_may_match(present, part)) continue;
    hn_pattern *p = part ? HN_NEW(arena, hn_pattern) : NULL;
    if (!p) return hn_fail_memory(error, sizeof *p, "the patterns");
    hn_pattern_text one = {.name = d->name, .text = part, .settings = d->settings};
    hone_status status = hn_pattern_compile_all(&one, arena, p, 1, &n, error);
    if (status != HONE_OK) return status;
    if (!hn_vec_push(out, (spelling){d, index, p}))
      return hn_fail_memory(error, sizeof(spelling), "the patterns");
  }
  return HONE_OK;
}

/* All spellings of a plugin's pattern: its near misses may have other operators. */
static hone_status compile_custom(const hone_pattern_desc *d, uint32_t index, hn_arena *arena,
                                  spelling_list *out, hone_error *error) {
  uint32_t n = 0;
  hn_pattern *p = HN_NEW_ARRAY(arena, hn_pattern, MAX_SPELLINGS);
  if (!p) return hn_fail_memory(error, sizeof *p * MAX_SPELLINGS, "the patterns");
  hn_pattern_text text = {.name = d->name, .text = d->text, .settings = d->settings};
  hone_status status = hn_pattern_compile_all(&text, arena, p, MAX_SPELLINGS, &n, error);
  for (uint32_t k = 0; k < n && status == HONE_OK; k++) {
    p[k].lenient = true;
    if (!hn_vec_push(out, (spelling){d, index, &p[k]}))
      status = hn_fail_memory(error, sizeof(spelling), "the patterns");
  }
  return status;
}

static hone_status compile(const hn_listing *all, const hn_present *present, hn_arena *arena,
                           spelling_list *out, hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < all->n && status == HONE_OK; i++)
    status = i < BUILTIN ? compile_known(all->unit[i], i, present, arena, out, error)
                         : compile_custom(all->unit[i], i, arena, out, error);
  return status;
}

static void tell(const hn_pattern_listener *l, const candidate *c, bool hit, const char *reason) {
  if (l) l->hear(l->self, c->desc, &c->match, hit, reason);
}

static void sink_int(void *self, const char *name, int64_t v) { (void)hn_node_set_int(self, name, v); }
static void sink_float(void *self, const char *name, float v) { (void)hn_node_set_float(self, name, v); }
static void sink_string(void *self, const char *name, const char *v) {
  (void)hn_node_set_string(self, name, v, strlen(v));
}
static void sink_ints(void *self, const char *name, const int64_t *v, size_t n) {
  (void)hn_node_set_ints(self, name, v, n);
}
static void sink_floats(void *self, const char *name, const float *v, size_t n) {
  (void)hn_node_set_floats(self, name, v, n);
}

/* What a pattern makes: "Gelu", or "test.Twice" of the domain "test". */
static const hone_op_desc *operator_of(const hone_pattern_desc *d, const hn_listing *operators,
                                       int64_t *opset) {
  char domain[128];
  const char *dot = strrchr(d->name, '.');
  snprintf(domain, sizeof domain, "%.*s", dot ? (int)(dot - d->name) : 0, d->name);
  return hn_op_newest(operators, domain, dot ? dot + 1 : d->name, opset);
}

/* The attributes that the pattern's text gives to the operator. node NULL: only whether they can be given. */
static bool settings_apply(const candidate *c, const hone_op_desc *op, hone_node *node, hone_reason *why) {
  const hn_pattern *p = c->match.pattern;
  for (uint32_t i = 0; i < p->n_settings; i++) {
    const hone_attr_desc *a = op->attrs;
    while (a && a->name && strcmp(a->name, p->setting[i].attr) != 0) a++;
    if (!a || !a->name) {
      snprintf(why->text, sizeof why->text, "%.60s has no attribute %.60s", op->op_type, p->setting[i].attr);
      return false;
    }
    if (!hn_setting_apply(&p->setting[i], a->type, &c->match, node, why)) return false;
  }
  return true;
}

/* Is there something that the pattern's attributes are to be made of? */
static bool has_settings(const candidate *c, const hn_listing *operators, hone_reason *why) {
  int64_t opset;
  const hone_op_desc *op = c->match.pattern->n_settings ? operator_of(c->desc, operators, &opset) : NULL;
  return !op || settings_apply(c, op, NULL, why);
}

/* The operator that the match is, outside of the graph's lists. NULL when hone does not know it or memory is
 * short. */
static hone_node *make_operator(const candidate *c) {
  hone_node *root = hn_match_root(&c->match);
  hn_graph *g = root->graph;
  hn_arena *a = &g->model->arena;
  enum { MAX_INPUTS = 8 };
  hn_value *in[MAX_INPUTS];
  uint32_t n = 0, used = 0;
  for (const char *p = c->desc->inputs; *p && n < MAX_INPUTS;) {
    size_t len = strcspn(p, " ");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)len, p);
    in[n] = hn_match_get(&c->match, name);
    if (in[n++]) used = n;
    p += len + strspn(p + len, " ");
  }
  int64_t opset = 0;
  const hone_op_desc *op = operator_of(c->desc, g->model->operators, &opset);
  if (!op) return NULL;
  hone_node *node = HN_NEW(a, hone_node);
  hn_value **ins = HN_NEW_ARRAY(a, hn_value *, used + 1), **out = HN_NEW(a, hn_value *);
  if (!node || !ins || !out) return NULL;
  if (used) memcpy(ins, in, used * sizeof *in);
  *out = root->out[0];
  *node = (hone_node){.graph = g,
                      .op_type = op->op_type,
                      .domain = op->domain,
                      .op = op,
                      .name = root->name,
                      .opset = (int32_t)opset,
                      .n_in = used,
                      .n_out = 1,
                      .in = ins,
                      .out = out};
  for (uint32_t k = 0; k < c->match.pattern->n_lines; k++)
    if (!hn_node_inherit(node, c->match.node[k])) return NULL;
  hone_attr_sink sink = {node, sink_int, sink_float, sink_string, sink_ints, sink_floats};
  if (c->desc->attrs) c->desc->attrs(&c->match, &sink);
  hone_reason ignored;
  return settings_apply(c, op, node, &ignored) ? node : NULL;
}

static int larger_first(const void *pa, const void *pb) {
  const candidate *a = pa, *b = pb;
  uint32_t na = a->match.pattern->n_lines, nb = b->match.pattern->n_lines;
  if (na != nb) return na < nb ? 1 : -1;
  if (a->order != b->order) return a->order < b->order ? -1 : 1;
  const bool ca = a->index >= BUILTIN, cb = b->index >= BUILTIN;
  if (ca != cb) return ca ? -1 : 1;
  if (a->index == b->index) return 0;
  return (a->index < b->index) == ca ? 1 : -1; /* plugins: the last one first */
}

hone_status hn_pattern_operator(const hone_pattern_desc *d, hn_graph *g, hone_node **out, hone_error *error) {
  hn_arena arena = {0};
  uint32_t n = 0;
  hone_reason why = {"it has no such nodes"};
  hn_pattern_text text = {.name = d->name, .text = d->text, .settings = d->settings};
  hn_pattern *p = HN_NEW_ARRAY(&arena, hn_pattern, MAX_SPELLINGS);
  hone_status status = p ? hn_pattern_compile_all(&text, &arena, p, MAX_SPELLINGS, &n, error)
                         : hn_fail_memory(error, sizeof *p * MAX_SPELLINGS, "a pattern");
  *out = NULL;
  for (hone_node *root = g->first; root && status == HONE_OK && !*out; root = root->next)
    for (uint32_t k = 0; k < n && status == HONE_OK && !*out; k++) {
      candidate c = {.desc = d};
      if (hn_pattern_match(&p[k], root, &c.match, &why) != HN_MATCH_YES ||
          (d->accepts && !d->accepts(&c.match, &why)) || !has_settings(&c, g->model->operators, &why))
        continue;
      *out = make_operator(&c);
      if (!*out)
        status = hn_fail(error, HONE_ERROR_UNSUPPORTED, "operator %.80s is not known, or memory is short",
                         d->name);
    }
  if (status == HONE_OK && !*out) status = hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s", why.text);
  hn_arena_free(&arena);
  return status;
}

static uint32_t matched(const candidate *c) { return c->match.pattern->n_lines - c->match.n_other; }

static int nearest_first(const void *pa, const void *pb) {
  const candidate *a = pa, *b = pb;
  const uint32_t na = matched(a), nb = matched(b), oa = a->match.n_other, ob = b->match.n_other;
  if (na != nb) return na < nb ? 1 : -1;
  return oa != ob ? (oa < ob ? -1 : 1) : larger_first(pa, pb);
}

static int by_root(const void *pa, const void *pb) {
  const hn_pattern_hit *a = pa, *b = pb;
  return a->root->mark < b->root->mark ? -1 : a->root->mark > b->root->mark;
}

/* Every spelling at every node. Near misses are kept apart: they count only where nothing else took the
 * nodes, the nearest of each node. */
static hone_status find(hn_graph *g, const spelling_list *s, candidate_list *hits, candidate_list *near,
                        hn_arena *arena, hone_error *error) {
  uint32_t order = 0;
  bool ok = true;
  for (hone_node *n = g->first; n && ok; n = n->next) {
    n->mark = order++;
    candidate nearest; /* kilobytes, and few nodes are the last of a pattern: they are not cleared */
    hone_reason why;
    nearest.desc = NULL;
    for (size_t i = 0; i < s->len && ok; i++) {
      if (!hn_pattern_ends_at(s->ptr[i].pattern, n)) continue;
      candidate c = {.desc = s->ptr[i].desc, .index = s->ptr[i].index, .order = n->mark};
      hone_reason reason = {""};
      hn_match_result r = hn_pattern_match(s->ptr[i].pattern, n, &c.match, &reason);
      if (r == HN_MATCH_YES && c.desc->accepts && !c.desc->accepts(&c.match, &reason)) r = HN_MATCH_NEAR;
      if (r == HN_MATCH_YES && !has_settings(&c, g->model->operators, &reason)) r = HN_MATCH_NEAR;
      if (r == HN_MATCH_YES) ok = hn_vec_push(hits, c);
      if (r != HN_MATCH_NEAR || (nearest.desc && nearest_first(&nearest, &c) <= 0)) continue;
      nearest = c;
      why = reason;
    }
    if (!nearest.desc || !ok) continue;
    nearest.why = hn_arena_strdup(arena, why.text);
    ok = nearest.why && hn_vec_push(near, nearest);
  }
  return ok ? HONE_OK : hn_fail(error, HONE_ERROR_MEMORY, "cannot allocate memory to match patterns");
}

static bool any_taken(const candidate *c, const bool *taken) {
  for (uint32_t k = 0; k < c->match.pattern->n_lines; k++)
    if (taken[c->match.node[k]->mark]) return true;
  return false;
}

static void take(const candidate *c, bool *taken) {
  for (uint32_t k = 0; k < c->match.pattern->n_lines; k++) taken[c->match.node[k]->mark] = true;
}

/* Does another pattern say that these nodes are one pointwise function? */
static bool has_rival(const candidate_list *found, const candidate *c) {
  const uint32_t n = c->match.pattern->n_lines;
  for (size_t i = 0; i < found->len; i++) {
    const candidate *o = &found->ptr[i];
    if (o->index != c->index && o->order == c->order && o->match.pattern->n_lines == n && o->desc->pointwise)
      return true;
  }
  return false;
}

hone_status hn_patterns_match(hn_graph *g, hn_pattern_hits *hits, const hn_pattern_listener *listener,
                              hone_error *error) {
  *hits = (hn_pattern_hits){0};
  hn_arena arena = {0};
  const hn_listing *patterns = hn_registry_take(&hn_patterns);
  spelling_list spellings = {0};
  candidate_list found = {0}, near = {0};
  bool *taken = hn_calloc((size_t)g->n_nodes + 1, sizeof *taken);
  hn_present present = {0};
  hone_status status = taken && hn_present_add(&present, g, false)
                           ? compile(patterns, &present, &arena, &spellings, error)
                           : hn_fail_memory(error, g->n_nodes, "the patterns");
  if (status == HONE_OK) status = find(g, &spellings, &found, &near, &arena, error);
  if (status != HONE_OK) goto done;
  if (found.len) qsort(found.ptr, found.len, sizeof *found.ptr, larger_first);
  for (size_t i = 0; i < found.len; i++) {
    candidate *c = &found.ptr[i];
    uint32_t n = c->match.pattern->n_lines;
    hone_node *node = any_taken(c, taken) ? NULL : make_operator(c);
    if (!node) continue;
    hn_pattern_hit hit = {.node = node,
                          .root = hn_match_root(&c->match),
                          .n_nodes = n,
                          .desc = c->desc,
                          .custom = c->index >= BUILTIN,
                          .nodes =
                              hn_arena_memdup(&g->model->arena, c->match.node, n * sizeof *c->match.node)};
    hit.pointwise = c->desc->pointwise && c->desc->pointwise(&c->match, &hit.op, &hit.alpha, &hit.beta);
    hit.rival = hit.custom && has_rival(&found, c);
    if (hit.nodes && listener && listener->wanted && !listener->wanted(listener->self, &hit)) continue;
    if (!hit.nodes || !hn_vec_push(hits, hit)) {
      status = hn_fail_memory(error, sizeof hit, "the patterns");
      goto done;
    }
    take(c, taken);
    tell(listener, c, true, "one step");
  }
  if (near.len) qsort(near.ptr, near.len, sizeof *near.ptr, nearest_first);
  for (size_t i = 0; i < near.len; i++) {
    if (any_taken(&near.ptr[i], taken)) continue;
    take(&near.ptr[i], taken);
    tell(listener, &near.ptr[i], false, near.ptr[i].why);
  }
  if (hits->len) qsort(hits->ptr, hits->len, sizeof *hits->ptr, by_root);
done:
  for (hone_node *n = g->first; n; n = n->next) n->mark = 0;
  if (status != HONE_OK) hn_vec_free(hits);
  hn_free(taken);
  hn_vec_free(&present);
  hn_vec_free(&spellings);
  hn_vec_free(&found);
  hn_vec_free(&near);
  hn_listing_drop(patterns);
  hn_arena_free(&arena);
  return status;
}

bool hn_patterns_custom(void) {
  const hn_listing *all = hn_registry_take(&hn_patterns);
  const bool some = all->n > BUILTIN;
  hn_listing_drop(all);
  return some;
}

bool hn_pattern_is_custom(const hone_pattern_desc *pattern) {
  for (size_t i = 0; i < BUILTIN; i++)
    if (builtin[i] == pattern) return false;
  return true;
}
