/* The rows of tactics.def as descriptors: each family's header says how (hn_cuda_<family>_tactic). */
#include "backends/cuda/tactics.h"

#include "backends/cuda/elementwise/affine.h"
#include "backends/cuda/elementwise/casting.h"
#include "backends/cuda/elementwise/numbers.h"
#include "backends/cuda/irregular/random.h"
#include "backends/cuda/irregular/recurrent.h"
#include "backends/cuda/libraries/cudnn_step.h"
#include "backends/cuda/libraries/lt_codes.h"
#include "backends/cuda/libraries/lt_fp8.h"
#include "backends/cuda/libraries/lt_step.h"
#include "backends/cuda/movement/indexed.h"
#include "backends/cuda/movement/moves.h"
#include "backends/cuda/normalize/arg.h"
#include "backends/cuda/normalize/fold.h"
#include "backends/cuda/normalize/likelihood.h"
#include "backends/cuda/normalize/softmax.h"
#include "backends/cuda/pooling/pooling.h"
#include "backends/cuda/product/conv_direct.h"
#include "backends/cuda/product/integers.h"
#include "backends/cuda/product/nbits_mma.h"
#include "backends/cuda/product/product_few.h"
#include "backends/cuda/product/product_mma.h"
#include "backends/cuda/product/product_simt.h"
#include "backends/cuda/product/squeeze.h"
#include "backends/cuda/wgmma/wgmma.h"
#include "backends/cuda/wgmma/wgmma_chain.h"
#include "backends/cuda/wgmma/wgmma_depth.h"
#include "backends/cuda/wgmma/wgmma_parts.h"
#include "backends/cuda/wgmma/wgmma_turned.h"
#include "backends/cuda/quantized/codes_depthwise.h"
#include "backends/cuda/quantized/codes_mma.h"
#include "backends/cuda/quantized/codes_turned.h"
#include "backends/cuda/quantized/codes_wgmma.h"
#include "backends/cuda/sampling/resize.h"
#include "backends/cuda/signal/taper.h"

/* 420 rows as constants would be 63 KB that the loader fills with addresses at every start, of which most
 * never look for a GPU. So each is a function that writes its descriptor. */
#undef HN_TACTIC
#define HN_TACTIC(DEVICE, NAME, ANCHOR, VERSION, ...)                                                        \
  static void describe_##NAME(hone_tactic_desc *out) {                                                       \
    *out = (hone_tactic_desc){HONE_DESC_HEAD(hone_tactic_desc),                                              \
                              .name = #NAME,                                                                 \
                              .device = #DEVICE,                                                             \
                              .anchor = ANCHOR,                                                              \
                              .version = VERSION,                                                            \
                              __VA_ARGS__};                                                                  \
  }

#define TACTIC(NAME) extern const hone_tactic_desc hn_cuda_tactic_##NAME;
#define TACTIC_OF(NAME, ANCHOR, FAMILY, ...) hn_cuda_##FAMILY##_tactic(NAME, ANCHOR, __VA_ARGS__)
#include "backends/cuda/tactics.def"
#undef TACTIC
#undef TACTIC_OF

enum {
#define TACTIC(NAME)
#define TACTIC_OF(NAME, ...) ROW_##NAME,
#include "backends/cuda/tactics.def"
  ROWS
#undef TACTIC
#undef TACTIC_OF
};
enum {
#define TACTIC(NAME) UNIT_##NAME,
#define TACTIC_OF(NAME, ...) UNIT_##NAME,
#include "backends/cuda/tactics.def"
  UNITS
#undef TACTIC
#undef TACTIC_OF
};

static hone_tactic_desc row[ROWS];
static const void *unit[UNITS];

static void make(void) {
#define TACTIC(NAME) unit[UNIT_##NAME] = &hn_cuda_tactic_##NAME;
#define TACTIC_OF(NAME, ...)                                                                                 \
  describe_##NAME(&row[ROW_##NAME]);                                                                         \
  unit[UNIT_##NAME] = &row[ROW_##NAME];
#include "backends/cuda/tactics.def"
#undef TACTIC
#undef TACTIC_OF
}

hn_registry hn_cuda_tactics = HN_REGISTRY_MADE(&hn_tactic_kind, unit, make);
