/* Multinomial: for each row of unnormalised log probabilities, sample_size classes drawn with replacement. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"
#include "model/ops/random/random.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  int64_t dim[2] = {x->rank == 2 ? x->dim[0] : HONE_DIM_UNKNOWN, hone_node_int(io->node, "sample_size", 1)};
  if (x->rank >= 0 && x->rank != 2)
    return hn_op_bad(io->node, error, "the input has rank %d, not 2", x->rank);
  if (x->rank == 2 && x->dim[1] == 0) return hn_op_bad(io->node, error, "there are no classes");
  if (dim[1] < 0) return hn_op_bad(io->node, error, "sample_size is %lld", (long long)dim[1]);
  return hn_random_infer(io, HONE_DTYPE_I32, HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_I64), 2, dim,
                         error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  hn_rng rng = hn_random_start(call->node);
  int64_t rows = y->desc.dim[0], samples = y->desc.dim[1], classes = x->desc.dim[1];
  double *sum = hn_scratch(call, classes, sizeof *sum, error);
  if (!sum) return HONE_ERROR_MEMORY;
  for (int64_t r = 0; r < rows; r++) {
    double top = -INFINITY, total = 0;
    hn_load_f64(sum, x, r * classes, classes);
    for (int64_t c = 0; c < classes; c++) top = fmax(top, sum[c]);
    for (int64_t c = 0; c < classes; c++) sum[c] = total += exp(sum[c] - top);
    for (int64_t s = 0; s < samples; s++) {
      hone_status status = s % 1024 == 0 ? hn_call_check(call, error) : HONE_OK;
      if (status) return status;
      double u = hn_rng_unit(&rng) * total;
      int64_t lo = 0, hi = classes - 1; /* the first class whose running sum exceeds u */
      while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (sum[mid] > u)
          hi = mid;
        else
          lo = mid + 1;
      }
      hn_set_i64(y, r * samples + s, lo);
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "dtype", .type = HONE_ATTR_INT},
                                       {.name = "sample_size", .type = HONE_ATTR_INT},
                                       {.name = "seed", .type = HONE_ATTR_FLOAT},
                                       {0}};

HN_OP(multinomial) = {HN_OP_HEAD,
                      .op_type = "Multinomial",
                      .since = 7,
                      .flags = HONE_OP_RANDOM,
                      HN_INPUTS(1, 1),
                      HN_OUTPUTS(1, 1),
                      .types = HN_TYPES_FLOAT,
                      .attrs = attrs,
                      .infer = infer,
                      .reference = reference};
