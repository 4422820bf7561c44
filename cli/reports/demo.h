/* The machine that a demo runs on, with the peaks that its lines are compared with. */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

#include "cli/options/options.h"

#include <hone/hone.h>

typedef struct cli_demo_machine {
  hone_demo_machine of;
  bool accelerator;
  char name[128];
  double f32_gflops, narrow_gflops, int8_gops, gbs;
} cli_demo_machine;

hone_status cli_demo_machine_find(const cli_args *args, cli_demo_machine *out, hone_error *error);
/* Random inputs to two rows of one network, every tenth with zeros, denormals, infinities and NaN. */
enum { CLI_DEMO_INPUTS = 100 };
typedef struct cli_demo_equal {
  uint32_t inputs, edges, differ;
} cli_demo_equal;
hone_status cli_demo_same(const cli_demo_machine *m, const hone_demo_row row[2], int64_t batch,
                          cli_demo_equal *out, hone_error *error);
/* hone demo int8; the exit code. */
int cli_demo_int8(const cli_args *args);

#endif
