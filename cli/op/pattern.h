/* Does a pattern compute what its operator computes? */
#ifndef HONE_CLI_OP_PATTERN_H
#define HONE_CLI_OP_PATTERN_H

#include "cli/op/subject.h"

typedef struct op_pattern_result {
  uint32_t cases; /* in which the pattern matched the nodes that it describes, and both were computed */
  bool failed;
  double worst;       /* error in terms of the operator's bound (answer.h) */
  char what[400];     /* failed: what differs first; no case at all: why there is none */
  char text[OP_TEXT]; /* failed: the case */
} op_pattern_result;

/* The nodes of one spelling of a pattern, written out, run on the reference with the inputs that the
 * operator's own reference gets, with the attributes that the pattern gives it; in a process of its own.
 * `pattern` has one spelling. given[n_given]: shapes to begin with, or NULL. Errors: HONE_ERROR_MEMORY. */
hone_status op_pattern_try(const op_subject *s, const hone_pattern_desc *pattern, const op_shape *given,
                           uint32_t n_given, uint64_t seed, double max_seconds, op_pattern_result *out,
                           hone_error *error);

#endif
