/* Finds where two sides part: every value of the reference run is kept, the other run's are compared with
 * them by name. */
#include "improve/values.h"

#include "base/error.h"
#include "improve/compare.h"

#include <stdio.h>
#include <string.h>

typedef enum verdict { UNKNOWN = 0, AGREES, DIFFERS } verdict;

typedef struct seen {
  const hn_value *value;
  const hn_step *step;
} seen;

typedef struct search {
  hn_values kept; /* of the reference */
  double tolerance;
  const hn_plan *test;
  verdict *verdicts; /* by value id of the test's model */
  HN_VEC(seen) order;
  bool failed;
} search;

static void judge(void *arg, const hn_step *s, hone_tensor *const *out) {
  search *q = arg;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    const hn_value *v = hn_value_of_step(q->test, s, i);
    const hone_tensor *ref = hn_values_like(&q->kept, v, out[i]);
    if (!ref) continue;
    hone_tensor *t = hn_rows_of(out[i]);
    if (!t) {
      q->failed = true;
      return;
    }
    hn_difference d;
    hn_compare(t, ref, &d);
    hn_rows_free(t);
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
  if (test->plan->slices > 1) return HONE_OK; /* its values are those of a part of the batch */
  search q = {.tolerance = tolerance, .test = test->plan};
  uint32_t values = test->plan->model->next_value_id;
  q.verdicts = hn_calloc(values + 1, sizeof *q.verdicts);
  uint8_t *visited = hn_calloc(values + 1, 1);
  hone_status status =
      q.verdicts && visited ? HONE_OK : hn_fail_memory(error, values, "localising a difference");
  if (status == HONE_OK) status = hn_values_of_run(reference, feeds, n, &q.kept, error);
  if (status == HONE_OK) {
    hn_context_watch(test->context, judge, &q, false);
    status = hn_side_run(test, feeds, n, error);
    hn_context_watch(test->context, NULL, NULL, false);
  }
  for (size_t i = 0; status == HONE_OK && i < q.order.len && !buf[0]; i++)
    if (!agrees_later(&q, q.order.ptr[i].value, visited))
      snprintf(buf, size, "%s", q.order.ptr[i].step->desc.name);
  if (status == HONE_OK && q.failed)
    status = hn_fail(error, HONE_ERROR_MEMORY, "out of memory while localising a difference");
  hn_vec_free(&q.order);
  hn_values_free(&q.kept);
  hn_free(q.verdicts);
  hn_free(visited);
  return status;
}
