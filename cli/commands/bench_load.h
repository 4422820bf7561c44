/* hone bench --scenario and --curve. */
#ifndef HONE_CLI_BENCH_LOAD_H
#define HONE_CLI_BENCH_LOAD_H

#include "cli/options/load.h"

/* The whole command, with what was asked for; the exit code. */
int cli_bench_load(const cli_args *args, const char *path, const cli_load *load);

#endif
