/* Plans by the sizes that they are for: which there are, which are made, which go. */
#ifndef HN_API_SHAPES_KEEP_H
#define HN_API_SHAPES_KEEP_H

#include "api/shapes/buckets.h"
#include "api/shapes/proofs.h"
#include "base/vec.h"

typedef struct hn_kept hn_kept;
typedef struct hn_keep hn_keep;

/* A context of a kept plan, with what a run by padding needs. One caller has it at a time. */
struct hone_shapes_answer {
  hn_keep *keep;
  hn_kept *kept;
  hone_context *context;
  bool out, ran, padded;
  size_t extra;           /* bytes beside the context, as the keep knows them */
  const hone_tensor **in; /* [inputs] */
  hone_tensor *longer;    /* [inputs] padded ones; data owned */
  size_t *longer_room;
  hone_tensor *result; /* [outputs] as callers see them */
  void **cut;          /* [outputs] memory of those that are no prefix; owned */
  size_t *cut_room;
  hn_pad *map; /* [profiles][inputs + outputs] */
};

struct hn_kept {
  hn_sizes size;
  hone_plan *plan; /* NULL: is being made */
  uint32_t in_use; /* leases out, and those who are about to take one, or make the plan */
  uint64_t stamp;  /* of the last use */
  uint64_t runs, padded_runs;
  double plan_s, plan_cpu_s;
  HN_VEC(hone_shapes_answer *) leases;
};

typedef struct hn_keep_options {
  hone_engine *engine;
  hone_model *model;
  const hone_plan_options *plan; /* borrowed, as is symbol */
  char *const *symbol;
  const bool *pads; /* by profile */
  uint32_t n_profiles, capacity;
  uint64_t max_bytes;
  bool background;
} hn_keep_options;

hone_status hn_keep_create(const hn_keep_options *options, hn_keep **out, hone_error *error);
void hn_keep_destroy(hn_keep *keep);
hn_proofs *hn_keep_proofs(hn_keep *keep);

/* The plan for `target`: kept, made now, or, where `wanted` is given and the background is to make it, a
 * larger one to which wanted may be padded, and which serves until then. Given back by hn_keep_back. */
hone_status hn_keep_take(hn_keep *keep, const hn_sizes *wanted, const hn_sizes *target, hn_kept **out,
                         hone_error *error);
void hn_keep_back(hn_keep *keep, hn_kept *kept);
/* A context of a plan that was taken; going back, it also gives the plan back. */
hone_status hn_keep_lease(hn_keep *keep, hn_kept *kept, hone_shapes_answer **out, hone_error *error);
void hn_keep_return(hone_shapes_answer *lease);
/* The lease that is out with this context, or NULL. */
hone_shapes_answer *hn_keep_find(hn_keep *keep, const hone_context *context);

void hn_keep_wait(hn_keep *keep);
void hn_keep_count(hn_keep *keep, hone_shapes_counts *out);
bool hn_keep_plan(hn_keep *keep, uint32_t i, hone_shape_plan *out);

const char *hn_shapes_precision(const hone_shapes *shapes); /* of its plans (shapes.c) */

/* Tests: while held, nothing is begun in the background; and what a hone_shapes keeps (shapes.c). */
void hn_keep_hold(hn_keep *keep, bool hold);
hn_keep *hn_shapes_keep(hone_shapes *shapes);

#endif
