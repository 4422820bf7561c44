/* The rows of tactics.def as descriptors: each family's header says how (hn_cpu_<family>_tactic). */
#include "backends/cpu/tactics.h"

#include "backends/cpu/attention/attention_step.h"
#include "backends/cpu/classical/trees_step.h"
#include "backends/cpu/conv/chain_step.h"
#include "backends/cpu/conv/winograd_step.h"
#include "backends/cpu/movement/moves.h"
#include "backends/cpu/normalize/layer_norm.h"
#include "backends/cpu/normalize/reduction.h"
#include "backends/cpu/normalize/softmax_step.h"
#include "backends/cpu/pooling/pooling.h"
#include "backends/cpu/product/bf16_step.h"
#include "backends/cpu/product/coded_step.h"
#include "backends/cpu/product/matmul_step.h"
#include "backends/cpu/product/strassen_step.h"
#include "backends/cpu/product/matmul_wide.h"
#include "backends/cpu/quantized/int8_step.h"
#include "backends/cpu/quantized/qlinear_step.h"
#include "backends/cpu/quantized/quantize_step.h"
#include "backends/cpu/quantized/sums_step.h"
#include "backends/cpu/recurrent/recurrent_step.h"
#include "backends/cpu/sampling/grid_sample_step.h"
#include "backends/cpu/sampling/resize_step.h"
#include "backends/cpu/sampling/resample_step.h"

#define TACTIC(NAME)
#define TACTIC_OF(NAME, ANCHOR, FAMILY, ...) hn_cpu_##FAMILY##_tactic(NAME, ANCHOR, __VA_ARGS__);
#include "backends/cpu/tactics.def"
#undef TACTIC
#undef TACTIC_OF

static const void *const builtin[] = {
#define TACTIC(NAME) &hn_cpu_tactic_##NAME,
#define TACTIC_OF(NAME, ...) TACTIC(NAME)
#include "backends/cpu/tactics.def"
#undef TACTIC
#undef TACTIC_OF
};

hn_registry hn_cpu_tactics = HN_REGISTRY(&hn_tactic_kind, builtin);
