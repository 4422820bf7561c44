/* What hone tune found, and how it is shown. */
#ifndef HONE_CLI_TUNING_H
#define HONE_CLI_TUNING_H

#include "cli/options/session.h"

#include <hone/hone.h>
#include <jansson.h>

/* Two tactics this far apart are a choice that matters. */
#define CLI_APART 1.10
/* Share of such choices that the cost model has to get right. */
#define CLI_AGREEMENT 0.8

typedef struct cli_tuning {
  const char *path;
  cli_session before, after; /* untuned; after: tuned, when there is such a plan */
  hone_tune_report report;   /* of the untuned plan */
  uint32_t more;             /* steps that only tuned plans have, measured as well */
  bool differs;              /* the tuned plan runs something else than the untuned one */
  bool compared;
  double before_ms, after_ms; /* whole model, interleaved */
  bool slower;                /* the tuned plan, by more than noise: its choices are not kept */
  char file[512];             /* where the choices were written; "" when nowhere */
  bool unkept;                /* it was told that they cannot be written */
  uint32_t contested, agree;  /* steps with tactics far apart; those where the cost model is right */
} cli_tuning;

/* Counts contested and agree. */
void cli_tuning_agreement(cli_tuning *tuning);
json_t *cli_tuning_json(const cli_tuning *tuning);
int cli_tuning_text(const cli_tuning *tuning, bool check);

#endif
