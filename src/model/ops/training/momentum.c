/* Momentum: a step along the running sum of gradients; Nesterov's looks one step ahead. */
#include "model/ops/training/update.h"

typedef struct rule {
  double rate, alpha, beta, norm;
  bool nesterov;
} rule;

static void update(const void *self, double gradient, double *x, double *kept) {
  const rule *r = self;
  const double g = gradient + r->norm * *x;
  kept[0] = r->alpha * kept[0] + r->beta * g;
  *x -= r->rate * (r->nesterov ? g + r->alpha * kept[0] : kept[0]);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const char *mode = hone_node_string(io->node, "mode", "");
  if (strcmp(mode, "standard") && strcmp(mode, "nesterov"))
    return hn_op_bad(io->node, error, "mode is '%.40s'; expected standard or nesterov", mode);
  return hn_update_infer(io, 1, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const rule r = {.rate = hn_update_rate(call),
                  .alpha = (double)hone_node_float(call->node, "alpha", 0),
                  .beta = hn_update_count(call) > 0 ? (double)hone_node_float(call->node, "beta", 0) : 1,
                  .norm = (double)hone_node_float(call->node, "norm_coefficient", 0),
                  .nesterov = strcmp(hone_node_string(call->node, "mode", ""), "nesterov") == 0};
  return hn_update_all(call, 1, update, &r, error);
}

static const hone_attr_desc attrs[] = {
    {.name = "alpha", .type = HONE_ATTR_FLOAT, .required = true},
    {.name = "beta", .type = HONE_ATTR_FLOAT, .required = true},
    {.name = "mode", .type = HONE_ATTR_STRING, .required = true},
    {.name = "norm_coefficient", .type = HONE_ATTR_FLOAT, .required = true},
    {0}};

HN_OP(momentum) = {HN_UPDATE_HEAD("Momentum"), .attrs = attrs, .infer = infer, .reference = reference};
