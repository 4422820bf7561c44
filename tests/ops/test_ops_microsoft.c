/* Operators of com.microsoft: what ONNX Runtime 1.32 answers on its processor (`answers`), or what their
 * definitions say of those that only other devices run (`definitions`), and what is refused. Operands are
 * filled by text_case.h's formula. */
#include "ops/text_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define CHECK_NEAR(cases)                                                                                    \
  for (size_t i = 0; i < sizeof(cases) / sizeof *(cases); i++) text_check_near(&(cases)[i], 2e-5)

static void answers_of_the_runtime(void **state) {
  (void)state;
  static const text_case cases[] = {
      {"com.microsoft.HyperConnectionPreMix", 1, "f32:1x2x3=1,2,3,4,5,6 f32:1x2=2,-1", "", "f32:1x3=-2,-1,0"},
      {"com.microsoft.HyperConnectionPreMix", 1, "f32:1x6=1,2,3,4,5,6 f32:1x6=1,0,1,0,1,1",
       "num_branches=2 reduction_scale=f:0.5", "f32:1x3=0.5,2.5,4.5"},
      {"com.microsoft.HyperConnectionPreMix", 1, "f16:2x2x0 f32:2x2x0", "", "f16:2x0"},
      {"com.microsoft.HyperConnectionPostMix", 1, "f32:1x2x2=1,2,3,4 f32:1x2=10,20 f32:1x2x1=1,0.5", "",
       "f32:1x2x2=11,22,8,14"},
      {"com.microsoft.HyperConnectionPostMix", 1,
       "f32:1x4=1,2,3,4 f32:1x2=10,20 f32:1x2x2=1,0,0,1 f32:1x2x2=1,2,3,4", "num_branches=2",
       "f32:1x4=20,14,14,40"},
      {"com.microsoft.SampleOp", 1, "f32:2=1,2", "", "f32:2=1,2"},
      {"com.microsoft.MaxpoolWithMask", 1, "f32:1x2x4=1,5,2,3,-1,-2,-3,-4 i32:1x1x4=1,0,1,1",
       "kernel_shape=2,", "f32:1x2x3=1,-3.402823466e38,3,-1,-3.402823466e38,-3"},
      {"com.microsoft.MaxpoolWithMask", 1, "f32:1x1x2x3=1,5,2,3,9,4 i32:1x1x2x3=0,1,0,1,1,1",
       "kernel_shape=2,2 pads=0,0,0,1", "f32:1x1x1x3=9,9,4"},
      {"com.microsoft.MoEGroupRouter", 1, "f32:2x8~1 f32:8~2", "top_k=2",
       "f32:2x8=-10000,-0.474077,-10000,-10000,-10000,-10000,-0.5623775,-10000,-10000,-0.8259394,-10000,-"
       "10000,-10000,-10000,-0.9547401,-10000"},
      {"com.microsoft.MoEGroupRouter", 1, "f32:1x2x8~1 f32:8~2",
       "top_k=3 n_group=4 topk_group=2 group_topk=1 router_sentinel=f:-50",
       "f32:2x8=-50,-0.474077,-50,-50,-50,-50,-0.5623775,-1.013437,-50,-0.8259394,-50,-50,-50,-50,-0.9547401,"
       "-0.407351"},
      {"com.microsoft.MoEGroupRouter", 1, "f32:1x4=nan,1,1,inf f32:4=0,0,0,0", "top_k=2",
       "f32:1x4=-10000,-0.31326169,-10000,0"},
      {"com.microsoft.ScaledSiLU", 1, "f32:2x3~1", "alpha=f:0.5",
       "f32:2x3=-0.1373849,0.1405441,-0.07857037,0.2438265,-0.007751466,-0.1716474"},
      {"com.microsoft.ScaledSiLU", 1, "f32:2x3~1 f32:=1.5", "",
       "f32:2x3=-0.2677742,0.509384,-0.1927797,0.9406843,-0.02288828,-0.2783403"},
      /* Pairs of the second and the third part turn by height and width, in layout 1 every third one does. */
      {"com.microsoft.MRotaryEmbedding", 1,
       "f32:1x1x1x6=1,2,3,4,5,6 i64:3x1x1=0,1,1 f32:2x3=1,1,1,0,0,0 f32:2x3=0,0,0,1,1,1",
       "mrope_section=1,1,1", "f32:1x1x1x6=1,-5,-6,4,2,3"},
      {"com.microsoft.MRotaryEmbedding", 1,
       "f32:1x1x6=1,2,3,4,5,6 i64:3x1x1=1,0,0 f32:2x3=1,1,1,0,0,0 f32:2x3=0,0,0,1,1,1", "mrope_section=2,1,0",
       "f32:1x1x6=-4,-5,3,1,2,6"},
      {"com.microsoft.MRotaryEmbedding", 1,
       "f32:1x1x6=1,2,3,4,5,6 i64:3x1x1=1,0,0 f32:2x3=1,1,1,0,0,0 f32:2x3=0,0,0,1,1,1",
       "mrope_section=2,1,0 mrope_layout=1", "f32:1x1x6=-4,2,-6,1,5,3"},
      {"com.microsoft.MRotaryEmbedding", 1, "f32:1x1x6 i64:3x1x1=1,0,2 f32:2x3 f32:2x3",
       "mrope_section=2,0,1", NULL},
      {"com.microsoft.MRotaryEmbedding", 1, "f32:1x1x6 i64:3x1x1=1,0,1 f32:2x3 f32:2x3",
       "mrope_section=2,0,2", NULL},
      {"com.microsoft.MRotaryEmbedding", 1, "f32:1x1x6 i64:2x1x1=1,0 f32:2x3 f32:2x3", "mrope_section=2,0,1",
       NULL},
      {"com.microsoft.GatedAdd", 1, "f32:2x3~1 f32:2x3~2 f32:2x1~3", "",
       "f32:2x3=-0.6660156,0.5263672,-0.34375,1.498047,-0.2851562,-0.4433594"},
      {"com.microsoft.UnfoldTensor", 1, "f32:2x5~1", "size=3 step=2",
       "f32:2x2x3=-0.65625,0.5,-0.34375,-0.34375,0.8125,-0.03125,-0.875,0.28125,-0.5625,-0.5625,0.59375,-0."
       "25"},
      {"com.microsoft.UnfoldTensor", 1, "f32:4x2~1", "dim=0 size=2",
       "f32:3x2x2=-0.65625,-0.34375,0.5,0.8125,-0.34375,-0.03125,0.8125,-0.875,-0.03125,0.28125,-0.875,-0."
       "5625"},
      {"com.microsoft.DynamicTimeWarping", 1, "f32:3x4=1,9,9,9,1,9,9,9,9,1,1,1", "",
       "i32:2x5=0,1,2,2,2,0,0,1,2,3"},
      {"com.microsoft.DynamicTimeWarping", 1, "f32:1x2x2=1,1,1,1", "", "i32:2x2=0,1,0,1"},
      {"com.microsoft.DynamicTimeWarping", 1, "f32:3x1=1,1,1", "", "i32:2x3=0,1,2,0,0,0"},
      {"com.microsoft.MatMulInteger16", 1, "i16:2x3=-300,2,7,1000,-5,6 i16:3x2=400,-3,20,30000,-1,9", "",
       "i32:2x2=-119967,60963,399894,-152946"},
      {"com.microsoft.BranchwiseRMSNorm", 1, "f32:2x4~1 f32:4~2", "",
       "f32:2x4=0.3395612,0.6985259,-0,-1.135105,0.01811753,-1.369686,0,0.8805121"},
      {"com.microsoft.BranchwiseRMSNorm", 1, "f32:1x6~1 f32:2x3~2", "num_branches=2 epsilon=f:0.5",
       "f32:1x6=0.2342754,0.481938,-0,-0.6940718,-0.009887062,0.4706242"},
      {"com.microsoft.BranchwiseRMSNorm", 1, "f32:1x2x3~1", "",
       "f32:1x2x3=-1.271731,0.9689376,-0.6661446,1.17816,-0.04531385,-1.268788"},
      {"com.microsoft.LinearAttentionGate", 1, "f32:1x2x3~1 f32:3~2 f32:3~3 f32:1x2x3~4", "",
       "f32:1x2x3=0.01005508,-1.280133,0.1842399,0.03043991,-0.9585404,0.1197778 "
       "f32:1x2x3=0.5926666,0.3849122,0.6654106,0.4610168,0.2689414,0.5389832"},
      {"com.microsoft.CDist", 1, "f32:3x4~1 f32:2x4~5", "metric=s:euclidean",
       "f32:3x2=1.75,0,1.802776,2.136001,1.887459,2.061553"},
      {"com.microsoft.CDist", 1, "f32:3x4~1 f32:2x4~5", "metric=s:sqeuclidean",
       "f32:3x2=3.0625,0,3.25,4.5625,3.5625,4.25"},
      {"com.microsoft.ExpandDims", 1, "f32:2x3~1 i32:=-1", "",
       "f32:2x3x1=-0.65625,0.5,-0.34375,0.8125,-0.03125,-0.875"},
      {"com.microsoft.MurmurHash3", 1, "i32:3=1,-7,123456", "seed=7 positive=0",
       "i32:3=-519818889,732382831,1416009507"},
      {"com.microsoft.MurmurHash3", 1, "i64:3=1,-7,123456", "seed=7 positive=0",
       "i32:3=-836849528,-1919830918,1316809443"},
      {"com.microsoft.MurmurHash3", 1, "f32:3=1,-7,0.5", "seed=7 positive=0",
       "i32:3=-1199867102,-121210770,6058578"},
      {"com.microsoft.NGramRepeatBlock", 1, "i64:2x6=1,2,3,1,2,5,4,4,4,1,4,4 f32:2x6~1", "ngram_size=2",
       "f32:2x6=-0.65625,0.5,-0.34375,0.8125,-0.03125,-0.875,0.28125,-inf,0.59375,-0.25,-inf,0.0625"},
      {"com.microsoft.NGramRepeatBlock", 1, "i64:1x5=1,2,3,1,2 f32:1x6~1", "ngram_size=3",
       "f32:1x6=-0.65625,0.5,-0.34375,-inf,-0.03125,-0.875"},
      {"com.microsoft.BifurcationDetector", 1,
       "i64:8=1,5,3,4,2,7,5,3 i64:4=1,5,3,4 i64:=0 i64:9=1,5,3,9,2,7,5,3,8",
       "min_ngram_size=1 max_ngram_size=3", "i64:8=1,5,3,4,1,5,3,9 i64:=-1"},
      {"com.microsoft.BifurcationDetector", 1, "i64:6=1,5,3,4,1,5 i64:3=2,1,5 i64:=0 -",
       "min_ngram_size=1 max_ngram_size=3", "i64:3=2,1,5 i64:=-1"},
      {"com.microsoft.WordConvEmbedding", 1,
       "i32:3x4=1,3,2,0,4,0,0,0,5,4,3,1 f32:3x1x2x3~1 f32:3~2 f32:6x3~3", "",
       "f32:3x3=0.3377605,0.8989646,0.4773382,-0.7798243,0.6363128,-0.5198776,0.2283252,0.9819244,0.6026293"},
      {"com.microsoft.MoE", 1, "f32:3x4~1 f32:3x3~2 f32:3x5x4~3 f32:3x5~4 f32:3x4x5~5 f32:3x4~6",
       "k=2 activation_type=s:relu",
       "f32:3x4=-0.5172597,-0.5071959,0.05050205,-0.8228484,0.3084138,0.4746637,0.07718775,-0.8055983,0."
       "3117164,0.0358172,0.1353588,0.09044281"},
      {"com.microsoft.MoE", 1, "f32:3x4~1 f32:3x3~2 f32:3x5x4~3 f32:3x5~4 f32:3x4x5~5 f32:3x4~6",
       "k=2 activation_type=s:gelu",
       "f32:3x4=-0.43376,-0.4925264,-0.02353849,-0.8491942,0.3826302,0.5017191,0.01105629,-0.7832546,0."
       "2835001,0.06170065,0.08290064,0.05072412"},
      {"com.microsoft.MoE", 1, "f32:3x4~1 f32:3x3~2 f32:3x5x4~3 f32:3x5~4 f32:3x4x5~5 f32:3x4~6",
       "k=2 activation_type=s:silu",
       "f32:3x4=-0.3979964,-0.4551252,-0.03479893,-0.8029609,0.4519165,0.5048596,-0.04052652,-0.7682819,0."
       "2336022,0.04781577,0.08280358,0.08169632"},
      {"com.microsoft.MoE", 1, "f32:3x4~1 f32:3x3~2 f32:3x5x4~3 f32:3x5~4 f32:3x4x5~5 f32:3x4~6",
       "k=2 activation_type=s:identity",
       "f32:3x4=-0.5525765,-1.04852,-0.1751713,-0.7328713,1.305061,0.6695148,-0.4402036,-0.9180465,0.4473166,"
       "0.2206302,0.09573722,0.2215399"},
      {"com.microsoft.MoE", 1, "f32:1x3x4~1 f32:3x3~2 f32:3x10x4~3 - f32:3x4x5~5",
       "k=2 activation_type=s:swiglu swiglu_fusion=1 normalize_routing_weights=1 activation_alpha=f:1.702 "
       "activation_beta=f:1 swiglu_limit=f:0.75",
       "f32:1x3x4=-0.13085,-0.1391555,0.1432128,0.1446337,-0.377685,-0.5632433,0.3587288,0.2180735,0.4254949,"
       "0.513365,0.3355218,-0.01171134"},
      {"com.microsoft.QMoE", 1,
       "f32:2x4~1 f32:2x3~2 u8:3x4x4~3 f32:3x4=0.25,0.5,0.125,0.25,0.5,0.125,0.25,0.5,0.125,0.25,0.5,0.125 "
       "f32:3x4~8 u8:3x4x4~5 f32:3x4=0.25,0.5,0.125,0.25,0.5,0.125,0.25,0.5,0.125,0.25,0.5,0.125 f32:3x4~9 - "
       "- - u8:3x4~7 u8:3x4~9",
       "k=2 activation_type=s:relu expert_weight_bits=8 normalize_routing_weights=1",
       "f32:2x4=-1182.812,359.355,-16.30399,561.5422,-1517.544,44.94717,-1381.401,-524.2638"},
      {"com.microsoft.MultiHeadAttention", 1, "f32:1x1x2=0,0 f32:1x2x2=0,0,0,0 f32:1x2x2=1,2,3,4",
       "num_heads=1 unidirectional=1", "f32:1x1x2=2,3"},
      {"com.microsoft.MatMulBnb4", 1, "f32:2x16~1 u8:24~2 f32:3~3", "K=16 N=3 block_size=16 quant_type=0",
       "f32:2x3=-0.04985555,0.6880595,-0.4946441,0.04950968,0.421458,-0.09360251"},
      {"com.microsoft.MatMulBnb4", 1, "f32:2x16~1 u8:24~2 f32:3~3", "K=16 N=3 block_size=16 quant_type=1",
       "f32:2x3=0.06004317,-1.419549,0.5571187,-0.007233824,0.2730779,0.2401229"},
      {"com.microsoft.QEmbedLayerNormalization", 1,
       "i32:1x3=2,0,1 i32:1x3=0,1,1 u8:4x4~1 u8:5x4~2 u8:2x4~3 u8:4~4 u8:4~5 i32:1x3=1,1,0 f32:=0.02 "
       "f32:=0.01 f32:=0.03 f32:=0.01 f32:=0.02 u8:=120 u8:=128 u8:=100 u8:=90 u8:=130",
       "epsilon=f:0.001",
       "f32:1x3x4=-0.8828954,-0.719754,0.1052096,1.591996,-1.380414,-0.8040599,0.3269424,-0.234632,-1.484845,"
       "-0.8076707,0.2858426,-0.312865 i32:1=2"},
      {"com.microsoft.DecoderMaskedMultiHeadAttention", 1,
       "f32:2x1x4~1 f32:2x1x4~2 f32:2x1x4~3 i32:2x3=1,0,1,1,1,1 - f32:2x2x4x2~4 f32:2x2x4x2~5 i32:1=2 - - "
       "f32:12~6",
       "num_heads=2 past_present_share_buffer=1",
       "f32:2x1x4=0.3803947,-1.224655,0.03771983,-0.8642234,-0.09748936,0.2086794,0.9279032,-0.1835132 "
       "f32:2x2x4x2=0.375,-0.46875,0.6875,-0.15625,-0.625,1.6875,-0.6875,0.46875,-0.375,0.78125,-0.0625,-0."
       "90625,0,-1.6875,0.5625,-0.28125,0.875,0.03125,-0.8125,0.34375,0,0.3125,-0.1875,0.96875,0.125,-0."
       "71875,0.4375,-0.40625,0.625,-1.0625,-0.9375,0.21875 "
       "f32:2x2x4x2=0.71875,-0.125,-0.96875,0.1875,0.34375,-1.34375,-0.34375,0.8125,-0.03125,-0.875,0.28125,-"
       "0.5625,0.96875,-0.71875,0.90625,0.0625,-0.78125,0.375,-0.46875,0.6875,0.96875,-0.71875,0.15625,-0."
       "6875,0.46875,-0.375,0.78125,-0.0625,1.59375,-0.09375,-0.59375,0.5625"},
      {"com.microsoft.DecoderMaskedMultiHeadAttention", 1,
       "f32:1x1x4~1 f32:1x2x3x2~2 f32:1x2x3x2~3 i32:1x3=1,1,0", "num_heads=2 scale=f:0.5",
       "f32:1x1x4=0.147444,-0.6963061,0.09411475,0.2869695"},
      {"com.microsoft.GatedRMSNorm", 1, "f32:2x8~1 f32:4~2 f32:2x8~3", "epsilon=f:0.01",
       "f32:2x8=0.005316228,-0.1721009,-0,0.2113987,0.007697128,0.1144538,0,0.05748706,0.07724159,-0."
       "09912428,-0,-0.0474815,-0.0179124,-0.1370743,-0,0.2075664"},
      {"com.microsoft.GatedRMSNorm", 1, "f32:2x4~1 f32:4~2 f32:2x4~3", "activation=s:sigmoid",
       "f32:2x4=0.1724332,0.2146975,-0,-0.4285482,0.0119289,-0.6208262,0,0.4677363"}};
  CHECK_NEAR(cases);
}

static void answers_by_definition(void **state) {
  (void)state;
  static const text_case cases[] = {
      {"com.microsoft.Rfft", 1, "f32:2x6~1", "signal_ndim=1",
       "f32:2x4x2=-0.59375,0,-1.46875,-0.920152,0.53125,-1.461418,-1.46875,0,1.03125,0,-0.46875,0.8118988,-0."
       "46875,0.270633,2.53125,0"},
      {"com.microsoft.Irfft", 1, "f32:4x2=6,0,1,-2,0.5,3,2,0", "signal_ndim=1",
       "f32:6=1.833333,0.4613249,2.526709,0.5,-0.3600423,1.038675"},
      {"com.microsoft.ComplexMul", 1, "f32:2x2x2~1 f32:2x2~2", "",
       "f32:2x2x2=-0.2167969,-0.7099609,0.6855469,0.2900391,0.7480469,0.2470703,-0.4746094,-0.2373047"},
      {"com.microsoft.ComplexMulConj", 1, "f32:2x2x2~1 f32:1x2~2", "",
       "f32:2x2x2=0.6269531,0.3974609,0.7929688,0.03613281,-0.7285156,0.2998047,-0.5625,-0.06152344"},
      {"com.microsoft.MatMulInteger16", 1, "u16:1x2=65535,3 u16:2x1=60000,7", "", "u32:1x1=3932100021"},
      {"com.microsoft.MoE", 1, "f32:1x1=1 f32:1x4=1,0.99,0.5,-1 f32:4x1x1=1,1,1,1 - f32:4x1x1=1,10,100,1000",
       "k=2 use_sparse_mixer=1", "f32:1x1=10.50249998"},
      {"com.microsoft.MoE", 1, "f32:1x1=1 f32:1x4=-3,-1.01,-2,-1 f32:4x1x1=1,1,1,1 - f32:4x1x1=1000,10,100,1",
       "k=2 use_sparse_mixer=1 normalize_routing_weights=1", "f32:1x1=10.50249998"},
      {"com.microsoft.MulInteger", 1, "u8:2x2=1,2,3,255 u8:=3 u8:2=0,200 u8:=250", "",
       "i32:2x2=500,50,0,-12600"},
      {"com.microsoft.ReduceSumInteger", 1, "u8:2x3=255,255,1,2,3,4", "axes=1, keepdims=0", "u32:2=511,9"},
      {"com.microsoft.TorchEmbedding", 1, "f32:3x2~1 i64:2x2=2,0,1,-1", "",
       "f32:2x2x2=-0.03125,-0.875,-0.65625,0.5,-0.34375,0.8125,-0.03125,-0.875"},
      {"com.microsoft.Trilu", 1, "i8:2x2=1,2,3,4", "upper=0", "i8:2x2=1,0,3,4"},
      {"com.microsoft.GatherND", 1, "f32:2x2=1,2,3,4 i64:2x1=1,0", "", "f32:2x2=3,4,1,2"},
      {"com.microsoft.ConvTransposeWithDynamicPads", 1, "f32:1x1x2=1,2 f32:1x1x3=1,10,100 i64:2=1,0 f32:1=5",
       "strides=2,", "f32:1x1x4=15,107,25,205"},
      {"com.microsoft.ConvTransposeWithDynamicPads", 1, "f32:1x1x2=1,2 f32:1x1x3=1,10,100", "strides=2,",
       "f32:1x1x5=1,10,102,20,200"},
      {"com.microsoft.ConvTransposeWithDynamicPads", 1, "f32:1x1x2 f32:1x1x3 i64:3=1,0,1", "strides=2,",
       NULL},
      {"com.microsoft.MatMulNBits", 1,
       "f32:1x32=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1 "
       "u8:1x2x8=153,153,153,153,153,153,153,153,153,153,153,153,153,153,153,153 f32:2=1,100 - "
       "i32:32=0,0,0,0,0,0,0,0,0,0,1,1,1,1,1,1,1,1,1,1,1,1,0,0,0,0,0,0,0,0,0,0",
       "K=32 N=1 block_size=16", "f32:1x1=1220"},
      {"com.microsoft.MatMulNBits", 1,
       "f32:1x32=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1 "
       "u8:1x2x8=153,153,153,153,153,153,153,153,153,153,153,153,153,153,153,153 f32:2=1,100 - "
       "i32:32=0,0,0,0,0,0,0,0,0,0,2,2,2,2,2,2,2,2,2,2,2,2,0,0,0,0,0,0,0,0,0,0",
       "K=32 N=1 block_size=16", NULL},
      {"com.microsoft.MatMulNBits", 1,
       "f32:1x32=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1 "
       "u8:1x2x8=153,153,153,153,153,153,153,153,153,153,153,153,153,153,153,153 f32:2=1,100 - i32:31",
       "K=32 N=1 block_size=16", NULL},
      {"com.microsoft.VarlenCausalConvWithState", 1,
       "f32:3x1=1,2,3 f32:1x1x2=10,1 i32:3=0,2,3 - f32:2x1x1=5,7", "", "f32:3x1=51,12,73 f32:2x1x1=2,3"},
      {"com.microsoft.VarlenCausalConvWithState", 1,
       "f32:3x1=1,2,3 f32:1x1x2=10,1 i32:3=0,2,3 f32:1=100 f32:2x1x1=5,7 i32:2=1,9",
       "state_update_capacity=2", "f32:3x1=151,112,173 f32:2x1x1=2,3 f32:2x2x1=1,0,3,0"},
      {"com.microsoft.VarlenCausalConvWithState", 1,
       "f32:3x1=1,2,3 f32:1x1x2=10,1 i32:3=0,3,3 - f32:2x1x1=5,7", "", NULL},
      {"com.microsoft.VarlenCausalConvWithState", 1, "f32:3x1=1,2,3 f32:1x1x2=10,1 i32:3=0,2,3", "", NULL},
      {"com.microsoft.VarlenCausalConvWithState", 1,
       "f32:3x1 f32:1x1x2 i32:3=0,2,3 - f32:2x1x1 - f32:3x2x1 f32:3x1", "", NULL},
      {"com.microsoft.VarlenCausalConvWithState", 1, "f32:3x1 f32:1x1x2 i32:3=0,2,3 - f32:2x1x1",
       "state_update_capacity=2", NULL},
      {"com.microsoft.VarlenNGramHashMapping", 1, "i64:3=1,2,3 i64:2=3,5 i64:1=100 i32:3=0,2,3",
       "max_ngram_size=2 n_head_per_ngram=1 pad_id=4", "i64:3x1=23,3,29 i64:2x1=2,3"},
      {"com.microsoft.VarlenNGramHashMapping", 1,
       "i64:3=1,2,3 i64:2=3,5 i64:1=100 i32:3=0,2,3 i64:2x1=9,8 i64:1=1000 - i32:3=0,1,1 i32:2x1=0,1 "
       "i32:2=1,2",
       "max_ngram_size=2 n_head_per_ngram=1 pad_id=4 state_update_capacity=2",
       "i64:3x1=1046,1018,1033 i64:2x1=2,3 i32:2x1=1,1 i64:2x2x1=1,4,3,4"},
      {"com.microsoft.VarlenNGramHashMapping", 1, "i64:3=1,2,3 i64:2=3,5 i64:1=100 i32:3=0,2,4",
       "max_ngram_size=2 n_head_per_ngram=1 pad_id=4", NULL},
      {"com.microsoft.VarlenNGramHashMapping", 1,
       "i64:3=1,2,3 i64:2=3,5 i64:1=100 i32:3=0,2,3 - - - - i32:2x1",
       "max_ngram_size=2 n_head_per_ngram=1 pad_id=4", NULL},
      {"com.microsoft.GroupQueryAttention", 1,
       "f32:1x1x1=1 f32:1x1x1=3 f32:1x1x1=7 f32:1x1x2x1=1,2 f32:1x1x2x1=5,6 i32:1=2 i32:=3",
       "num_heads=1 kv_num_heads=1 sliding_window_cache=1 local_window_size=1",
       "f32:1x1x1=7 f32:1x1x2x1=3,0 f32:1x1x2x1=7,0"},
      {"com.microsoft.GroupQueryAttention", 1,
       "f32:1x1x1=1 f32:1x1x1=3 f32:1x1x1=7 f32:1x1x2x1=1,2 f32:1x1x2x1=5,6 i32:1=1 i32:=2",
       "num_heads=1 kv_num_heads=1 sliding_window_cache=1 local_window_size=3", NULL},
      {"com.microsoft.GroupQueryAttention", 1,
       "f32:1x1x1=1 f32:1x1x1=3 f32:1x1x1=7 f32:1x1x2x1=1,2 f32:1x1x2x1=5,6 i32:1=1 i32:=2",
       "num_heads=1 kv_num_heads=1 sliding_window_cache=1", NULL},
      {"com.microsoft.GroupQueryAttention", 1,
       "f32:1x2x1=0,9 f32:1x2x1=3,9 f32:1x2x1=7,9 f32:1x1x3x1=1,0,0 f32:1x1x3x1=5,0,0 i32:1=1 i32:=3 - - - - "
       "- - - - - i32:1=1",
       "num_heads=1 kv_num_heads=1", "f32:1x2x1=6,0 f32:1x1x3x1=1,3,0 f32:1x1x3x1=5,7,0"},
      {"com.microsoft.GroupQueryAttention", 1,
       "f32:1x2x1=0,9 f32:1x2x1=3,9 f32:1x2x1=7,9 f32:1x1x3x1=1,0,0 f32:1x1x3x1=5,0,0 i32:1=1 i32:=3 - - - - "
       "- - - - - i32:1=3",
       "num_heads=1 kv_num_heads=1", NULL},
      {"com.microsoft.GroupQueryAttention", 1,
       "f32:1x2x1 f32:1x2x1 f32:1x2x1 - - i32:1=1 i32:=3 - - - - - - - - - i32:1=1",
       "num_heads=1 kv_num_heads=1", NULL},
      {"com.microsoft.GroupQueryAttention", 1,
       "f32:1x1x1=0 f32:1x1x1=3 f32:1x1x1=200 i8:1x1x2x1=4,0 i8:1x1x2x1=-2,0 i32:1=1 i32:=2 - - - - - "
       "f32:1=1.5 f32:1=0.5",
       "num_heads=1 kv_num_heads=1 k_quant_type=s:PER_TENSOR v_quant_type=s:PER_TENSOR",
       "f32:1x1x1=31.25 i8:1x1x2x1=4,2 i8:1x1x2x1=-2,127"},
      {"com.microsoft.GroupQueryAttention", 1,
       "f32:1x1x2=0,0 f32:1x1x2=3,-9 f32:1x1x2=1,4 u8:1x1x1x1=0 u8:1x1x1x1=0 i32:1=0 i32:=1 - - - - - "
       "f32:2=1,1 f32:2=1,2",
       "num_heads=1 kv_num_heads=1 k_quant_type=s:PER_CHANNEL v_quant_type=s:PER_CHANNEL "
       "kv_cache_bit_width=4",
       "f32:1x1x2=1,4 u8:1x1x1x1=11 u8:1x1x1x1=169"},
      {"com.microsoft.GroupQueryAttention", 1,
       "f32:1x1x2 f32:1x1x2 f32:1x1x2 u8:1x1x1x1 u8:1x1x1x1 i32:1=0 i32:=1 - - - - - f32:2 f32:2",
       "num_heads=1 kv_num_heads=1 k_quant_type=s:PER_CHANNEL v_quant_type=s:PER_CHANNEL "
       "kv_cache_bit_width=8",
       NULL},
      {"com.microsoft.GroupQueryAttention", 1,
       "f32:1x1x2 f32:1x1x2 f32:1x1x2 u8:1x1x1x1 u8:1x1x1x1 i32:1=0 i32:=1 - - - - - f32:2",
       "num_heads=1 kv_num_heads=1 k_quant_type=s:PER_CHANNEL v_quant_type=s:PER_CHANNEL", NULL},
      {"com.microsoft.GroupQueryAttention", 1,
       "f32:1x1x2 f32:1x1x2 f32:1x1x2 - - i32:1=0 i32:=1 - - - - - f32:2 f32:2",
       "num_heads=1 kv_num_heads=1 k_quant_type=s:PER_CHANNEL v_quant_type=s:PER_CHANNEL", NULL},
      {"com.microsoft.GatherBlockQuantized", 1, "f8e4m3fn:2x3=1,2,-3,0.5,4,8 i64:1=-1 f32:2x1=1,10",
       "block_size=0 quantize_axis=1", "f32:1x3=5,40,80"},
      {"com.microsoft.GatherBlockQuantized", 1, "u8:2x16 i64:1 f32:2x1",
       "block_size=0 quantize_axis=1 bits=8", NULL},
      {"com.microsoft.GatherBlockQuantized", 1, "f8e4m3fn:2x3 i64:1 f32:2x1 f8e4m3fn:2x1",
       "block_size=0 quantize_axis=1", NULL},
      {"com.microsoft.Pad", 1, "f32:1x2=1,2 i64:4=0,1,1,0 f32:=7", "", "f32:2x3=7,1,2,7,7,7"},
      {"com.microsoft.Pad", 1, "f32:3=1,2,3 i64:2=1,0", "mode=s:reflect", "f32:4=2,1,2,3"},
      {"com.microsoft.GatherND", 1, "f32:2x2=1,2,3,4 i32:2x1=1,-2", "", "f32:2x2=3,4,1,2"},
      {"com.microsoft.Pad", 1, "f32:3=1,2,3 i64:2=1,0", "mode=s:wrap", "f32:4=3,1,2,3"},
      {"com.microsoft.Range", 1, "i32:=3 i32:=6", "", "i32:3=3,4,5"},
      {"com.microsoft.Range", 1, "f32:=3 f32:=0 f32:=-2", "", "f32:2=3,1"},
      /* Two states that one head of keys writes and one of queries reads; the last two of three states. */
      {"com.microsoft.LinearAttention", 1, "f32:1x2x1=1,1 f32:1x2x1=1,2 f32:1x2x2=3,4,5,6",
       "update_rule=s:linear scale=f:1 q_num_heads=1 kv_num_heads=2",
       "f32:1x2x2=3,4,13,16 f32:1x2x1x1=13,16"},
      {"com.microsoft.LinearAttention", 1, "f32:1x2x1=1,1 f32:1x2x1=1,2 f32:1x2x1=3,4 f32:3x1x1x1x1=7,8,1",
       "update_rule=s:linear scale=f:1 q_num_heads=1 kv_num_heads=1 state_window=3",
       "f32:1x2x1=4,12 f32:3x1x1x1x1=0,4,12"},
      /* The same two tokens as two sequences; keys of length 1; a gate that halves; all in one operand. */
      {"com.microsoft.GatedDeltaNet", 1, "f32:2x1x1=1,1 f32:2x1x1=1,2 f32:2x2x1=3,4,5,6 i32:3=0,1,2",
       "update_rule=s:linear scale=f:1", "f32:2x2x1=3,4,10,12 f32:2x2x1x1=3,4,10,12"},
      {"com.microsoft.GatedDeltaNet", 1,
       "f32:1x2x1x1=5,7 f32:1x2x1x1=5,7 f32:1x2x1x1=3,4 - f32:1x2x1=0,0 - - f32:1=0 f32:1=0",
       "update_rule=s:gated gate_activation=s:softplus qk_l2_norm=1", "f32:1x2x1x1=3,5.5 f32:1x1x1x1=5.5"},
      {"com.microsoft.GatedDeltaNet", 1, "f32:2x3=1,1,3,1,2,4 - - - - f32:2x1=0,0 f32:1x1x1x1=2",
       "update_rule=s:delta beta_activation=s:sigmoid", "f32:2x1x1=2.5,1.5 f32:1x1x1x1=1.5"},
      {"com.microsoft.SwiGLU", 1, "f32:1x4=0,1,5,2", "", "f32:1x2=0,1.46211716"},
      {"com.microsoft.SwiGLU", 1, "f32:2=3,1 f32:2=-9,0.5",
       "limit=f:1 activation_beta=f:0.5 activation_alpha=f:2", "f32:2=-0.440398538,0.880797078"},
      /* d = 2 / sqrt(2), and a key that says nothing. */
      {"com.microsoft.EngramGate", 1,
       "f32:1x1x2x2=3,3,0,0 f32:1x1x2x2=1,1,1,1 f32:1x1x2=1,-1 f32:2x2=1,1,1,1 f32:2x2=1,1,1,1 "
       "f32:2x2=2,2,1,1",
       "epsilon=f:0", "f32:1x1x2x2=0.766599238,-0.766599238,nan,nan f32:1x1x2x2=2,-2,nan,nan"},
      {"com.microsoft.NGramHashMapping", 1, "i64:1x3=4,5,6 i64:2=3,5 i64:1=7",
       "max_ngram_size=2 n_head_per_ngram=1 pad_id=1", "i64:1x3x1=2,6,4 i64:1x1=6"},
      /* 3 ends a text; -2^31 wraps; offsets. */
      {"com.microsoft.NGramHashMapping", 1,
       "i32:1x2=3,2 i32:2=1,1073741824 i32:1=100 i32:1x1=2 i32:1=1000 i32:=3",
       "max_ngram_size=2 n_head_per_ngram=1 pad_id=0 reset_on_eos=1", "i32:1x2x1=1055,1078 i32:1x1=2"},
      {"com.microsoft.Unique", 1, "f32:5=3,1,3,2,1", "", "f32:3=3,1,2 i64:5=0,1,0,2,1 i64:3=2,2,1"},
      {"com.microsoft.Unique", 1, "f32:5=nan,1,nan,1,-0.0", "",
       "f32:4=nan,1,nan,-0.0 i64:5=0,1,2,1,3 i64:4=1,2,1,1"},
      {"com.microsoft.CausalConvWithState", 1, "f32:1x1x3=1,2,3 f32:1x1x2=10,1 - f32:1x1x2=7,8", "dilation=2",
       "f32:1x1x3=71,82,13 f32:1x1x2=2,3"},
      {"com.microsoft.CausalConvWithState", 1, "f32:1x2x2x1=1,2,3,4 f32:2x1x2=10,1,20,2 - f32:1x1x2x1=5,6",
       "channels_last=1", "f32:1x2x2x1=51,124,13,48 f32:1x1x2x1=3,4"},
      {"com.microsoft.CausalConvWithState", 1, "f32:1x1x2=1,2 f32:1x1x2=10,1 - f32:3x1x1x1=6,7,8",
       "state_window=3", "f32:1x1x2=81,12 f32:3x1x1x1=0,1,2"},
      {"com.microsoft.CausalConvWithState", 1, "f32:1x2x3=1,2,3,4,5,6 f32:2x1x2=1,2,0.5,-1 - f32:1x2x1=1,2",
       "ndim=1", "f32:1x2x3=3,5,8,-3,-3,-3.5 f32:1x2x1=3,6"},
      {"com.microsoft.IsAllFinite", 1, "f32:2=1,inf f32:1=0", "", "bool:=0"},
      {"com.microsoft.IsAllFinite", 1, "f32:2=1,inf f32:1=0", "isnan_only=1", "bool:=1"},
      {"com.microsoft.IsAllFinite", 1, "f32:2=1,2 f32:1=nan", "isinf_only=1", "bool:=1"},
      {"com.microsoft.IsAllFinite", 1, "f32:2=1,2 f32:1=nan", "", "bool:=0"},
      {"com.microsoft.DynamicTimeWarping", 1, "f32:2x3=nan,nan,nan,nan,nan,nan", "",
       "i32:2x4=0,1,1,1,0,0,1,2"},
      {"com.microsoft.BiasAdd", 1, "f32:1x2x4~1 f32:4~2 f32:1x2x4~3", "",
       "f32:1x2x4=-0.9375,0.53125,0,-0.53125,0.3125,-0.21875,1.25,-1.28125"},
      {"com.microsoft.BiasSplitGelu", 1, "f32:1x2x6~1 f32:6~2", "",
       "f32:1x2x3=0.01475936,0.230817,0.03858726,0.004683722,0.3045646,-0.0889579"},
      {"com.microsoft.GroupNorm", 1, "f32:1x2x2x4~1 f32:4~2 f32:4~3", "groups=2 activation=1",
       "f32:1x2x2x4=0.1867741,0.08825247,0.2011285,-0.2745944,-0.0149924,-0.2445415,0.2011285,0.401951,-0."
       "1552727,-0.2673621,0.2011285,-0.1391706,0.2343642,-0.01339974,0.2011285,-0.2784594"},
      {"com.microsoft.GroupNorm", 1, "f32:1x4x1x3~1 f32:4~2 f32:4~3", "groups=2 activation=0 channels_last=0",
       "f32:1x4x1x3=0.3210443,-0.2802112,0.1585428,0.4671991,-0.7174366,-1.902072,0.34375,0.34375,0.34375,0."
       "2219575,-1.756741,-0.3128258"},
      {"com.microsoft.SkipGroupNorm", 1, "f32:2x1x2x4~1 f32:4~2 f32:4~3 f32:2x4~4 f32:4~5",
       "groups=2 activation=0",
       "f32:2x1x2x4=-0.1204453,-0.8831168,0.34375,-1.833779,-0.3296803,-2.125973,0.34375,0.1555863,-0."
       "2115597,-0.9255321,0.34375,-1.078342,0.5252422,-0.02127521,0.34375,-1.470438 "
       "f32:2x1x2x4=0.4375,-0.09375,-0.625,0.84375,1.0625,-1.46875,0,-0.53125,0.3125,-0.21875,-0.75,0.71875,-"
       "1.0625,0.40625,-2.125,1.34375"},
      {"com.microsoft.BiasSoftmax", 1, "f32:2x2x3~1 f32:2x1x3~2", "axis=2 is_inner_broadcast=1",
       "f32:2x2x3=0.07711356,0.7788193,0.1440671,0.3817264,0.5217581,0.09651554,0.2361228,0.3227417,0."
       "4411355,0.07711356,0.7788193,0.1440671"},
      {"com.microsoft.BiasSoftmax", 1, "f32:2x2x3~1 f32:1x2x3~2", "axis=2 is_inner_broadcast=0",
       "f32:2x2x3=0.07711356,0.7788193,0.1440671,0.3817264,0.5217581,0.09651554,0.2361228,0.3227417,0."
       "4411355,0.07711356,0.7788193,0.1440671"},
      {"com.microsoft.GemmFastGelu", 1, "f32:2x3~1 f32:3x4~2 f32:4~3", "",
       "f32:2x4=0.03712693,-0.08011138,0.7490963,-0.08253448,-0.1541137,-0.08151711,0.8200874,-0.09608334"},
      /* Two texts: one has a token in page 2 and gets two, of which the second begins page 0; one begins. */
      {"com.microsoft.PagedAttention", 1,
       "f32:3x4=2.04,-2.56,0.42,-0.57,-0.45,-0.22,-2.02,-0.23,-0.87,3.32,0.23,-0.35 "
       "f32:3x2=-0.28,-0.67,-1.06,-0.39,0.48,-0.24 f32:3x2=0.96,-0.2,0.02,1.55,0.55,-0.51 "
       "f32:4x2x1x2=-0.18,0.54,1.94,-0.27,-0.24,1,-0.89,-0.29,0.88,0.58,0.09,0.67,-2.83,1.02,-0.96,-1.67 "
       "f32:4x2x1x2=0.28,0.7,-0.44,-1.08,0.03,-0.05,1.41,0.75,0.19,1.11,-0.21,-0.93,0.58,0.58,-0.21,-0.78 "
       "i32:3=0,2,3 i32:2=1,0 i32:2x2=2,0,3,-1",
       "num_heads=2 kv_num_heads=1",
       "f32:3x4=0.6852929,0.2673587,0.6056027,0.4029357,0.3907672,0.8346013,0.2576412,1.102856,0.55,-0.51,0."
       "55,-0.51 "
       "f32:4x2x1x2=-1.06,-0.39,1.94,-0.27,-0.24,1,-0.89,-0.29,0.88,0.58,-0.28,-0.67,0.48,-0.24,-0.96,-1.67 "
       "f32:4x2x1x2=0.02,1.55,-0.44,-1.08,0.03,-0.05,1.41,0.75,0.19,1.11,0.96,-0.2,0.55,-0.51,-0.21,-0.78"},
      {"com.microsoft.PackedMultiHeadAttention", 1,
       "f32:4x4~1 f32:4x4~2 f32:4x4~3 f32:12~4 i32:2x3=0,3,4,1,2,5 i32:3=0,1,4", "num_heads=2",
       "f32:4x4=-0.34375,-0.03125,0.28125,-1.40625,-0.2851557,0.7050719,0.4214052,-1.003283,-0.447389,0."
       "782885,0.5324687,-0.9088515,-0.384187,0.4730635,0.1974632,-0.7311082"},
      {"com.microsoft.PackedAttention", 1, "f32:4x3~1 f32:3x12~2 f32:12~3 i32:2x3=0,3,4,1,2,5 i32:3=0,1,4",
       "num_heads=2",
       "f32:4x4=-1.164062,0.4140625,-0.0078125,0.5703125,-0.3975004,0.455639,-0.7554143,0.878227,-0.3983028,"
       "0.4546022,-0.6175947,0.8840472,-0.408149,0.4611953,-0.704926,0.8790942"},
      {"com.microsoft.RemovePadding", 1, "f32:2x3x2~1 i32:2=1,3", "",
       "f32:4x2=-0.65625,0.5,0.28125,-0.5625,0.59375,-0.25,0.90625,0.0625 i32:2x3=0,3,4,5,1,2 i32:3=0,1,4 "
       "i32:1=3"},
      {"com.microsoft.RestorePadding", 1, "f32:2x2~1 i32:1x3=0,2,1", "",
       "f32:1x3x2=-0.65625,0.5,-0,0,-0.34375,0.8125"},
      {"com.microsoft.RelativePositionBias", 1, "f32:8x1~1 i64:1=3 i64:1=5",
       "max_distance=6 is_bidirectional=1",
       "f32:1x1x3x5=-0.65625,-0.875,0.28125,0.28125,-0.5625,0.5,-0.65625,-0.875,0.28125,0.28125,-0.34375,0.5,"
       "-0.65625,-0.875,0.28125"},
      {"com.microsoft.GatedRelativePositionBias", 1,
       "f32:1x2x4~1 f32:4~2 f32:1x2x2x2~3 f32:2x4~4 f32:4~5 f32:1x2x1x1~6", "num_heads=2",
       "f32:1x2x2x2=0.04839333,-1.258227,0.4026741,-0.5857077,0.9071819,-0.2591948,1.187501,0.153226"},
      {"com.microsoft.NhwcConv", 1, "f32:1x3x3x2~1 f32:2x2x2x2~2 f32:2~3", "",
       "f32:1x2x2x2=0.7851562,-1.152344,2.433594,-2.003906,-1.207031,-1.144531,-0.8085938,0.7539062"},
      {"com.microsoft.NhwcFusedConv", 1, "f32:1x3x3x2~1 f32:2x2x2x2~2 f32:2~3 f32:1x2x2x2~4",
       "activation=s:Relu", "f32:1x2x2x2=0,0,0.5839844,0,0,0,0.5917969,1.623047"},
      {"com.microsoft.DecoderMaskedSelfAttention", 1,
       "f32:1x1x3~1 f32:3x12~2 f32:12~3 i32:1x3=0,1,1 f32:2x1x2x2x2~4", "num_heads=2",
       "f32:1x1x4=-0.5460848,-0.3266342,0.2121225,0.2419164 "
       "f32:2x1x2x3x2=0.375,-0.46875,0.6875,-0.15625,0.5234375,0.1015625,-1,0.15625,-0.6875,0.46875,0."
       "6796875,0.2578125,-0.375,0.78125,-0.0625,-0.90625,-1.164062,0.4140625,0.25,-0.59375,0.5625,-0.28125,-"
       "0.0078125,0.5703125"},
      {"com.microsoft.QMoE", 1,
       "f32:2x8~1 f32:2x3~2 u8:3x8x4~3 "
       "f32:3x8=0.25,0.5,0.125,0.25,0.5,0.125,0.25,0.5,0.125,0.25,0.5,0.125,0.25,0.5,0.125,0.25,0.5,0.125,0."
       "25,0.5,0.125,0.25,0.5,0.125 - u8:3x8x4~5 "
       "f32:3x8=0.25,0.5,0.125,0.25,0.5,0.125,0.25,0.5,0.125,0.25,0.5,0.125,0.25,0.5,0.125,0.25,0.5,0.125,0."
       "25,0.5,0.125,0.25,0.5,0.125",
       "k=1 activation_type=s:silu expert_weight_bits=4",
       "f32:2x8=-1.913439,4.438601,0.1895143,-2.749798,0.7359741,-8.369477,2.057337,-4.235974,0.6854899,-1."
       "825858,-0.4431223,-0.4465438,0.8207124,-2.372798,-0.1848842,-1.079809"},
      {"com.microsoft.DynamicQuantizeLSTM", 1,
       "f32:2x1x3~1 u8:1x3x8~2 u8:1x2x8~3 f32:1x16~4 - - - - f32:1=0.01 u8:1=128 f32:1=0.02 u8:1=120",
       "hidden_size=2", "f32:2x1x1x2=-0.3128979,0.08134738,0.05106781,0.02843827"}};
  CHECK_NEAR(cases);
}

/* Shapes that do not fit, indices beyond their tables, attributes that nobody knows: one error each. */
static void contradictions_are_refused(void **state) {
  (void)state;
  static const text_case cases[] = {
      {"com.microsoft.Rfft", 1, "f32:2x6~1", "signal_ndim=2", NULL},
      {"com.microsoft.MoE", 1, "f32:1x1 f32:1x4 f32:4x1x1 - f32:4x1x1", "k=1 use_sparse_mixer=1", NULL},
      {"com.microsoft.MaxpoolWithMask", 1, "f32:1x2x4 i32:1x2x4", "kernel_shape=2,", NULL},
      {"com.microsoft.MaxpoolWithMask", 1, "f32:1x2x4 i32:1x1x3", "kernel_shape=2,", NULL},
      {"com.microsoft.MaxpoolWithMask", 1, "f32:1x2x4 i32:1x4", "kernel_shape=2,", NULL},
      {"com.microsoft.MaxpoolWithMask", 1, "f32:1x2x4 f32:1x1x4", "kernel_shape=2,", NULL},
      {"com.microsoft.GroupQueryAttention", 1,
       "f32:1x1x16 f32:1x1x16 f32:1x1x16 f32:1x1x4x16 f32:1x1x4x16 i32:1=3 i32:1=4",
       "num_heads=1 kv_num_heads=1 qk_output=1", NULL},
      {"com.microsoft.GroupQueryAttention", 1,
       "f32:1x1x16 f32:1x1x16 f32:1x1x16 f32:1x1x4x16 f32:1x1x4x16 i32:1=3 i32:1=4",
       "num_heads=1 kv_num_heads=1 qk_output=3", NULL},
      {"com.microsoft.Rfft", 1, "f32:2x6~1", "normalized=1", NULL},
      {"com.microsoft.Irfft", 1, "f32:1x2~1", "signal_ndim=1", NULL},
      {"com.microsoft.Irfft", 1, "f32:4x3~1", "signal_ndim=1", NULL},
      {"com.microsoft.ComplexMul", 1, "f32:2x3~1 f32:2x2~2", "", NULL},
      {"com.microsoft.IsAllFinite", 1, "f32:2=1,2", "isnan_only=1 isinf_only=1", NULL},
      {"com.microsoft.ScaledSiLU", 1, "f32:2x3~1 f32:2~1", "", NULL},
      {"com.microsoft.GatedAdd", 1, "f32:2x3~1 f32:2x3~2 f32:2x3~3", "", NULL},
      {"com.microsoft.GatedAdd", 1, "f32:2x3~1 f32:2x3~2 f32:2x4~3 f32:4x1~4", "", NULL},
      {"com.microsoft.UnfoldTensor", 1, "f32:2x3~1", "size=4", NULL},
      {"com.microsoft.UnfoldTensor", 1, "f32:2x3~1", "size=2 step=0", NULL},
      {"com.microsoft.DynamicTimeWarping", 1, "f32:2x2x2~1", "", NULL},
      {"com.microsoft.DynamicTimeWarping", 1, "f32:0x3", "", NULL},
      {"com.microsoft.MulInteger", 1, "u8:2~1 u8:2~1 u8:2~1", "", NULL},
      {"com.microsoft.ReduceSumInteger", 1, "u8:2x3~1", "axes=2,", NULL},
      {"com.microsoft.BranchwiseRMSNorm", 1, "f32:2x7~1", "num_branches=2", NULL},
      {"com.microsoft.BranchwiseRMSNorm", 1, "f32:2x6~1 f32:4~1", "num_branches=2", NULL},
      {"com.microsoft.LinearAttentionGate", 1, "f32:1x2x3~1 f32:4~2 f32:3~3", "", NULL},
      {"com.microsoft.TorchEmbedding", 1, "f32:3x2~1 i64:1=3", "", NULL},
      {"com.microsoft.LinearAttention", 1, "f32:1x1x1 f32:1x1x2 f32:1x1x3",
       "update_rule=s:linear q_num_heads=1 kv_num_heads=3", NULL},
      {"com.microsoft.GatedDeltaNet", 1, "f32:2x1x1 f32:2x1x1 f32:2x1x1 i32:3=0,2,1", "update_rule=s:linear",
       NULL},
      {"com.microsoft.GatedDeltaNet", 1, "f32:2x1x1 f32:2x1x1 f32:2x1x1", "update_rule=s:linear", NULL},
      {"com.microsoft.GatedDeltaNet", 1, "f32:2x2x1 f32:2x2x1 f32:2x3x1 i32:2=0,2", "update_rule=s:linear",
       NULL},
      {"com.microsoft.SwiGLU", 1, "f32:1x3", "", NULL},
      {"com.microsoft.EngramGate", 1, "f32:1x1x1x2 f32:1x1x1x2 f32:1x1x1 f32:1x2 f32:1x2", "", NULL},
      {"com.microsoft.NGramHashMapping", 1, "i64:1x1=1 i64:2=3,5 i64:1=0",
       "max_ngram_size=2 n_head_per_ngram=1 pad_id=1", NULL},
      {"com.microsoft.Unique", 1, "f32:2x2~1", "", NULL},
      {"com.microsoft.CausalConvWithState", 1, "f32:1x2x3~1 f32:2x1x2~1", "dilation=0", NULL},
      {"com.microsoft.CausalConvWithState", 1, "f32:1x2x3~1 f32:2x1x2~1", "input_channels=2", NULL},
      {"com.microsoft.CausalConvWithState", 1, "f32:1x2x3~1 f32:2x1x2~1 - f32:1x2x1", "dilation=2", NULL},
      {"com.microsoft.CDist", 1, "f32:3x4~1 f32:2x5~5", "", NULL},
      {"com.microsoft.CDist", 1, "f32:3x4~1 f32:2x4~5", "metric=s:jaccard", NULL},
      {"com.microsoft.ExpandDims", 1, "f32:2x3~1 i32:=7", "", NULL},
      {"com.microsoft.NGramRepeatBlock", 1, "i64:1x3=8,8,9 f32:1x6~1", "ngram_size=1", NULL},
      {"com.microsoft.NGramRepeatBlock", 1, "i64:1x3=1,1,2 f32:1x6~1", "ngram_size=0", NULL},
      {"com.microsoft.BifurcationDetector", 1, "i64:2=1,5 i64:1=1 i64:=3 i64:1=1", "", NULL},
      {"com.microsoft.BifurcationDetector", 1, "i64:2=1,5 i64:1=1 i64:=0 i64:3=1,5,6",
       "min_ngram_size=3 max_ngram_size=1", NULL},
      {"com.microsoft.WordConvEmbedding", 1, "i32:1x4=1,3,9,0 f32:3x1x2x3~1 f32:3~2 f32:6x3~3", "", NULL},
      {"com.microsoft.WordConvEmbedding", 1, "i32:1x1=1 f32:3x1x2x3~1 f32:3~2 f32:6x3~3", "", NULL},
      {"com.microsoft.MoE", 1, "f32:3x4~1 f32:3x3~2 f32:3x5x4~3 - f32:3x4x5~5", "k=4", NULL},
      {"com.microsoft.MoE", 1, "f32:3x4~1 f32:2x3~2 f32:3x5x4~3 - f32:3x4x5~5", "k=1", NULL},
      {"com.microsoft.MoE", 1, "f32:3x4~1 f32:3x3~2 f32:3x5x4~3 - f32:3x4x5~5", "activation_type=s:swiglu",
       NULL},
      {"com.microsoft.MoE", 1, "f32:3x4~1 f32:3x3~2 f32:3x5x4~3", "", NULL},
      {"com.microsoft.MoE", 1, "f32:3x4~1 f32:3x3~2 f32:3x5x4~3 - f32:3x4x5~5", "activation_type=s:cube",
       NULL},
      {"com.microsoft.QMoE", 1, "f32:2x8~1 f32:2x3~2 u8:3x8x3~3 f32:3x8~4 - u8:3x8x4~5 f32:3x8~6", "", NULL},
      {"com.microsoft.QMoE", 1, "f32:2x8~1 f32:2x3~2 u8:3x8x4~3 f32:3x8~4 - u8:3x8x4~5 f32:3x8~6",
       "quant_type=s:fp8", NULL},
      {"com.microsoft.MatMulBnb4", 1, "f32:2x16~1 u8:23~2 f32:3~3", "K=16 N=3 block_size=16 quant_type=1",
       NULL},
      {"com.microsoft.MatMulBnb4", 1, "f32:2x16~1 u8:24~2 f32:3~3", "K=16 N=3 block_size=15 quant_type=1",
       NULL},
      {"com.microsoft.QEmbedLayerNormalization", 1,
       "i32:1x2=2,9 - u8:4x4~1 u8:5x4~2 - u8:4~4 u8:4~5 - f32:=0.02 f32:=0.01 - f32:=0.01 f32:=0.02 u8:=120 "
       "u8:=128 - u8:=90 u8:=130",
       "", NULL},
      {"com.microsoft.QEmbedLayerNormalization", 1,
       "i32:1x2=2,1 i32:1x2=0,0 u8:4x4~1 u8:5x4~2 - u8:4~4 u8:4~5 - f32:=0.02 f32:=0.01 - f32:=0.01 "
       "f32:=0.02 u8:=120 u8:=128 - u8:=90 u8:=130",
       "", NULL},
      {"com.microsoft.DecoderMaskedMultiHeadAttention", 1,
       "f32:1x1x4~1 f32:1x1x4~2 f32:1x1x4~3 - - f32:1x2x3x2~4 f32:1x2x3x2~5 i32:1=3",
       "num_heads=2 past_present_share_buffer=1", NULL},
      {"com.microsoft.DecoderMaskedMultiHeadAttention", 1,
       "f32:2x1x4~1 f32:2x1x4~2 f32:2x1x4~3 - - f32:2x2x3x2~4 f32:2x2x3x2~5 i32:1=2 i32:1=2 "
       "i32:1x2x3=0,1,0,0,2,0",
       "num_heads=2 past_present_share_buffer=1", NULL},
      {"com.microsoft.GatedRMSNorm", 1, "f32:2x8~1 f32:3~2 f32:2x8~3", "", NULL},
      {"com.microsoft.BiasAdd", 1, "f32:1x2x4~1 f32:4~2 f32:1x2x3~3", "", NULL},
      {"com.microsoft.BiasSplitGelu", 1, "f32:1x2x5~1 f32:5~2", "", NULL},
      {"com.microsoft.GroupNorm", 1, "f32:1x2x2x4~1 f32:4~2 f32:4~3", "groups=3 activation=1", NULL},
      {"com.microsoft.GroupNorm", 1, "f32:1x2x2x4~1 f32:4~2 f32:4~3", "groups=2 activation=5", NULL},
      {"com.microsoft.SkipGroupNorm", 1, "f32:2x1x2x4~1 f32:4~2 f32:4~3 f32:2x3~4", "groups=2 activation=0",
       NULL},
      {"com.microsoft.HyperConnectionPreMix", 1, "f32:1x2x3~1 f32:1x3~2", "", NULL},
      {"com.microsoft.HyperConnectionPreMix", 1, "f32:1x5~1 f32:1x2~2", "num_branches=2", NULL},
      {"com.microsoft.HyperConnectionPostMix", 1, "f32:1x2x2~1 f32:1x3~2 f32:1x2~3", "", NULL},
      {"com.microsoft.HyperConnectionPostMix", 1, "f32:1x2x2~1 f32:1x2~2 f32:1x2~3 f32:1x4x1~4", "", NULL},
      {"com.microsoft.MoEGroupRouter", 1, "f32:2x8~1 f32:8~2", "top_k=5 n_group=2", NULL},
      {"com.microsoft.MoEGroupRouter", 1, "f32:2x8~1 f32:8~2", "top_k=1 n_group=3", NULL},
      {"com.microsoft.MoEGroupRouter", 1, "f32:2x8~1 f32:7~2", "top_k=1", NULL},
      {"com.microsoft.BiasSoftmax", 1, "f32:2x2x3~1 f32:5x3~2", "axis=2 is_inner_broadcast=1", NULL},
      {"com.microsoft.PagedAttention", 1,
       "f32:3x4~1 f32:3x2~2 f32:3x2~3 f32:4x2x1x2~4 f32:4x2x1x2~5 i32:3=0,2,3 i32:2=1,0 i32:2x2=2,-1,3,-1",
       "num_heads=2 kv_num_heads=1", NULL}, /* a page that is not mapped */
      {"com.microsoft.PagedAttention", 1,
       "f32:3x4~1 f32:3x2~2 f32:3x2~3 f32:4x2x1x2~4 f32:4x2x1x2~5 i32:3=0,2,3 i32:2=3,0 i32:2x2=2,0,3,-1",
       "num_heads=2 kv_num_heads=1", NULL}, /* more tokens than pages */
      {"com.microsoft.PagedAttention", 1,
       "f32:3x4~1 f32:3x2~2 f32:3x2~3 f32:4x2x1x2~4 f32:4x2x1x2~5 i32:3=0,2,3 i32:2=1,0 i32:2x2=4,0,3,-1",
       "num_heads=2 kv_num_heads=1", NULL}, /* a page beyond the cache */
      {"com.microsoft.PagedAttention", 1,
       "f32:3x4~1 f32:3x2~2 f32:3x2~3 f32:4x2x1x2~4 f32:4x2x1x2~5 i32:3=0,2,4 i32:2=1,0 i32:2x2=2,0,3,-1",
       "num_heads=2 kv_num_heads=1", NULL}, /* tokens beyond the input */
      {"com.microsoft.PagedAttention", 1,
       "f32:3x4~1 f32:3x2~2 f32:3x2~3 f32:4x2x1x2~4 f32:4x2x1x2~5 i32:3=2,1,3 i32:2=1,0 i32:2x2=2,0,3,-1",
       "num_heads=2 kv_num_heads=1", NULL}, /* starts that fall */
      {"com.microsoft.PagedAttention", 1,
       "f32:3x4~1 f32:3x2~2 f32:3x2~3 f32:4x2x1x2~4 f32:4x2x1x2~5 i32:3=0,2,3 i32:2=-1,0 i32:2x2=2,0,3,-1",
       "num_heads=2 kv_num_heads=1", NULL}, /* a past below 0 */
      {"com.microsoft.PagedAttention", 1,
       "f32:3x4~1 f32:3x2~2 f32:3x2~3 f32:4x2x1x2~4 f32:4x2x1x2~5 i32:3=0,2,3 i32:2=1,0 i32:2x2=2,0,3,-1 - - "
       "i32:3=8,0,1",
       "num_heads=2 kv_num_heads=1", NULL}, /* a slot beyond the cache */
      {"com.microsoft.PagedAttention", 1,
       "f32:3x4~1 f32:3x2~2 f32:3x2~3 f32:4x2x1x2~4 f32:4x2x1x2~5 i32:2=0,3 i32:2=1,0 i32:2x2=2,0,3,-1",
       "num_heads=2 kv_num_heads=1", NULL}, /* starts of another batch */
      {"com.microsoft.PagedAttention", 1,
       "f32:3x4~1 f32:3x2~2 f32:3x2~3 f32:4x2x1x2~4 f32:4x2x1x2~5 i32:3=0,2,3 i32:2=1,0 i32:2x2=2,0,3,-1",
       "num_heads=3 kv_num_heads=1", NULL},
      {"com.microsoft.PagedAttention", 1,
       "f32:3x4~1 f32:3x2~2 f32:3x2~3 f32:4x2x1x2~4 f32:4x2x1x2~5 i32:3=0,2,3 i32:2=1,0 i32:2x2=2,0,3,-1",
       "num_heads=2 kv_num_heads=1 do_rotary=1", NULL},
      {"com.microsoft.PackedMultiHeadAttention", 1,
       "f32:4x4~1 f32:4x4~2 f32:4x4~3 - i32:2x3=0,3,4,1,2,5 i32:3=0,5,4", "num_heads=2", NULL},
      {"com.microsoft.PackedMultiHeadAttention", 1, "f32:4x4~1 f32:4x4~2 f32:4x4~3", "num_heads=2", NULL},
      {"com.microsoft.PackedAttention", 1, "f32:4x3~1 f32:3x12~2 f32:12~3 i32:2x3=0,3,4,1,2,5 i32:3=1,2,4",
       "num_heads=2", NULL},
      {"com.microsoft.RemovePadding", 1, "f32:2x3x2~1 i32:2=1,4", "", NULL},
      {"com.microsoft.RestorePadding", 1, "f32:2x2~1 i32:1x3=0,7,1", "", NULL},
      {"com.microsoft.RelativePositionBias", 1, "f32:8x1~1 i64:1=0 i64:1=5", "max_distance=6", NULL},
      {"com.microsoft.RelativePositionBias", 1, "f32:8x1~1 i64:1=3 i64:1=5", "max_distance=1", NULL},
      {"com.microsoft.GatedRelativePositionBias", 1,
       "f32:2x4~1 f32:4~2 f32:1x2x2x2~3 f32:2x4~4 f32:4~5 f32:1x2x1x1~6 i32:1x2=0,5", "num_heads=2", NULL},
      {"com.microsoft.NhwcConv", 1, "f32:1x3x3x2~1 f32:2x2x2x3~2", "", NULL},
      {"com.microsoft.NhwcFusedConv", 1, "f32:1x3x3x2~1 f32:2x2x2x2~2 f32:2~3 f32:1x2x2x3~4", "", NULL},
      {"com.microsoft.DecoderMaskedSelfAttention", 1, "f32:1x1x3~1 f32:3x11~2 f32:11~3 - f32:2x1x2x2x2~4",
       "num_heads=2", NULL},
      {"com.microsoft.DynamicQuantizeLSTM", 1,
       "f32:2x1x3~1 u8:1x3x8~2 u8:1x2x8~3 f32:1x16~4 - - - - f32:3~5 u8:1=128 f32:1=0.02 u8:1=120",
       "hidden_size=2", NULL},
      {"com.microsoft.DynamicQuantizeLSTM", 1, "f32:2x1x3~1 u8:1x3x8~2 u8:1x2x8~3 f32:1x16~4",
       "hidden_size=2", NULL}};
  CHECK_ALL(cases);
}

/* One token behind a cache, whose head sees blocks of 16 keys by one of two lists: what ONNX Runtime 1.32
 * gives for inputs of equal lengths (of others it mixes rows up), and what it refuses. */
static void sparse_attention(void **state) {
  (void)state;
  static const text_case cases[] = {
      {"com.microsoft.SparseAttention", 1,
       "f32:1x1x32~1 f32:1x1x16~2 f32:1x1x16~3 f32:1x1x48x16~4 f32:1x1x48x16~5 i32:2x4=0,1,2,4,0,1,3,6 "
       "i32:2x6=0,1,0,2,-1,-1,0,0,1,0,1,2 i32:1=40 i32:1=40",
       "num_heads=2 kv_num_heads=1 sparse_block_size=16",
       "f32:1x1x32=-0.212922,0.518684,-0.0683945,-0.449372,0.244105,-0.431672,0.36528,-0.119172,0.612434,0."
       "0253554,-0.355622,0.337855,-0.337922,0.393684,-0.0254222,-0.574372,0.134509,-0.291762,0.158927,-0."
       "210742,0.471427,-0.0842414,-0.452996,0.228259,-0.198012,0.252677,-0.116992,0.565177,0.00950859,-0."
       "416762,0.322009,-0.335742 f32:1x1x48x16 f32:1x1x48x16"},
      {"com.microsoft.SparseAttention", 1,
       "f32:1x1x96~1 - - f32:1x2x48x16~4 f32:1x2x48x16~5 i32:1x4=0,1,2,4 i32:1x6=0,1,0,2,-1,-1 i32:1=33 "
       "i32:1=33 f32:48x8~8 f32:48x8~9",
       "num_heads=2 kv_num_heads=2 sparse_block_size=16 do_rotary=1 rotary_interleaved=1",
       "f32:1x1x32=-0.0523503,0.143783,-0.192513,-0.0683019,0.119987,-0.2711,-0.0749665,0.0413997,0.237533,-"
       "0.098763,0.0254481,0.213737,-0.17735,0.0187835,0.13515,-0.193302,-0.08776,0.0638084,-0.197976,-0."
       "0266565,0.114524,-0.30651,-0.0734958,0.00599,0.157558,-0.104226,0.0670935,0.208274,-0.21276,0."
       "0202542,0.09974,-0.151657 f32:1x2x48x16 f32:1x2x48x16"},
      {"com.microsoft.SparseAttention", 1,
       "f32:1x1x64~1 f32:1x1x32~2 f32:1x1x32~3 f32:1x2x48x16~4 f32:1x2x48x16~5 i32:2x4=0,1,2,4,0,1,3,6 "
       "i32:2x6=0,1,0,2,-1,-1,0,0,1,0,1,2 i32:1=17 i32:1=17 f32:48x8~8 f32:48x8~9",
       "num_heads=4 kv_num_heads=2 sparse_block_size=16 do_rotary=1 rotary_interleaved=0",
       "f32:1x1x64=0.03125,-0.8125,0.34375,-0.5,0.65625,-0.1875,0.96875,0.125,-0.71875,0.4375,-0.40625,0.75,-"
       "0.09375,-0.9375,0.21875,-0.625,-0.0281816,0.0565374,-0.199011,-0.0646399,0.113489,-0.246932,-0."
       "0347578,0.0655684,0.150287,-0.105261,0.0291101,0.207239,-0.153182,-0.0684625,0.159318,-0.18964,0."
       "53125,-0.3125,0.84375,0,-0.84375,0.3125,-0.53125,0.625,-0.21875,0.9375,0.09375,-0.75,0.40625,-0.4375,"
       "0.71875,-0.125,-0.0246951,0.121208,-0.223866,-0.0112738,0.0104368,-0.243445,-0.0975417,0.0690549,0."
       "214958,-0.130116,0.0824762,0.104187,-0.149695,-0.0037917,0.162805,-0.136274 f32:1x2x48x16 "
       "f32:1x2x48x16"},
      {"com.microsoft.SparseAttention", 1,
       "f32:1x1x16~1 f32:1x1x16~2 - f32:1x1x32x16~4 f32:1x1x32x16~5 i32:1x3=0,1,2 i32:1x2=0,1 i32:1=20 "
       "i32:1=20",
       "num_heads=1 kv_num_heads=1 sparse_block_size=16", NULL},
      {"com.microsoft.SparseAttention", 1,
       "f32:1x1x16~1 f32:1x1x16~2 f32:1x1x16~3 f32:1x1x32x16~4 f32:1x1x32x16~5 i32:1x3=0,1,9 i32:1x2=0,1 "
       "i32:1=20 i32:1=20",
       "num_heads=1 kv_num_heads=1 sparse_block_size=16", NULL},
      {"com.microsoft.SparseAttention", 1,
       "f32:1x1x16~1 f32:1x1x16~2 f32:1x1x16~3 f32:1x1x32x16~4 f32:1x1x32x16~5 i32:1x3=0,1,2 i32:1x2=0,1 "
       "i32:1=33 i32:1=33",
       "num_heads=1 kv_num_heads=1 sparse_block_size=16", NULL},
      {"com.microsoft.SparseAttention", 1,
       "f32:1x1x16~1 f32:1x1x16~2 f32:1x1x16~3 f32:1x1x32x16~4 f32:1x1x32x16~5 i32:1x3=0,1,2 i32:1x2=0,1 "
       "i32:1=20 i32:1=20",
       "num_heads=1 kv_num_heads=1 sparse_block_size=5", NULL},
  };
  CHECK_NEAR(cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sparse_attention), cmocka_unit_test(answers_of_the_runtime),
      cmocka_unit_test(answers_by_definition), cmocka_unit_test(contradictions_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
