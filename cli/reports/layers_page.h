/* hone verify --layers --html: bars over depth. */
#ifndef HONE_CLI_LAYERS_PAGE_H
#define HONE_CLI_LAYERS_PAGE_H

#include "cli/options/options.h"

/* Writes --html, whole or not at all. */
hone_status cli_layers_page(const cli_args *args, const hone_layers_report *report, hone_error *error);

#endif
