/* Gather of whole rows along one axis of a row-major tensor (embeddings, picked channels): block copies by
 * index. */
#include <string.h>

#include "backends/cpu/movement/moves.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"

typedef struct shape {
  int64_t outer, axis, indices, bytes; /* bytes of one gathered block */
  bool wide;                           /* indices are i64 */
} shape;

static bool is_row_major(const hone_tensor_desc *d) { return d->layout == HONE_LAYOUT_ROW_MAJOR; }

static bool describe(const hone_step *s, shape *g, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *i = &s->input[1].desc;
  int32_t element;
  memset(g, 0, sizeof *g);
  if (!hn_boxes_check(s, &element, why)) return false;
  if (!hone_desc_known(i)) return hn_refuse(why, "dimensions of the indices are not known");
  if (!is_row_major(x) || !is_row_major(i) || !is_row_major(&s->output[0].desc))
    return hn_refuse(why, "a tensor is not row-major");
  int64_t axis = hone_node_int(s->node, "axis", 0);
  if (axis < 0) axis += x->rank;
  if (axis < 0 || axis >= x->rank) return hn_refuse(why, "axis outside the rank");
  g->outer = 1, g->bytes = element;
  for (int32_t d = 0; d < axis; d++) g->outer *= x->dim[d];
  for (int32_t d = (int32_t)axis + 1; d < x->rank; d++) g->bytes *= x->dim[d];
  g->axis = x->dim[axis], g->indices = hone_desc_count(i);
  g->wide = i->dtype == HONE_DTYPE_I64;
  if (!g->wide && i->dtype != HONE_DTYPE_I32)
    return hn_refuse(why, "indices are %s", hone_dtype_name(i->dtype));
  return true;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  shape g;
  (void)m;
  return describe(s, &g, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  shape g;
  if (!describe(s, &g, NULL)) return 1e9;
  const double blocks = (double)(g.outer * g.indices);
  return hn_step_seconds(m, 0, 2 * blocks * (double)g.bytes, 1) +
         blocks * 4e-9 / (m->threads > 0 ? m->threads : 1);
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  (void)s, (void)m, (void)error;
  n->blob_bytes = 0, n->workspace_bytes = 0;
  n->bytewise = 1u << 0;
  return HONE_OK;
}

typedef struct job {
  const hone_step_run *run;
  shape g;
  int64_t per_task;
} job;

static int64_t index_at(const job *j, int64_t i) {
  const int64_t v = j->g.wide ? ((const int64_t *)j->run->in[1])[i] : ((const int32_t *)j->run->in[1])[i];
  return v < 0 ? v + j->g.axis - (HN_FAULT("gather_negative_index") ? 1 : 0) : v;
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const unsigned char *x = j->run->in[0];
  unsigned char *y = j->run->out[0];
  int64_t i = index * j->per_task, end = i + j->per_task;
  (void)thread;
  for (end = end < j->g.outer * j->g.indices ? end : j->g.outer * j->g.indices; i < end; i++) {
    const int64_t outer = i / j->g.indices, at = index_at(j, i % j->g.indices);
    memcpy(y + i * j->g.bytes, x + (outer * j->g.axis + at) * j->g.bytes, (size_t)j->g.bytes);
  }
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  job j = {.run = r};
  hone_reason why = {""};
  if (!describe(r->step, &j.g, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "gather: %s", why.text);
  if (j.g.outer * j.g.indices * j.g.bytes == 0) return HONE_OK;
  for (int64_t i = 0; i < j.g.indices; i++) {
    const int64_t at = index_at(&j, i);
    if (at >= 0 && at < j.g.axis) continue;
    hn_fail(error, HONE_ERROR_INPUT, "Gather: index %lld is outside a dimension of %lld",
            (long long)(at < 0 ? at - j.g.axis : at), (long long)j.g.axis);
    hn_error_where(error, "node '%s'", r->step->name);
    return HONE_ERROR_INPUT;
  }
  j.per_task = 32768 / (j.g.bytes + 16) + 1;
  const int64_t tasks = hn_div_up(j.g.outer * j.g.indices, j.per_task);
  if (tasks == 1)
    task(&j, 0, 0);
  else
    r->parallel(r->pool, tasks, task, &j);
  return HONE_OK;
}

HN_TACTIC(cpu, gather, "Gather", 1, .accepts = accepts, .cost = cost, .need = need, .run = run);
