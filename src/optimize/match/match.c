#include "optimize/match/match.h"

#include "base/error.h"
#include "base/half.h"
#include "base/str.h"
#include "model/ops/math/clip_bounds.h"
#include "optimize/match/condition.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ compiling */

/* The number of the name, which becomes the first that is spelled like it: the same place for all. */
static int intern(hn_lex *lex, hn_pattern *p, const char **spelled) {
  const char *name = *spelled;
  int i = hn_pattern_name(p, name);
  if (i >= 0) return *spelled = p->names[i], i;
  if (p->n_names == HN_PATTERN_NAMES)
    return hn_lex_fail(lex, "the pattern has more than %d names", HN_PATTERN_NAMES), -1;
  p->names[p->n_names] = name;
  p->made_by[p->n_names] = -1;
  return (int)p->n_names++;
}

static bool read_line(hn_lex *lex, hn_pattern *p, hn_where_list *conditions) {
  if (p->n_lines == HN_PATTERN_LINES)
    return hn_lex_fail(lex, "the pattern has more than %d lines", HN_PATTERN_LINES), false;
  hn_line *l = &p->line[p->n_lines];
  if (hn_line_parse(lex, l, NULL, NULL, NULL, NULL) != HONE_OK) return false;
  for (uint32_t i = 0; i < l->n_in; i++)
    if (l->in[i].kind == HN_OPERAND_VALUE && intern(lex, p, &l->in[i].name) < 0) return false;
  for (uint32_t i = 0; i < l->n_out; i++) {
    if (!l->out[i]) continue;
    if (hn_pattern_name(p, l->out[i]) >= 0)
      return hn_lex_fail(lex, "'%%%.40s' is made after it was read, or twice", l->out[i]), false;
    int k = intern(lex, p, &l->out[i]);
    if (k < 0) return false;
    p->made_by[k] = (int8_t)p->n_lines;
    p->made_index[k] = (uint8_t)i;
  }
  return !hn_lex_accept_word(lex, "where") || hn_where_parse(lex, p->n_lines, conditions);
}

/* The names of all conditions, which may be made by later lines. */
static bool resolve(hn_lex *lex, hn_pattern *p, const hn_where_list *all) {
  for (size_t i = 0; i < all->len; i++)
    for (uint32_t k = 0; k < all->ptr[i].n_any; k++) {
      const hn_comparison *c = &all->ptr[i].any[k];
      if (!hn_term_resolve(lex, p, all->ptr[i].line, c->left) ||
          !hn_term_resolve(lex, p, all->ptr[i].line, c->right))
        return false;
    }
  p->n_conditions = (uint32_t)all->len;
  p->condition = hn_arena_memdup(lex->arena, all->ptr, all->len * sizeof *all->ptr);
  if (!p->condition) lex->status = hn_fail_memory(lex->error, all->len * sizeof *all->ptr, "a pattern");
  return p->condition != NULL;
}

/* `part`: of the text, from this line on. */
static hone_status compile_part(hn_pattern_text *t, const char *part, int from, hn_arena *arena,
                                hn_pattern *p, hone_error *error) {
  *p = (hn_pattern){.name = t->name};
  hn_lex lex;
  hn_where_list conditions = {0};
  hn_lex_start(&lex, t->name, part, strlen(part), arena, error);
  lex.line += from - 1;
  lex.token.line += from - 1;
  while (lex.status == HONE_OK && lex.token.kind != HN_TOKEN_END && read_line(&lex, p, &conditions))
    p->n_lines++;
  if (lex.status == HONE_OK && p->n_lines == 0) (void)hn_lex_fail(&lex, "the pattern is empty");
  if (lex.status == HONE_OK) (void)resolve(&lex, p, &conditions);
  hn_vec_free(&conditions);
  t->line = lex.failed_line;
  t->column = lex.failed_column;
  return lex.status;
}

hone_status hn_pattern_compile(const char *name, const char *text, hn_arena *arena, hn_pattern *p,
                               hone_error *error) {
  return compile_part(&(hn_pattern_text){.name = name}, text, 1, arena, p, error);
}

static hone_status compile_settings(hn_pattern_text *t, hn_arena *arena, hn_pattern *p, hone_error *error) {
  hn_lex lex;
  hn_setting_list all = {0};
  char source[160];
  snprintf(source, sizeof source, "attributes of %.120s", t->name);
  hn_lex_start(&lex, source, t->settings, strlen(t->settings), arena, error);
  bool ok = hn_settings_parse(&lex, &all);
  for (size_t i = 0; i < all.len && ok; i++) ok = hn_term_resolve(&lex, p, p->n_lines, all.ptr[i].term);
  p->setting = ok ? hn_arena_memdup(arena, all.ptr, all.len * sizeof *all.ptr) : NULL;
  if (p->setting)
    p->n_settings = (uint32_t)all.len;
  else if (lex.status == HONE_OK)
    lex.status = hn_fail_memory(error, all.len * sizeof *all.ptr, "a pattern");
  hn_vec_free(&all);
  t->in_settings = lex.status != HONE_OK;
  t->line = lex.failed_line;
  t->column = lex.failed_column;
  return lex.status;
}

hone_status hn_pattern_compile_all(hn_pattern_text *t, hn_arena *arena, hn_pattern *out, uint32_t max,
                                   uint32_t *count, hone_error *error) {
  int line = 1;
  *count = 0;
  for (const char *text = t->text; text;) {
    const char *cut = strstr(text, "\nor\n");
    char *part = hn_arena_strndup(arena, text, cut ? (size_t)(cut - text) : strlen(text));
    if (!part) return hn_fail_memory(error, strlen(text), "a pattern");
    if (*count == max)
      return hn_fail(error, HONE_ERROR_USAGE, "pattern %s has more than %u spellings", t->name, max);
    hn_pattern *p = &out[(*count)++];
    hone_status status = compile_part(t, part, line, arena, p, error);
    if (status == HONE_OK && t->settings) status = compile_settings(t, arena, p, error);
    if (status != HONE_OK) return status;
    for (; *part; part++) line += *part == '\n';
    line += 2;
    text = cut ? cut + 4 : NULL;
  }
  return HONE_OK;
}

/* ------------------------------------------------------------------ matching */

bool hn_constant_scalar(const hn_value *v, double *out) {
  if (!v || !v->constant || v->is_input) return false;
  hone_dtype d = v->constant->desc.dtype;
  if (hone_desc_count(&v->constant->desc) != 1 || d == HONE_DTYPE_STRING || d == HONE_DTYPE_C64 ||
      d == HONE_DTYPE_C128)
    return false;
  *out = hn_get_f64(v->constant, 0);
  return true;
}

bool hn_constant_clip(const hone_node *n, double *lo, double *hi) {
  const hone_tensor *bound[2] = {NULL, NULL};
  double number;
  for (uint32_t i = 1; i <= 2 && i < n->n_in; i++) {
    if (!n->in[i]) continue;
    if (!hn_constant_scalar(n->in[i], &number)) return false;
    bound[i - 1] = n->in[i]->constant;
  }
  hn_clip_bounds(n, bound[0], bound[1], lo, hi);
  return true;
}

/* The constant is the pattern's number, as the type of the file has it: sqrt(2) in f16 is 1.4140625. */
static bool fits_number(const hn_value *v, double is, double wanted) {
  const hone_dtype type = v->was != HONE_DTYPE_NONE ? v->was : v->desc.dtype;
  if (hn_same_number(is, wanted)) return true;
  return (type == HONE_DTYPE_F16 && is == (double)hn_f16_to_f32(hn_f32_to_f16((float)wanted))) ||
         (type == HONE_DTYPE_BF16 && is == (double)hn_bf16_to_f32(hn_f32_to_bf16((float)wanted)));
}

/* One thing still to be found: that `value` fits `operand`. */
typedef struct goal {
  const hn_operand *operand;
  hn_value *value;
} goal;

enum { MAX_GOALS = 96 };

typedef struct state {
  hone_match m;
  goal goal[MAX_GOALS];
  uint32_t n_goals;
  uint32_t misses; /* conditions that did not hold so far */
} state;

typedef struct search {
  const hn_pattern *p;
  uint32_t allowed; /* misses */
  uint32_t steps;   /* bounds the backtracking */
  bool refused;     /* with more misses allowed the search would have gone on somewhere */
  hone_reason *why;
  hone_match *out;
} search;

/* A condition failed: the match may go on as a near miss while few enough have. */
static bool missed(search *s, state *st, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool missed(search *s, state *st, const char *format, ...) {
  /* A single line that does not fit is no near miss: every Mul would be one of "Mul by 1". */
  if (s->p->n_lines == 1) return false;
  if (++st->misses > s->allowed) return s->refused = true, false;
  va_list args;
  va_start(args, format);
  vsnprintf(s->why->text, sizeof s->why->text, format, args);
  va_end(args);
  st->m.n_other++;
  return true;
}

static bool commutative(const char *op) {
  static const char *const ops[] = {"Add", "Mul", "And", "Or", "Xor", "Equal", "Max", "Min", "Sum"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (hn_same_name(ops[i], op)) return true;
  return false;
}

static bool op_matches(const hn_line *l, const hone_node *n) {
  for (uint32_t i = 0; i < l->n_op; i++)
    if (hn_same_name(l->op[i], n->op_type)) return hn_same_name(l->domain, n->domain);
  return false;
}

bool hn_pattern_ends_at(const hn_pattern *p, const hone_node *root) {
  return op_matches(&p->line[p->n_lines - 1], root);
}

static int64_t from_start(int64_t axis, int32_t rank) { return axis < 0 && rank > 0 ? axis + rank : axis; }

static bool attr_equal(const hn_attr *want, const hn_attr *have, const hone_node *n) {
  if (want->type == HONE_ATTR_FLOAT && have->type == HONE_ATTR_FLOAT) return hn_same_number(have->f, want->f);
  if (want->type != have->type) return false;
  bool axis = strcmp(want->name, "axis") == 0 || strcmp(want->name, "axes") == 0;
  int32_t rank = axis && n->n_in && n->in[0] ? n->in[0]->desc.rank : 0;
  switch (want->type) {
  case HONE_ATTR_INT: return from_start(want->i, rank) == from_start(have->i, rank);
  case HONE_ATTR_STRING:
    return want->s.len == have->s.len && memcmp(want->s.ptr, have->s.ptr, want->s.len) == 0;
  case HONE_ATTR_INTS:
    if (want->list.n != have->list.n) return false;
    for (size_t i = 0; i < want->list.n; i++)
      if (from_start(((const int64_t *)want->list.ptr)[i], rank) !=
          from_start(((const int64_t *)have->list.ptr)[i], rank))
        return false;
    return true;
  default: return false;
  }
}

static bool attrs_match(search *s, state *st, const hn_line *l, const hone_node *n) {
  for (uint32_t i = 0; i < l->n_attr; i++) {
    const hn_attr *have = hn_node_attr(n, l->attr[i].name);
    if ((!have || !attr_equal(&l->attr[i], have, n)) &&
        !missed(s, st, "attribute %s of %s '%s' has another value", l->attr[i].name, n->op_type, n->name))
      return false;
  }
  return true;
}

static bool solve(search *s, state *st);

/* Puts the operands of line k, matched by n, onto the goals. swap: the first two exchanged. */
static bool push_operands(state *st, const hn_line *l, const hone_node *n, bool swap) {
  uint32_t most = l->n_in > n->n_in ? l->n_in : n->n_in;
  for (uint32_t i = most; i-- > 0;) {
    uint32_t from = swap && i < 2 ? 1 - i : i;
    hn_value *v = from < n->n_in ? n->in[from] : NULL;
    if (i >= l->n_in) {
      if (v) return false;
      continue;
    }
    if (st->n_goals == MAX_GOALS) return false;
    st->goal[st->n_goals++] = (goal){&l->in[i], v};
  }
  return true;
}

/* Goals beyond those that are left say nothing. */
static void copy_state(state *to, const state *from) {
  to->m = from->m;
  memcpy(to->goal, from->goal, from->n_goals * sizeof *from->goal);
  to->n_goals = from->n_goals;
  to->misses = from->misses;
}

/* Matches line k with node n, then everything that is left to do. */
static bool match_line(search *s, state *st, uint32_t k, hone_node *n) {
  const hn_line *l = &s->p->line[k];
  if (!op_matches(l, n)) {
    const bool may = s->p->lenient && s->p->n_lines > 2 && k + 1 < s->p->n_lines;
    if (!may || !missed(s, st, "%s '%s' stands where the pattern has %s", n->op_type, n->name, l->op[0]))
      return false;
  } else if (!attrs_match(s, st, l, n)) {
    return false;
  }
  st->m.node[k] = n;
  for (uint32_t i = 0; i < n->n_out; i++) {
    bool named = i < l->n_out && l->out[i];
    if (!named) {
      if (n->out[i] && hn_value_needed(n->out[i]) &&
          !missed(s, st, "output %u of %s '%s' is read", i, n->op_type, n->name))
        return false;
      continue;
    }
    int name = hn_pattern_name(s->p, l->out[i]);
    if (st->m.bound[name] && st->m.value[name] != n->out[i]) return false;
    st->m.bound[name] = true;
    st->m.value[name] = n->out[i];
  }
  if (l->n_in == 2 && n->n_in == 2 && commutative(n->op_type)) {
    state *copy = hn_malloc(sizeof *copy);
    if (!copy) return false;
    copy_state(copy, st);
    bool ok = push_operands(copy, l, n, false) && solve(s, copy);
    hn_free(copy);
    if (ok) return true;
    return push_operands(st, l, n, true) && solve(s, st);
  }
  return push_operands(st, l, n, false) && solve(s, st);
}

static bool is_line(const hn_pattern *p, const state *st, const hone_node *n) {
  for (uint32_t j = 0; j < p->n_lines; j++)
    if (st->m.node[j] == n) return true;
  return false;
}

/* The inner lines' values have no reader outside the match. */
static bool closed(search *s, state *st) {
  for (uint32_t k = 0; k + 1 < s->p->n_lines; k++) {
    const hone_node *n = st->m.node[k];
    if (!n) return false; /* a line that the root does not reach */
    for (uint32_t i = 0; i < n->n_out; i++) {
      const hn_value *v = n->out[i];
      if (!v) continue;
      const hone_node *outside = NULL;
      for (size_t u = 0; u < v->users.len && !outside; u++)
        if (!is_line(s->p, st, v->users.ptr[u].node)) outside = v->users.ptr[u].node;
      if (v->is_output) {
        if (!missed(s, st, "%s output '%s' is an output of the graph", n->op_type, v->name)) return false;
      } else if (outside && !missed(s, st, "%s '%s' has a second reader, %s '%s'", n->op_type, n->name,
                                    outside->op_type, outside->name))
        return false;
    }
  }
  return true;
}

/* The conditions behind the lines. However many do not hold, it is one miss: of the first one. */
static bool conditions_hold(search *s, state *st) {
  hone_reason why;
  for (uint32_t i = 0; i < s->p->n_conditions; i++) {
    if (hn_where_holds(&s->p->condition[i], &st->m, &why)) continue;
    if (++st->misses > s->allowed) return s->refused = true, false;
    *s->why = why;
    return true;
  }
  return true;
}

static bool solve(search *s, state *st) {
  if (s->steps++ > 4096) return false;
  if (st->n_goals == 0) {
    if (!closed(s, st) || !conditions_hold(s, st)) return false;
    *s->out = st->m;
    return true;
  }
  goal g = st->goal[--st->n_goals];
  const hn_operand *o = g.operand;
  if (!g.value) return (o->kind == HN_OPERAND_NONE || o->optional) && solve(s, st);
  switch (o->kind) {
  case HN_OPERAND_NUMBER: {
    double v;
    if (!hn_constant_scalar(g.value, &v)) return false;
    if (!fits_number(g.value, v, o->number) && !missed(s, st, "constant %.9g is not %s", v, o->spelled))
      return false;
    return solve(s, st);
  }
  case HN_OPERAND_VALUE: {
    int name = hn_pattern_name(s->p, o->name);
    if (o->constant && (!g.value->constant || g.value->is_input)) return false;
    if (st->m.bound[name]) return st->m.value[name] == g.value && solve(s, st);
    int line = s->p->made_by[name];
    if (line < 0) {
      st->m.bound[name] = true;
      st->m.value[name] = g.value;
      return solve(s, st);
    }
    hone_node *n = g.value->producer;
    if (!n || g.value->constant || n->graph != st->m.node[s->p->n_lines - 1]->graph ||
        g.value->producer_index != s->p->made_index[name])
      return false;
    if (st->m.node[line] && st->m.node[line] != n) return false;
    return match_line(s, st, (uint32_t)line, n);
  }
  default: return false;
  }
}

hn_match_result hn_pattern_match(const hn_pattern *p, hone_node *root, hone_match *out, hone_reason *why) {
  if (!hn_pattern_ends_at(p, root)) return HN_MATCH_NO;
  hone_reason ignored = {""};
  search s = {.p = p, .why = why ? why : &ignored, .out = out};
  state *st = hn_malloc(sizeof *st);
  hn_match_result result = HN_MATCH_NO;
  for (s.allowed = 0; st && s.allowed <= (why != NULL) && result == HN_MATCH_NO; s.allowed++) {
    if (s.allowed && !s.refused) break; /* it would come to the same */
    st->m = (hone_match){.pattern = p};
    st->n_goals = st->misses = 0;
    s.steps = 0;
    if (match_line(&s, st, p->n_lines - 1, root)) result = s.allowed ? HN_MATCH_NEAR : HN_MATCH_YES;
  }
  hn_free(st);
  return result;
}

/* ------------------------------------------------------------------ reading a match */

const hone_node *hone_match_node(const hone_match *m, uint32_t k) {
  if (!m) return NULL;
  return k < m->pattern->n_lines ? m->node[k] : NULL;
}

bool hone_match_value(const hone_match *m, const char *name, hone_tensor_desc *desc, const void **constant) {
  if (!m || !name || !desc || !constant) return false;
  const hn_value *v = hn_match_get(m, name);
  if (!v) return false;
  if (desc) *desc = v->desc;
  if (constant) *constant = v->constant && !v->is_input ? v->constant->data : NULL;
  return true;
}
