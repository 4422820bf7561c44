#include "optimize/passes/attention/projections.h"

/* Those of the attention's operands that are projections, in its own graph, of what V is one of. Returns how
 * many. */
static uint32_t siblings(const hn_graph *graph, const hn_attention_hit *hit, const hn_projection_form *form,
                         hn_projection *p) {
  hn_projection v, all[HN_PROJECTIONS];
  uint32_t n = 0;
  if (!form->read(hit->in[HN_PROJECTIONS - 1].base, hit, &v)) return 0;
  for (uint32_t i = 0; i < HN_PROJECTIONS; i++) {
    hn_projection *own = &all[n];
    if (hit->in[i].base->graph != graph || !form->read(hit->in[i].base, hit, own)) continue;
    bool fits = own->x == v.x && own->w->desc.dim[0] == v.w->desc.dim[0] && !own->bias == !v.bias &&
                (!form->alike || form->alike(own, &v));
    for (uint32_t k = 0; k < n; k++) fits = fits && all[k].product != own->product;
    if (fits) n++;
  }
  memcpy(p, all, n * sizeof *p);
  return n;
}

hn_value *hn_projections_join(hn_pass_context *ctx, const hn_projection *p, uint32_t n, hn_value *const *from,
                              hone_dtype type, int64_t rows, int64_t columns) {
  const size_t size = hone_dtype_size(type);
  const hone_tensor_desc d =
      rows ? hone_desc(type, 2, (const int64_t[]){rows, columns}) : hone_desc(type, 1, &columns);
  void *room;
  hn_value *joined = hn_make_room(ctx, (from[0] ? from[0] : p->y)->name, &d, &room);
  char *to = room;
  for (int64_t r = 0; joined && r < (rows ? rows : 1); r++)
    for (uint32_t i = 0; i < n; i++) {
      const size_t own = (size_t)p[i].w->desc.dim[1];
      const char *data = from[i] ? hn_known(from[i])->data : NULL;
      if (!data)
        memset(to, 0, own * size);
      else if (rows || hone_desc_count(&from[i]->desc) != 1)
        memcpy(to, data + (size_t)r * own * size, own * size);
      else
        for (size_t c = 0; c < own; c++) memcpy(to + c * size, data, size);
      to += own * size;
    }
  return joined;
}

hone_node *hn_projections_first(const hn_projection *p, uint32_t n) {
  const hone_node *x = p->x->producer;
  for (hone_node *at = x && x->graph == p->product->graph ? x->next : p->product->graph->first; at;
       at = at->next)
    for (uint32_t i = 0; i < n; i++)
      if (p[i].product == at) return at;
  return NULL;
}

hone_node *hn_projections_node(hn_pass_context *ctx, hone_node *before, const char *op, hn_value *const *in,
                               uint32_t n_in, const hone_tensor_desc *like, hone_node *const *from,
                               uint32_t n) {
  for (uint32_t i = 0; i < n_in; i++)
    if (!in[i]) return NULL;
  hone_node *made = hn_make_node(ctx, before, op, in, n_in, like);
  for (uint32_t i = 0; made && i < n; i++)
    if (!hn_inherit(ctx, made, from[i])) return NULL;
  return made;
}

hone_tensor_desc hn_projections_desc(const hn_projection *p, hone_dtype type, int64_t columns) {
  hone_tensor_desc d = p->y->desc;
  d.dtype = type;
  d.dim[d.rank - 1] = columns;
  hone_desc_set_layout(&d, HONE_LAYOUT_ROW_MAJOR, 0);
  return d;
}

static bool replace_part(hn_pass_context *ctx, const hn_projection *p, hn_value *whole, int64_t from,
                         int depth) {
  const int64_t last = whole->desc.rank - 1, to = from + p->w->desc.dim[1];
  hone_node *old = p->y->producer;
  hn_value *start = hn_make_ints(ctx, p->y->name, &from, 1), *end = hn_make_ints(ctx, p->y->name, &to, 1),
           *axis = hn_make_ints(ctx, p->y->name, &last, 1);
  hn_value *part =
      start && end && axis
          ? hn_make_newest(ctx, old, "Slice", (hn_value *const[]){whole, start, end, axis}, 4, &p->y->desc)
          : NULL;
  if (!part || !hn_replace(ctx, p->y, part)) return false;
  hn_remove_unread(old, depth);
  return true;
}

hn_pass_result hn_merge_projections(hn_pass_context *ctx, hone_node *softmax,
                                    const hn_projection_form *form) {
  hn_attention_hit hit;
  hone_reason why;
  hn_projection p[HN_PROJECTIONS];
  if (!ctx->options->lowered || ctx->options->processor || !hn_is_op(softmax, "Softmax") ||
      hn_attention_match(softmax, &hit, &why) != HN_MATCH_YES)
    return HN_PASS_NONE;
  const uint32_t n = siblings(softmax->graph, &hit, form, p);
  int64_t columns = 0;
  if (n < 2) return HN_PASS_NONE;
  for (uint32_t i = 0; i < n; i++)
    if (__builtin_add_overflow(columns, p[i].w->desc.dim[1], &columns)) return HN_PASS_NONE;
  hn_value *whole = form->make(ctx, p, n, columns);
  if (!whole) return hn_pass_memory(ctx);
  int64_t from = 0;
  for (uint32_t i = 0; i < n; from += p[i++].w->desc.dim[1])
    if (!replace_part(ctx, &p[i], whole, from, form->depth)) return HN_PASS_FAIL;
  return hn_pass_hit(ctx, "%u %s with '%.80s' became one", n, form->what, p->x->name);
}
