/* One side of a comparison: a model planned for one engine, run on given inputs. Inside of improve only. */
#ifndef HN_IMPROVE_SIDE_H
#define HN_IMPROVE_SIDE_H

#include "optimize/step/step.h"
#include "runtime/context.h"

#include <hone/data.h>
#include <hone/improve.h>

typedef struct hn_side_options {
  const char *isa;       /* NULL: the best tier */
  int level;             /* of passes and lowering */
  bool reference;        /* scalar references only */
  const char *device;    /* NULL: the CPU */
  const char *precision; /* NULL: the file's; save in the nodes named: */
  const char *const *f32_nodes;
  uint32_t n_f32_nodes;
  uint32_t threads;
  hone_chains chains;
  bool keep_concats; /* each is a step */
  const hone_binding *bindings;
  uint32_t n_bindings;
  int64_t batch;
  bool sliced; /* a large batch in slices, as for users; else values between steps are those of all of it */
} hn_side_options;

typedef struct hn_side {
  const hn_backend *backend;
  hn_device *device;
  /* The best tier runs as it would for users: with what was tuned, and without what HONE_TACTICS leaves out.
   */
  hn_tuned *tuned;
  const char *masks;
  hn_plan *plan;
  hn_context *context;
  double max_seconds; /* of one run; 0: none */
} hn_side;

hone_status hn_side_open(hn_model *model, const hn_side_options *options, hn_side *out, hone_error *error);
/* A saved plan as it is; of the options only the threads count (0: those of the plan). */
hone_status hn_side_open_saved(const char *path, const hn_side_options *options, hn_side *out,
                               hone_error *error);
void hn_side_close(hn_side *side);

/* A set of inputs by name, shared by both sides. */
typedef struct hn_feed {
  const char *name;
  hone_data data;
} hn_feed;
/* Inputs are found by name; those of a side that has other names are taken in order. */
hone_status hn_side_run(hn_side *side, const hn_feed *feeds, uint32_t n, hone_error *error);

/* The output of this name or, where none has it, in this place; -1: none. */
int hn_output_of(const hn_plan *plan, const char *name, uint32_t i);

/* The first value of `test` in execution order that differs from the like-named value of `reference` and from
 * which on nothing agrees again (values that a pass renamed do agree again). Writes "node 'x' (Conv)" into
 * buf; "" when every value agrees. Both sides have just run on the same inputs; they are run again. */
hone_status hn_side_localise(hn_side *test, hn_side *reference, const hn_feed *feeds, uint32_t n,
                             double tolerance, char *buf, size_t size, hone_error *error);

/* Right answers of one step from equal inputs are those of some choice of its roundings, its last and those
 * in its midst, where what is rounded lies about halfway between two levels (roundings.h). Where some
 * rounding is not seen they differ by this many levels of an 8-bit value at the most; where not every choice
 * can be made, so many elements may differ by that without one: this share of a value's, or one. */
#define HN_STEPWISE_LEVELS 1
#define HN_STEPWISE_ASTRAY 0.001

typedef enum hn_stepwise_fault {
  HN_STEPWISE_RIGHT = 0,
  HN_STEPWISE_WRONG_LEVELS, /* more than HN_STEPWISE_LEVELS, by no choice */
  HN_STEPWISE_WRONG_ASTRAY, /* a level where nothing was to be rounded either way */
  HN_STEPWISE_WRONG_OUTPUT  /* an output of the model that is no rounding, beyond the bound of its type */
} hn_stepwise_fault;

typedef struct hn_stepwise {
  uint32_t steps;  /* codes of 8 and 16 bits that were compared */
  uint32_t unseen; /* that were not: the reference has none of their names, no memory or time was left, or
                      they differ and nothing is known of the roundings before them */
  double worst;    /* levels */
  double differ;   /* largest share of a value's elements that differ by a level */
  double astray;   /* and of those that differ and that no choice of roundings makes */
  double apart;    /* of outputs that are no roundings: largest difference, relative to their range */
  hn_stepwise_fault fault;
  char node[128];  /* the first with one; "": none */
  double wrong;    /* its levels, share or relative difference, and */
  int64_t element; /* where */
} hn_stepwise;

/* Runs both sides once more, every step of `test` on what the reference made. For models with values of 8
 * bits. Values that it has no name for are judged by their own nodes' references, outputs by the reference's
 * alone: those of hn_output_of. narrowest: the arithmetic's type, NONE: f32; in another, a level is allowed
 * anywhere. `out` is added to. */
hone_status hn_side_stepwise(hn_side *test, hn_side *reference, const hn_feed *feeds, uint32_t n,
                             hone_dtype narrowest, hn_stepwise *out, hone_error *error);

#endif
