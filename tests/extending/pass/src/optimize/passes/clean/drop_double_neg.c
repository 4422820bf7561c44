/* -(-x)  ->  x */
#include "optimize/passes/common/pass.h"

static hn_pass_result match(hn_pass_context *ctx, const hone_match *m) {
  hone_node *inner = m->node[0], *outer = m->node[1];
  if (!hn_replace(ctx, outer->out[0], inner->in[0])) return HN_PASS_FAIL;
  hn_node_remove(outer);
  return hn_pass_hit(ctx, "two signs cancel out");
}

HN_PASS(drop_double_neg) = {.name = "drop_double_neg",
                            .level = 1,
                            .about = "-(-x) -> x",
                            .patterns = HN_PATTERNS("%a = Neg(%x)\n%y = Neg(%a)"),
                            .match = match};
