#include "model/ir/eval.h"

#include "base/error.h"
#include "model/ir/bytes.h"
#include "model/ir/items.h"

#include <string.h>

/* ------------------------------------------------------------------ budgets */

hone_status hn_budget_check(hn_budget *b, hone_error *error) {
  if (!b) return HONE_OK;
  b->nodes++;
  if (b->cancel && atomic_load_explicit(b->cancel, memory_order_relaxed))
    return hn_fail(error, HONE_ERROR_CANCELLED, "the run was cancelled");
  if (b->max_nodes && b->nodes > b->max_nodes) {
    hone_status s = hn_fail(error, HONE_ERROR_BUDGET, "the run executed its budget of %llu nodes",
                            (unsigned long long)b->max_nodes);
    return s;
  }
  if (b->deadline_ns && hn_now_ns() > b->deadline_ns) {
    hn_fail(error, HONE_ERROR_BUDGET, "the run did not end within its time budget");
    hn_error_hint(error,
                  "raise the limit (max_seconds, --max-seconds), or look for a loop that does not end");
    return HONE_ERROR_BUDGET;
  }
  return HONE_OK;
}

hone_status hn_budget_alloc(hn_budget *b, int64_t bytes, void **out, hone_error *error) {
  *out = NULL;
  if (b && b->max_bytes && ((uint64_t)bytes > b->max_bytes || b->bytes > b->max_bytes - (uint64_t)bytes)) {
    hn_fail(error, HONE_ERROR_MEMORY, "the run would need more than its budget of %llu bytes",
            (unsigned long long)b->max_bytes);
    return HONE_ERROR_MEMORY;
  }
  *out = b && b->take ? b->take(b->memory, (size_t)bytes) : hn_aligned(HN_MEM_ALIGN, (size_t)bytes);
  if (!*out) return hn_fail_memory(error, (unsigned long long)bytes, "a tensor");
  if (b) b->bytes += (uint64_t)bytes;
  return HONE_OK;
}

void hn_budget_release(hn_budget *b, hone_tensor *t) {
  if (!t->data) return;
  if (b && b->lend && b->lent(b->lender, t->data)) {
    t->data = NULL;
    return;
  }
  int64_t bytes = hone_desc_bytes(&t->desc);
  if (b && bytes > 0) b->bytes -= (uint64_t)bytes < b->bytes ? (uint64_t)bytes : b->bytes;
  if (b && b->give)
    b->give(b->memory, t->data);
  else
    hn_free(t->data);
  t->data = NULL;
}

/* ------------------------------------------------------------------ one node */

hone_status hn_op_takes(const hone_node *n, const hone_tensor_desc *d, uint32_t i, hone_error *error) {
  const uint32_t types = i == 0 && d->dtype != HONE_DTYPE_NONE ? n->op->types : 0;
  const bool takes = hone_dtype_is_tensor(d->dtype) ? !types || types & HONE_TYPES(d->dtype)
                                                    : (n->op->flags & HONE_OP_ITEMS) != 0;
  return takes ? HONE_OK
               : hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s is not implemented for %s", n->op_type,
                         hone_dtype_name(d->dtype));
}

typedef struct call_impl {
  hn_arena scratch;
  hn_arena *keep;
  hn_budget *budget;
} call_impl;

static hone_status alloc_output(hone_call *c, uint32_t i, const hone_tensor_desc *desc, hone_error *error) {
  call_impl *impl = c->impl;
  if (i >= c->n_outputs || !c->output[i]) return HONE_OK;
  hone_tensor *t = c->output[i];
  hone_tensor_desc d = *desc;
  int64_t bytes = hone_desc_bytes(&d);
  if (bytes < 0)
    return hn_fail(error, HONE_ERROR_INPUT, "output %u of '%s' would be too large", i, c->node->name);
  hone_desc_set_layout(&d, HONE_LAYOUT_ROW_MAJOR, 0);
  hn_budget_release(impl->budget, t);
  t->desc = d;
  const hn_budget *b = impl->budget;
  if (b && b->lend && (!b->max_bytes || (uint64_t)bytes <= b->max_bytes)) {
    const hone_status status = b->lend(b->lender, i, &d, &t->data, error);
    if (status != HONE_OK || t->data) return status;
  }
  return hn_budget_alloc(impl->budget, bytes, &t->data, error);
}

static void *scratch(hone_call *c, size_t bytes) {
  return hn_arena_aligned(&((call_impl *)c->impl)->scratch, bytes, HN_MEM_ALIGN);
}
/* Counts until the run ends. */
static void *scratch_keep(hone_call *c, size_t bytes) {
  const call_impl *impl = c->impl;
  hn_budget *b = impl->budget;
  if (b && b->max_bytes && (bytes > b->max_bytes || b->bytes > b->max_bytes - bytes)) return NULL;
  void *p = hn_arena_aligned(impl->keep, bytes, HN_MEM_ALIGN);
  if (b && p) b->bytes += bytes;
  return p;
}

static bool stopped(hone_call *c) {
  const hn_budget *b = ((call_impl *)c->impl)->budget;
  return b && ((b->cancel && atomic_load_explicit(b->cancel, memory_order_relaxed)) ||
               (b->deadline_ns && hn_now_ns() > b->deadline_ns));
}

/* References read elements through their type: operands that lie elsewhere in a file are copied first. */
static const hone_tensor *const *aligned(const hone_node *n, const hone_tensor *const *in, hn_arena *a,
                                         bool *ok) {
  uint32_t odd = 0;
  for (uint32_t i = 0; i < n->n_in; i++) odd += in[i] && !hn_is_aligned(in[i]);
  *ok = true;
  if (!odd) return in;
  const hone_tensor **out = HN_NEW_ARRAY(a, const hone_tensor *, n->n_in);
  hone_tensor *copy = HN_NEW_ARRAY(a, hone_tensor, odd);
  *ok = out && copy;
  for (uint32_t i = 0; i < n->n_in && *ok; i++) {
    out[i] = in[i];
    if (!in[i] || hn_is_aligned(in[i])) continue;
    size_t bytes = (size_t)hone_desc_bytes(&in[i]->desc);
    copy[--odd] = *in[i];
    *ok = (copy[odd].data = hn_arena_raw(a, bytes, HN_MEM_ALIGN)) != NULL;
    if (*ok) memcpy(copy[odd].data, in[i]->data, bytes);
    out[i] = &copy[odd];
  }
  return out;
}

hone_status hn_eval_node(const hone_node *n, const hone_tensor *const *in, hone_tensor *const *out,
                         hn_arena *keep, hn_budget *budget, hone_error *error) {
  enum { FEW = 16 };
  const hone_tensor_desc *few_in[FEW];
  hone_tensor_desc *few_out[FEW];
  call_impl impl = {.keep = keep, .budget = budget};
  const hone_tensor_desc **din = few_in;
  hone_tensor_desc **dout = few_out;
  for (uint32_t i = 0; i < n->n_out; i++)
    if (out[i]) *out[i] = (hone_tensor){.desc = {.rank = -1}};
  hone_status status = hn_budget_check(budget, error);
  if (status != HONE_OK) goto done;
  if (!n->op || !n->op->reference) {
    status = hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s has no reference implementation", n->op_type);
    goto done;
  }
  bool ok;
  in = aligned(n, in, &impl.scratch, &ok);
  if (!ok) {
    status = hn_fail_memory(error, n->n_in, "evaluating a node");
    goto done;
  }
  if (n->n_in > FEW) din = HN_NEW_ARRAY(&impl.scratch, const hone_tensor_desc *, n->n_in);
  if (n->n_out > FEW) dout = HN_NEW_ARRAY(&impl.scratch, hone_tensor_desc *, n->n_out);
  if (!din || !dout) {
    status = hn_fail_memory(error, n->n_in, "evaluating a node");
    goto done;
  }
  for (uint32_t i = 0; i < n->n_in; i++) din[i] = in[i] ? &in[i]->desc : NULL;
  for (uint32_t i = 0; i < n->n_out; i++) dout[i] = out[i] ? &out[i]->desc : NULL;
  for (uint32_t i = 0; i < n->n_in && status == HONE_OK; i++)
    if (din[i]) status = hn_op_takes(n, din[i], i, error);
  if (status == HONE_OK) status = n->op->infer(&(hone_infer){n, n->n_in, n->n_out, din, in, dout}, error);
  hone_call call = {.node = n,
                    .n_inputs = n->n_in,
                    .n_outputs = n->n_out,
                    .input = in,
                    .output = out,
                    .alloc_output = alloc_output,
                    .scratch = scratch,
                    .scratch_keep = scratch_keep,
                    .stopped = stopped,
                    .impl = &impl};
  for (uint32_t i = 0; i < n->n_out && status == HONE_OK; i++)
    if (out[i] && hone_desc_known(&out[i]->desc) && !(n->op->flags & HONE_OP_DATA_DEPENDENT)) {
      hone_tensor_desc d = out[i]->desc;
      status = alloc_output(&call, i, &d, error);
    }
  if (status == HONE_OK) status = n->op->reference(&call, error);
  /* A reference that was told to stop does not know whether a user or the clock said so. */
  if (status == HONE_ERROR_CANCELLED) {
    hone_status why = hn_budget_check(budget, error);
    if (why != HONE_OK) status = why;
  }
  for (uint32_t i = 0; i < n->n_out && status == HONE_OK; i++)
    if (out[i] && !out[i]->data)
      status = hn_fail(error, HONE_ERROR_INTERNAL, "%s did not make its output %u", n->op_type, i);
done:
  if (status != HONE_OK) {
    for (uint32_t i = 0; i < n->n_out; i++)
      if (out[i]) hn_budget_release(budget, out[i]);
    if (error && !error->where[0]) hn_error_where(error, "node '%s' (%s)", n->name, n->op_type);
  }
  hn_arena_free(&impl.scratch);
  return status;
}
