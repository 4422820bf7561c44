#include "model/ops/microsoft/codes/nbits.h"

hone_status hn_nbits_of(const hone_node *node, hn_nbits *out, hone_error *error) {
  *out = (hn_nbits){.rows = hone_node_int(node, "K", 0),
                    .columns = hone_node_int(node, "N", 0),
                    .bits = hone_node_int(node, "bits", 4),
                    .block = hone_node_int(node, "block_size", 0)};
  if (hone_node_int(node, "weight_prepacked", 0))
    return hn_op_refuse(node, error, "weight_prepacked, which is a layout of one GPU");
  if (out->bits != 2 && out->bits != 4 && out->bits != 8)
    return hn_op_refuse(node, error, "codes of %lld bits", (long long)out->bits);
  if (out->rows < 1 || out->rows > INT32_MAX || out->columns < 1 || out->columns > INT32_MAX ||
      out->block < 16 || out->block > INT32_MAX || (out->block & (out->block - 1)))
    return hn_op_bad(node, error, "K is %lld, N %lld, block_size %lld", (long long)out->rows,
                     (long long)out->columns, (long long)out->block);
  out->blocks = (out->rows + out->block - 1) / out->block;
  return HONE_OK;
}

hone_status hn_nbits_check(const hone_node *node, const hn_nbits *w, const hone_tensor_desc *codes,
                           const hone_tensor_desc *scales, const hone_tensor_desc *zeros, hone_error *error) {
  const int64_t all = w->columns * w->blocks, bytes = all * (w->block * w->bits / 8),
                packed = w->columns * ((w->blocks * w->bits + 7) / 8), have = hone_desc_count(codes),
                n_scales = hone_desc_count(scales), n_zeros = zeros ? hone_desc_count(zeros) : -1;
  if (hn_dims_differ(have, bytes))
    return hn_op_bad(node, error, "the codes are %lld bytes, expected %lld", (long long)have,
                     (long long)bytes);
  if (hn_dims_differ(n_scales, all))
    return hn_op_bad(node, error, "%lld scales for %lld blocks", (long long)n_scales, (long long)all);
  if (zeros && zeros->dtype && hn_dims_differ(n_zeros, zeros->dtype == HONE_DTYPE_U8 ? packed : all))
    return hn_op_bad(node, error, "%lld zero points for %lld blocks", (long long)n_zeros, (long long)all);
  return HONE_OK;
}

bool hn_nbits_groups_fit(const hn_nbits *w, const int32_t *group) {
  for (int64_t k = 0; k < w->rows; k++)
    if (group[k] < 0 || group[k] >= w->blocks) return false;
  return true;
}

/* What is subtracted from the codes of block b of column n. */
static float zero_of(const hn_nbits *w, const hone_tensor *zeros, int64_t n, int64_t b) {
  if (!zeros) return (float)(1 << (w->bits - 1));
  if (zeros->desc.dtype != HONE_DTYPE_U8) return (float)hn_get_f64(zeros, n * w->blocks + b);
  return (float)hn_nbits_code((const uint8_t *)zeros->data + n * ((w->blocks * w->bits + 7) / 8), w->bits, b);
}

void hn_nbits_column(const hn_nbits *w, const hone_tensor *codes, const hone_tensor *scales,
                     const hone_tensor *zeros, int64_t n, float *out) {
  const int64_t bytes = w->block * w->bits / 8;
  for (int64_t b = 0; b < w->blocks; b++) {
    const int64_t i = n * w->blocks + b;
    const uint8_t *from = (const uint8_t *)codes->data + i * bytes;
    float scale = (float)hn_get_f64(scales, i), zero = zero_of(w, zeros, n, b);
    for (int64_t k = 0; k < w->block && b * w->block + k < w->rows; k++) {
      if (w->group) {
        const int32_t g = w->group[b * w->block + k];
        scale = (float)hn_get_f64(scales, n * w->blocks + g), zero = zero_of(w, zeros, n, g);
      }
      out[b * w->block + k] = ((float)hn_nbits_code(from, w->bits, k) - zero) * scale;
    }
  }
}
