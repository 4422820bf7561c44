/* Cases of check_tactics: one line of text as a node with inputs and the reference's outputs. */
#ifndef HN_TESTS_TACTIC_CASE_H
#define HN_TESTS_TACTIC_CASE_H

#include "base/rng.h"
#include "model/ir/graph.h"

#include <hone/plugin.h>
#include <stdio.h>

enum { MAX_TENSORS = 10 };

typedef struct one_case {
  char line[1024], op[64], required[8];
  hn_model *model;
  hone_node *node;
  uint32_t n_in, n_out;
  bool constant[MAX_TENSORS], present[MAX_TENSORS];
  hone_tensor in[MAX_TENSORS], want[MAX_TENSORS]; /* row-major */
  bool moves;
} one_case;

void die(const char *what, const char *line) __attribute__((noreturn));
/* Inputs come from the generator, so that a line is always the same case. */
void read_case(one_case *c, const char *line, hn_rng *rng);
void compute_reference(one_case *c, hn_arena *keep);
void free_case(one_case *c);

/* Identity's reference is also that of the step that changes layouts. */
const char *anchor_of(const one_case *c);
/* r, c, p, m or n, of an input or an output. */
void set_layout(hone_tensor_desc *d, char layout, bool output);
/* Offset of the i-th element in row-major order. */
int64_t offset_of(const hone_tensor_desc *d, int64_t i);
void copy_in(const hone_tensor *from, const hone_tensor_desc *to, unsigned char *data);

/* Every case through every tactic of the device's backend; tactic: which, as HONE_TACTICS
 * says it. 0: all agreed; 1: some did not; prints SKIP and returns 0 where there is no such device. */
int check_on_device(const char *device, FILE *cases, const char *filter, const char *tactic, bool verbose);

#endif
