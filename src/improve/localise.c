/* Finds where two sides part: every value of the reference run is kept, the other run's are compared with
 * them by name. */
#include "improve/side.h"

#include "base/error.h"
#include "base/map.h"
#include "improve/compare.h"

#include <stdio.h>
#include <string.h>

#define KEEP_BYTES ((uint64_t)2 << 30) /* later values are left out; the search then sees a little less */

typedef enum verdict { UNKNOWN = 0, AGREES, DIFFERS } verdict;

typedef struct seen {
  const hn_value *value;
  const hn_step *step;
} seen;

typedef struct search {
  hn_map kept; /* value name -> hone_tensor */
  HN_VEC(hone_tensor *) tensors;
  uint64_t bytes;
  double tolerance;
  const hn_plan *test;
  verdict *verdicts; /* by value id of the test's model */
  HN_VEC(seen) order;
  bool failed;
} search;

/* A row-major copy, whatever the layout. */
static hone_tensor *copy_of(const hone_tensor *t) {
  hone_tensor_desc d = hone_desc(t->desc.dtype, t->desc.rank, t->desc.dim);
  int64_t bytes = hone_desc_bytes(&d), n = hone_desc_count(&d);
  size_t size = hone_dtype_size(d.dtype);
  hone_tensor *out = bytes < 0 ? NULL : hn_malloc(sizeof *out);
  if (!out) return NULL;
  *out = (hone_tensor){d, hn_malloc((size_t)bytes)};
  if (!out->data) {
    hn_free(out);
    return NULL;
  }
  if (t->desc.layout == HONE_LAYOUT_ROW_MAJOR) {
    if (bytes) memcpy(out->data, t->data, (size_t)bytes);
    return out;
  }
  int64_t index[HONE_MAX_RANK] = {0}, at = 0;
  for (int64_t i = 0; i < n; i++) {
    memcpy((char *)out->data + (size_t)i * size, (const char *)t->data + (size_t)at * size, size);
    for (int32_t k = d.rank - 1; k >= 0; k--) {
      at += t->desc.stride[k];
      if (++index[k] < d.dim[k]) break;
      at -= t->desc.stride[k] * d.dim[k];
      index[k] = 0;
    }
  }
  return out;
}

static void drop(hone_tensor *t) {
  if (t) hn_free(t->data);
  hn_free(t);
}

/* The value of a step's output, where it is one of the graph's. */
static const hn_value *value_of(const hn_plan *p, const hn_step *s, uint32_t i) {
  return s->out[i] == HN_NO_SLOT ? NULL : p->slots.ptr[s->out[i]].value;
}

static bool comparable(const hone_tensor *t) {
  return t && t->data && t->desc.dtype != HONE_DTYPE_STRING && t->desc.dtype != HONE_DTYPE_NONE;
}

typedef struct watcher {
  search *search;
  const hn_plan *plan;
} watcher;

static void keep(void *arg, const hn_step *s, hone_tensor *const *out) {
  watcher *w = arg;
  search *q = w->search;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    const hn_value *v = value_of(w->plan, s, i);
    if (!v || !comparable(out[i]) || hn_map_has(&q->kept, v->name)) continue;
    int64_t bytes = hone_desc_bytes(&out[i]->desc);
    if (bytes < 0 || q->bytes + (uint64_t)bytes > KEEP_BYTES) continue;
    hone_tensor *t = copy_of(out[i]);
    if (!t || !hn_vec_push(&q->tensors, t)) {
      drop(t);
      q->failed = true;
      return;
    }
    q->failed |= !hn_map_set(&q->kept, v->name, t);
    q->bytes += (uint64_t)bytes;
  }
}

static void judge(void *arg, const hn_step *s, hone_tensor *const *out) {
  watcher *w = arg;
  search *q = w->search;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    const hn_value *v = value_of(w->plan, s, i);
    const hone_tensor *ref = v ? hn_map_get(&q->kept, v->name) : NULL;
    if (!ref || !comparable(out[i]) || ref->desc.dtype != out[i]->desc.dtype ||
        !hone_desc_same_dims(&ref->desc, &out[i]->desc))
      continue;
    hone_tensor *t = copy_of(out[i]);
    if (!t) {
      q->failed = true;
      return;
    }
    hn_difference d;
    hn_compare(t, ref, &d);
    drop(t);
    double scale = d.range > 0 ? d.range : d.magnitude > 0 ? d.magnitude : 1;
    bool bad = d.unlike || d.max_abs > q->tolerance * scale;
    q->verdicts[v->id] = bad ? DIFFERS : AGREES;
    if (bad && !hn_vec_push(&q->order, (seen){v, s})) q->failed = true;
  }
}

/* Does anything that is computed from v agree with the reference? Then v only looks different: a pass moved
 * its name. */
static bool agrees_later(search *q, const hn_value *v, uint8_t *visited) {
  HN_VEC(const hn_value *) todo = {0};
  bool found = false;
  memset(visited, 0, q->test->model->next_value_id);
  q->failed |= !hn_vec_push(&todo, v);
  while (todo.len && !found) {
    const hn_value *x = todo.ptr[--todo.len];
    for (size_t u = 0; u < x->users.len && !found; u++) {
      const hone_node *n = x->users.ptr[u].node;
      for (uint32_t o = 0; n && o < n->n_out; o++) {
        const hn_value *y = n->out[o];
        if (!y || visited[y->id]) continue;
        visited[y->id] = 1;
        if (q->verdicts[y->id] == AGREES) found = true;
        q->failed |= !hn_vec_push(&todo, y);
      }
    }
  }
  hn_vec_free(&todo);
  return found;
}

hone_status hn_side_localise(hn_side *test, hn_side *reference, const hn_feed *feeds, uint32_t n,
                             double tolerance, char *buf, size_t size, hone_error *error) {
  buf[0] = 0;
  search q = {.tolerance = tolerance, .test = test->plan};
  uint32_t values = test->plan->model->next_value_id;
  q.verdicts = hn_calloc(values + 1, sizeof *q.verdicts);
  uint8_t *visited = hn_calloc(values + 1, 1);
  hone_status status =
      q.verdicts && visited ? HONE_OK : hn_fail_memory(error, values, "localising a difference");
  watcher w = {&q, reference->plan};
  if (status == HONE_OK) {
    hn_context_watch(reference->context, keep, &w);
    status = hn_side_run(reference, feeds, n, error);
    hn_context_watch(reference->context, NULL, NULL);
  }
  w.plan = test->plan;
  if (status == HONE_OK) {
    hn_context_watch(test->context, judge, &w);
    status = hn_side_run(test, feeds, n, error);
    hn_context_watch(test->context, NULL, NULL);
  }
  for (size_t i = 0; status == HONE_OK && i < q.order.len && !buf[0]; i++)
    if (!agrees_later(&q, q.order.ptr[i].value, visited))
      snprintf(buf, size, "%s", q.order.ptr[i].step->desc.name);
  if (status == HONE_OK && q.failed)
    status = hn_fail(error, HONE_ERROR_MEMORY, "out of memory while localising a difference");
  for (size_t i = 0; i < q.tensors.len; i++) drop(q.tensors.ptr[i]);
  hn_vec_free(&q.tensors);
  hn_vec_free(&q.order);
  hn_map_free(&q.kept);
  hn_free(q.verdicts);
  hn_free(visited);
  return status;
}
