/* DepthToSpace and SpaceToDepth (blocks.h). */
#include "model/ops/movement/blocks.h"

hone_status hn_blocks_infer(const hone_infer *io, bool to_space, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  int64_t b = hone_node_int(io->node, "blocksize", 0), dims[4];
  const char *mode = hone_node_string(io->node, "mode", "DCR");
  if (strcmp(mode, "DCR") && strcmp(mode, "CRD")) return hn_op_bad(io->node, error, "mode is \"%s\"", mode);
  if (b < 1 || b > 46340) return hn_op_bad(io->node, error, "blocksize is %lld", (long long)b);
  if (x->rank < 0) return hn_infer_set(io, 0, x->dtype, -1, NULL), HONE_OK;
  if (x->rank != 4) return hn_op_bad(io->node, error, "the input has rank %d, expected 4", (int)x->rank);
  dims[0] = x->dim[0];
  for (int32_t d = 1; d < 4; d++) {
    int64_t n = x->dim[d], by = d == 1 ? b * b : b;
    bool divide = (d == 1) == to_space;
    dims[d] = HONE_DIM_UNKNOWN;
    if (n < 0) continue;
    if (divide && n % by)
      return hn_op_bad(io->node, error, "dimension %d is %lld, not a multiple of %lld", (int)d, (long long)n,
                       (long long)by);
    if (divide)
      dims[d] = n / by;
    else if (__builtin_mul_overflow(n, by, &dims[d]))
      return hn_op_bad(io->node, error, "the output is too large");
  }
  hn_infer_set(io, 0, x->dtype, 4, dims);
  return HONE_OK;
}

hone_status hn_blocks_run(hone_call *call, bool to_space, hone_error *error) {
  const bool column_first = !strcmp(hone_node_string(call->node, "mode", "DCR"), "CRD");
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  const hone_tensor_desc *space = to_space ? &y->desc : &x->desc, *depth = to_space ? &x->desc : &y->desc;
  int64_t b = hone_node_int(call->node, "blocksize", 1), channels = space->dim[1];
  int64_t height = depth->dim[2], width = depth->dim[3];
  size_t size = hone_dtype_size(x->desc.dtype);
  (void)error;
  for (int64_t n = 0; n < depth->dim[0]; n++)
    for (int64_t c = 0; c < depth->dim[1]; c++) {
      /* Channel c of the deep tensor holds element (i, j) of every block of channel k. */
      int64_t k = column_first ? c / (b * b) : c % channels, ij = column_first ? c % (b * b) : c / channels;
      int64_t i = ij / b, j = ij % b;
      for (int64_t h = 0; h < height; h++)
        for (int64_t w = 0; w < width; w++) {
          int64_t deep = ((n * depth->dim[1] + c) * height + h) * width + w;
          int64_t flat = ((n * channels + k) * height * b + h * b + i) * width * b + w * b + j;
          memcpy((char *)y->data + (size_t)(to_space ? flat : deep) * size,
                 (const char *)x->data + (size_t)(to_space ? deep : flat) * size, size);
        }
    }
  return HONE_OK;
}
