/* MatMulNBits(a, constant codes, scales, zeros, bias)  ->  MatMul(a, f32) + bias
 * MatMulBnb4(a, constant codes, scales)                ->  MatMul(a, f32)
 *
 * The weights are decoded once, where nothing reads codes: on older accelerators, for bf16 products of a
 * processor, and of bnb4, and where the rows of a block lie apart (g_idx) so that order_grouped_rows cannot
 * help. */
#include "model/ops/microsoft/codes/bnb4.h"
#include "model/ops/microsoft/codes/nbits.h"
#include "optimize/passes/common/pass.h"

static const char *missing(const hone_node *n) {
  if (!hn_known(n->in[1]) || !hn_known(n->in[2])) return "the weights are computed";
  return hn_in(n, 3) && !hn_known(n->in[3]) ? "the zero points are computed" : NULL;
}

enum { FEW = 16, GROUP = 16 };
/* Bytes of decoded weights: fewer than may be folded, as codes can be read as they are, too. */
#define MOST ((uint64_t)256 << 20)

/* A processor has steps that read the codes: of few rows in registers, of more a panel at a time. Products of
 * bf16 have none for many rows. Accelerators that read codes do so of any rows and zero points. */
static bool stays(const hn_pass_context *ctx, const hone_node *n, const hn_nbits *w) {
  const hone_tensor_desc *a = &n->in[0]->desc;
  const hone_dtype zeros = hn_in(n, 3) ? n->in[3]->desc.dtype : HONE_DTYPE_U8;
  if (w->group) return false;
  if (ctx->options->codes) return true;
  if (!ctx->options->processor || (zeros != HONE_DTYPE_U8 && zeros != HONE_DTYPE_F32)) return false;
  return !ctx->options->coarse || (hone_desc_known(a) && hone_desc_count(a) < (FEW + 1) * w->rows);
}

/* Decoded, row-major: some columns at a time, so that lines of the result are written whole. */
static void decode(const hn_nbits *w, const hone_node *n, float *column, float *out) {
  const hone_tensor *zeros = hn_in(n, 3) ? hn_known(n->in[3]) : NULL;
  for (int64_t c = 0; c < w->columns; c += GROUP) {
    const int64_t some = w->columns - c < GROUP ? w->columns - c : GROUP;
    for (int64_t i = 0; i < some; i++)
      hn_nbits_column(w, hn_known(n->in[1]), hn_known(n->in[2]), zeros, c + i, column + i * w->rows);
    for (int64_t r = 0; r < w->rows; r++)
      for (int64_t i = 0; i < some; i++) out[r * w->columns + c + i] = column[i * w->rows + r];
  }
}

/* Whether so many bytes may be made. */
static bool fits(hn_pass_context *ctx, uint64_t bytes) {
  const hn_optimize_options *o = ctx->options;
  return bytes <= MOST && bytes <= o->fold_tensor_bytes && ctx->folded + bytes <= o->fold_bytes;
}

static hn_pass_result replaced(hn_pass_context *ctx, hone_node *n, hn_value *y, int64_t bits) {
  if (!y) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "weights of %lld bits, decoded", (long long)bits);
  if (!hn_replace(ctx, n->out[0], y)) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

static hn_pass_result open_bnb4(hn_pass_context *ctx, hone_node *n) {
  hn_bnb4 w;
  if (!hn_known(n->in[1]) || !hn_known(n->in[2])) return hn_pass_miss(ctx, "the weights are computed");
  if (hn_bnb4_of(n, &w, NULL)) return hn_pass_miss(ctx, "its attributes");
  const int64_t dim[2] = {w.turned ? w.columns : w.rows, w.turned ? w.rows : w.columns};
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 2, dim);
  const uint64_t bytes = (uint64_t)hone_desc_bytes(&d);
  if (!fits(ctx, bytes))
    return hn_pass_miss(ctx, "the decoded weights would take %llu bytes", (unsigned long long)bytes);
  void *data = NULL;
  float *row = HN_NEW_ARRAY(ctx->scratch, float, w.columns), *out;
  hn_value *weights = row ? hn_make_room(ctx, n->in[1]->name, &d, &data) : NULL;
  if (!weights) return hn_pass_memory(ctx);
  ctx->folded += bytes, out = data;
  for (int64_t r = 0; r < w.rows; r++) {
    hn_bnb4_row(&w, hn_known(n->in[1]), hn_known(n->in[2]), r, w.turned ? row : out + r * w.columns);
    for (int64_t c = 0; c < w.columns && w.turned; c++) out[c * w.rows + r] = row[c];
  }
  hn_value *const in[2] = {n->in[0], weights};
  return replaced(ctx, n, hn_make_newest(ctx, n, "MatMul", in, 2, &n->out[0]->desc), 4);
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  hn_nbits w;
  if (!ctx->options->lowered || !n->op || strcmp(n->domain, "com.microsoft") != 0 || !n->n_in || !n->in[0] ||
      n->in[0]->desc.dtype != HONE_DTYPE_F32)
    return HN_PASS_NONE;
  if (strcmp(n->op_type, "MatMulBnb4") == 0) return open_bnb4(ctx, n);
  if (strcmp(n->op_type, "MatMulNBits") != 0) return HN_PASS_NONE;
  const char *why = missing(n);
  if (why || hn_nbits_of(n, &w, NULL)) return hn_pass_miss(ctx, "%s", why ? why : "its attributes");
  if (hn_in(n, 4)) {
    if (!hn_known(n->in[4])) return hn_pass_miss(ctx, "the rows' groups are computed");
    int32_t *group = HN_NEW_ARRAY(ctx->scratch, int32_t, w.rows); /* constants may lie at any address */
    if (!group) return hn_pass_memory(ctx);
    memcpy(group, hn_known(n->in[4])->data, (size_t)w.rows * sizeof *group);
    w.group = group;
    if (!hn_nbits_groups_fit(&w, w.group)) return hn_pass_miss(ctx, "g_idx names a block that is not there");
  }
  if (stays(ctx, n, &w)) return hn_pass_miss(ctx, "steps read the codes");
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){w.rows, w.columns});
  const uint64_t bytes = (uint64_t)hone_desc_bytes(&d);
  if (!fits(ctx, bytes))
    return hn_pass_miss(ctx, "the decoded weights would take %llu bytes", (unsigned long long)bytes);
  float *column = HN_NEW_ARRAY(ctx->scratch, float, GROUP *w.rows);
  void *data = NULL;
  hn_value *weights = column ? hn_make_room(ctx, n->in[1]->name, &d, &data) : NULL;
  if (!weights) return hn_pass_memory(ctx);
  ctx->folded += bytes;
  decode(&w, n, column, data);
  const hone_tensor_desc *like = &n->out[0]->desc;
  hn_value *y = hn_make_newest(ctx, n, "MatMul", (hn_value *const[]){n->in[0], weights}, 2, like);
  if (y && hn_in(n, 5)) y = hn_make_newest(ctx, n, "Add", (hn_value *const[]){y, n->in[5]}, 2, like);
  return replaced(ctx, n, y, w.bits);
}

HN_PASS(open_packed_weights) = {
    .name = "open_packed_weights",
    .level = 1,
    .about = "MatMulNBits and MatMulBnb4 with constant weights -> MatMul",
    .visit = visit,
    .roots = HN_ROOTS("MatMulBnb4", "MatMulNBits"),
};
