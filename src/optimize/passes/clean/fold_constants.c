/* f(constants)  ->  constant
 *
 * Evaluated by the operator's scalar reference. Not folded: what may differ from call to call, control flow,
 * quantisation (an engine wants to see it; of a plan's own graph weights that a QuantizeLinear makes codes
 * are codes, and dequantised parameters of a BatchNormalization numbers), graph outputs, results beyond the
 * budgets, and results much larger than what they are made of unless they are small: a weight that
 * ConstantOfShape makes is wanted, a broadcast table is not. */
#include "model/ir/bytes.h"
#include "optimize/passes/common/pass.h"

enum { GROWTH_FREE = 16 << 20, LARGE = 4096 };

/* What no product reads as codes. */
static bool is_parameter(const hone_node *n) {
  const hn_value *y = n->n_out ? n->out[0] : NULL;
  for (size_t i = 0; y && i < y->users.len; i++)
    if (!hn_is_op(y->users.ptr[i].node, "BatchNormalization") || y->users.ptr[i].index == 0) return false;
  return y && y->users.len;
}

static bool wanted(const hone_node *n, bool lowered) {
  static const char *const never[] = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"};
  if (!n->op || !n->op->reference || n->op->flags & HONE_OP_CONTROL || hn_draws(n)) return false;
  for (size_t i = 0; i < sizeof never / sizeof *never; i++)
    if (hn_is_op(n, never[i]) && (i || !lowered) && !(i == 1 && lowered && is_parameter(n))) return false;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i] && !n->in[i]->constant) return false;
  for (uint32_t i = 0; i < n->n_out; i++)
    if (n->out[i] && (n->out[i]->is_output || !hone_dtype_is_tensor(n->out[i]->desc.dtype))) return false;
  for (uint32_t i = 0; i < n->n_attr; i++)
    if (n->attr[i].type == HONE_ATTR_GRAPH) return false;
  for (uint32_t i = 0; i < n->n_in; i++) /* last: it may have to make their bytes */
    if (n->in[i] && !hn_known(n->in[i])) return false;
  return true;
}

/* Does the node only move elements of a large constant? */
static bool moves(const hone_node *n) {
  return n->op->flags & HONE_OP_MOVE && !(n->op->flags & (HONE_OP_SHAPE_ONLY | HONE_OP_ITEMS)) && n->n_in &&
         n->in[0] && hone_desc_bytes(&hn_known(n->in[0])->desc) >= LARGE;
}

/* A large constant of 16 bits that becomes f32: products read it as it is. */
static bool widens(const hn_pass_context *ctx, const hone_node *n) {
  if (!ctx->options->lowered || !ctx->options->defer || !hn_is_op(n, "Cast")) return false;
  const hone_dtype from = n->in[0]->desc.dtype;
  return (from == HONE_DTYPE_F16 || from == HONE_DTYPE_BF16) && n->out[0]->desc.dtype == HONE_DTYPE_F32 &&
         hone_desc_bytes(&n->out[0]->desc) >= HN_BYTES_LARGE && n->in[0]->graph == n->graph &&
         !n->in[0]->sized;
}

static hn_pass_result widen(hn_pass_context *ctx, hone_node *n) {
  hn_value *wide = hn_make_widened(ctx, n->in[0]);
  if (!wide) return hn_pass_memory(ctx);
  hn_pass_hit(ctx, "%s computed beforehand", n->op_type);
  if (!hn_replace(ctx, n->out[0], wide)) return HN_PASS_FAIL;
  hn_remove_unread(n, 1);
  return HN_PASS_HIT;
}

/* Results are made where they stay: a large one would else be there twice. */
static void *take(void *arena, size_t bytes) { return hn_arena_raw(arena, bytes ? bytes : 1, HN_MEM_ALIGN); }
static void give(void *arena, void *data) { (void)arena, (void)data; }

/* The number that ConstantOfShape fills a large constant of a plan's main graph with; NULL: it does no such
 * thing. Networks whose weights are filled so would else be written, and faulted in, from end to end. */
static const void *filling(const hn_pass_context *ctx, const hone_node *n) {
  static const float zero = 0;
  if (!ctx->options->lowered || !hn_is_op(n, "ConstantOfShape") || n->graph->parent || n->n_out != 1)
    return NULL;
  const hn_value *y = n->out[0];
  if (!y || n->in[0]->sized || hn_dtype_points(y->desc.dtype) || hone_desc_bytes(&y->desc) < HN_BYTES_LARGE)
    return NULL;
  const hone_tensor *value = hone_node_tensor(n, "value");
  return value ? value->data : &zero;
}

/* A Constant's tensor is the constant, where it lies. */
static hn_pass_result show(hn_pass_context *ctx, hone_node *n, const hone_tensor *shown) {
  hn_value_set_folded(n->out[0], shown, n);
  hn_pass_hit(ctx, "%s computed beforehand", n->op_type);
  hn_node_remove(n);
  return HN_PASS_HIT;
}

/* Bytes of the largest constant that some node fills with this number: what they all show the beginning of.
 */
static size_t most_filled(const hn_pass_context *ctx, hone_dtype dtype, const void *number, size_t item) {
  size_t most = 0;
  for (const hone_node *n = ctx->model->graph->first; n; n = n->next) {
    const void *other = wanted(n, true) ? filling(ctx, n) : NULL;
    if (!other || n->out[0]->desc.dtype != dtype || memcmp(other, number, item) != 0) continue;
    const uint64_t bytes = (uint64_t)hone_desc_bytes(&n->out[0]->desc);
    if (bytes > most && bytes <= ctx->options->fold_tensor_bytes) most = (size_t)bytes;
  }
  return most;
}

/* The bytes of a constant of so many bytes that is filled with one number; NULL: out of memory. */
static void *fill(const hn_pass_context *ctx, const hone_node *n, const void *number, size_t bytes) {
  enum { BLOCK = 4096 };
  const hone_dtype dtype = n->out[0]->desc.dtype;
  const size_t item = hone_dtype_size(dtype);
  void *known = (void *)(uintptr_t)hn_model_filled(ctx->model, number, item, bytes);
  if (known) return known;
  const size_t most = most_filled(ctx, dtype, number, item);
  if (most > bytes) bytes = most;
  char block[BLOCK], *data = take(&ctx->model->arena, bytes);
  if (!data || !hn_model_note_filled(ctx->model, data, item, bytes)) return NULL;
  for (size_t i = 0; i < BLOCK; i += item) memcpy(block + i, number, item);
  for (size_t i = 0; i < bytes; i += BLOCK) memcpy(data + i, block, bytes - i < BLOCK ? bytes - i : BLOCK);
  return data;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!wanted(n, ctx->options->lowered) || (ctx->options->moves && !moves(n))) return HN_PASS_NONE;
  if (widens(ctx, n)) return widen(ctx, n);
  const hone_tensor *shown = n->n_out == 1 && n->out[0] ? hn_constant_shown(n) : NULL;
  if (shown) return show(ctx, n, shown);
  int64_t in_bytes = 0, out_bytes = 0;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i]) in_bytes += hone_desc_bytes(&n->in[i]->constant->desc);
  for (uint32_t i = 0; i < n->n_out; i++) {
    int64_t b = n->out[i] ? hone_desc_bytes(&n->out[i]->desc) : 0;
    if (b > 0) out_bytes += b;
  }
  const hn_optimize_options *o = ctx->options;
  if ((uint64_t)out_bytes > o->fold_tensor_bytes)
    return hn_pass_miss(ctx, "the result has %lld bytes, more than the limit of %llu", (long long)out_bytes,
                        (unsigned long long)o->fold_tensor_bytes);
  if (out_bytes > GROWTH_FREE && out_bytes / 4 > in_bytes && !hn_is_op(n, "ConstantOfShape"))
    return hn_pass_miss(ctx, "the result has %lld bytes, the inputs %lld", (long long)out_bytes,
                        (long long)in_bytes);
  if (ctx->folded + (uint64_t)out_bytes > o->fold_bytes)
    return hn_pass_miss(ctx, "the budget of %llu bytes for folded constants is spent",
                        (unsigned long long)o->fold_bytes);
  if (n->n_in > 64 || n->n_out > 16) return HN_PASS_NONE;
  const hone_tensor *in[64];
  hone_tensor result[16] = {{.data = NULL}}, *out[16];
  for (uint32_t i = 0; i < n->n_in; i++) in[i] = n->in[i] ? n->in[i]->constant : NULL;
  for (uint32_t i = 0; i < n->n_out; i++) out[i] = n->out[i] ? &result[i] : NULL;
  hn_pass_result answer = HN_PASS_HIT;
  hone_error local = {0};
  hn_budget budget = ctx->fold;
  budget.take = take, budget.give = give, budget.memory = &ctx->model->arena;
  const void *number = filling(ctx, n);
  void *filled = number ? fill(ctx, n, number, (size_t)out_bytes) : NULL;
  if (number && !filled) return hn_pass_memory(ctx);
  hone_status status = HONE_OK;
  if (filled)
    result[0] = (hone_tensor){n->out[0]->desc, filled};
  else
    status = hn_eval_node(n, in, out, &ctx->model->arena, &budget, &local);
  ctx->fold.nodes = budget.nodes;
  if (status == HONE_ERROR_CANCELLED) {
    ctx->status = status;
    if (ctx->error) *ctx->error = local;
    answer = HN_PASS_FAIL;
  } else if (status != HONE_OK)
    answer = hn_pass_miss(ctx, "%.140s", local.what);
  hone_tensor *made[16] = {NULL};
  for (uint32_t i = 0; i < n->n_out && answer == HN_PASS_HIT; i++) {
    if (!out[i]) continue;
    int64_t bytes = hone_desc_bytes(&result[i].desc);
    made[i] = HN_NEW(&ctx->model->arena, hone_tensor);
    if (!made[i] || bytes < 0) {
      answer = hn_pass_memory(ctx);
      break;
    }
    *made[i] = result[i];
    if (!made[i]->data && !(made[i]->data = take(&ctx->model->arena, 0))) {
      answer = hn_pass_memory(ctx);
      break;
    }
    ctx->folded += (uint64_t)bytes;
  }
  if (answer == HN_PASS_HIT) {
    for (uint32_t i = 0; i < n->n_out; i++) {
      if (!made[i]) continue;
      hn_value_set_folded(n->out[i], made[i], n);
      ctx->given = n->out[i];
    }
    for (uint32_t i = 0; i < n->n_in; i++)
      if (n->in[i]) n->in[i]->folds++;
    hn_pass_hit(ctx, "%s computed beforehand", n->op_type);
    hn_node_remove(n);
  }
  return answer;
}

HN_PASS(fold_constants) = {
    .name = "fold_constants", .level = 1, .about = "f(constants) -> constant", .visit = visit};
