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
/* hone demo int8; the exit code. */
int cli_demo_int8(const cli_args *args);

#endif
