#include "model/operators.h"

#include "base/error.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define OP(name) extern const hone_op_desc hn_op_##name;
#include "model/ops/ops.def"
#undef OP

static const void *const builtin[] = {
#define OP(name) &hn_op_##name,
#include "model/ops/ops.def"
#undef OP
};

static const char *op_key(const void *unit) { return ((const hone_op_desc *)unit)->op_type; }

static void op_label(const void *unit, char *buf, size_t size) {
  const hone_op_desc *d = unit;
  snprintf(buf, size, "%s%s%s of opset %d", d->domain, *d->domain ? "." : "", d->op_type, (int)d->since);
}

static bool is_onnx(const char *domain) { return !*domain || strcmp(domain, "ai.onnx.preview") == 0; }

static bool is_built_in(const hone_op_desc *d) {
  for (size_t i = 0; i < sizeof builtin / sizeof *builtin; i++)
    if (builtin[i] == d) return true;
  return false;
}

static hone_status op_check(const void *unit, hone_error *error) {
  const hone_op_desc *d = unit;
  const hone_status status = hn_check_desc("operator", d->op_type, d->struct_size, d->abi, sizeof *d, error);
  if (status != HONE_OK) return status;
  const char *lacks = NULL;
  if (!d->op_type || !*d->op_type)
    lacks = "no op_type";
  else if (!d->domain)
    lacks = "no domain";
  else if (!d->infer)
    lacks = "no infer";
  else if (d->flags & HONE_OP_CONTROL ? !is_onnx(d->domain) && !is_built_in(d) : !d->reference)
    lacks = "no reference"; /* control flow that others add is unknown to the runtime */
  else if (d->since < 1 || (d->until && d->until < d->since))
    lacks = "no opset in which it exists";
  else if (!d->max_outputs || d->min_outputs > d->max_outputs || d->min_inputs > d->max_inputs)
    lacks = "no number of inputs and outputs that fits";
  if (!lacks) return HONE_OK;
  return hn_fail(error, HONE_ERROR_USAGE, "operator %.80s has %s", d->op_type ? d->op_type : "?", lacks);
}

static const hn_kind kind = {.noun = "operator", .key = op_key, .label = op_label, .check = op_check};
hn_registry hn_operators = HN_REGISTRY(&kind, builtin);

enum { NEWEST_OPSET = 28 }; /* what is known of operators' histories */

/* The last opset for which a definition holds. Of other domains nobody knows of a later one. */
static int64_t last_opset(const hone_op_desc *d) {
  return d->until ? d->until : *d->domain ? INT32_MAX : NEWEST_OPSET;
}

/* The definition with the newest beginning that holds for the opset. *any: one of those that do not. */
static const hone_op_desc *definition(const hn_listing *l, const char *domain, const char *op_type,
                                      int64_t opset, const hone_op_desc **any) {
  const hone_op_desc *best = NULL;
  if (hn_same_name(domain, "ai.onnx")) domain = "";
  for (uint32_t i = l ? hn_listing_first(l, op_type) : HN_NO_UNIT; i != HN_NO_UNIT; i = l->next[i]) {
    const hone_op_desc *d = l->unit[i];
    if (!hn_same_name(d->domain, domain)) continue;
    if (opset < d->since || opset > last_opset(d))
      *any = d;
    else if (!best || d->since > best->since)
      best = d;
  }
  return best;
}

const hone_op_desc *hn_op_newest(const hn_listing *l, const char *domain, const char *op_type,
                                 int64_t *opset) {
  const hone_op_desc *best = NULL;
  for (uint32_t i = l ? hn_listing_first(l, op_type) : HN_NO_UNIT; i != HN_NO_UNIT; i = l->next[i]) {
    const hone_op_desc *d = l->unit[i];
    if (hn_same_name(d->domain, domain) && (!best || d->since > best->since)) best = d;
  }
  if (best) *opset = last_opset(best);
  return best;
}

const hone_op_desc *hn_op_find(const hn_listing *l, const char *domain, const char *op_type, int64_t opset,
                               hone_reason *why) {
  const hone_op_desc *near = NULL, *found = definition(l, domain, op_type, opset, &near);
  if (found || !why) return found;
  if (hn_same_name(domain, "ai.onnx")) domain = "";
  if (!near)
    snprintf(why->text, sizeof why->text, "operator %s%s%s is not implemented", domain, *domain ? "." : "",
             op_type);
  else if (!opset)
    snprintf(why->text, sizeof why->text, "the model imports no operator set for %s", op_type);
  else
    snprintf(why->text, sizeof why->text, "%s is implemented for opsets %d to %lld, the model imports %lld",
             op_type, near->since, (long long)last_opset(near), (long long)opset);
  return NULL;
}
