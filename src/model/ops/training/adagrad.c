/* Adagrad: a step against the gradient, over the root of the sum of all squares of gradients. */
#include "model/ops/training/update.h"

typedef struct rule {
  double rate, epsilon, norm;
} rule;

static void update(const void *self, double gradient, double *x, double *kept) {
  const rule *r = self;
  const double g = gradient + r->norm * *x;
  kept[0] += g * g;
  *x -= r->rate * g / (sqrt(kept[0]) + r->epsilon);
}

static hone_status infer(const hone_infer *io, hone_error *error) { return hn_update_infer(io, 1, error); }

static hone_status reference(hone_call *call, hone_error *error) {
  const double decay = (double)hone_node_float(call->node, "decay_factor", 0);
  const rule r = {hn_update_rate(call) / (1 + hn_update_count(call) * decay),
                  (double)hone_node_float(call->node, "epsilon", 1e-6f),
                  (double)hone_node_float(call->node, "norm_coefficient", 0)};
  return hn_update_all(call, 1, update, &r, error);
}

static const hone_attr_desc attrs[] = {{.name = "decay_factor", .type = HONE_ATTR_FLOAT},
                                       {.name = "epsilon", .type = HONE_ATTR_FLOAT},
                                       {.name = "norm_coefficient", .type = HONE_ATTR_FLOAT},
                                       {0}};

HN_OP(adagrad) = {HN_UPDATE_HEAD("Adagrad"), .attrs = attrs, .infer = infer, .reference = reference};
