/* SplitToSequence: parts along one axis. `split` is left out (parts of 1, without that dimension when
 * keepdims is 0), one number (the size of all parts but the last), or the sizes. */
#include "model/ops/common/convert.h"
#include "model/ops/common/move.h"
#include "model/ops/sequence/sequence.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  int32_t axis;
  hone_status status = HONE_OK;
  if (!hone_dtype_is_tensor(x->dtype))
    return hn_op_bad(io->node, error, "input 0 is %s", hone_dtype_name(x->dtype));
  if (x->rank >= 0) status = hn_axis(hone_node_int(io->node, "axis", 0), x->rank, &axis, error);
  if (status == HONE_OK && hn_has_input(io, 1)) {
    const hone_tensor_desc *s = io->input[1];
    if ((s->dtype && s->dtype != HONE_DTYPE_I32 && s->dtype != HONE_DTYPE_I64) || s->rank > 1)
      return hn_op_bad(io->node, error, "split is no number or list of i32 or i64");
  }
  if (status == HONE_OK) hn_infer_whole(io, HONE_SEQUENCE_OF(x->dtype));
  return status;
}

/* Sizes of the parts of a dimension. */
typedef struct parts {
  size_t n;
  int64_t each;            /* the last one may be smaller */
  const hone_tensor *size; /* or these */
} parts;

static int64_t part(const parts *p, size_t i, int64_t left) {
  return p->size ? hn_get_i64(p->size, (int64_t)i) : p->each < left ? p->each : left;
}

static hone_status read_parts(hone_call *call, int64_t dim, parts *p, hone_error *error) {
  *p = (parts){.each = 1};
  const hone_tensor *split = hn_call_has(call, 1) ? call->input[1] : NULL;
  if (split && split->desc.rank == 1) {
    int64_t left = dim;
    p->size = split;
    p->n = (size_t)hn_count(split);
    for (size_t i = 0; i < p->n; i++) {
      const int64_t size = hn_get_i64(split, (int64_t)i);
      if (size < 0 || size > left) left = -1;
      if (left < 0) break;
      left -= size;
    }
    return left == 0 ? HONE_OK
                     : hn_op_bad(call->node, error, "the sizes do not add up to the dimension's %lld",
                                 (long long)dim);
  }
  if (split) p->each = hn_get_i64(split, 0);
  if (p->each < 1) return hn_op_bad(call->node, error, "parts of %lld", (long long)p->each);
  p->n = (size_t)(dim / p->each + (dim % p->each != 0));
  return HONE_OK;
}

/* Where a part lies: `length` from `at` on along `axis`. */
typedef struct region {
  int32_t axis;
  int64_t at, length;
  bool drop; /* the dimension, of which there is one */
} region;

static const hone_tensor *cut(hone_call *call, const hone_tensor *x, const region *r, hone_error *error) {
  int64_t dim[HONE_MAX_RANK];
  int32_t rank = 0;
  for (int32_t i = 0; i < x->desc.rank; i++)
    if (i != r->axis || !r->drop) dim[rank++] = i == r->axis ? r->length : x->desc.dim[i];
  hone_tensor t = {.desc = hone_desc(x->desc.dtype, rank, dim)};
  const size_t element = hone_dtype_size(x->desc.dtype);
  const int64_t bytes = hone_desc_bytes(&t.desc), outer = hn_product(x->desc.dim, 0, r->axis),
                inner = hn_product(x->desc.dim, r->axis + 1, x->desc.rank);
  const size_t run = (size_t)(r->length * inner) * element,
               row = (size_t)(x->desc.dim[r->axis] * inner) * element;
  hone_tensor *made = call->scratch_keep(call, sizeof *made);
  t.data = call->scratch_keep(call, bytes > 0 ? (size_t)bytes : 1);
  if (!made || !t.data) {
    hn_fail_memory(error, (unsigned long long)bytes, "a part of a sequence");
    return NULL;
  }
  for (int64_t o = 0; o < outer && run; o++)
    memcpy((char *)t.data + (size_t)o * run,
           (const char *)x->data + (size_t)o * row + (size_t)(r->at * inner) * element, run);
  *made = t;
  return made;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  region r = {0};
  parts p;
  hone_status status = hn_axis(hone_node_int(call->node, "axis", 0), x->desc.rank, &r.axis, error);
  if (status == HONE_OK) status = read_parts(call, x->desc.dim[r.axis], &p, error);
  if (status != HONE_OK) return status;
  r.drop = !hn_call_has(call, 1) && !hone_node_int(call->node, "keepdims", 1);
  const hone_tensor **list = hn_items_room(call, p.n, error);
  if (!list) return HONE_ERROR_MEMORY;
  for (size_t i = 0; i < p.n; i++, r.at += r.length) {
    r.length = part(&p, i, x->desc.dim[r.axis] - r.at);
    if (!(list[i] = cut(call, x, &r, error))) return HONE_ERROR_MEMORY;
    if ((status = hn_call_check(call, error)) != HONE_OK) return status;
  }
  hn_items_give(call, p.n, list);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "axis", .type = HONE_ATTR_INT}, {.name = "keepdims", .type = HONE_ATTR_INT}, {0}};

HN_OP(split_to_sequence) = {HN_OP_HEAD,
                            .op_type = "SplitToSequence",
                            .since = 11,
                            .flags = HONE_OP_MOVE | HONE_OP_ITEMS,
                            HN_INPUTS(1, 2),
                            HN_OUTPUTS(1, 1),
                            .attrs = attrs,
                            .infer = infer,
                            .reference = reference};
