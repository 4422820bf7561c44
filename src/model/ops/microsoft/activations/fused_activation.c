/* Activations within products (fused_activation.h). */
#include "model/ops/microsoft/activations/fused_activation.h"

#include <float.h>

/* Functions with their parameters in the order of activation_params. */
#define KNOWN(X)                                                                                             \
  X(relu, "Relu", NULL, 0, NULL, 0)                                                                          \
  X(sigmoid, "Sigmoid", NULL, 0, NULL, 0)                                                                    \
  X(tanh, "Tanh", NULL, 0, NULL, 0)                                                                          \
  X(leaky_relu, "LeakyRelu", "alpha", 0.01f, NULL, 0)                                                        \
  X(clip, "Clip", "min", -FLT_MAX, "max", FLT_MAX)                                                           \
  X(hard_sigmoid, "HardSigmoid", "alpha", 0.2f, "beta", 0.5f)                                                \
  X(hard_swish, "HardSwish", NULL, 0, NULL, 0)                                                               \
  X(elu, "Elu", "alpha", 1, NULL, 0)                                                                         \
  X(selu, "Selu", "alpha", 1.67326319217681884765625f, "gamma", 1.05070102214813232421875f)                  \
  X(softplus, "Softplus", NULL, 0, NULL, 0)                                                                  \
  X(softsign, "Softsign", NULL, 0, NULL, 0)                                                                  \
  X(thresholded_relu, "ThresholdedRelu", "alpha", 1, NULL, 0)                                                \
  X(gelu, "Gelu", NULL, 0, NULL, 0)

#define DECLARE(unit, type, a, x, b, y) extern const hone_op_desc hn_op_##unit;
KNOWN(DECLARE)
#define ENTRY(unit, type, a, x, b, y) {type, {&hn_op_##unit, {a, b}, {x, y}}},

static const struct {
  const char *type;
  hn_fused_activation is;
} known[] = {KNOWN(ENTRY)};

hone_status hn_fused_activation_of(const hone_node *node, hn_fused_activation *out, hone_error *error) {
  const char *name = hone_node_string(node, "activation", "");
  size_t given;
  const float *params = hone_node_floats(node, "activation_params", &given);
  *out = (hn_fused_activation){0};
  if (!*name || strcmp(name, "Identity") == 0) return HONE_OK;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(known[i].type, name) != 0) continue;
    *out = known[i].is;
    for (size_t k = 0; k < 2 && out->name[k]; k++) {
      const char *attr = strcmp(out->name[k], "gamma") == 0 ? "activation_gamma"
                         : k                                ? "activation_beta"
                                                            : "activation_alpha";
      out->value[k] = k < given ? params[k] : hone_node_float(node, attr, out->value[k]);
    }
    return HONE_OK;
  }
  return hn_op_refuse(node, error, "activation '%s'", name);
}

hone_status hn_fused_activate(hone_call *call, hone_tensor *y, hone_error *error) {
  hn_fused_activation a;
  hn_inner n;
  const hone_tensor *in = y;
  const hone_status s = hn_fused_activation_of(call->node, &a, error);
  if (s || !a.op) return s;
  /* At opset 6 all parameters are attributes, in what has been there that long. */
  hn_inner_begin(&n, call->node, a.op, a.op->since > 6 ? a.op->since : 6);
  for (size_t k = 0; k < 2 && a.name[k]; k++) hn_inner_float(&n, a.name[k], a.value[k]);
  return hn_inner_run(call, &n, &in, 1, &y, 1, error);
}
