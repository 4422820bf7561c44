/* Building a plan (step/step.h): steps by lowering, then where their tensors lie and what they need.
 * Immutable afterwards, shared by contexts. */
#ifndef HN_OPTIMIZE_PLAN_PLAN_H
#define HN_OPTIMIZE_PLAN_PLAN_H

#include "optimize/step/step.h"

/* Is the step outside of what is captured: done by the host, or with addresses and sizes that only the run
 * knows? */
bool hn_step_apart(const hn_plan *p, const hn_step *s);

/* May output i's slot lie in the caller's memory, of the kind that its step writes? It has bytes of its own
 * that no other output shows. */
bool hn_plan_movable(const hn_plan *plan, uint32_t i);
/* The input over which output i may be made, since the step that makes it can, and nobody reads the input
 * behind it; -1: none. */
int32_t hn_plan_over(const hn_plan *plan, uint32_t i);
/* On an accelerator: do steps of the host read plan input `input`? Then it cannot lie in the device's memory.
 */
bool hn_plan_read_here(const hn_plan *plan, uint32_t input);

typedef struct hn_plan_request {
  const hn_backend *backend;
  hn_device *device;
  hn_model *model; /* bound and optimised; the plan retains it */
  int level;       /* fusion in lowering: 0 none, 1 conv + activation, 2 everything */
  hn_precision precision;
  const char *const *f32_nodes; /* names of nodes that are f32 in any case */
  uint32_t n_f32_nodes;
  const hn_model *stored; /* the file that says the precision by its types: where only some of it is bf16, the
                             rest stays f32. NULL: the caller said it */
  bool reference;
  bool prefer_memory;  /* of tactics, only those with (nearly) the least packed bytes */
  const char *tactics; /* globs or NULL */
  bool own_model;      /* nobody else reads the model's own constants: those that were packed may go */
  bool *beyond; /* NULL, or: set when deferred weights leave f32's range; optimise without deferring then */
  hn_tuned *tuned;          /* measured choices or NULL; borrowed until the plan is built */
  hn_packed_store *store;   /* NULL, or where weights are left and looked for */
  hn_saved *saved;          /* NULL, or a file whose decisions are followed; taken, also on failure */
  const hn_decisions *like; /* NULL, or those of a plan for other shapes, which are taken as they are: where
                               they lead to other questions, there is no plan (HONE_ERROR_UNSUPPORTED) */
  hone_chains chains;
  uint32_t fusions_off;  /* bits 1 << hn_fusion: never made */
  bool lends;            /* outputs made over an input are always bound: hone_plan_options.over_bound */
  bool separate;         /* no step of several nodes */
  bool keep_concats;     /* none is left out */
  bool preview;          /* decisions only: nothing is packed or placed, and the plan cannot run */
  const hn_ports *ports; /* NULL: all inputs and outputs are row-major */
  uint32_t slices;       /* the model is one of so many slices of the batch; 0: it is the whole */
  uint32_t
      *best_slices; /* NULL, or in: how many are wanted (0: the best number), out: how many there may be.
                       More than 1: then no plan is made; 1: *no_slices says why, where it may be asked */
  hone_reason *no_slices;
} hn_plan_request;

/* Lowers, chooses tactics, plans memory, packs constants. *out is NULL where slices are. */
hone_status hn_plan_build(const hn_plan_request *request, hn_plan **out, hone_error *error);
void hn_plan_free(hn_plan *plan);

/* Parts of hn_plan_build, in order, after hn_lower. */
hone_status hn_plan_gather_waits(hn_plan *plan,
                                 hone_error *error); /* waits.c: waits for the device together */
void hn_plan_elide(hn_plan *plan);                   /* elide.c: leaves out Concats */
void hn_plan_narrow_images(hn_plan *plan);           /* images.c: pixels of few channels, for accelerators */
hone_status hn_plan_lanes(hn_plan *plan, hone_error *error); /* lanes.c: what may run beside what */
hone_status hn_plan_place(hn_plan *plan, hone_error *error); /* memory.c: lifetimes and offsets */
/* On several lanes: is everything else that reads the slot, a root, done before step k begins? */
bool hn_plan_all_before(const hn_plan *plan, uint32_t root, uint32_t k);
/* over.c: hn_plan.over and, where hn_plan.lends, which slots are lent. Part of hn_plan_place. */
hone_status hn_plan_find_over(hn_plan *plan, hone_error *error);
/* For tensors that have other sizes now; what shares memory is as it was decided. */
hone_status hn_plan_place_again(hn_plan *plan, hone_error *error);
hone_status hn_plan_needs(hn_plan *plan, hone_error *error); /* pack.c: what every step wants to have */
hone_status hn_plan_prepack(hn_plan *plan, const hn_plan_request *request,
                            hone_error *error); /* pack.c: blob, and the constants that runs read */

/* device.c, for devices with memory of their own: sends the packed weights (`blob`, host memory) and the
 * constants that steps read; brings the weights back (into blob_bytes); makes ready what steps will launch.
 */
typedef struct hn_upload {
  const void *blob;   /* of the host */
  const uint64_t *at; /* [steps] where a step's bytes lie in it; NULL: at its blob_offset */
  const struct hn_packed_key
      *key;          /* [steps] what of a step that may share all of its blob the bytes follow from, */
  const bool *keyed; /* ...where it was wanted; NULL: nowhere */
} hn_upload;
/* With a store what plans have in common is there once; NULL is fine. */
hone_status hn_plan_upload(hn_plan *plan, const hn_upload *what, hn_packed_store *store, hone_error *error);
hone_status hn_plan_download(const hn_plan *plan, void *blob, hone_error *error);
hone_status hn_plan_prepare(hn_plan *plan, hone_error *error);
/* Of one step, as one tactic would run it; from any thread. */
hone_status hn_step_prepare(const hn_plan *plan, const hn_step *step, const hone_tactic_desc *tactic,
                            hone_error *error);

/* plan.c: is the node one function of its inputs that no tactic of its own computes? Its program, in the
 * arena, where `program` is not NULL: for nodes that only the run meets. */
bool hn_plan_function(const hn_plan *plan, const hone_node *n, hn_arena *arena, hone_pw_program *program);
/* plan.c: "f32", "bf16"..., as far as the backend knows them. NULL: that of the file's weights (bf16; f16 on
 * accelerators) where all are stored in 16 bits, else f32; on the processor bf16 where some are in bf16: a
 * request with `stored` keeps it to these. */
hone_status hn_precision_parse(const char *name, const hn_backend *backend, const hn_model *model,
                               hn_precision *out, hone_error *error);

#endif
