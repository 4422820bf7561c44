/* GroupNormalization of row-major tensors: groups of channels by their own moments. Scale and shift are given
 * by group in opset 18, by channel from opset 21 on. */
#include <string.h>

#include "backends/cuda/normalize/normalize.h"
#include "base/error.h"

typedef struct grouped { /* the step as rows: [N * groups, elements of a group] */
  hone_step step;
  hone_step_tensor in[3], out[1];
  hn_rows rows;
} grouped;

static bool read(const hone_step *s, grouped *g, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  const int64_t groups = hone_node_int(s->node, "num_groups", 0);
  if (s->n_anchor_inputs != 3 || s->n_inputs != 3 || s->n_outputs != 1)
    return hn_refuse(why, "not three inputs and one output");
  if (!hone_desc_known(x) || !hone_desc_known(y) || hone_desc_count(x) <= 0)
    return hn_refuse(why, "dimensions are not known");
  if (x->layout != HONE_LAYOUT_ROW_MAJOR || y->layout != HONE_LAYOUT_ROW_MAJOR)
    return hn_refuse(why, "not row-major");
  if (hone_node_int(s->node, "stash_type", HONE_DTYPE_F32) == HONE_DTYPE_F16)
    return hn_refuse(why, "moments in f16, which overflow where these do not");
  if (groups < 1 || x->dim[1] % groups) return hn_refuse(why, "channels do not divide into groups");
  const int64_t rows = x->dim[0] * groups, dims[2] = {rows, hone_desc_count(x) / rows};
  memset(g, 0, sizeof *g);
  g->step = *s;
  memcpy(g->in, s->input, sizeof g->in);
  g->out[0] = s->output[0];
  g->in[0].desc = hone_desc(x->dtype, 2, dims), g->out[0].desc = hone_desc(y->dtype, 2, dims);
  g->step.input = g->in, g->step.output = g->out;
  const bool by_group = hone_node_opset(s->node) < 21;
  g->rows = hn_rows_make(HN_ROWS_MOMENTS, 2);
  g->rows.place = by_group ? HN_AT_GROUP : HN_AT_CHANNEL;
  g->rows.planes = groups, g->rows.each = x->dim[1] / groups, g->rows.inner = dims[1] / g->rows.each;
  g->rows.scale = 1, g->rows.shift = 2;
  g->rows.epsilon = hone_node_float(s->node, "epsilon", 1e-5f);
  return true;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  grouped g;
  (void)m;
  return read(s, &g, why) && hn_cuda_rows_accepts(&g.step, &g.rows, why);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  grouped g;
  hone_reason why = {""};
  if (!read(r->step, &g, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "group_norm: %s", why.text);
  hone_step_run rows = *r;
  rows.step = &g.step;
  return hn_cuda_rows_run(&rows, &g.rows, error);
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  grouped g;
  hone_reason why = {""};
  if (!read(s, &g, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "group_norm: %s", why.text);
  return hn_cuda_rows_need(&g.step, m, &g.rows, n);
}

HN_TACTIC(cuda, group_norm, "GroupNormalization", 1, .accepts = accepts, .cost = hn_cuda_rows_cost,
          .need = need, .run = run);
