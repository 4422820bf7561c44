#include "model/ops/microsoft/attention/cache_codes.h"

#include <math.h>

hone_status hn_cache_codes_of(const hone_node *node, const char *name, const hone_tensor_desc *past,
                              hn_cache_codes *out, hone_error *error) {
  const char *type = hone_node_string(node, name, "NONE");
  const hone_dtype d = past ? past->dtype : HONE_DTYPE_NONE;
  *out = (hn_cache_codes){0};
  if (strcmp(type, "NONE") == 0) return HONE_OK;
  if (strcmp(type, "PER_TENSOR") && strcmp(type, "PER_CHANNEL"))
    return hn_op_bad(node, error, "%s is \"%s\"", name, type);
  if (!past) return hn_op_refuse(node, error, "a cache of codes that is not there yet");
  if (d && d != HONE_DTYPE_I8 && d != HONE_DTYPE_U8 && d != HONE_DTYPE_F8E4M3FN)
    return hn_op_refuse(node, error, "a cache of %s", hone_dtype_name(d));
  out->bits = d == HONE_DTYPE_U8 ? 4 : 8, out->type = d;
  const int64_t width = hone_node_int(node, "kv_cache_bit_width", 0);
  if (width && d && width != out->bits)
    return hn_op_bad(node, error, "kv_cache_bit_width is %lld, and the cache is %s", (long long)width,
                     hone_dtype_name(d));
  return HONE_OK;
}

hone_status hn_cache_codes_check(const hone_infer *io, uint32_t scale, const hn_cache_codes *codes,
                                 int64_t channels, hone_error *error) {
  if (!codes->bits) return HONE_OK;
  if (!hn_has_input(io, scale)) return hn_op_bad(io->node, error, "a cache of codes has no scale");
  const hone_status s = hn_infer_dtype_in(io, scale, HONE_TYPES(HONE_DTYPE_F32), error);
  const int64_t n = hone_desc_count(io->input[scale]);
  if (s || n < 0 || n == 1 || channels < 0 || n == channels) return s;
  return hn_op_bad(io->node, error, "%lld scales for %lld channels of the cache", (long long)n,
                   (long long)channels);
}

/* Of channel i of all heads. */
static float scale_at(const hn_cache_codes *c, int64_t i) {
  return ((const float *)c->scale->data)[hn_count(c->scale) == 1 ? 0 : i];
}

/* Rounded to even, within the type; what is no number is 0. */
static int code_of(double v, int least, int most) {
  if (!(v == v)) return 0;
  return v <= least ? least : v >= most ? most : (int)rint(v);
}

bool hn_cache_encode(hone_call *call, const hn_cache_codes *codes, const hone_tensor *x, hone_tensor *out,
                     hone_error *error) {
  const int64_t *d = x->desc.dim, size = d[3], tokens = d[2];
  const int64_t dim[4] = {1, d[1], tokens, size * codes->bits / 8};
  if (!hn_inner_tensor(call, codes->type, 4, dim, out, error)) return false;
  for (int64_t i = 0, n = hn_count(x); i < n; i++) {
    const float scale = scale_at(codes, i / (tokens * size) * size + i % size);
    const double v = scale != 0 ? hn_get_f64(x, i) / (double)scale : 0;
    if (codes->type == HONE_DTYPE_F8E4M3FN) {
      ((uint8_t *)out->data)[i] = hn_narrow_from_f64(codes->type, v, (hn_narrow_rule){.overflow = false});
      continue;
    }
    if (codes->bits == 8) {
      ((int8_t *)out->data)[i] = (int8_t)code_of(v, -128, 127);
      continue;
    }
    uint8_t *at = (uint8_t *)out->data + i / 2;
    const int code = code_of(v, -8, 7) + 8;
    *at = (uint8_t)(i % 2 ? (*at & 15) | code << 4 : code);
  }
  return true;
}

bool hn_cache_decode(hone_call *call, const hn_cache_codes *codes, const hone_tensor *x, int64_t zeros,
                     hone_dtype dtype, hone_tensor *out, hone_error *error) {
  const int64_t *d = x->desc.dim, size = d[3] * 8 / codes->bits, tokens = d[2];
  const int64_t dim[4] = {1, d[1], tokens, size};
  if (!hn_inner_tensor(call, dtype, 4, dim, out, error)) return false;
  for (int64_t i = 0, n = hn_count(out); i < n; i++) {
    const uint8_t *at = (const uint8_t *)x->data + (codes->bits == 8 ? i : i / 2);
    const float code = codes->type == HONE_DTYPE_F8E4M3FN ? hn_narrow_to_f32(codes->type, *at)
                       : codes->bits == 8                 ? (float)*(const int8_t *)(const void *)at
                                                          : (float)((i % 2 ? *at >> 4 : *at & 15) - 8);
    const float scale = scale_at(codes, i / (tokens * size) * size + i % size);
    hn_set_f64(out, i, i / size % tokens < zeros ? 0 : (double)(code * scale));
  }
  return true;
}
