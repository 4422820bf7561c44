/* Bernoulli: 1 with the probability that the input holds, else 0. */
#include "model/ops/common/convert.h"
#include "model/ops/random/random.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  return hn_random_infer(io, x->dtype, HN_TYPES_NUMBER | HN_TYPES_BOOL, x->rank, x->dim, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  hone_tensor *y = call->output[0];
  hn_rng rng = hn_random_start(call->node);
  for (int64_t i = 0, n = hn_count(y); i < n; i++) {
    hone_status status = i % HN_STOP_EVERY == 0 ? hn_call_check(call, error) : HONE_OK;
    if (status) return status;
    hn_set_i64(y, i, hn_rng_unit(&rng) < hn_get_f64(call->input[0], i));
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "dtype", .type = HONE_ATTR_INT}, {.name = "seed", .type = HONE_ATTR_FLOAT}, {0}};

HN_OP(bernoulli) = {HN_OP_HEAD,
                    .op_type = "Bernoulli",
                    .since = 15,
                    .flags = HONE_OP_RANDOM,
                    HN_INPUTS(1, 1),
                    HN_OUTPUTS(1, 1),
                    .types = HN_TYPES_FLOAT,
                    .attrs = attrs,
                    .infer = infer,
                    .reference = reference};
