#include "optimize/step/layout.h"

#include <string.h>

static const hn_layout_rule rules[] = {
    {"Conv", true, true},
    {"ConvTranspose", true, true},
    {"ConvChain", true, true},
    {"MaxPool", true, true},
    {"AveragePool", true, true},
    {"GlobalAveragePool", true, true},
    {"GlobalMaxPool", true, true},
    {"Resize", true, true},
    {"Upsample", true, true},
    {"QLinearConv", true, true},
    {"ConvIntegerToFloat", true, true},
    {"DynamicQuantizeLinear", false, true},
    {"QLinearAveragePool", true, true},
    {"QLinearMaxPool", true, true},
    {"QLinearAdd", false, false},
    {"QuantizeLinear", false, true},
    {"DequantizeLinear", false, true},
    {"BatchNormalization", false, true},
    {"InstanceNormalization", false, true},
    {"Pointwise", false, false},
    {"Concat", false, false},
    {"Split", false, true},
    {"Slice", false, true},
    {"Pad", false, true},
    {"DepthToSpace", false, true},
    {"SpaceToDepth", false, true},
    {"ReduceMean", false, true},
    {"ReduceSum", false, true},
    {"ReduceMax", false, true},
};

const hn_layout_rule *hn_layout_rule_of(const char *anchor) {
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (strcmp(rules[i].anchor, anchor) == 0) return &rules[i];
  return NULL;
}

bool hn_layout_free(const hone_tensor_desc *d) {
  if (d->rank < 3 || !hone_desc_known(d)) return d->rank < 3;
  if (d->layout == HONE_LAYOUT_CHANNELS_LAST && d->channel_pitch != d->dim[1]) return false;
  int64_t pixels = 1;
  for (int32_t i = 2; i < d->rank; i++) pixels *= d->dim[i];
  return pixels == 1 || d->dim[1] == 1;
}
