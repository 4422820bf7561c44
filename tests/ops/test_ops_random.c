/* Every operator of ops.def on random nodes: random shapes (empty ones, scalars), dtypes, values and
 * attributes, sane and absurd ones. Nothing may crash, hang or claim an internal error, and what inference
 * promises must be what comes out. Run it under the sanitizer presets. Usage: test_ops_random [nodes per
 * operator] [operator]. */
#include "ops/op_case.h"
#include "model/operators.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SECONDS = 15 }; /* of processor time: five times the budget that the case is given */

static uint64_t state;

static uint32_t random_below(uint32_t n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((state >> 33) % n);
}

static int64_t random_int(void) {
  static const int64_t absurd[] = {INT64_MAX,    INT64_MIN, INT32_MAX, INT32_MIN, 1LL << 40,
                                   -(1LL << 40), 65536,     -7,        100};
  uint32_t r = random_below(16);
  if (r == 0) return absurd[random_below(sizeof absurd / sizeof *absurd)];
  return r < 3 ? -(int64_t)random_below(3) : (int64_t)random_below(4);
}

static double random_real(void) {
  static const double special[] = {NAN, INFINITY, -INFINITY, 1e30, -1e30, 1e-40, 0, -0.0};
  uint32_t r = random_below(24);
  if (r == 0) return special[random_below(sizeof special / sizeof *special)];
  return r < 8 ? (double)random_below(6) : (double)random_below(2000) / 400 - 2.5;
}

/* Words that operators know, so that random nodes get past the first check. */
static const char *random_word(void) {
  static const char *const words[] = {"linear",
                                      "nearest",
                                      "cubic",
                                      "bilinear",
                                      "constant",
                                      "reflect",
                                      "edge",
                                      "wrap",
                                      "zeros",
                                      "border",
                                      "reflection",
                                      "SAME_UPPER",
                                      "SAME_LOWER",
                                      "VALID",
                                      "NOTSET",
                                      "floor",
                                      "ceil",
                                      "round_prefer_ceil",
                                      "align_corners",
                                      "asymmetric",
                                      "half_pixel",
                                      "pytorch_half_pixel",
                                      "tf_crop_and_resize",
                                      "half_pixel_symmetric",
                                      "bidirectional",
                                      "reverse",
                                      "forward",
                                      "DCR",
                                      "CRD",
                                      "avg",
                                      "max",
                                      "not_larger",
                                      "not_smaller",
                                      "add",
                                      "mul",
                                      "none",
                                      "tanh",
                                      "LEFT",
                                      "RIGHT",
                                      "sum",
                                      "mean",
                                      "bij,bjk->bik",
                                      "ii->i",
                                      "Tanh",
                                      "Relu",
                                      "",
                                      "x"};
  return words[random_below(sizeof words / sizeof *words)];
}

static void random_attr(op_case *c, const hone_attr_desc *a) {
  int64_t ints[6];
  float floats[6];
  hone_string strings[6];
  size_t n = random_below(6);
  for (size_t i = 0; i < 6; i++) {
    const char *word = random_word();
    ints[i] = random_int();
    floats[i] = (float)random_real();
    strings[i] = (hone_string){word, strlen(word)};
  }
  switch (a->type) {
  case HONE_ATTR_INT: hn_node_set_int(c->node, a->name, ints[0]); break;
  case HONE_ATTR_INTS: hn_node_set_ints(c->node, a->name, ints, n); break;
  case HONE_ATTR_FLOAT: hn_node_set_float(c->node, a->name, floats[0]); break;
  case HONE_ATTR_FLOATS: hn_node_set_floats(c->node, a->name, floats, n); break;
  case HONE_ATTR_STRING: hn_node_set_string(c->node, a->name, strings[0].ptr, strings[0].len); break;
  case HONE_ATTR_STRINGS: hn_node_set_strings(c->node, a->name, strings, n); break;
  default: break;
  }
}

static hone_dtype random_dtype(uint32_t types) {
  for (int tries = 0; tries < 64; tries++) {
    hone_dtype d = (hone_dtype)(1 + random_below(HONE_DTYPE_COUNT - 1));
    if (d != HONE_DTYPE_C64 && d != HONE_DTYPE_C128 && (!types || types & HONE_TYPES(d))) return d;
  }
  return HONE_DTYPE_F32;
}

static void random_input(op_case *c, hone_dtype dtype, int rank, const int64_t *like) {
  static const hone_string words[] = {{"a", 1}, {"", 0}, {"1.5", 3}};
  char dims[64] = "";
  double values[4096];
  size_t at = 0, count = 1;
  for (int i = 0; i < rank; i++) {
    int64_t d = like && random_below(4) ? like[i] : random_below(12) ? 1 + random_below(4) : 0;
    at += (size_t)snprintf(dims + at, sizeof dims - at, "%s%lld", i ? "x" : "", (long long)d);
    count *= (size_t)d;
  }
  if (count > sizeof values / sizeof *values) return op_skip(c);
  for (size_t i = 0; i < count; i++)
    values[i] = hone_dtype_is_float(dtype) ? random_real() : (double)random_int();
  hone_tensor *t = op_in(c, dtype == HONE_DTYPE_STRING ? HONE_DTYPE_BOOL : dtype, dims, values, 0);
  if (dtype != HONE_DTYPE_STRING) return;
  t->desc.dtype = HONE_DTYPE_STRING;
  t->data = realloc(t->data, count * sizeof(hone_string) + 1);
  for (size_t i = 0; i < count; i++) ((hone_string *)t->data)[i] = words[random_below(3)];
}

static void random_inputs(op_case *c, const hone_op_desc *op) {
  uint32_t most = op->max_inputs < 6 ? op->max_inputs : 6, n = op->min_inputs;
  if (most > n) n += random_below(most - n + 1);
  hone_dtype first = random_dtype(op->types);
  int rank = (int)random_below(6);
  for (uint32_t i = 0; i < n; i++) {
    const int64_t *like = i && c->given[0] ? c->in[0].desc.dim : NULL;
    uint32_t r = random_below(8);
    if (i >= op->min_inputs && r == 0)
      op_skip(c);
    else if (i == 0 || r < 4)
      random_input(c, first, rank, like);
    else if (r < 6) /* sizes, axes and repeats come as vectors of i64 */
      random_input(c, HONE_DTYPE_I64, (int)random_below(2), NULL);
    else
      random_input(c, random_below(2) ? first : random_dtype(0), (int)random_below(5), NULL);
  }
}

/* Nodes that run, for operators that random inputs hardly ever fit; they are damaged in up to two places. */
static const struct {
  /* ONNX's own, or with a domain; "f32:1x2 i64:=3,4 i32:1x2=3,4 f32:s=0.5 -": dtype, dims or =values or both
   * (s: no dims), left out. */
  const char *op, *inputs, *attrs;
} good[] = {
    {"Conv", "f32:1x4x5x6 f32:4x2x3x2 f32:4", "group=2 pads=1,0,2,1 strides=2,1 dilations=1,2"},
    {"Conv", "f16:2x2x7 f16:3x2x3", "auto_pad=s:SAME_LOWER strides=2,"},
    {"ConvTranspose", "f32:1x4x3x4 f32:4x2x3x2 f32:4", "group=2 pads=1,0,1,1 strides=2,1 output_padding=1,0"},
    {"ConvTranspose", "f32:1x2x3 f32:2x2x3", "output_shape=7, strides=2, auto_pad=s:SAME_UPPER"},
    {"ConvInteger", "u8:1x2x5x5 i8:3x2x2x2 u8: i8:3", "pads=1,1,1,1"},
    {"QLinearConv", "u8:1x2x5 f32: u8: i8:2x2x3 f32:2 i8:2 f32: i8: i32:2", "pads=1,1"},
    {"QLinearMatMul", "u8:2x3x4 f32: u8: i8:4x5 f32:5 i8:5 f32: u8:", ""},
    {"QuantizeLinear", "f32:2x3x4 f32:3 u8:3", "axis=1"},
    {"QuantizeLinear", "f32:2x3x4 f32:2x2x4 i16:2x2x4", "axis=1 block_size=2"},
    {"DequantizeLinear", "i8:2x3x4 f32:2x3x2 i8:2x3x2", "axis=2 block_size=2"},
    {"MaxPool", "f32:1x2x5x6", "kernel_shape=3,2 pads=1,1,1,0 strides=2,1 dilations=1,2 ceil_mode=1"},
    {"MaxPool", "i8:1x2x7", "kernel_shape=3, storage_order=1"},
    {"AveragePool", "f32:1x2x5x6",
     "kernel_shape=3,2 pads=1,1,1,0 strides=2,3 count_include_pad=1 ceil_mode=1"},
    {"LpPool", "f32:1x2x5x6", "kernel_shape=3,2 auto_pad=s:SAME_UPPER p=3"},
    {"MaxUnpool", "f32:1x1x1x2 i64:1x1x1x2=0,3 i64:=1,1,3,5", "kernel_shape=2,2 strides=2,2"},
    {"BatchNormalization", "f32:2x3x4 f32:3 f32:3 f32:3 f32:3", "training_mode=1"},
    {"InstanceNormalization", "f32:2x3x4 f32:3 f32:3", ""},
    {"GroupNormalization", "f32:2x4x3 f32:4 f32:4", "num_groups=2"},
    {"LayerNormalization", "f32:2x3x4 f32:3x4 f32:4", "axis=1"},
    {"RNN", "f32:3x2x4 f32:2x2x4 f32:2x2x2 f32:2x4 i32:=3,1 f32:2x2x2",
     "hidden_size=2 direction=s:bidirectional"},
    {"GRU", "f32:2x3x4 f32:1x6x4 f32:1x6x2 f32:1x12 - f32:2x1x2", "hidden_size=2 layout=1"},
    {"LSTM", "f32:3x2x4 f32:2x8x4 f32:2x8x2 f32:2x16 i32:=3,1 f32:2x2x2 f32:2x2x2 f32:2x6",
     "hidden_size=2 direction=s:bidirectional clip=f:1"},
    {"Resize", "f32:1x2x3x4 f32:=0,0,0.1,-0.2,1,1,0.7,1.4 f32:=1,1,2,0.6", "mode=s:linear"},
    {"Resize", "u8:1x2x3x4 - - i64:=5,2", "mode=s:cubic axes=2,3 antialias=1"},
    {"Upsample", "f32:1x2x3x4 f32:=1,1,2,1.5", "mode=s:linear"},
    {"GridSample", "f32:2x2x3x4 f32:2x3x2x2", "mode=s:cubic padding_mode=s:reflection"},
    {"GridSample", "f32:1x2x3x4x2 f32:1x3x2x2x3", "mode=s:linear"},
    {"AffineGrid", "f32:2x2x3 i64:=2,3,4,5", "align_corners=1"},
    {"RoiAlign", "f32:2x2x5x6 f32:2x4=0,0,3,4,1,1,9,2 i64:=0,1", "output_height=2 output_width=3"},
    {"MaxRoiPool", "f32:2x2x5x6 f32:2x5=0,0,0,3,4,1,1,1,9,2", "pooled_shape=2,3"},
    {"NonMaxSuppression", "f32:1x5x4 f32:1x3x5 i64:=3 f32:=0.4 f32:=0.1", "center_point_box=1"},
    {"DepthToSpace", "f32:1x8x2x3", "blocksize=2 mode=s:CRD"},
    {"SpaceToDepth", "u8:1x2x4x6", "blocksize=2"},
    {"DeformConv", "f32:2x4x3x4 f32:2x2x2x3 f32:2x24x4x2 f32:2 f32:2x12x4x2",
     "group=2 offset_group=2 pads=1,0,1,0 dilations=1,1"},
    {"Attention", "f32:2x4x3x2 f32:2x2x3x2 f32:2x2x3x1 bool:3x4 f32:2x2x1x2 f32:2x2x1x1",
     "is_causal=1 softcap=f:2 left_window_size=1"},
    {"Attention", "f16:1x3x4 f16:1x5x4 f16:1x5x6 f32:5 - - i64:=4", "q_num_heads=2 kv_num_heads=2"},
    {"LinearAttention", "f32:1x2x6 f32:1x2x3 f32:1x2x4 f32:1x1x3x4 f32:1x2x3 f32:1x2x1",
     "q_num_heads=2 kv_num_heads=1"},
    {"RotaryEmbedding", "f32:2x3x8 f32:5x2 f32:5x2 i64:2x3", "num_heads=2"},
    {"RotaryEmbedding", "f32:1x2x3x4 f32:1x3x1 f32:1x3x1", "rotary_embedding_dim=2 interleaved=1"},
    {"CausalConvWithState", "f32:1x2x3 f32:2x1x4 f32:2 f32:1x2x3", "activation=s:silu"},
    {"TensorScatter", "u8:2x3x2 u8:2x2x2 i64:=0,1", "mode=s:circular"},
    {"Col2Im", "f32:1x8x12 i64:=4,5 i64:=2,2", ""},
    {"CenterCropPad", "f32:2x3x4 i64:=5,1", "axes=-1,0"},
    {"Gemm", "f32:3x4 f32:4x5 f32:5", "alpha=f:0.5 beta=f:2"},
    {"Gemm", "f16:4x3 f16:5x4 f16:3x1", "transA=1 transB=1"},
    {"MatMul", "f32:2x1x3x4 f32:5x4x2", ""},
    {"MatMulInteger", "u8:2x3x4 i8:4x5 u8:3 i8:5", ""},
    {"Pad", "f32:3x4 i64:=1,-1,2,0 f32:", "mode=s:constant"},
    {"Pad", "i32:3x4 i64:=3,1,2,-1", "mode=s:reflect"},
    {"Pad", "u8:3x4 i64:=-1,5,3,0", "mode=s:edge"},
    {"Slice", "f32:4x5 i64:=-1,0 i64:=-9,3 i64:=0,1 i64:=-2,1", ""},
    {"Tile", "u8:2x3 i64:=2,3", ""},
    {"Expand", "f32:3x1 i64:=2,1,4", ""},
    {"Reshape", "f32:2x3x4 i64:=0,-1,2", ""},
    {"ConstantOfShape", "i64:=2,3", ""},
    {"Concat", "f32:2x3 f32:2x5", "axis=1"},
    {"Split", "f32:2x6 i64:=1,5", "axis=1"},
    {"Where", "bool:2x1x4 f32:3x1 f32:4", ""},
    {"Mod", "i32:2x3 i32:3", "fmod=1"},
    {"BitShift", "u8:2x3 u8:3", "direction=s:LEFT"},
    {"Einsum", "f32:2x3x4 f32:2x4x5", "equation=s:bij,bjk->bik"},
    {"Einsum", "f64:2x3x3 f64:3x1", "equation=s:...ii,ij"},
    {"Gather", "f32:3x4 i64:=0,-1", "axis=1"},
    {"GatherElements", "f32:4 i64:=1,-1,3", ""},
    {"GatherND", "f32:4x5 i64:=1,2", ""},
    {"ScatterElements", "f32:4 i64:=1,-1,1 f32:3", "reduction=s:add"},
    {"Scatter", "i8:4 i64:=1,-1 i8:2", ""},
    {"ScatterND", "f32:4x5 i64:=1, f32:5", "reduction=s:mul"},
    {"NegativeLogLikelihoodLoss", "f32:3x5 i64:=0,4,2 f32:5", "ignore_index=4"},
    {"SoftmaxCrossEntropyLoss", "f32:3x5 i64:=0,4,2 f32:5", "reduction=s:sum"},
    {"TopK", "f32:3x7 i64:=4", "axis=-1"},
    {"Compress", "f32:3x4 bool:3", "axis=0"},
    {"OneHot", "i64:=1,-2,7 i64:=5 f32:2", "axis=0"},
    {"ReverseSequence", "f32:4x3x2 i64:=1,4,2", ""},
    {"Range", "f32:=0 f32:=5 f32:=0.5", ""},
    {"MelWeightMatrix", "i64:=8 i64:=16 i64:=8192 f32:=0 f32:=4096", ""},
    {"STFT", "f32:2x20x1 i64:=3 f32:8 i64:=8", ""},
    {"DFT", "f32:2x6x2 i64:=8", "inverse=1"},
    {"CumSum", "f32:2x3 i64:=1", "exclusive=1 reverse=1"},
    {"Det", "f32:2x3x3", ""},
    {"Trilu", "f32:3x4 i64:=1", ""},
    {"Unique", "f32:3x4", "axis=0 sorted=0"},
    {"TfIdfVectorizer", "i64:=2,1,1,3",
     "mode=s:TFIDF min_gram_length=1 max_gram_length=2 max_skip_count=2 ngram_counts=0,3 "
     "ngram_indexes=0,1,2,3 "
     "pool_int64s=1,2,3,2,1 weights=F:1,2,3,4"},
    {"ImageDecoder", "u8:=80,54,32,49,32,49,10,50,53,53,10,1,2,3",
     "pixel_format=s:BGR"}, /* a PPM of one pixel */
    {"ai.onnx.ml.TreeEnsembleRegressor", "f32:3x2",
     "nodes_treeids=0,0,0 nodes_nodeids=0,1,2 nodes_featureids=1,0,0 nodes_values=F:0.1,0,0 "
     "nodes_modes=S:BRANCH_LEQ,LEAF,LEAF nodes_truenodeids=1,0,0 nodes_falsenodeids=2,0,0 target_treeids=0,0 "
     "target_nodeids=1,2 target_ids=0,1 target_weights=F:1,-2 n_targets=2"},
    {"ai.onnx.ml.TreeEnsembleClassifier", "f32:3x2",
     "nodes_treeids=0,0,0 nodes_nodeids=0,1,2 nodes_featureids=1,0,0 nodes_values=F:0.1,0,0 "
     "nodes_modes=S:BRANCH_GT,LEAF,LEAF nodes_truenodeids=1,0,0 nodes_falsenodeids=2,0,0 class_treeids=0,0 "
     "class_nodeids=1,2 class_ids=0,1 class_weights=F:1,1 classlabels_int64s=7,8"},
    {"ai.onnx.preview.training.Adagrad", "f32:s=0.1 i64:s=2 f32:4 f32:4 f32:4",
     "decay_factor=f:0.5 epsilon=f:0.25"},
    {"ai.onnx.preview.training.Momentum", "f32:s=0.1 i64:s=2 f32:4 f32:4 f32:4",
     "alpha=f:0.5 beta=f:0.25 mode=s:nesterov norm_coefficient=f:0.1"},
    {"ai.onnx.preview.training.Adam", "f64:s=0.1 i64:s=0 f64:4 f64:4 f64:4 f64:4",
     "alpha=f:0.5 epsilon=f:0.25"},
    {"com.microsoft.QLinearAdd", "u8:2x5 f32:s=0.05 u8: u8:2x5 f32:s=0.03 u8: f32:s=0.08 u8:", ""},
    {"com.microsoft.QLinearMul", "i8:2x3x2 f32:s=0.05 i8: i8:3x1 f32:s=0.03 i8: f32:s=0.1 i8:", ""},
    {"com.microsoft.QLinearSigmoid", "u8:9 f32:s=0.06 u8: f32:s=0.004 u8:", ""},
    {"com.microsoft.QLinearLeakyRelu", "i8:9 f32:s=0.06 i8: f32:s=0.05 i8:", "alpha=f:0.1"},
    {"com.microsoft.QLinearSoftmax", "u8:2x3x2 f32:s=0.05 u8: f32:s=0.004 u8:", "axis=1 opset=13"},
    {"com.microsoft.QLinearAveragePool", "u8:1x2x3x4 f32:s=0.05 u8: f32:s=0.05 u8:",
     "kernel_shape=2,2 pads=0,1,0,1 strides=1,2 count_include_pad=1"},
    {"com.microsoft.QLinearGlobalAveragePool", "u8:1x2x3x3 f32:s=0.05 u8: f32:s=0.01 u8:", ""},
    {"com.microsoft.QLinearGlobalAveragePool", "u8:1x2x3x3 f32:s=0.05 u8: f32:s=0.01 u8:", "channels_last=1"},
    {"com.microsoft.QLinearAveragePool",
     "u8:1x3x4x2 f32:s=0.05 u8: f32:s=0.05 u8:", "channels_last=1 kernel_shape=2,2"},
    {"com.microsoft.QLinearReduceMean", "u8:2x3x4 f32:s=0.05 u8: f32:s=0.02 u8:", "axes=1, keepdims=0"},
    {"com.microsoft.QLinearConcat", "f32:s=0.05 u8: u8:2x2 f32:s=0.05 u8: u8:2x3 f32:s=0.03 u8:", "axis=1"},
    {"com.microsoft.QLinearWhere", "bool:2x1 u8:3 f32:s=0.05 u8: u8:2x1 f32:s=0.05 u8: f32:s=0.06 u8:", ""},
    {"com.microsoft.QLinearConv", "u8:1x5x2 f32: u8: i8:2x2x3 f32:2 i8:2 f32: i8: i32:2",
     "pads=1,1 channels_last=1"},
    {"com.microsoft.ConvTransposeWithDynamicPads", "f32:1x2x3x2 f32:2x1x2x3 i64:4=0,1,1,0 f32:2",
     "group=2 strides=2,1"},
    {"com.microsoft.QGemm",
     "u8:3x2 f32:s=0.03 u8: i8:4x3 f32:4 i8:4 i32:4 f32:s=0.02 u8:", "transA=1 transB=1"},
    {"com.microsoft.MatMulIntegerToFloat", "u8:2x3 i8:3x2 f32:s=0.03 f32:2 u8: i8:2 f32:2", ""},
    {"com.microsoft.DynamicQuantizeMatMul", "f32:2x3 i8:3x2 f32:2 i8:2 f32:2", ""},
    {"com.microsoft.QAttention",
     "u8:2x2x2 i8:2x6 f32:6 f32:s=0.02 f32:s=0.03 i32:=1,2 u8: i8:", "num_heads=2"},
    {"com.microsoft.Attention", "f32:1x3x4 f32:4x12 f32:12", "num_heads=2 unidirectional=1"},
    {"ImageScaler", "f32:1x2x3x3", "bias=F:0.5,1"},
    {"Crop", "f32:1x2x4x4", "border=1,1,0,0"},
    {"Tile", "f32:2x3 f32:s=2 f32:s=1", ""},
    {"ConstantFill", "i64:=2,1", "input_as_shape=1 extra_shape=2, value=f:0.5"},
    {"com.microsoft.MaxpoolWithMask", "f32:1x2x4x3 i32:1x1x4x3", "kernel_shape=2,2 pads=1,0,0,1"},
    {"com.microsoft.HyperConnectionPreMix", "f32:2x3x4 f32:2x3", "reduction_scale=f:0.5"},
    {"com.microsoft.HyperConnectionPostMix", "f32:2x3x4 f32:2x4 f32:2x3 f32:2x3x3", ""},
    {"com.microsoft.MoEGroupRouter", "f32:2x8 f32:8", "top_k=2 n_group=2"},
    {"com.microsoft.SparseAttention",
     "f32:1x1x32 f32:1x1x16 f32:1x1x16 f32:1x1x32x16 f32:1x1x32x16 i32:1x3=0,1,2 "
     "i32:1x2=0,1 i32:1=20 i32:1=20",
     "num_heads=2 kv_num_heads=1 sparse_block_size=16"},
    {"com.microsoft.GroupQueryAttention", "f32:1x3x8 f32:1x3x4 f32:1x3x4 - - i32:=2 i32:=3",
     "num_heads=4 kv_num_heads=2"},
    {"com.microsoft.GroupQueryAttention",
     "f32:1x2x8 f32:1x2x4 f32:1x2x4 i8:1x2x5x2 i8:1x2x5x2 i32:1=3 i32:=4 - - - - f32:2 f32:4 f32:1",
     "num_heads=4 kv_num_heads=2 k_quant_type=s:PER_CHANNEL v_quant_type=s:PER_TENSOR"},
    {"com.microsoft.GroupQueryAttention",
     "f32:1x2x8 f32:1x2x4 f32:1x2x4 u8:1x2x5x1 u8:1x2x5x1 i32:1=3 i32:=4 - - - - f32:4 f32:1 f32:1 f32:2 "
     "f32:2 "
     "i32:1=1",
     "num_heads=4 kv_num_heads=2 k_quant_type=s:PER_TENSOR v_quant_type=s:PER_TENSOR"},
    {"com.microsoft.GroupQueryAttention",
     "f32:1x3x8 f32:1x3x4 f32:1x3x4 f32:1x2x4x2 f32:1x2x4x2 i32:1=6 i32:=7 - - - f32:1x1x3x7 - - - - - "
     "i32:1=2",
     "num_heads=4 kv_num_heads=2 sliding_window_cache=1 local_window_size=3"},
    {"com.microsoft.RotaryEmbedding", "f32:1x3x8 i64:=1 f32:5x2 f32:5x2", "num_heads=2"},
    {"com.microsoft.MRotaryEmbedding", "f32:1x3x8 i64:3x1x3=0,1,4,2,0,1,3,3,2 f32:5x2 f32:5x2",
     "num_heads=2 mrope_section=1,1,0 mrope_layout=1"},
    {"com.microsoft.EmbedLayerNormalization",
     "i32:1x3=2,0,1 i32:1x3=0,1,1 f32:4x4 f32:5x4 f32:2x4 f32:4 f32:4 i32:1x3=1,1,0", "epsilon=f:0.001"},
    {"com.microsoft.QEmbedLayerNormalization",
     "i32:1x3=2,0,1 i32:1x3=0,1,1 u8:4x4 u8:5x4 u8:2x4 u8:4 u8:4 i32:1x3=1,1,0 f32:s=0.02 f32:s=0.01 "
     "f32:s=0.03 "
     "f32:s=0.01 f32:s=0.02 u8: u8: u8: u8: u8:",
     "epsilon=f:0.001"},
    {"com.microsoft.MatMulNBits", "f32:2x16 u8:3x1x8 f32:3 u8:3", "K=16 N=3 bits=4 block_size=16"},
    {"com.microsoft.MatMulNBits",
     "f32:1x20 u8:2x2x8 f32:4 u8:2 i32:20=0,1,0,1,0,1,0,1,0,1,0,1,0,1,0,1,0,1,0,0", "K=20 N=2 block_size=16"},
    {"com.microsoft.MatMulBnb4", "f32:2x16 u8:24 f32:3", "K=16 N=3 block_size=16 quant_type=1"},
    {"com.microsoft.GatherBlockQuantized", "u8:5x20 i64:=1,-5,4 f32:5x3", "block_size=16 bits=4"},
    {"com.microsoft.CausalConvWithState", "f32:1x3x1x2 f32:2x1x2 f32:2 f32:2x1x2x1x2",
     "channels_last=1 state_window=2 dilation=2"},
    {"com.microsoft.CausalConvWithState", "f32:1x2x3 f32:2x1x2 f32:2 f32:1x2x1", "ndim=1"},
    {"com.microsoft.VarlenCausalConvWithState", "f32:4x2 f32:2x1x2 i32:3=0,1,4 f32:2 f32:2x2x2 i32:2=1,3",
     "dilation=2 state_update_capacity=2"},
    {"com.microsoft.VarlenNGramHashMapping",
     "i64:4 i64:3 i64:4=7,8,9,10 i32:3=0,1,4 i64:2x2 i64:4 i64:=1 i32:4 i32:2x2 i32:2=1,3",
     "max_ngram_size=3 n_head_per_ngram=2 pad_id=0 reset_on_eos=1 state_update_capacity=2"},
    {"com.microsoft.CropAndResize", "f32:2x2x4x5 f32:2x4=0,0,1,1,0.1,0.2,0.8,0.9 i32:=0,1 i32:=2,3",
     "mode=s:bilinear"},
    {"com.microsoft.GroupNorm", "f32:1x2x2x4 f32:4 f32:4", "groups=2 activation=1"},
    {"com.microsoft.SkipGroupNorm", "f32:2x1x2x4 f32:4 f32:4 f32:2x4 f32:4", "groups=2 activation=0"},
    {"com.microsoft.NhwcFusedConv", "f32:1x3x3x2 f32:2x2x2x2 f32:2 f32:1x2x2x2", "activation=s:Relu"},
    {"com.microsoft.PackedAttention", "f32:4x3 f32:3x12 f32:12 i32:2x3=0,3,4,1,2,5 i32:=0,1,4",
     "num_heads=2"},
    {"com.microsoft.PagedAttention",
     "f32:3x4 f32:3x2 f32:3x2 f32:4x2x1x2 f32:4x2x1x2 i32:=0,2,3 i32:=1,0 i32:2x2=2,0,3,-1",
     "num_heads=2 kv_num_heads=1"},
    {"com.microsoft.PackedMultiHeadAttention",
     "f32:4x4 f32:4x4 f32:4x4 f32:12 i32:2x3=0,3,4,1,2,5 i32:=0,1,4", "num_heads=2"},
    {"com.microsoft.RemovePadding", "f32:2x3x2 i32:=1,3", ""},
    {"com.microsoft.RestorePadding", "f32:2x2 i32:1x3=0,2,1", ""},
    {"com.microsoft.RelativePositionBias", "f32:8x1 i64:=3 i64:=5", "max_distance=6 is_bidirectional=1"},
    {"com.microsoft.GatedRelativePositionBias", "f32:1x2x4 f32:4 f32:1x2x2x2 f32:2x4 f32:4 f32:1x2x1x1",
     "num_heads=2"},
    {"com.microsoft.DecoderMaskedSelfAttention", "f32:1x1x3 f32:3x12 f32:12 i32:1x3=0,1,1 f32:2x1x2x2x2",
     "num_heads=2"},
    {"com.microsoft.DecoderMaskedMultiHeadAttention",
     "f32:2x1x4 f32:2x1x4 f32:2x1x4 i32:2x3=1,0,1,1,1,1 - f32:2x2x4x2 f32:2x2x4x2 i32:=2 - - f32:12",
     "num_heads=2 past_present_share_buffer=1"},
    {"com.microsoft.MoE", "f32:3x4 f32:3x3 f32:3x5x4 f32:3x5 f32:3x4x5 f32:3x4",
     "k=2 activation_type=s:relu"},
    {"com.microsoft.QMoE",
     "f32:2x4 f32:2x3 u8:3x4x4 f32:3x4 f32:3x4 u8:3x4x4 f32:3x4 f32:3x4 - - - u8:3x4 u8:3x4",
     "k=2 activation_type=s:relu expert_weight_bits=8 normalize_routing_weights=1"},
    {"com.microsoft.DynamicQuantizeLSTM",
     "f32:2x1x3 u8:1x3x8 u8:1x2x8 f32:1x16 - - - - f32:=0.01 u8:=128 f32:=0.02 u8:=120", "hidden_size=2"},
    {"com.microsoft.NGramRepeatBlock", "i64:2x6=1,2,3,1,2,5,4,4,4,1,4,4 f32:2x6", "ngram_size=2"},
    {"com.microsoft.WordConvEmbedding", "i32:3x4=1,3,2,0,4,0,0,0,5,4,3,1 f32:3x1x2x3 f32:3 f32:6x3", ""},
    {"com.microsoft.LinearAttention", "f32:1x2x6 f32:1x2x6 f32:1x2x4 f32:2x1x4x3x1 f32:1x2x4 f32:1x2x1",
     "q_num_heads=2 kv_num_heads=4 state_window=2"},
    {"com.microsoft.GatedDeltaNet",
     "f32:4x2x3 f32:4x2x3 f32:4x4x2 i32:=0,1,4 f32:4x4x3 f32:4x4 f32:2x4x2x3 f32:4 f32:4",
     "gate_activation=s:softplus beta_activation=s:sigmoid qk_l2_norm=1"},
    {"com.microsoft.GatedDeltaNet", "f32:1x4x20 - - - f32:1x4x4 - f32:1x4x2x3", "update_rule=s:gated"},
    {"com.microsoft.SwiGLU", "f32:2x6", "limit=f:1 round_activation=1"},
    {"com.microsoft.SwiGLU", "f16:2x3 f16:2x3", ""},
    {"com.microsoft.EngramGate", "f32:1x2x2x3 f32:1x2x2x3 f32:1x2x3 f32:2x3 f32:2x3 f32:2x3", ""},
    {"com.microsoft.NGramHashMapping", "i64:2x4 i64:3 i64:=7,11 i64:2x2 i64:2 i64:=3 i32:2x4",
     "max_ngram_size=3 n_head_per_ngram=1 pad_id=0 reset_on_eos=1"},
    {"com.microsoft.LinearAttentionGate", "f32:1x2x3 f32:3 f32:3 f32:1x2x3", ""},
};

/* What these nodes cannot be made of; other tests run the operators. */
static const struct {
  const char *op, *why;
} never[] = {
    {"SequenceInsert", "its input is a sequence (test_sequences)"},
    {"SequenceErase", "its input is a sequence (test_sequences)"},
    {"SequenceAt", "its input is a sequence (test_sequences)"},
    {"SequenceLength", "its input is a sequence (test_sequences)"},
    {"ConcatFromSequence", "its input is a sequence (test_sequences)"},
    {"ai.onnx.ml.DictVectorizer", "its input is a map (test_ops_foreign)"},
    {"ai.onnx.ml.CastMap", "its input is a map (test_ops_foreign)"},
    {"ai.onnx.ml.TreeEnsemble",
     "its splits and leaves are tensors as attributes (conformance, test_classical.py)"},
};

/* "Conv", or "com.microsoft.QLinearAdd". */
static bool is_named(const hone_op_desc *op, const char *name) {
  const size_t n = strlen(op->domain);
  return n ? strncmp(name, op->domain, n) == 0 && name[n] == '.' && strcmp(name + n + 1, op->op_type) == 0
           : strcmp(name, op->op_type) == 0;
}

static const char *why_never(const hone_op_desc *op) {
  for (size_t i = 0; i < sizeof never / sizeof *never; i++)
    if (is_named(op, never[i].op)) return never[i].why;
  return NULL;
}

/* An input by description; with `damage` a random one of nearly that shape. */
static void given_input(op_case *c, char *word, bool damage) {
  char *colon = strchr(word, ':'), *equals = strchr(word, '='), *end;
  double values[32];
  size_t n = 0;
  char dims[64];
  if (!colon || (damage && random_below(6) == 0)) return op_skip(c);
  *colon = 0;
  hone_dtype dtype = damage && random_below(6) == 0 ? random_dtype(0) : hone_dtype_from_name(word);
  if (equals) {
    for (char *p = equals + 1; *p; p = *end ? end + 1 : end) values[n++] = strtod(p, &end);
    if (damage && n)
      values[random_below((uint32_t)n)] = random_below(2) ? (double)random_int() : random_real();
    const int given = (int)(equals - colon - 1);
    if (given)
      snprintf(dims, sizeof dims, "%.*s", colon[1] == 's' ? 0 : given, colon + 1);
    else
      snprintf(dims, sizeof dims, "%zu", n);
    op_in(c, dtype == HONE_DTYPE_STRING ? HONE_DTYPE_BOOL : dtype, dims, values, 0);
    return;
  }
  int64_t like[HONE_MAX_RANK];
  int rank = 0;
  for (char *p = colon + 1; *p; p = *end ? end + 1 : end) like[rank++] = strtoll(p, &end, 10);
  if (damage && rank && random_below(2))
    like[random_below((uint32_t)rank)] = random_below(4);
  else if (damage && random_below(2))
    rank = rank ? rank - 1 : 1, like[0] = 2;
  char text[64] = "";
  for (int i = 0, at = 0; i < rank; i++)
    at += snprintf(text + at, sizeof text - (size_t)at, "%s%lld", i ? "x" : "", (long long)like[i]);
  hone_tensor *t =
      op_in(c, dtype == HONE_DTYPE_STRING ? HONE_DTYPE_BOOL : dtype, text, NULL, random_below(100));
  if (damage && hone_dtype_is_float(t->desc.dtype))
    for (int64_t i = 0; i < hone_desc_count(&t->desc); i++) op_set(t, i, random_real());
}

static bool build_good(op_case *c, const hone_op_desc *op) {
  char copy[400], *save = NULL;
  size_t n = 0, which[8];
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    if (is_named(op, good[i].op) && n < 8) which[n++] = i;
  if (!n || random_below(4) == 0) return false;
  size_t k = which[random_below((uint32_t)n)];
  uint32_t hurt = random_below(8), attr = random_below(12), position = 0;
  snprintf(copy, sizeof copy, "%s", good[k].inputs);
  for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
    given_input(c, word, position++ == hurt);
  op_attrs(c, good[k].attrs);
  for (const hone_attr_desc *a = op->attrs; a && a->name; a++)
    if (attr-- == 0) random_attr(c, a);
  return true;
}

static int32_t newest_of(const char *domain) { return strcmp(domain, "ai.onnx.ml") == 0 ? 5 : 1; }

static void build(op_case *c, const hone_op_desc *op, uint64_t seed, uint32_t *n_out) {
  state = seed;
  const int32_t newest = op->until ? op->until : *op->domain ? newest_of(op->domain) : 28;
  op_begin_in(c, op->domain, op->op_type,
              op->since + (int32_t)random_below((uint32_t)(newest - op->since + 1)));
  if (!build_good(c, op)) {
    random_inputs(c, op);
    for (const hone_attr_desc *a = op->attrs; a && a->name; a++)
      if (a->required || random_below(3) == 0) random_attr(c, a);
  }
  uint32_t most = op->max_outputs < 5 ? op->max_outputs : 5;
  *n_out = op->min_outputs + (most > op->min_outputs ? random_below(most - op->min_outputs + 1) : 0);
}

static void fail(const hone_op_desc *op, uint64_t seed, const char *what, const op_case *c) {
  fprintf(stderr, "%s (seed %llu): %s: %s\n", op->op_type, (unsigned long long)seed, what, c->error.what);
  abort();
}

/* True when the node ran. */
static bool one(const hone_op_desc *op, uint64_t seed) {
  op_case run, infer;
  uint32_t n_out;
  build(&run, op, seed, &n_out);
  run.seconds = 3;
  const clock_t start = clock();
  hone_status s = op_run(&run, n_out);
  if (s == HONE_ERROR_INTERNAL) fail(op, seed, "internal error", &run);
  if (s != HONE_OK && !run.error.what[0]) fail(op, seed, "an error without words", &run);
  if ((double)(clock() - start) > (double)SECONDS * CLOCKS_PER_SEC) fail(op, seed, "took too long", &run);
  /* Knowing less must not contradict the result. */
  build(&infer, op, seed, &n_out);
  uint32_t hide = random_below(256), rank = random_below(256), known = random_below(256);
  hone_status t = op_infer(&infer, n_out, hide, rank, known);
  if (t == HONE_ERROR_INTERNAL) fail(op, seed, "internal error in inference", &infer);
  if (s == HONE_OK && t != HONE_OK) fail(op, seed, "inference refuses what runs", &infer);
  for (uint32_t i = 0; s == HONE_OK && i < n_out; i++) {
    const hone_tensor_desc *is = &run.out[i].desc, *said = &infer.out[i].desc;
    bool fits = said->dtype == HONE_DTYPE_NONE || said->dtype == is->dtype;
    fits = fits && (said->rank < 0 || said->rank == is->rank);
    for (int32_t d = 0; fits && d < said->rank; d++) fits = said->dim[d] < 0 || said->dim[d] == is->dim[d];
    if (!fits) fail(op, seed, "inference promised another shape or dtype", &infer);
  }
  op_end(&run);
  op_end(&infer);
  return s == HONE_OK;
}

int main(int argc, char **argv) {
  uint64_t nodes = argc > 1 ? strtoull(argv[1], NULL, 10) : 300;
  const hn_listing *ops = hn_registry_take(&hn_operators);
  int wrong = 0;
  for (uint32_t i = 0; i < ops->n; i++) {
    const hone_op_desc *op = ops->unit[i];
    uint64_t ran = 0;
    if ((op->flags & HONE_OP_CONTROL) || (argc > 2 && strcmp(argv[2], op->op_type))) continue;
    for (uint64_t k = 0; k < nodes; k++) ran += one(op, k * 7919 + 1);
    const char *why = why_never(op);
    printf("%-28s %llu of %llu nodes ran%s%s\n", op->op_type, (unsigned long long)ran,
           (unsigned long long)nodes, why ? ": " : "", why ? why : "");
    if (argc > 1 || (ran > 0) == !why) continue;
    fprintf(stderr, "%s: %s\n", op->op_type,
            why ? "it runs, and is said not to" : "none of its nodes ran: good[] wants one");
    wrong++;
  }
  hn_listing_drop(ops);
  return wrong != 0;
}
