#include "insight/import/common/optype.h"

#include "insight/import/common/ops.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef struct word {
  const char *word, *type;
} word;

/* Whole names, in lower case, without namespace, backend and '_' around them. */
static const word operators[] = {
    {"conv1d", "Conv"},
    {"conv2d", "Conv"},
    {"conv3d", "Conv"},
    {"conv", "Conv"},
    {"convolution", "Conv"},
    {"convolution_overrideable", "Conv"},
    {"convolution_relu", "Conv"},
    {"convolution_add_relu", "Conv"},
    {"convolution_pointwise", "Conv"},
    {"depthwise_convolution", "Conv"},
    {"conv_depthwise2d", "Conv"},
    {"conv_depthwise3d", "Conv"},
    {"thnn_conv2d", "Conv"},
    {"slow_conv2d_forward", "Conv"},
    {"groupconvolution", "Conv"},
    {"binaryconvolution", "Conv"},
    {"deformableconvolution", "DeformConv"},
    {"deconvolution", "ConvTranspose"},
    {"convolution_transpose", "ConvTranspose"},
    {"conv_transpose1d", "ConvTranspose"},
    {"conv_transpose2d", "ConvTranspose"},
    {"conv_transpose3d", "ConvTranspose"},
    {"convolutionbackpropdata", "ConvTranspose"},
    {"groupconvolutionbackpropdata", "ConvTranspose"},
    {"addmm", "Gemm"},
    {"linear", "Gemm"},
    {"linear_pointwise", "Gemm"},
    {"fullyconnected", "Gemm"},
    {"inner_product", "Gemm"},
    {"gemm", "Gemm"},
    {"mm", "MatMul"},
    {"bmm", "MatMul"},
    {"matmul", "MatMul"},
    {"baddbmm", "MatMul"},
    {"einsum", "Einsum"},
    {"scaled_dot_product_attention", "Attention"},
    {"scaled_dot_product_attention_math", "Attention"},
    {"scaled_dot_product_flash_attention", "Attention"},
    {"scaled_dot_product_flash_attention_for_cpu", "Attention"},
    {"scaled_dot_product_efficient_attention", "Attention"},
    {"scaled_dot_product_cudnn_attention", "Attention"},
    {"flash_attention_forward", "Attention"},
    {"efficient_attention_forward", "Attention"},
    {"scaleddotproductattention", "Attention"},
    {"scaleddotproductattentionwithkvcache", "Attention"},
    {"mha", "Attention"},
    {"sdpa", "Attention"},
    {"batch_norm", "BatchNormalization"},
    {"batch_norm_impl_index", "BatchNormalization"},
    {"batch_normalization", "BatchNormalization"},
    {"batch_norm_elemt", "BatchNormalization"},
    {"layer_norm", "LayerNormalization"},
    {"layer_normalization", "LayerNormalization"},
    {"mvn", "LayerNormalization"},
    {"rms_norm", "RMSNormalization"},
    {"fused_rms_norm", "RMSNormalization"},
    {"group_norm", "GroupNormalization"},
    {"group_normalization", "GroupNormalization"},
    {"instance_norm", "InstanceNormalization"},
    {"softmax", "Softmax"},
    {"softmax_v2", "Softmax"},
    {"log_softmax", "LogSoftmax"},
    {"logsoftmax", "LogSoftmax"},
    {"relu", "Relu"},
    {"threshold", "Relu"},
    {"relu6", "Clip"},
    {"hardtanh", "Clip"},
    {"clamp", "Clip"},
    {"clamp_min", "Clip"},
    {"leaky_relu", "LeakyRelu"},
    {"prelu", "PRelu"},
    {"gelu", "Gelu"},
    {"silu", "Silu"},
    {"swish", "Swish"},
    {"mish", "Mish"},
    {"sigmoid", "Sigmoid"},
    {"tanh", "Tanh"},
    {"hardswish", "HardSwish"},
    {"hardsigmoid", "HardSigmoid"},
    {"elu", "Elu"},
    {"erf", "Erf"},
    {"exp", "Exp"},
    {"sqrt", "Sqrt"},
    {"rsqrt", "Sqrt"},
    {"neg", "Neg"},
    {"abs", "Abs"},
    {"softplus", "Softplus"},
    {"add", "Add"},
    {"mul", "Mul"},
    {"multiply", "Mul"},
    {"sub", "Sub"},
    {"subtract", "Sub"},
    {"div", "Div"},
    {"divide", "Div"},
    {"pow", "Pow"},
    {"power", "Pow"},
    {"where", "Where"},
    {"select", "Where"},
    {"maximum", "Max"},
    {"minimum", "Min"},
    {"eltwise", "Eltwise"},
    {"binary", "Eltwise"},
    {"snippet", "Pointwise"},
    {"subgraph", "Pointwise"},
    {"max_pool1d", "MaxPool"},
    {"max_pool2d", "MaxPool"},
    {"max_pool2d_with_indices", "MaxPool"},
    {"max_pool3d", "MaxPool"},
    {"maxpool", "MaxPool"},
    {"avg_pool1d", "AveragePool"},
    {"avg_pool2d", "AveragePool"},
    {"avgpool", "AveragePool"},
    {"pooling", "Pool"},
    {"adaptive_avg_pool1d", "GlobalAveragePool"},
    {"adaptive_avg_pool2d", "GlobalAveragePool"},
    {"cat", "Concat"},
    {"concat", "Concat"},
    {"concatenation", "Concat"},
    {"stack", "Concat"},
    {"split", "Split"},
    {"chunk", "Split"},
    {"transpose", "Transpose"},
    {"permute", "Transpose"},
    {"reshape", "Reshape"},
    {"view", "Reshape"},
    {"flatten", "Reshape"},
    {"slice", "Slice"},
    {"stridedslice", "Slice"},
    {"pad", "Pad"},
    {"constant_pad_nd", "Pad"},
    {"embedding", "Gather"},
    {"index_select", "Gather"},
    {"gather", "Gather"},
    {"index", "Gather"},
    {"mean", "ReduceMean"},
    {"sum", "ReduceSum"},
    {"reduction", "Reduce"},
    {"reduce", "Reduce"},
    {"topk", "TopK"},
    {"argmax", "ArgMax"},
    {"nonmaxsuppression", "NonMaxSuppression"},
    {"nms", "NonMaxSuppression"},
    {"upsample_nearest2d", "Resize"},
    {"upsample_bilinear2d", "Resize"},
    {"upsample_bicubic2d", "Resize"},
    {"interpolate", "Resize"},
    {"resampling", "Resize"},
    {"lrn", "LRN"},
    {"lstm", "LSTM"},
    {"lstmcell", "LSTM"},
    {"lstmsequence", "LSTM"},
    {"gru", "GRU"},
    {"gruseq", "GRU"},
    {"rnn", "RNN"},
    {"rnnseq", "RNN"},
    {"reorder", "Reformat"},
    {"to_mkldnn", "Reformat"},
    {"mkldnn_reorder_conv2d_weight", "Reformat"},
    {"to_dense", "Reformat"},
    {"convert", "Cast"},
    {"to_copy", "Cast"},
    {"copy", "Identity"},
    {"clone", "Identity"},
    {"contiguous", "Identity"},
    {"dropout", "Dropout"},
    {"shuffle", "Transpose"},
    {"quantize_per_tensor", "QuantizeLinear"},
    {"dequantize", "DequantizeLinear"},
    {"fakequantize", "QuantizeLinear"},
};

/* Parts of kernel names in lower case; the first that occurs decides, so the narrow ones stand first. */
static const word kernels[] = {
    {"nchwtonhwc", "Reformat"},
    {"nhwctonchw", "Reformat"},
    {"nchwtonc", "Reformat"},
    {"transdata", "Reformat"},
    {"converttensor", "Reformat"},
    {"tensortransform", "Reformat"},
    {"batchedtranspose", "Reformat"},
    {"batched_transpose", "Reformat"},
    {"reformat", "Reformat"},
    {"permutationkernel", "Reformat"},
    {"flash_fwd", "Attention"},
    {"flash_attn", "Attention"},
    {"fmha", "Attention"},
    {"_mha_", "Attention"},
    {"attention", "Attention"},
    {"ncclkernel_allreduce", "AllReduce"},
    {"nccldevkernel_allreduce", "AllReduce"},
    {"ncclkernel_allgather", "AllGather"},
    {"nccldevkernel_allgather", "AllGather"},
    {"nccldevkernel_reducescatter", "ReduceScatter"},
    {"ncclkernel_reducescatter", "ReduceScatter"},
    {"nccl", "Communication"},
    {"rccl", "Communication"},
    {"batchnorm", "BatchNormalization"},
    {"batch_norm", "BatchNormalization"},
    {"bn_fw", "BatchNormalization"},
    {"layernorm", "LayerNormalization"},
    {"layer_norm", "LayerNormalization"},
    {"rmsnorm", "RMSNormalization"},
    {"rms_norm", "RMSNormalization"},
    {"group_norm", "GroupNormalization"},
    {"logsoftmax", "LogSoftmax"},
    {"softmax", "Softmax"},
    {"computeoffsetskernel", "Conv"},
    {"winograd", "Conv"},
    {"fprop", "Conv"},
    {"dgrad", "Conv"},
    {"wgrad", "Conv"},
    {"implicit_gemm", "Conv"},
    {"implicit_con", "Conv"},
    {"implicitgemm", "Conv"},
    {"scudnn", "Conv"},
    {"hcudnn", "Conv"},
    {"conv2d", "Conv"},
    {"convolve", "Conv"},
    {"convolution", "Conv"},
    {"im2col", "Conv"},
    {"miopensp3asm", "Conv"},
    {"miopen_conv", "Conv"},
    {"_conv_", "Conv"},
    {"gemm", "MatMul"},
    {"gemv", "MatMul"},
    {"gemvn", "MatMul"},
    {"cutlass", "MatMul"},
    {"nvjet", "MatMul"},
    {"matmul", "MatMul"},
    {"cijk_", "MatMul"},
    {"splitkreduce", "MatMul"},
    {"dot_kernel", "MatMul"},
    {"maxpool", "MaxPool"},
    {"max_pool", "MaxPool"},
    {"avgpool", "AveragePool"},
    {"avg_pool", "AveragePool"},
    {"average_pool", "AveragePool"},
    {"pooling", "Pool"},
    {"leakyrelu", "LeakyRelu"},
    {"leaky_relu", "LeakyRelu"},
    {"relu", "Relu"},
    {"clamp_", "Clip"},
    {"gelu", "Gelu"},
    {"silu", "Silu"},
    {"sigmoid", "Sigmoid"},
    {"tanh", "Tanh"},
    {"functor_add", "Add"},
    {"addfunctor", "Add"},
    {"functorondownadd", "Add"},
    {"mulfunctor", "Mul"},
    {"divfunctor", "Div"},
    {"powtensor", "Pow"},
    {"copy_kernel", "Identity"},
    {"catarraybatchedcopy", "Concat"},
    {"concat", "Concat"},
    {"transpose", "Transpose"},
    {"permute", "Transpose"},
    {"upsample", "Resize"},
    {"resize", "Resize"},
    {"embedding", "Gather"},
    {"index_elementwise", "Gather"},
    {"gather", "Gather"},
    {"topk", "TopK"},
    {"radixsort", "Sort"},
    {"dropout", "Dropout"},
    {"reduce", "Reduce"},
    {"elementwise", "Pointwise"},
    {"fillfunctor", "Fill"},
    {"distribution_", "Random"},
};

enum {
  COUNT_OF_OPERATORS = sizeof operators / sizeof *operators,
  COUNT_OF_KERNELS = sizeof kernels / sizeof *kernels
};

/* What frameworks put before the operator's own name. */
static const char *skip_backend(const char *s) {
  static const char *const backends[] = {"cudnn_",  "mkldnn_",    "onednn_",       "miopen_",
                                         "native_", "quantized_", "efficientzero_"};
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
      size_t n = strlen(backends[i]);
      if (strncmp(s, backends[i], n) == 0 && s[n]) {
        s += n;
        again = true;
      }
    }
    while (*s == '_') {
      s++;
      again = true;
    }
  }
  return s;
}

const char *hn_optype_of_operator(const char *name) {
  char lower[96];
  const char *colon = strstr(name, "::");
  if (colon) name = colon + 2;
  size_t n = 0;
  for (; name[n] && name[n] != '(' && name[n] != '<' && name[n] != '.' && n + 1 < sizeof lower; n++)
    lower[n] = (char)tolower((unsigned char)name[n]);
  while (n && lower[n - 1] == '_') n--;
  lower[n] = 0;
  const char *word = skip_backend(lower);
  for (size_t i = 0; i < COUNT_OF_OPERATORS; i++)
    if (strcmp(word, operators[i].word) == 0) return operators[i].type;
  return hn_op_of_word(word);
}

const char *hn_optype_of_kernel(const char *name) {
  for (size_t i = 0; i < COUNT_OF_KERNELS; i++)
    if (strcasestr(name, kernels[i].word)) return kernels[i].type;
  return NULL;
}

/* In lower case; the first that occurs decides: names spell the accumulator, too, which is wider. */
static const word kernel_dtypes[] = {
    {"bf16", "bf16"},  {"bfloat16", "bf16"}, {"e4m3", "f8"},    {"i8i8", "i8"},    {"s8s8", "i8"},
    {"imma", "i8"},    {"i8816", "i8"},      {"i16832", "i8"},  {"int8", "i8"},    {"f16f16", "f16"},
    {"fp16", "f16"},   {"hgemm", "f16"},     {"hcudnn", "f16"}, {"h884", "f16"},   {"h1688", "f16"},
    {"h16816", "f16"}, {"half", "f16"},      {"tf32", "tf32"},  {"s1688", "tf32"}, {"sgemm", "f32"},
    {"scudnn", "f32"}, {"f32f32", "f32"},    {"float", "f32"},  {"dgemm", "f64"},  {"double", "f64"}};

const char *hn_optype_dtype_of_kernel(const char *name) {
  for (size_t i = 0; i < sizeof kernel_dtypes / sizeof *kernel_dtypes; i++)
    if (strcasestr(name, kernel_dtypes[i].word)) return kernel_dtypes[i].type;
  return NULL;
}

bool hn_optype_is_communication(const char *type) {
  static const char *const types[] = {"AllReduce", "AllGather", "ReduceScatter", "AllToAll", "Communication"};
  for (size_t i = 0; type && i < sizeof types / sizeof *types; i++)
    if (strcmp(type, types[i]) == 0) return true;
  return false;
}

bool hn_optype_is_reformat(const char *type) { return type && strcmp(type, "Reformat") == 0; }
