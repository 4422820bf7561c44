/* What came out of the cases of one tactic, of one element type and layout. Flat: it lies in memory that two
 * processes share. */
#ifndef HONE_CLI_OP_ROW_H
#define HONE_CLI_OP_ROW_H

#include "cli/op/sample.h"

enum { OP_REASONS = 4, OP_FAILURES = 4 };

typedef struct op_refusal {
  uint32_t times;
  char why[170];
} op_refusal;

typedef struct op_failure {
  uint32_t at;     /* number of the case */
  double elements; /* of its inputs */
  char what[400];  /* "run 2 (...): it reads 4 bytes behind input 0" */
  char text[OP_TEXT];
} op_failure;

typedef struct op_row {
  uint32_t cases;
  double worst; /* error in terms of its bound; 1 and less is right */
  uint32_t n_refusals, n_failed;
  op_refusal refusal[OP_REASONS];  /* of inference and of the tactic, those that came most often first */
  op_failure failure[OP_FAILURES]; /* the smallest, in that order */
} op_row;

void op_row_refused(op_row *row, const char *why);
uint32_t op_row_failures(const op_row *row); /* that are kept */
void op_row_failed(op_row *row, uint32_t at, double elements, const char *text, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
