/* What a chain answered, where its time went and where its memory is. */
#ifndef HONE_CLI_REPORTS_CHAIN_H
#define HONE_CLI_REPORTS_CHAIN_H

#include <hone/hone.h>
#include <jansson.h>

/* Sums over the runs that count. */
typedef struct cli_chain_sums {
  uint32_t runs;
  uint32_t n;            /* stages */
  hone_chain_time *time; /* [n] */
  hone_chain_total total;
} cli_chain_sums;

hone_status cli_chain_sums_open(cli_chain_sums *sums, const hone_chain *chain, hone_error *error);
void cli_chain_sums_add(cli_chain_sums *sums, const hone_chain *chain);
void cli_chain_sums_free(cli_chain_sums *sums);

/* All outputs of the last run, by name. */
json_t *cli_chain_outputs_json(const hone_chain *chain);
json_t *cli_chain_time_json(const cli_chain_sums *sums, const hone_chain *chain);
json_t *cli_chain_memory_json(const hone_chain *chain);

/* The same for people. */
void cli_chain_outputs_print(const hone_chain *chain);
void cli_chain_time_print(const cli_chain_sums *sums, const hone_chain *chain);
void cli_chain_memory_print(const hone_chain *chain);

#endif
