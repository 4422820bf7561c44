/* --input-type, --input-layout, --pinned: how inputs arrive. */
#ifndef HONE_CLI_ARRIVING_H
#define HONE_CLI_ARRIVING_H

#include "cli/options/options.h"

#include <hone/hone.h>

/* Puts the model that takes its inputs as the options say in place of *model; nothing where they say nothing.
 */
hone_status cli_take(const cli_args *args, hone_model **model, hone_error *error);

/* Tensors whose bytes lie in pinned memory of the engine. */
typedef struct cli_pinned {
  hone_engine *engine;
  void *memory; /* of all of them: pinning is slow */
  hone_tensor *tensor;
  uint32_t n;
} cli_pinned;

/* Copies of n tensors. Free before the engine ends. */
hone_status cli_pin(hone_engine *engine, const hone_tensor *const *tensor, uint32_t n, cli_pinned *out,
                    hone_error *error);
void cli_unpin(cli_pinned *pinned);

#define CLI_OPT_ARRIVING                                                                                     \
  {0,                                                                                                        \
   "input-type",                                                                                             \
   CLI_TEXT,                                                                                                 \
   CLI_FIELD(input_type),                                                                                    \
   "u8|f16|bf16|f32",                                                                                        \
   "inputs arrive so, and the first steps convert them; u8: pictures, also normalised (--scale, --mean, "    \
   "--std, --bgr)"},                                                                                         \
  {                                                                                                          \
    0, "input-layout", CLI_TEXT, CLI_FIELD(input_layout), "nchw|nhwc",                                       \
        "of pictures as they arrive (the model's own)"                                                       \
  }

#endif
