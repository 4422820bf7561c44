/* Operators as models in hone's text form. */
#ifndef HONE_CLI_OP_NETWORK_H
#define HONE_CLI_OP_NETWORK_H

#include "cli/op/subject.h"

#define OP_NETWORK 6000

/* The operator as the only node, or the nodes of its pattern's first spelling. Inputs have their names of
 * op_input_name, constants random values. False: it has no pattern, or the text is too long. */
bool op_network_of_operator(const op_subject *s, const op_sample *sample, char *buf, size_t size);
bool op_network_of_pattern(const op_subject *s, const op_sample *sample, char *buf, size_t size);

#endif
