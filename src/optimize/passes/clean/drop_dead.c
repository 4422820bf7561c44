/* node whose outputs nobody reads  ->  nothing
 *
 * ONNX operators have no side effects. One backward walk suffices: what a dropped node read is met later in
 * the walk. */
#include "base/fault.h"
#include "optimize/passes/common/pass.h"

static hn_pass_result run(hn_pass_context *ctx) {
  HN_VEC(hone_node *) dead = {0};
  bool ok = true;
  for (hone_node *n = ctx->graph->last, *prev; n && ok; n = prev) {
    prev = n->prev;
    bool needed = false;
    for (uint32_t i = 0; i < n->n_out; i++) needed |= n->out[i] && hn_value_needed(n->out[i]);
    if (needed && !HN_FAULT(ctx->pass->name)) continue;
    ok = hn_vec_push(&dead, n);
    if (ok) hn_node_remove(n);
  }
  if (dead.len) {
    hn_pass_report *r = ctx->report;
    size_t at = r->records.len;
    hn_pass_record_add(ctx, true, dead.ptr, (uint32_t)dead.len, "no output depends on them");
    if (at < r->records.len)
      r->records.ptr[at].nodes_before += (uint32_t)dead.len; /* they are gone already */
  }
  hn_vec_free(&dead);
  return ok ? HN_PASS_NONE : hn_pass_memory(ctx);
}

HN_PASS(drop_dead) = {
    .name = "drop_dead", .level = 1, .about = "node that no output depends on -> nothing", .run = run};
