/* Dynamic shapes: one model, inputs of any shape within bounds.
 *
 * A plan has fixed shapes. A hone_shapes keeps plans of one model for the sizes that come, which share the
 * weights that do not depend on them, makes those that are missing (in the background, when that is wanted),
 * and lets go of those that were not used for longest. Where the model's meaning allows it, an input is
 * padded to the next size for which a plan is kept: only along dimensions of which every operator of the
 * model was proved to leave the answer alone, bit for bit.
 *
 * All functions may be called from several threads at once, except hone_shapes_destroy. */
#ifndef HONE_SHAPES_H
#define HONE_SHAPES_H

#include <hone/session.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_shapes hone_shapes;
typedef struct hone_shapes_answer hone_shapes_answer;

/* For which sizes of a dimension that may be padded plans are made; min, opt and max are always
 * among them. */
typedef enum hone_buckets {
  HONE_BUCKETS_POWERS = 0, /* powers of two */
  HONE_BUCKETS_STEP,       /* multiples of `step` */
  HONE_BUCKETS_LIST        /* those of `list` */
} hone_buckets;

/* What a symbolic dimension of the model may be. */
typedef struct hone_size_profile {
  const char *symbol;    /* name of the dimension, as hone_port has it: "N" */
  int64_t min, opt, max; /* 1 <= min <= opt <= max; opt: mostly, a plan for it is made at once */
  hone_buckets buckets;
  int64_t step;        /* HONE_BUCKETS_STEP */
  const int64_t *list; /* [n_list] HONE_BUCKETS_LIST, in any order, within min and max */
  uint32_t n_list;
} hone_size_profile;

enum { HONE_PROFILES = 8 };

typedef struct hone_shapes_options {
  const hone_size_profile *profiles; /* [n_profiles], at most HONE_PROFILES; copied */
  uint32_t n_profiles;
  /* Of all plans; NULL: the defaults. Bindings may fix dimensions without a profile; `preview` may not be
   * set. Strings and arrays are borrowed as long as the hone_shapes lives. */
  const hone_plan_options *plan;
  uint32_t capacity;  /* plans that are kept; 0: 8. Those that run or are asked for count, and are not let go
                         of: while more than these are in use at once, there are more */
  uint64_t max_bytes; /* of weights, kept constants, and activations of their contexts; 0: no bound. At least
                         one plan is kept */
  bool background;    /* make missing plans behind the callers' backs while a larger one serves by padding */
  bool never_pad;     /* every size has a plan of its own */
} hone_shapes_options;

/* Keeps the model alive, and borrows the engine. Makes the plan for `opt`, so that what is wrong with the
 * model is said here. HONE_ERROR_USAGE: a symbol that no input has, bounds that are none. */
HONE_API hone_status hone_shapes_create(hone_engine *engine, hone_model *model,
                                        const hone_shapes_options *options, hone_shapes **out,
                                        hone_error *error);
/* After all answers were released; waits for what is made in the background. NULL is fine. */
HONE_API void hone_shapes_destroy(hone_shapes *shapes);

/* Runs the model on in[i], one for each plan input in order (hone_plan_inputs: those without an initializer):
 * row-major host tensors of any shape within the profiles, borrowed during the call. The answer is the
 * caller's until hone_shapes_answer_release, and holds a plan; other threads may run the same one meanwhile,
 * in contexts of their own. Errors: HONE_ERROR_USAGE names the input and dimension that are outside, and what
 * is allowed; those of hone_plan_create and hone_context_run. */
HONE_API hone_status hone_shapes_run(hone_shapes *shapes, const hone_tensor *const *in,
                                     const hone_run_options *options, hone_shapes_answer **out,
                                     hone_error *error);
/* Without the rows that padding added; until the answer is released. */
HONE_API const hone_tensor *hone_shapes_answer_output(const hone_shapes_answer *answer, uint32_t i);
/* The plan that was used: its input shapes are the padded ones. */
HONE_API const hone_plan *hone_shapes_answer_plan(const hone_shapes_answer *answer);
HONE_API bool hone_shapes_answer_padded(const hone_shapes_answer *answer);
HONE_API void hone_shapes_answer_release(hone_shapes_answer *answer); /* NULL is fine */

/* A context for exactly these sizes (size[i] belongs to profile i), never padded, for who wants to bind
 * memory, submit or record. The plan is made now if it is not there. Give it back with hone_shapes_release,
 * with no run under way and without what was bound. */
HONE_API hone_status hone_shapes_acquire(hone_shapes *shapes, const int64_t *size, hone_context **out,
                                         hone_error *error);
HONE_API void hone_shapes_release(hone_shapes *shapes, hone_context *context);

/* Makes the plans for all buckets, as many as are kept, smallest first. */
HONE_API hone_status hone_shapes_prepare(hone_shapes *shapes, hone_error *error);
/* Until nothing is made in the background any more. */
HONE_API void hone_shapes_wait(hone_shapes *shapes);

/* Profile i: may the dimension be padded? False with what stands against it. */
HONE_API bool hone_shapes_pads(const hone_shapes *shapes, uint32_t i, const char **reason);
/* The sizes for which plans are made: buckets[0] <= ... of profile i; returns how many. Where a dimension is
 * not padded, every size has its plan, and these are what hone_shapes_prepare makes. */
HONE_API uint32_t hone_shapes_buckets(const hone_shapes *shapes, uint32_t i, const int64_t **sizes);

/* A plan that is kept. */
typedef struct hone_shape_plan {
  int64_t size[HONE_PROFILES]; /* by profile */
  double plan_s;               /* how long it took to make, and */
  double plan_cpu_s;           /* processor time of the thread that made it */
  double predicted_s;          /* of a run: the sum of its steps */
  uint64_t own_bytes;          /* constants that it brought */
  uint64_t shared_bytes;       /* constants that it reads where another plan left them */
  uint64_t arena_bytes;        /* activations of a context */
  double most_waste_pct;       /* of the work, where the smallest input is padded to it; 0: never padded */
  uint64_t runs, padded_runs;
  uint32_t in_use; /* answers and contexts out */
} hone_shape_plan;

typedef struct hone_shapes_counts {
  uint32_t plans, waiting;      /* kept; to be made in the background */
  uint64_t bytes;               /* as max_bytes counts them; what is shared counts once */
  uint64_t exact, padded, made; /* runs by a plan for their bucket, by a larger one, after making one */
  uint64_t evicted, failed;     /* plans let go of; plans that could not be made in the background */
  uint64_t moved;               /* of those made: by changing one that was there (hone_plan_rebind) */
} hone_shapes_counts;

/* From any thread; all 0 where shapes is NULL. */
HONE_API void hone_shapes_count(hone_shapes *shapes, hone_shapes_counts *out);
/* Plan i of those that are kept now, least used first; false behind the last. */
HONE_API bool hone_shapes_plan(hone_shapes *shapes, uint32_t i, hone_shape_plan *out);

#ifdef __cplusplus
}
#endif
#endif
