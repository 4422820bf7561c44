/* Adam: a step along running means of gradients, over the root of those of their squares. */
#include "model/ops/training/update.h"

typedef struct rule {
  double rate, alpha, beta, epsilon, norm, norm_post;
} rule;

static void update(const void *self, double gradient, double *x, double *kept) {
  const rule *r = self;
  const double g = gradient + r->norm * *x;
  kept[0] = r->alpha * kept[0] + (1 - r->alpha) * g;
  kept[1] = r->beta * kept[1] + (1 - r->beta) * g * g;
  *x = (1 - r->norm_post) * (*x - r->rate * kept[0] / (sqrt(kept[1]) + r->epsilon));
}

static hone_status infer(const hone_infer *io, hone_error *error) { return hn_update_infer(io, 2, error); }

static hone_status reference(hone_call *call, hone_error *error) {
  rule r = {.rate = hn_update_rate(call),
            .alpha = (double)hone_node_float(call->node, "alpha", 0.9f),
            .beta = (double)hone_node_float(call->node, "beta", 0.999f),
            .epsilon = (double)hone_node_float(call->node, "epsilon", 1e-6f),
            .norm = (double)hone_node_float(call->node, "norm_coefficient", 0),
            .norm_post = (double)hone_node_float(call->node, "norm_coefficient_post", 0)};
  const double count = hn_update_count(call);
  if (count > 0) r.rate *= sqrt(1 - pow(r.beta, count)) / (1 - pow(r.alpha, count));
  return hn_update_all(call, 2, update, &r, error);
}

static const hone_attr_desc attrs[] = {{.name = "alpha", .type = HONE_ATTR_FLOAT},
                                       {.name = "beta", .type = HONE_ATTR_FLOAT},
                                       {.name = "epsilon", .type = HONE_ATTR_FLOAT},
                                       {.name = "norm_coefficient", .type = HONE_ATTR_FLOAT},
                                       {.name = "norm_coefficient_post", .type = HONE_ATTR_FLOAT},
                                       {0}};

HN_OP(adam) = {HN_UPDATE_HEAD("Adam"), .attrs = attrs, .infer = infer, .reference = reference};
