/* input %w = constant  ->  constant %w
 *
 * Models up to IR 3 had to list every initializer as an input as well, and some exporters still do. Such an
 * input can be overridden by the caller, so nothing that reads it can be folded. Optimising decides that it
 * is not: it stops being an input, and a caller who wants to feed it is told that there is no such input
 * instead of being ignored. */
#include "base/fault.h"
#include "optimize/passes/common/pass.h"

static hn_pass_result run(hn_pass_context *ctx) {
  hn_graph *g = ctx->graph;
  if (g->parent) return HN_PASS_NONE;
  size_t kept = 0, n = g->inputs.len;
  for (size_t i = 0; i < n; i++) {
    hn_value *v = g->inputs.ptr[i];
    /* An input that is also an output stays: it would have to get a producer. */
    if ((v->constant || HN_FAULT(ctx->pass->name)) && !v->is_output)
      v->is_input = false;
    else
      g->inputs.ptr[kept++] = v;
  }
  if (kept == n) return HN_PASS_NONE;
  g->inputs.len = kept;
  /* IR 4 is the first in which an initializer need not be an input. */
  if (ctx->model->ir_version < 4) ctx->model->ir_version = 4;
  hn_pass_record_add(ctx, true, NULL, 0, "%zu inputs with default values became constants", n - kept);
  return HN_PASS_HIT;
}

HN_PASS(freeze_initializers) = {
    .name = "freeze_initializers", .level = 1, .about = "input with initializer -> constant", .run = run};
