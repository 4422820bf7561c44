/* Concat(..., a, b, ...) beside Concat(a, b)  ->  Concat(..., Concat(a, b), ...)
 *
 * Networks that give every layer all maps so far (DenseNet) gather them anew each time. Nested, each Concat
 * adds to what the one before gave, and on a processor all of them can lie in the memory of the last, each
 * map written in its place (plan/elide.c). The same elements. Accelerators leave out such Concats as they
 * are. */
#include "optimize/passes/common/pass.h"

static int64_t axis_of(const hone_node *n) {
  const int64_t axis = hone_node_int(n, "axis", 0);
  return axis < 0 ? axis + n->out[0]->desc.rank : axis;
}

/* Whether `first` comes before `then` in the order of their graph. */
static bool comes_before(const hone_node *first, const hone_node *then) {
  while (first && first != then) first = first->next;
  return first != NULL;
}

/* What a Concat would gather. */
typedef struct inputs {
  hn_value **in;
  uint32_t n;
} inputs;

/* Whether c gathers what `l` has from input `from` on, but not all of it. */
static bool gathers_part(const hone_node *c, const hone_node *n, const inputs *l, uint32_t from) {
  if (c == n || c->graph != n->graph || !hn_is_op(c, "Concat") || c->n_in < 2 || c->n_in >= l->n ||
      c->n_in > l->n - from || c->in[c->n_in - 1] != l->in[from + c->n_in - 1] ||
      c->out[0]->desc.rank != n->out[0]->desc.rank || axis_of(c) != axis_of(n))
    return false;
  for (uint32_t i = 0; i < c->n_in; i++)
    if (c->in[i] != l->in[from + i]) return false;
  return comes_before(c, n);
}

/* The longest such Concat, and where its inputs begin; NULL: there is none. */
static const hone_node *longest_part(const hone_node *n, const inputs *l, uint32_t *from) {
  const hone_node *best = NULL;
  for (uint32_t i = 0; i + 1 < l->n; i++) {
    const hn_value *v = l->in[i];
    for (size_t k = 0; v && k < v->users.len; k++) {
      const hone_node *c = v->users.ptr[k].node;
      if (v->users.ptr[k].index != 0 || (best && c->n_in <= best->n_in) || !gathers_part(c, n, l, i))
        continue;
      best = c, *from = i;
    }
  }
  return best;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  uint32_t from = 0;
  if (!ctx->options->lowered || !ctx->options->processor || !hn_is_op(n, "Concat") || n->n_in < 3 ||
      n->out[0]->desc.rank < 2)
    return HN_PASS_NONE;
  inputs l = {HN_NEW_ARRAY(ctx->scratch, hn_value *, n->n_in), n->n_in};
  if (!l.in) return hn_pass_memory(ctx);
  memcpy(l.in, n->in, n->n_in * sizeof *l.in);
  for (const hone_node *part; (part = longest_part(n, &l, &from)) != NULL;) {
    l.in[from] = part->out[0];
    memmove(l.in + from + 1, l.in + from + part->n_in, (l.n - from - part->n_in) * sizeof *l.in);
    l.n -= part->n_in - 1;
  }
  if (l.n == n->n_in) return HN_PASS_NONE;
  hone_node *made = hn_make_node(ctx, n, "Concat", l.in, l.n, &n->out[0]->desc);
  if (!made || !hn_inherit(ctx, made, n)) return HN_PASS_FAIL;
  if (!hn_node_copy_attrs(made, n)) return hn_pass_memory(ctx);
  hn_pass_hit(ctx, "%u of %u inputs are left, the others being in Concats", l.n, n->n_in);
  if (!hn_replace(ctx, n->out[0], made->out[0])) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

HN_PASS(nest_concats) = {.name = "nest_concats",
                         .level = 2,
                         .about = "Concat(a, b, c) beside Concat(a, b) -> Concat(Concat(a, b), c)",
                         .visit = visit,
                         .roots = HN_ROOTS("Concat")};
