#include "tactics/chain_case.h"

#include <string.h>

void chain_parts(const one_case *c, hone_step *whole, const hone_tensor_desc *middle, chain_case *out) {
  static const uint32_t first[] = {CHAIN_X, CHAIN_FIRST, CHAIN_FIRST + 1},
                        last[] = {HONE_PART_CHAINED, CHAIN_LAST, CHAIN_LAST + 1, CHAIN_ADDED};
  const hone_epilogue relu = {.kind = HONE_EPI_ACT, .act = HONE_PW_RELU};
  const bool added = c->present[CHAIN_ADDED];
  if (!c->before) return;
  memset(out, 0, sizeof *out);
  for (uint32_t i = 0; i < 3; i++) out->in[0][i] = whole->input[first[i]];
  for (uint32_t i = 1; i < (added ? 4u : 3u); i++) out->in[1][i] = whole->input[last[i]];
  out->in[1][0].desc = out->out[0].desc = *middle;
  out->out[1] = whole->output[0];
  for (uint32_t k = 0; k < 2; k++) {
    out->step[k] = *whole;
    out->step[k].anchor = "Conv";
    out->step[k].node = k ? c->node : c->before;
    out->step[k].n_inputs = k && added ? 4 : 3;
    out->step[k].n_anchor_inputs = 3;
    out->step[k].input = out->in[k];
    out->step[k].n_outputs = 1;
    out->step[k].output = &out->out[k];
    out->part[k] = (hone_step_part){&out->step[k], k ? last : first};
  }
  out->step[0].epilogue[out->step[0].n_epilogue++] = relu;
  if (added) {
    out->step[1].epilogue[out->step[1].n_epilogue++] = (hone_epilogue){.kind = HONE_EPI_ADD, .input = 3};
    out->step[1].epilogue[out->step[1].n_epilogue++] = relu;
  }
  whole->n_parts = 2;
  whole->part = out->part;
}
