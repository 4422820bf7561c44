/* MRotaryEmbedding: ONNX's RotaryEmbedding with three positions a token (time, height, width), each of which
 * has its pairs of a head. Their turns are gathered first. */
#include <string.h>

#include "model/ops/attention/heads.h"
#include "model/ops/microsoft/attention/rotary_inner.h"

enum { X, POSITIONS, COS, SIN };
enum { TIME, HEIGHT, WIDTH, STREAMS };

/* The numbers of pairs that the streams have; of `half` pairs, below 0: not known yet. */
static hone_status take_sections(const hone_node *n, int64_t half, const int64_t **section,
                                 hone_error *error) {
  size_t count = 0;
  const int64_t *s = hone_node_ints(n, "mrope_section", &count);
  const hone_status read = hn_rotary_check(n, error);
  if (read) return read;
  if (hone_node_int(n, "mrope_layout", 0) < 0 || hone_node_int(n, "mrope_layout", 0) > 1)
    return hn_op_bad(n, error, "mrope_layout is %lld", (long long)hone_node_int(n, "mrope_layout", 0));
  if (count != STREAMS) return hn_op_bad(n, error, "mrope_section has %zu numbers, expected 3", count);
  for (int i = 0; i < STREAMS; i++)
    if (s[i] < 0 || s[i] > INT32_MAX)
      return hn_op_bad(n, error, "mrope_section has %lld pairs", (long long)s[i]);
  if (half >= 0 && s[TIME] + s[HEIGHT] + s[WIDTH] != half)
    return hn_op_bad(n, error, "mrope_section has %lld pairs, the caches %lld",
                     (long long)(s[TIME] + s[HEIGHT] + s[WIDTH]), (long long)half);
  *section = s;
  return HONE_OK;
}

/* Whose position turns pair i. */
static int stream_of(const int64_t *section, bool interleaved, int64_t i) {
  if (interleaved) return i % 3 && i < 3 * section[i % 3] ? (int)(i % 3) : TIME;
  return i < section[TIME] ? TIME : i < section[TIME] + section[HEIGHT] ? HEIGHT : WIDTH;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X], *p = io->input[POSITIONS], *cos = io->input[COS];
  const int64_t *section;
  hone_status s = hn_infer_dtype_in(io, POSITIONS, HONE_TYPES(HONE_DTYPE_I64), error);
  if (!s) s = take_sections(io->node, cos->rank == 2 ? hn_dim(cos, 1) : HONE_DIM_UNKNOWN, &section, error);
  if (s) return s;
  const int64_t batch = hn_dim(x, 0), tokens = x->rank == 4 ? x->dim[2] : hn_dim(x, 1);
  if (p->rank >= 0 && (p->rank != 3 || hn_dims_differ(p->dim[0], STREAMS) ||
                       hn_dims_differ(p->dim[1], batch) || hn_dims_differ(p->dim[2], tokens)))
    return hn_op_bad(io->node, error, "position_ids do not have three numbers for each of %lld x %lld tokens",
                     (long long)batch, (long long)tokens);
  if ((cos->rank >= 0 && cos->rank != 2) || (io->input[SIN]->rank >= 0 && io->input[SIN]->rank != 2))
    return hn_op_bad(io->node, error, "the caches are not of rank 2");
  hn_inner inner;
  hn_rotary_begin(&inner, io->node, x, cos);
  if (hone_node_int(&inner.node, "num_heads", 0) == 0 && x->rank == 3)
    return hn_infer_set(io, 0, x->dtype, x->rank, x->dim), HONE_OK;
  const hone_tensor_desc all = hone_desc(HONE_DTYPE_I64, 2, (const int64_t[]){batch, tokens});
  hone_infer view = *io;
  view.input = (const hone_tensor_desc *const[]){x, cos, io->input[SIN], &all};
  return hn_inner_infer(&view, &inner, error);
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 3 * hn_known_count(io->output[0]));
}

/* turned[b][t][i] is the cache's number at the position of pair i's stream. */
static hone_status gather(hone_call *call, const hone_tensor *cache, const int64_t *section,
                          hone_tensor *turned, hone_error *error) {
  const hone_tensor *p = call->input[POSITIONS];
  const int64_t tokens = p->desc.dim[1] * p->desc.dim[2], rows = cache->desc.dim[0],
                half = cache->desc.dim[1], dim[3] = {p->desc.dim[1], p->desc.dim[2], half};
  const bool interleaved = hone_node_int(call->node, "mrope_layout", 0) == 1;
  const size_t size = hone_dtype_size(cache->desc.dtype);
  if (!hn_inner_tensor(call, cache->desc.dtype, 3, dim, turned, error)) return HONE_ERROR_MEMORY;
  for (int64_t t = 0; t < tokens; t++)
    for (int64_t i = 0; i < half; i++) {
      const int64_t row = hn_get_i64(p, stream_of(section, interleaved, i) * tokens + t);
      if (row < 0 || row >= rows)
        return hn_op_bad(call->node, error, "position %lld is not in the caches of %lld", (long long)row,
                         (long long)rows);
      memcpy((char *)turned->data + (size_t)(t * half + i) * size,
             (const char *)cache->data + (size_t)(row * half + i) * size, size);
    }
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[X];
  const int64_t *section;
  hone_tensor cos, sin;
  hn_inner inner;
  hone_status s = take_sections(call->node, call->input[COS]->desc.dim[1], &section, error);
  if (!s) s = gather(call, call->input[COS], section, &cos, error);
  if (!s) s = gather(call, call->input[SIN], section, &sin, error);
  if (s) return s;
  hn_rotary_begin(&inner, call->node, &x->desc, &call->input[COS]->desc);
  const hone_tensor *const in[3] = {x, &cos, &sin};
  return hn_inner_run(call, &inner, in, 3, call->output, 1, error);
}

static const hone_attr_desc attrs[] = {{.name = "mrope_section", .type = HONE_ATTR_INTS, .required = true},
                                       {.name = "mrope_layout", .type = HONE_ATTR_INT},
                                       {.name = "interleaved", .type = HONE_ATTR_INT},
                                       {.name = "num_heads", .type = HONE_ATTR_INT},
                                       {.name = "rotary_embedding_dim", .type = HONE_ATTR_INT},
                                       {.name = "is_packed_batching", .type = HONE_ATTR_INT},
                                       {.name = "scale", .type = HONE_ATTR_FLOAT},
                                       {0}};

HN_OP(m_rotary_embedding) = {HONE_DESC_HEAD(hone_op_desc),
                             .domain = "com.microsoft",
                             .op_type = "MRotaryEmbedding",
                             .since = 1,
                             HN_INPUTS(4, 4),
                             HN_OUTPUTS(1, 1),
                             .types = HN_TYPES_FLOAT,
                             .attrs = attrs,
                             .infer = infer,
                             .cost = cost,
                             .reference = reference};
