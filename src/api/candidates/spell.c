/* A place as the text of a pattern: equal text, and equal types, are the same form. */
#include "api/candidates/candidates.h"

#include "base/map.h"
#include "base/str.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct writer {
  const hn_candidate_search *search;
  const hn_group *place;
  hn_spelling *out;
  hn_str text, types;
  const hn_value *outside[HN_COMPOUND_INPUTS];
  uint32_t n_outside;
  bool full;
} writer;

static const hone_node *inner_maker(const writer *w, const hn_value *v) {
  const hn_block *b = hn_candidate_maker(w->search, v);
  return b && hn_group_has(w->place, (int32_t)(b - w->search->block)) ? v->producer : NULL;
}

static bool commutes(const hone_node *n) {
  static const char *const types[] = {"Add", "Mul", "And", "Or", "Xor", "Equal", "Max", "Min", "Sum"};
  for (size_t i = 0; i < sizeof types / sizeof *types && n->n_in == 2; i++)
    if (hn_is_op(n, types[i])) return true;
  return false;
}

/* What a value is, whatever the order in which its operands stand. */
static uint64_t meaning(const writer *w, const hn_value *v) {
  const hone_node *n = v ? inner_maker(w, v) : NULL;
  if (!n) return !v ? 1 : v->constant ? 2 : 3;
  uint64_t h = hn_hash(n->op_type, strlen(n->op_type), v->producer_index), sum = 0;
  for (uint32_t i = 0; i < n->n_in; i++) {
    const uint64_t m = meaning(w, n->in[i]);
    if (commutes(n))
      sum += m;
    else
      sum = hn_hash(&m, sizeof m, sum);
  }
  return hn_hash(&sum, sizeof sum, h);
}

/* Number of a node that is written already; -1: it is not. */
static int line_of(const writer *w, const hone_node *n) {
  for (uint32_t i = 0; i < w->out->n_nodes; i++)
    if (w->out->node[i] == n) return (int)i;
  return -1;
}

static void put_value(writer *w, const hn_value *v) {
  if (!v) {
    hn_str_putc(&w->text, '_');
    return;
  }
  const hone_node *n = inner_maker(w, v);
  if (n) {
    hn_str_printf(&w->text, n->n_out > 1 ? "%%v%d_%u" : "%%v%d", line_of(w, n) + 1, v->producer_index);
    return;
  }
  uint32_t at = 0;
  while (at < w->n_outside && w->outside[at] != v) at++;
  if (at == HN_COMPOUND_INPUTS) {
    w->full = true;
    return;
  }
  const bool first = at == w->n_outside;
  w->outside[at] = v;
  if (first) w->n_outside++;
  hn_str_printf(&w->text, v->constant ? (first ? "!%%c%u" : "%%c%u") : "%%x%u", at);
  hn_str_printf(&w->types, " %s", hone_dtype_name(v->desc.dtype));
}

static void put_operands(writer *w, const hone_node *n, const hn_value *const *in) {
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (i) hn_str_puts(&w->text, ", ");
    put_value(w, in[i]);
  }
}

static void put_node(writer *w, const hone_node *n) {
  const hn_value *two[2];
  const hn_value *const *in = (const hn_value *const *)n->in;
  if (line_of(w, n) >= 0 || w->out->n_nodes == HN_COMPOUND_NODES) return;
  if (commutes(n)) {
    const bool swap = meaning(w, n->in[0]) > meaning(w, n->in[1]);
    two[swap] = n->in[0];
    two[!swap] = n->in[1];
    in = two;
  }
  for (uint32_t i = 0; i < n->n_in; i++)
    if (in[i] && inner_maker(w, in[i])) put_node(w, inner_maker(w, in[i]));
  const uint32_t line = w->out->n_nodes++;
  w->out->node[line] = n;
  if (line) hn_str_putc(&w->text, '\n');
  for (uint32_t o = 0; o < n->n_out; o++) {
    if (o) hn_str_puts(&w->text, ", ");
    put_value(w, n->out[o]);
  }
  hn_str_printf(&w->text, " = %s%s%s(", n->domain, *n->domain ? "::" : "", n->op_type);
  put_operands(w, n, in);
  hn_str_putc(&w->text, ')');
  if (n->out[0]) hn_str_printf(&w->types, " %s", hone_dtype_name(n->out[0]->desc.dtype));
}

/* "SoftmaxMul", of letters and digits. */
static const char *name_of(const hn_spelling *from, hn_arena *arena) {
  char name[48];
  size_t n = 0;
  for (uint32_t i = 0; i < from->n_nodes; i++)
    for (const char *c = from->node[i]->op_type; *c && n + 1 < sizeof name; c++)
      if (isalnum((unsigned char)*c)) name[n++] = *c;
  name[n] = 0;
  return hn_arena_strdup(arena, n && isalpha((unsigned char)*name) ? name : "Compound");
}

static const char *operators_of(const hn_spelling *from, hn_arena *arena) {
  hn_str s = {0};
  for (uint32_t i = 0; i < from->n_nodes; i++)
    hn_str_printf(&s, "%s%s", i ? " + " : "", from->node[i]->op_type);
  const char *text = s.failed ? NULL : hn_arena_strdup(arena, s.ptr ? s.ptr : "");
  hn_str_free(&s);
  return text;
}

bool hn_group_spell(const hn_candidate_search *s, const hn_group *p, hn_arena *arena, hn_spelling *out) {
  writer w = {.search = s, .place = p, .out = out};
  *out = (hn_spelling){0};
  put_node(&w, s->block[p->block[0]].exit->producer);
  const bool whole = !w.full && hn_group_nodes(s, p) ==
                                    out->n_nodes; /* a node that adds nothing to the result is no pattern */
  if (whole && !w.text.failed && !w.types.failed) {
    out->form.pattern = hn_arena_strdup(arena, w.text.ptr);
    out->form.key = hn_arena_printf(arena, "%s\n%s", w.text.ptr, w.types.ptr ? w.types.ptr : "");
    out->form.operators = operators_of(out, arena);
    out->form.name = name_of(out, arena);
  }
  hn_str_free(&w.text);
  hn_str_free(&w.types);
  return out->form.pattern && out->form.key && out->form.operators && out->form.name;
}
