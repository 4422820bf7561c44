/* MurmurHash3: the 32-bit form (x86) of the bytes of each element. */
#include "model/ops/microsoft/common/inner.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  (void)error;
  const hone_dtype to = hone_node_int(io->node, "positive", 1) ? HONE_DTYPE_U32 : HONE_DTYPE_I32;
  hn_infer_set(io, 0, to, io->input[0]->rank, io->input[0]->dim);
  return HONE_OK;
}

static uint32_t turned(uint32_t v, int by) { return v << by | v >> (32 - by); }
static uint32_t mixed(uint32_t k) { return turned(k * 0xcc9e2d51u, 15) * 0x1b873593u; }

static uint32_t hash(const unsigned char *p, size_t n, uint32_t h) {
  size_t i = 0;
  uint32_t k;
  for (; i + 4 <= n; i += 4) {
    k = (uint32_t)p[i] | (uint32_t)p[i + 1] << 8 | (uint32_t)p[i + 2] << 16 | (uint32_t)p[i + 3] << 24;
    h = turned(h ^ mixed(k), 13) * 5 + 0xe6546b64u;
  }
  k = 0;
  for (size_t t = n; t > i; t--) k = k << 8 | p[t - 1];
  if (n > i) h ^= mixed(k);
  h ^= (uint32_t)n;
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  return h ^ h >> 16;
}

static hone_status reference(hone_call *call, hone_error *error) {
  (void)error;
  const hone_tensor *x = call->input[0];
  const uint32_t seed = (uint32_t)hone_node_int(call->node, "seed", 0);
  const bool texts = x->desc.dtype == HONE_DTYPE_STRING;
  const size_t size = texts ? 0 : hone_dtype_size(x->desc.dtype);
  uint32_t *y = call->output[0]->data;
  for (int64_t i = 0; i < hn_count(x); i++) {
    const hone_string *s = texts ? (const hone_string *)x->data + i : NULL;
    const unsigned char *p =
        s ? (const unsigned char *)s->ptr : (const unsigned char *)x->data + (size_t)i * size;
    y[i] = hash(p, s ? s->len : size, seed);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "seed", .type = HONE_ATTR_INT}, {.name = "positive", .type = HONE_ATTR_INT}, {0}};

HN_OP(murmur_hash3) = {HONE_DESC_HEAD(hone_op_desc),
                       .domain = "com.microsoft",
                       .op_type = "MurmurHash3",
                       .since = 1,
                       HN_INPUTS(1, 1),
                       HN_OUTPUTS(1, 1),
                       .types = HONE_TYPES(HONE_DTYPE_U32) | HONE_TYPES(HONE_DTYPE_I32) |
                                HONE_TYPES(HONE_DTYPE_U64) | HONE_TYPES(HONE_DTYPE_I64) |
                                HONE_TYPES(HONE_DTYPE_F32) | HONE_TYPES(HONE_DTYPE_F64) | HN_TYPES_STRING,
                       .attrs = attrs,
                       .infer = infer,
                       .reference = reference};
