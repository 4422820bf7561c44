#include "insight/import/common/ops.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* 5: products; 4: recurrent and attention; 3: reductions and windows; 2: moves; 1: elementwise; 0: nothing to
 * execute. */
static const struct {
  const char *op;
  int weight;
} known[] = {{"Conv", 5},
             {"ConvTranspose", 5},
             {"ConvInteger", 5},
             {"QLinearConv", 5},
             {"FusedConv", 5},
             {"Gemm", 5},
             {"MatMul", 5},
             {"QLinearMatMul", 5},
             {"MatMulInteger", 5},
             {"FusedMatMul", 5},
             {"Attention", 5},
             {"MultiHeadAttention", 5},
             {"LSTM", 4},
             {"GRU", 4},
             {"RNN", 4},
             {"Einsum", 4},
             {"DeformConv", 5},
             {"MaxPool", 3},
             {"AveragePool", 3},
             {"GlobalAveragePool", 3},
             {"GlobalMaxPool", 3},
             {"LpPool", 3},
             {"Softmax", 3},
             {"LogSoftmax", 3},
             {"LayerNormalization", 3},
             {"InstanceNormalization", 3},
             {"GroupNormalization", 3},
             {"SkipLayerNormalization", 3},
             {"ReduceMean", 3},
             {"ReduceSum", 3},
             {"ReduceMax", 3},
             {"ReduceMin", 3},
             {"ReduceProd", 3},
             {"ReduceL2", 3},
             {"TopK", 3},
             {"ArgMax", 3},
             {"ArgMin", 3},
             {"NonMaxSuppression", 3},
             {"NonZero", 3},
             {"Resize", 3},
             {"Upsample", 3},
             {"GridSample", 3},
             {"RoiAlign", 3},
             {"LRN", 3},
             {"CumSum", 3},
             {"BatchNormalization", 1},
             {"Concat", 2},
             {"Split", 2},
             {"Slice", 2},
             {"Transpose", 2},
             {"Gather", 2},
             {"GatherND", 2},
             {"GatherElements", 2},
             {"ScatterND", 2},
             {"ScatterElements", 2},
             {"Pad", 2},
             {"Tile", 2},
             {"Expand", 2},
             {"DepthToSpace", 2},
             {"SpaceToDepth", 2},
             {"Add", 1},
             {"Sub", 1},
             {"Mul", 1},
             {"Div", 1},
             {"Pow", 1},
             {"Max", 1},
             {"Min", 1},
             {"Sum", 1},
             {"Where", 1},
             {"Equal", 1},
             {"Greater", 1},
             {"Less", 1},
             {"And", 1},
             {"Or", 1},
             {"Not", 1},
             {"Relu", 1},
             {"LeakyRelu", 1},
             {"PRelu", 1},
             {"Clip", 1},
             {"Elu", 1},
             {"Selu", 1},
             {"Gelu", 1},
             {"Sigmoid", 1},
             {"HardSigmoid", 1},
             {"HardSwish", 1},
             {"Tanh", 1},
             {"Erf", 1},
             {"Exp", 1},
             {"Log", 1},
             {"Sqrt", 1},
             {"Reciprocal", 1},
             {"Neg", 1},
             {"Abs", 1},
             {"Floor", 1},
             {"Ceil", 1},
             {"Round", 1},
             {"Softplus", 1},
             {"Mish", 1},
             {"Swish", 1},
             {"Silu", 1},
             {"Sin", 1},
             {"Cos", 1},
             {"Cast", 1},
             {"QuantizeLinear", 1},
             {"DequantizeLinear", 1},
             {"DynamicQuantizeLinear", 1},
             {"Shape", 0},
             {"Constant", 0},
             {"ConstantOfShape", 0},
             {"Identity", 0},
             {"Reshape", 0},
             {"Flatten", 0},
             {"Squeeze", 0},
             {"Unsqueeze", 0},
             {"Dropout", 0},
             {"If", 0},
             {"Loop", 0},
             {"Range", 0}};
enum { KNOWN = sizeof known / sizeof *known };

/* Other tools' words. A word that ends with '*' is a prefix. */
static const struct {
  const char *word, *op;
} words[] = {
    /* TensorRT: layer types and parameter types */
    {"CaskConvolution", "Conv"},
    {"CaskDeconvolution*", "ConvTranspose"},
    {"Convolution", "Conv"},
    {"CudaDepthwiseConvolution", "Conv"},
    {"CudnnConvolution", "Conv"},
    {"FusedConvActConvolution", "Conv"},
    {"CaskFlattenConvolution", "Conv"},
    {"CaskGemmConvolution", "Conv"},
    {"CaskJitConv", "Conv"},
    {"Deconvolution*", "ConvTranspose"},
    {"CaskGemmMatrixMultiply", "MatMul"},
    {"MatrixMultiply", "MatMul"},
    {"CublasConvWrapper*", "MatMul"},
    {"FullyConnected", "Gemm"},
    {"gemm", "MatMul"},
    {"ElementWise", "Pointwise"},
    {"PointWise*", "Pointwise"},
    {"Activation", "Pointwise"},
    {"Unary", "Pointwise"},
    {"Scale", "Pointwise"},
    {"Shuffle", "Transpose"},
    {"Reformat*", "Reformat"},
    {"reformat*", "Reformat"},
    {"NoOp", "Identity"},
    {"signal", "Sync"},
    {"wait", "Sync"},
    {"SoftMax*", "Softmax"},
    {"CaskSoftMax*", "Softmax"},
    {"Normalization", "LayerNormalization"},
    {"TopK", "TopK"},
    /* Ascend */
    {"Conv2D*", "Conv"},
    {"Conv3D*", "Conv"},
    {"DepthwiseConv2D*", "Conv"},
    {"DepthwiseConv*", "Conv"},
    {"Conv2DTranspose*", "ConvTranspose"},
    {"MatMulV*", "MatMul"},
    {"BatchMatMul*", "MatMul"},
    {"GroupedMatmul*", "MatMul"},
    {"QuantBatchMatmul*", "MatMul"},
    {"FullyConnection", "Gemm"},
    {"TransData", "Reformat"},
    {"TransposeD", "Transpose"},
    {"Permute", "Transpose"},
    {"SoftmaxV2", "Softmax"},
    {"AscendQuant", "QuantizeLinear"},
    {"AscendDequant", "DequantizeLinear"},
    {"FlashAttentionScore*", "Attention"},
    {"PromptFlashAttention*", "Attention"},
    {"IncreFlashAttention*", "Attention"},
    {"RealDiv", "Div"},
    {"PoolingD", "MaxPool"},
    {"Pooling", "MaxPool"},
    {"MaxPoolV*", "MaxPool"},
    {"AvgPoolV*", "AveragePool"},
    {"ConcatD", "Concat"},
    {"ConcatV2*", "Concat"},
    {"SplitD", "Split"},
    {"SplitV*", "Split"},
    {"ReLU", "Relu"},
    {"LeakyReLU", "LeakyRelu"},
    {"Relu6", "Clip"},
};

/* How layers are called in frameworks, where no name says it in ONNX's words ("layer1/block0/bn", "fc1"). */
static const struct {
  const char *word, *op;
} modules[] = {{"bn", "BatchNormalization"},
               {"batchnorm", "BatchNormalization"},
               {"fc", "Gemm"},
               {"linear", "Gemm"},
               {"dense", "Gemm"},
               {"matmul", "MatMul"},
               {"maxpool", "MaxPool"},
               {"avgpool", "AveragePool"},
               {"pool", "Pool"},
               {"act", "Pointwise"},
               {"activation", "Pointwise"},
               {"hardswish", "HardSwish"},
               {"hswish", "HardSwish"},
               {"deconv", "ConvTranspose"},
               {"dwconv", "Conv"}};

static bool matches(const char *pattern, const char *word) {
  size_t n = strlen(pattern);
  return pattern[n - 1] == '*' ? strncmp(pattern, word, n - 1) == 0 : strcmp(pattern, word) == 0;
}

const char *hn_op_of_word(const char *word) {
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (matches(words[i].word, word)) return words[i].op;
  for (size_t i = 0; i < KNOWN; i++)
    if (strcasecmp(known[i].op, word) == 0) return known[i].op;
  return NULL;
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Whose spelling a name is read in. */
typedef enum spelling { ONNX_SPELLING, ANY_CASE, MODULES } spelling;

static const char *op_called(const char *word, size_t n, spelling how) {
  for (size_t i = 0; how != MODULES && i < KNOWN; i++)
    if (strlen(known[i].op) == n &&
        (how == ONNX_SPELLING ? memcmp(known[i].op, word, n) : strncasecmp(known[i].op, word, n)) == 0)
      return known[i].op;
  for (size_t i = 0; how == MODULES && i < sizeof modules / sizeof *modules; i++)
    if (strlen(modules[i].word) == n && strncasecmp(modules[i].word, word, n) == 0) return modules[i].op;
  return NULL;
}

static const char *op_in(const char *name, size_t length, spelling how) {
  for (size_t end = length; end > 0;) {
    while (end && !is_letter(name[end - 1])) end--;
    size_t start = end;
    while (start && is_letter(name[start - 1])) start--;
    const size_t n = end - start;
    const bool inside = start && is_digit(name[start - 1]);
    const char *op = n && !inside ? op_called(name + start, n, how) : NULL;
    if (op) return op;
    end = start;
  }
  return NULL;
}

/* Words from the last to the first. ONNX's own spelling counts first, so that a module called "conv" around a
 * Relu is none; a name without it may still say "conv1", or last "bn1". */
const char *hn_op_of_name(const char *name, size_t length) {
  const char *op = op_in(name, length, ONNX_SPELLING);
  if (!op) op = op_in(name, length, ANY_CASE);
  return op ? op : op_in(name, length, MODULES);
}

int hn_op_weight(const char *op) {
  for (size_t i = 0; op && i < KNOWN; i++)
    if (strcmp(known[i].op, op) == 0) return known[i].weight;
  return 0;
}
