/* What races say: rows of a table. */
#ifndef HONE_CLI_OP_RACE_REPORT_H
#define HONE_CLI_OP_RACE_REPORT_H

#include "cli/op/race.h"

#include <jansson.h>
#include <stdio.h>

/* Roofs of the device; 0: not known. */
typedef struct op_roofs {
  double flops;              /* f32, a second */
  double bytes[3];           /* a second: L2, L3, memory */
  double l2_bytes, l3_bytes; /* of all threads; of the machine */
  bool allocates;            /* what is written past the caches is read before, line by line */
} op_roofs;

typedef struct op_line {
  const op_version *version;
  double against_nodes;  /* times as fast as the unfused nodes; NaN: there are none */
  double against_others; /* as the fastest other tactic */
  double roof;           /* share of it that is reached */
  char note[340];
} op_line;

void op_lines_print(const op_race *race, const op_roofs *roofs);
json_t *op_lines_json(const op_race *race, const op_roofs *roofs);
/* A Markdown table. */
void op_lines_markdown(FILE *to, const op_race *race, const op_roofs *roofs);

#endif
