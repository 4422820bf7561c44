/* DequantizeLinear(QuantizeLinear(x, s, z), s, z)  ->  the same with z + 128 and codes of u8, where z is an
 * i8
 *
 * Products of codes on a processor multiply u8 by i8: rows of i8 would be copied with their top bits turned
 * for every product that reads them. The same numbers: both kinds of codes have as many on either side of
 * the zero point. One scale; codes that nobody else reads. */
#include "optimize/passes/common/codes.h"

enum { MOST = 16 };

static hn_value *unsigned_zero(hn_pass_context *ctx, const hone_node *n) {
  const hn_value *z = hn_zero_of(n);
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_U8, 0, NULL);
  const uint8_t code = (uint8_t)((z ? *(const int8_t *)z->constant->data : 0) + 128);
  return hn_make_constant(ctx, n->name, &d, &code);
}

/* n on v, with codes of u8. */
static hone_node *again(hn_pass_context *ctx, const hone_node *n, hone_node *at, hn_value *v,
                        const hone_tensor_desc *like) {
  hn_value *zero = unsigned_zero(ctx, n);
  hone_node *made =
      zero ? hn_make_node(ctx, at, n->op_type, (hn_value *const[]){v, n->in[1], zero}, 3, like) : NULL;
  if (!made || !hn_inherit(ctx, made, n)) return NULL;
  if (!hn_node_copy_attrs(made, n)) return hn_pass_memory(ctx), NULL;
  hn_node_drop_attr(made, "output_dtype");
  return made;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *q) {
  if (!ctx->options->lowered || !ctx->options->processor || !hn_quantises(q)) return HN_PASS_NONE;
  hn_value *codes = q->out[0];
  hone_node *reader[MOST];
  const size_t n = codes->users.len;
  if (codes->desc.dtype != HONE_DTYPE_I8 || codes->is_output || !n || n > MOST || hn_known(q->in[0]))
    return HN_PASS_NONE;
  for (size_t i = 0; i < n; i++) {
    reader[i] = codes->users.ptr[i].node;
    if (reader[i]->graph != q->graph || !reader[i]->n_out || !reader[i]->out[0] ||
        reader[i]->in[0] != codes || hn_codes_behind(reader[i]->out[0], true) != reader[i])
      return hn_pass_miss(ctx, "codes are read by '%.60s'", reader[i]->name);
  }
  hone_tensor_desc d = codes->desc;
  d.dtype = HONE_DTYPE_U8;
  hone_node *made = again(ctx, q, q, q->in[0], &d);
  if (!made) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "codes of u8");
  for (size_t i = 0; i < n; i++) {
    hone_node *dq = again(ctx, reader[i], reader[i], made->out[0], &reader[i]->out[0]->desc);
    if (!dq || !hn_replace(ctx, reader[i]->out[0], dq->out[0])) return HN_PASS_FAIL;
    hn_remove_unread(reader[i], 0);
  }
  hn_remove_unread(q, 0);
  return HN_PASS_HIT;
}

HN_PASS(unsign_codes) = {.name = "unsign_codes",
                         .level = 2,
                         .about = "codes of i8 between Quantize- and DequantizeLinear -> u8",
                         .visit = visit,
                         .roots = HN_ROOTS("QuantizeLinear")};
