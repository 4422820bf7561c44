/* What one kernel for a place would save: the formula of hone/candidates.h. */
#include "api/candidates/candidates.h"

#include <math.h>

static double bytes_of(const hn_value *v) {
  const int64_t b =
      hone_desc_known(&v->desc) && v->desc.dtype != HONE_DTYPE_NONE ? hone_desc_bytes(&v->desc) : 0;
  return b > 0 ? (double)b : 0;
}

/* Has the block read this value before its node `node`, operand `operand`? */
static bool was_read(const hn_block *b, uint32_t node, uint32_t operand) {
  const hn_value *v = b->node[node]->in[operand];
  for (uint32_t i = 0; i <= node; i++)
    for (uint32_t k = 0; k < (i == node ? operand : b->node[i]->n_in); k++)
      if (b->node[i]->in[k] == v) return true;
  return false;
}

/* Bytes that the block reads from, or writes for, others of the place. */
static double between(const hn_candidate_search *s, const hn_group *p, uint32_t at) {
  const hn_block *b = &s->block[p->block[at]];
  double bytes = at ? bytes_of(b->exit) : 0; /* block[0] makes the result */
  for (uint32_t i = 0; i < b->n_nodes; i++)
    for (uint32_t k = 0; k < b->node[i]->n_in; k++) {
      const hn_block *from = hn_candidate_maker(s, b->node[i]->in[k]);
      if (from && from != b && hn_group_has(p, (int32_t)(from - s->block)) && !was_read(b, i, k))
        bytes += bytes_of(b->node[i]->in[k]);
    }
  return bytes;
}

/* Milliseconds of so many bytes of the block: at the measured bandwidth; without one, as fast as the step is.
 */
static double traffic(const hn_candidate_search *s, const hn_block *b, double bytes) {
  const hone_layer *l = b->layer;
  const hone_roof *memory = hn_roof_memory(s->facts, b->fact, l->calls > 0 ? l->bytes / l->calls : l->bytes);
  if (memory && memory->gbs > 0) return bytes / memory->gbs / 1e6;
  return l->bytes > bytes ? b->ms * bytes / l->bytes : 0;
}

hn_saving hn_group_saving(const hn_candidate_search *s, const hn_group *p) {
  hn_saving g = {0};
  double compute_ms = 0, memory_ms = 0;
  for (uint32_t i = 0; i < p->n; i++) {
    const hn_block *b = &s->block[p->block[i]];
    if (b->step < 0) continue;
    const hone_roof *compute = hn_roof_of_step(s->facts, b->fact);
    const double bytes = between(s, p, i);
    g.steps++;
    g.ms += b->ms;
    g.all_bytes += bytes;
    if (b->layer->bound != HONE_LIMIT_COMPUTE) {
      g.bytes += bytes;
      g.traffic_ms += traffic(s, b, bytes);
    }
    if (compute && compute->gflops > 0) compute_ms += b->layer->executed_flops / compute->gflops / 1e6;
    if (hn_roof_dram(s->facts)) memory_ms += traffic(s, b, fmax(b->layer->bytes - bytes, 0));
  }
  const double gaps = (g.steps - 1) * s->gap_ms,
               roof_ms = fmax(compute_ms, memory_ms) * 100 / hn_candidate_threshold(s, "reachable_roof"),
               most = fmax(g.ms - roof_ms, 0) + gaps;
  g.starts_ms = (g.steps - 1) * s->start_ms + gaps;
  g.saved_ms = g.traffic_ms + g.starts_ms;
  g.at_roof = g.saved_ms > most;
  if (g.at_roof) g.saved_ms = most;
  if (g.saved_ms > 0.95 * g.ms) g.saved_ms = 0.95 * g.ms; /* some kernel is left */
  return g;
}
