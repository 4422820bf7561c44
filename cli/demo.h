/* The machine that a demo runs on, with the peaks that its lines are compared with. */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

#include "cli/options.h"

#include <hone/hone.h>

typedef struct cli_demo_machine {
  hone_demo_machine of;
  bool accelerator;
  char name[128];
  double f32_gflops, narrow_gflops, gbs;
} cli_demo_machine;

hone_status cli_demo_machine_find(const cli_args *args, cli_demo_machine *out, hone_error *error);

#endif
