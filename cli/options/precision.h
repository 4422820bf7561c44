/* What --precision asks for. */
#ifndef HONE_CLI_PRECISION_H
#define HONE_CLI_PRECISION_H

#include "cli/options/options.h"

#include <hone/hone.h>
#include <jansson.h>

/* What --precision asks for; auto measures the model. Free with hone_precision_choice_free. */
typedef struct cli_precision {
  bool made;
  const char *name;             /* for plans; NULL until made */
  hone_precision_choice choice; /* of auto */
} cli_precision;

/* How auto is to measure the model; *automatic: it is asked for. */
hone_status cli_precision_options(const cli_args *args, hone_precision_options *out, bool *automatic,
                                  hone_error *error);
hone_status cli_precision_make(const cli_args *args, hone_model *model, const hone_binding *bindings,
                               uint32_t n_bindings, cli_precision *out, hone_error *error);
/* "f32", "bf16" or "auto". */
const char *cli_precision_name(const cli_args *args);
/* What auto chose; null otherwise. */
json_t *cli_precision_json(const cli_args *args, const cli_precision *precision);
/* The same in one line; nothing otherwise. */
void cli_precision_text(const cli_args *args, const cli_precision *precision);

#endif
