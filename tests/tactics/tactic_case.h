/* Cases of check_tactics: one line of text as a node with inputs and the reference's outputs. */
#ifndef HN_TESTS_TACTIC_CASE_H
#define HN_TESTS_TACTIC_CASE_H

#include "base/rng.h"
#include "model/ir/graph.h"

#include <hone/plugin.h>
#include <stdio.h>

enum { MAX_TENSORS = 16 };

typedef struct one_case {
  char line[1024], op[64], required[8];
  hn_model *model;
  hone_node *node;
  hone_node *before; /* ConvChain: the convolution in front of `node` */
  uint32_t n_in, n_out;
  bool constant[MAX_TENSORS], present[MAX_TENSORS];
  hone_tensor in[MAX_TENSORS], want[MAX_TENSORS]; /* row-major */
  bool moves;
} one_case;

void die(const char *what, const char *line) __attribute__((noreturn));

/* The lines of a file of cases. A sweep, "for M=1,65 K=64 : Gemm : f32[M,K] =f32[K,8]", is one line for
 * each choice of its sizes: single capital letters within brackets, or alone behind an attribute's =. */
typedef struct case_file {
  FILE *file;
  char sweep[1024]; /* what follows the sizes; "" between sweeps */
  int n;
  struct {
    char name;
    int count, at;
    long size[16];
  } axis[6];
} case_file;

enum { MOST_CASE_FILES = 32 };
/* Appends what is at the path: a file of cases, or a folder of such, which end in .txt, in the order of their
 * names. False: there is none, or they are too many. */
bool open_cases(const char *path, case_file files[MOST_CASE_FILES], size_t *n);
/* The next line that contains `filter` and is no comment; false at the end. */
bool next_case(case_file *f, const char *filter, char line[1024]);
/* Inputs come from the generator, so that a line is always the same case. */
void read_case(one_case *c, const char *line, hn_rng *rng);
/* `storage`: what inputs were rounded to. */
void compute_reference(one_case *c, hone_dtype storage, hn_arena *keep);
/* Instead of the reference where nobody is judged by it: what outputs are, all of them 0. False: only the
 * reference could tell. */
bool describe_outputs(one_case *c);
void free_case(one_case *c);

/* Identity's reference is also that of the step that changes layouts. */
const char *anchor_of(const one_case *c);
/* r, c, p, m or n, of an input or an output. */
void set_layout(hone_tensor_desc *d, char layout, bool output);
/* Goes over a tensor's elements in row-major order; begins as {0}. */
typedef struct walk {
  int64_t at[HONE_MAX_RANK], offset;
} walk;

/* Offset of the element that is next. */
static inline int64_t next_offset(walk *w, const hone_tensor_desc *d) {
  const int64_t offset = w->offset;
  for (int32_t k = d->rank - 1; k >= 0; k--) {
    w->offset += d->stride[k];
    if (++w->at[k] < d->dim[k]) break;
    w->offset -= d->dim[k] * d->stride[k], w->at[k] = 0;
  }
  return offset;
}

void copy_in(const hone_tensor *from, const hone_tensor_desc *to, unsigned char *data);

typedef struct device_check {
  const char *device, *filter;
  const char *tactic; /* which, as HONE_TACTICS says it; NULL: all */
  bool verbose;
  bool sizes;             /* cases differ in sizes alone: one epilogue is enough */
  bool coverage;          /* run nothing: which tactics does no case reach? */
  bool thin;              /* of variants no more than is_new wants */
  bool once;              /* every tactic on the first case that it takes in a storage type */
  bool unjudged;          /* outputs are looked at by nobody: what counts is which texts are asked for */
  uint32_t shard, shards; /* this process's share, of `shards`; 0 and 1: all */
} device_check;

/* Every case through every tactic of the device's backend. 0: all agreed; 1: some did not, or with `coverage`
 * some are reached by no case; prints SKIP and returns SKIPPED where there is no such device. */
int check_on_device(const device_check *o, case_file *cases, size_t n_files);
/* An option of the above at argv[i]; how many words it takes, 0: it is none, -1: its value is wrong. */
int read_device_option(device_check *o, char **argv, int left);
#define DEVICE_USAGE "--device cuda [--tactic NAME] [--shard I/N] [--once | --thin | --coverage] [--unjudged]"

#endif
