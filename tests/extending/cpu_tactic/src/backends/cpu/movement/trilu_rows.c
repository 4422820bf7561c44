/* Trilu: one triangle of each matrix, zeros elsewhere. */
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"

#include <string.h>

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  (void)m;
  if (s->n_inputs > 1) return hn_refuse(why, "the diagonal is not the main one");
  if (!hn_step_is_f32(s, why)) return false;
  if (s->n_epilogue) return hn_refuse(why, "triangles have no epilogue");
  if (x->layout != HONE_LAYOUT_ROW_MAJOR || y->layout != HONE_LAYOUT_ROW_MAJOR)
    return hn_refuse(why, "rows do not lie one behind the other");
  return true;
}

static double cost(const hone_step *s, const hone_machine *m) {
  const double n = (double)hone_desc_count(&s->input[0].desc);
  return hn_step_seconds(m, n, 8 * n, 0.5);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const hone_tensor_desc *d = &r->step->input[0].desc;
  const int64_t rows = d->dim[d->rank - 2], columns = d->dim[d->rank - 1], count = hone_desc_count(d);
  const bool upper = hone_node_int(r->step->node, "upper", 1);
  (void)error;
  for (int64_t at = 0; at < count; at += columns) {
    const int64_t row = at / columns % rows, from = upper ? row : 0, to = upper ? columns : row + 1;
    const int64_t begin = from < columns ? from : columns, end = to < columns ? to : columns;
    float *y = (float *)r->out[0] + at;
    memset(y, 0, (size_t)columns * sizeof *y);
    if (end > begin)
      memcpy(y + begin, (const float *)r->in[0] + at + begin, (size_t)(end - begin) * sizeof *y);
  }
  return HONE_OK;
}

HN_TACTIC(cpu, trilu_rows, "Trilu", 1, .accepts = accepts, .cost = cost, .run = run);
