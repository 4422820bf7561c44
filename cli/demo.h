/* One line of a demo: a network, how it is planned, and what it took. */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

#include "cli/cli.h"

typedef struct cli_demo_row {
  const char *label, *network; /* of the zoo */
  const char *precision;       /* "f32", or NULL: the narrow one of the device */
  const char *passes;          /* as in hone_plan_options */
  const char *tactics;         /* masks; NULL: all */
  bool separate;
  hone_chains chains;
  bool part; /* of a network: what brings inputs into its layout and reads its output does not count */
} cli_demo_row;

typedef struct cli_demo_result {
  bool measured;
  char why[256];              /* it was not */
  double ms, h2d_ms, end_ms;  /* medians: the steps; copies of inputs; the whole call */
  double flops, bytes, moved; /* moved: bytes of all steps, each tensor as often as it is read and written */
  uint32_t steps;
  double conv_share; /* of the steps' time; negative: not asked for */
  double steps_ms;   /* all steps of the profile */
  double block_ms;   /* steps of the block's nodes, when asked for */
  char shape[96];    /* of the last step that counts: "f32[4x512x28x28]" */
} cli_demo_result;

typedef struct cli_demo_machine {
  const char *device, *narrow; /* "fp16" or "bf16" */
  bool accelerator;
  char name[128];
  double f32_gflops, narrow_gflops, gbs;
  uint32_t threads, runs;
  int64_t size; /* of networks that take one; 0: their own */
} cli_demo_machine;

hone_status cli_demo_machine_find(const cli_args *args, cli_demo_machine *out, hone_error *error);
/* Nodes of a network that are the part in it, but for the first occurrence. Free with cli_demo_block_free. */
typedef struct cli_demo_block {
  char (*name)[128];
  uint32_t n;
} cli_demo_block;

/* Of the blocks behind the first one: what makes, normalises, adds and activates tensors of as many channels
 * as this shape has. A block ends with the activation behind its sum. */
hone_status cli_demo_block_find(const cli_demo_machine *m, const char *network, int64_t batch,
                                const char *shape, cli_demo_block *out, hone_error *error);
void cli_demo_block_free(cli_demo_block *block);
/* One row with this batch; block: also what its nodes take, or NULL; shares: also profile it for conv_share.
 * Fails when memory and the like run short; what the device cannot do is a result that was not measured. */
hone_status cli_demo_measure(const cli_demo_machine *m, const cli_demo_row *row, int64_t batch, bool shares,
                             const cli_demo_block *block, cli_demo_result *out, hone_error *error);

#endif
