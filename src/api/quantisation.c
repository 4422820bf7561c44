/* What 8 bits do to an operator: a property of its arithmetic, whatever the engine. */
#include <hone/model.h>

#include <string.h>

static bool among(const char *type, const char *const *types) {
  for (; *types; types++)
    if (strcmp(type, *types) == 0) return true;
  return false;
}

hone_quantisation hone_quantisation_of(const char *type) {
  /* Sums of products in i32, requantised once. */
  static const char *const products[] = {"Conv",        "ConvTranspose", "Gemm",   "MatMul",
                                         "ConvInteger", "MatMulInteger", "Einsum", NULL};
  /* Comparisons, sums and averages of codes, with requantisation; a normalisation is folded into its product.
   */
  static const char *const codes[] = {"Relu",
                                      "LeakyRelu",
                                      "PRelu",
                                      "Clip",
                                      "ThresholdedRelu",
                                      "MaxPool",
                                      "AveragePool",
                                      "GlobalAveragePool",
                                      "GlobalMaxPool",
                                      "Add",
                                      "Sub",
                                      "Mul",
                                      "Max",
                                      "Min",
                                      "Sum",
                                      "Neg",
                                      "Abs",
                                      "BatchNormalization",
                                      "ReduceMax",
                                      "ReduceMin",
                                      "ArgMax",
                                      "ArgMin",
                                      "Sign",
                                      NULL};
  /* Functions of one number: 256 entries hold them. */
  static const char *const tables[] = {"Sigmoid",  "Tanh", "Gelu",     "HardSwish", "HardSigmoid", "Swish",
                                       "Silu",     "Erf",  "Elu",      "Selu",      "Celu",        "Softplus",
                                       "Softsign", "Mish", "FastGelu", "QuickGelu", "BiasGelu",    NULL};
  static const char *const moves[] = {
      "Reshape",      "Flatten",         "Squeeze", "Unsqueeze",      "Transpose",        "Concat",
      "Split",        "Slice",           "Pad",     "Gather",         "Identity",         "Expand",
      "Tile",         "Constant",        "Shape",   "Size",           "Dropout",          "DepthToSpace",
      "SpaceToDepth", "ConstantOfShape", "Cast",    "QuantizeLinear", "DequantizeLinear", NULL};
  if (!type) return HONE_QUANTISATION_FLOAT;
  if (among(type, products) || strncmp(type, "QLinear", 7) == 0) return HONE_QUANTISATION_PRODUCT;
  if (among(type, codes)) return HONE_QUANTISATION_CODES;
  if (among(type, tables)) return HONE_QUANTISATION_TABLE;
  return among(type, moves) ? HONE_QUANTISATION_MOVES : HONE_QUANTISATION_FLOAT;
}

const char *hone_quantisation_name(hone_quantisation q) {
  static const char *const names[HONE_QUANTISATIONS] = {"products", "codes", "table", "float", "moves"};
  return (unsigned)q < HONE_QUANTISATIONS ? names[q] : "";
}
