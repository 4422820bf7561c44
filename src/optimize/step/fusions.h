/* The fusions of lowering (fusions.def), by name. */
#ifndef HN_OPTIMIZE_STEP_FUSIONS_H
#define HN_OPTIMIZE_STEP_FUSIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum hn_fusion {
#define FUSION(name, about) HN_FUSION_##name,
#include "optimize/step/fusions.def"
#undef FUSION
  HN_FUSIONS
} hn_fusion;

/* [HN_FUSIONS], then NULL */
extern const char *const hn_fusion_names[];
const char *hn_fusion_about(hn_fusion f);

/* Those that a list of globs (hn_optimize_options.passes) leaves out, as bits 1 << hn_fusion. Names without a
 * minus leave out the fusions that they do not fit, unless none of them fits any. */
uint32_t hn_fusions_off(const char *globs);

#endif
