/* hone verify --dump: tensors as files. */
#ifndef HONE_CLI_DUMP_H
#define HONE_CLI_DUMP_H

#include "cli/options/options.h"

#include <hone/hone.h>
#include <jansson.h>

typedef struct cli_dump {
  hone_dump dump; /* for the library */
  const cli_args *args;
  const char *folder;
  size_t made;
  json_t *files; /* [{node, output, side, file}] */
  json_t *taken;
} cli_dump;

/* Of --dump, into --output-dir, which is made. Without --dump nothing is done, and `files` stays NULL. */
hone_status cli_dump_open(const cli_args *args, cli_dump *out, hone_error *error);
/* What the library wants: NULL without --dump. */
const hone_dump *cli_dump_of(const cli_dump *dump);
/* Says where they are, and which have no value of their own on a side. */
void cli_dump_say(const cli_dump *dump);
/* whole: false removes what was written. */
void cli_dump_close(cli_dump *dump, bool whole);

#endif
