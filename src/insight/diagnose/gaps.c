/* Which steps lie around the gaps of the runs: what ran before nothing ran, and what ran next. */
#include "insight/diagnose/gaps.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

typedef struct gap {
  const hone_span *after, *before; /* the spans that it lies between */
  double ns;                       /* a record may lie: sums of its times need not fit into integers */
} gap;

static bool counts(const hone_span *s) {
  return s->iteration >= 0 && s->kind != HONE_SPAN_RUN && s->kind != HONE_SPAN_PRE &&
         s->kind != HONE_SPAN_POST;
}

static int in_time(const void *pa, const void *pb) {
  const hone_span *a = *(const hone_span *const *)pa, *b = *(const hone_span *const *)pb;
  if (a->iteration != b->iteration) return a->iteration < b->iteration ? -1 : 1;
  return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Spans of one step, or of one name where there are no steps. */
static int same_place(const hone_span *a, const hone_span *b) {
  if (a->step != b->step) return a->step < b->step ? -1 : 1;
  return a->step >= 0 ? 0 : strcmp(a->name ? a->name : "", b->name ? b->name : "");
}

static int by_place(const void *pa, const void *pb) {
  const gap *a = pa, *b = pb;
  const int order = same_place(a->after, b->after);
  return order ? order : same_place(a->before, b->before);
}

static int by_length(const void *pa, const void *pb) {
  const gap *a = pa, *b = pb;
  return (a->ns < b->ns) - (a->ns > b->ns);
}

/* Nothing of this run is under way between the end of one span and the start of the next. */
static size_t find_gaps(const hone_span **order, size_t n, gap *out) {
  size_t found = 0;
  const hone_span *last = NULL; /* that ends last so far */
  for (size_t i = 0; i < n; i++) {
    if (last && last->iteration == order[i]->iteration && order[i]->start_ns > last->end_ns)
      out[found++] = (gap){last, order[i], (double)(order[i]->start_ns - last->end_ns)};
    if (!last || last->iteration != order[i]->iteration || order[i]->end_ns > last->end_ns) last = order[i];
  }
  return found;
}

static size_t add_up(gap *g, size_t n) {
  size_t kept = 0;
  qsort(g, n, sizeof *g, by_place);
  for (size_t i = 0; i < n; i++)
    if (kept && by_place(&g[kept - 1], &g[i]) == 0)
      g[kept - 1].ns += g[i].ns;
    else
      g[kept++] = g[i];
  qsort(g, kept, sizeof *g, by_length);
  return kept;
}

static const hone_layer *layer_of(const hn_diagnosis *d, const hone_span *s) {
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (s->step >= 0 ? l->step == s->step : l->step < 0 && s->name && strcmp(l->name, s->name) == 0) return l;
  }
  return NULL;
}

void hn_gaps_beside(hn_diagnosis *d, size_t most) {
  size_t n, used = 0;
  const hone_span *spans = hone_facts_spans(d->facts, &n);
  const hone_span **order = hn_calloc(n + 1, sizeof *order);
  gap *gaps = hn_calloc(n + 1, sizeof *gaps);
  if (!order || !gaps) {
    d->failed = true;
    n = 0;
  }
  for (size_t i = 0; i < n; i++)
    if (counts(&spans[i])) order[used++] = &spans[i];
  if (used) qsort(order, used, sizeof *order, in_time);
  size_t found = used ? find_gaps(order, used, gaps) : 0;
  if (found) found = add_up(gaps, found);
  for (size_t i = 0; i < found && i < most; i++) {
    const hone_layer *after = layer_of(d, gaps[i].after), *before = layer_of(d, gaps[i].before);
    if (after) hn_finding_beside(d, after);
    if (before) hn_finding_beside(d, before);
  }
  hn_free(order);
  hn_free(gaps);
}
