/* hone verify --layers: where a quantised model leaves its float model. */
#ifndef HONE_CLI_LAYERS_H
#define HONE_CLI_LAYERS_H

#include "cli/options/options.h"

#include "cli/reports/dump.h"

/* Compares and prints. The exit code: 1 when a layer is named. */
int cli_layers(const cli_args *args, hone_model *exact, hone_model *quantized, const hone_binding *bindings,
               uint32_t n, const hone_layers_options *options, const cli_dump *dump);

#endif
