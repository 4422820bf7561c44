/* Steps, the slots that they work on, and the plan that holds them: lowering fills it, planning finishes it,
 * runs read it. */
#ifndef HN_OPTIMIZE_STEP_STEP_H
#define HN_OPTIMIZE_STEP_STEP_H

#include "base/integers.h"
#include "model/ir/graph.h"
#include "optimize/step/backend.h"
#include "optimize/step/near.h"
#include "optimize/step/shared.h"

#include <hone/session.h>

#define HN_NO_SLOT 0xffffffffu

/* Constants up to this many bytes stay after packing: what a step is (pads, axes, starts) can be asked again,
 * by tuning for one. */
#define HN_SMALL_CONSTANT 4096

typedef enum hn_place {
  HN_PLACE_ARENA,  /* at `offset` of the context's arena; of host tensors of an accelerator's plan: of its
                      host arena */
  HN_PLACE_INPUT,  /* the caller's memory for plan input `input` */
  HN_PLACE_STAGED, /* accelerators: plan input `input` at `offset` of the context's block of inputs, where it
                      is copied before the first step */
  HN_PLACE_CONST,  /* `constant`: the model's or the plan's memory */
  HN_PLACE_HEAP /* made at run time: dimensions or bytes are known only then; in the memory that desc.device
                   says */
} hn_place;

/* A tensor in memory: one graph value in one layout. */
typedef struct hn_slot {
  hone_tensor_desc desc;
  const hn_value *value;
  hn_place place;
  uint32_t alias; /* slot whose bytes these are (a view), or HN_NO_SLOT; place is then the root's */
  uint32_t input;
  const void *constant;
  const void *resident; /* of constants that steps on an accelerator read: where they are in its memory */
  bool lent;            /* callers always bind it: contexts have no room for it */
  bool packed;          /* of constants: its bytes are in the blob, and nobody needs them elsewhere */
  const hn_deferred *deferred; /* of constants, until packing: the bytes are still to be made from this;
                                  `constant` shows where they come from */
  uint64_t offset, bytes;      /* offset: in the arena; of an alias: from where its root begins */
  uint32_t first,
      last; /* steps between which the bytes must stay; last == UINT32_MAX: to the end of the run */
} hn_slot;

typedef enum hn_step_kind {
  HN_STEP_TACTIC,  /* a backend's tactic */
  HN_STEP_REF,     /* the operator's scalar reference, on row-major host memory */
  HN_STEP_COPY,    /* between the host arena and the device's */
  HN_STEP_CONTROL, /* If, Loop, Scan: bodies by evaluation */
  HN_STEP_LATE     /* a tactic chosen in the run, when shapes and the values of small inputs on the host are
                      known (runtime/late.h) */
} hn_step_kind;

typedef struct hn_step {
  hone_step desc; /* what tactics see */
  hn_step_kind kind;
  hone_step_role role;
  uint32_t *in, *out;    /* slots; HN_NO_SLOT: left out */
  uint32_t n_captured;   /* CONTROL: slots that bodies read, after the node's own inputs in `in` */
  const hone_node *node; /* anchor or NULL */
  uint32_t n_nodes;
  const hone_node **nodes; /* the graph nodes that the step replaced */
  uint32_t n_origin;
  const uint32_t *origin;         /* model->source indices */
  const hone_tactic_desc *tactic; /* NULL for REF and CONTROL */
  hone_tactic_need need;
  const void *blob;
  hn_sharing sharing;    /* what of the blob may be another plan's or step's; whole: devices' */
  size_t shared_at;      /* of a part: from here on; else 0 */
  uint64_t shared_key;   /* as the tactic's `shared` says it */
  const void *shared;    /* the blob from shared_at on; NULL: behind the rest */
  bool found;            /* ...another plan packed it, or another step: */
  uint32_t twin;         /* ...of this plan, its number and 1; 0: none */
  uint64_t blob_offset;  /* as if everything lay in one block */
  double predicted_s;    /* measured, where `tuned` */
  const char *signature; /* of TACTIC steps: what measurements of it are filed under, tuned.h */
  bool tuned;            /* the tactic was chosen by measurement */
  uint32_t threads;      /* on which the step runs; 0: all of the device */
  uint32_t lane;         /* accelerators: steps of one lane run in order */
  /* REF: small numbers that say what shapes are, computed where they are wanted. All its operands and results
   * are the host's. */
  bool shape_work;
  bool late_last;      /* LATE: where no tactic takes row-major tensors, input 0 and the outputs may be
                          channels-last */
  bool flush;          /* denormal numbers count as zero, denormals.h */
  double denormal_pct; /* of a product's weights, where they count as what they are; negative: not known */
  double sparse_pct;   /* groups of four weights with two zeros or more, sparsity.h; negative: not known */
  const char *what;    /* "Conv + bias + Add + Relu" */
  uint32_t n_refused;
  const hone_refusal *refused; /* [n_refused] what did not take it */
} hn_step;

/* What may be narrower than f32, and where. */
typedef enum hn_precision {
  HN_PRECISION_F32 = 0,
  HN_PRECISION_BF16, /* CPU: operands of matrix products; accelerators: also what is stored between steps */
  HN_PRECISION_F16,  /* the same in f16 */
  HN_PRECISION_TF32, /* accelerators: operands of matrix products */
  HN_PRECISION_FP8,  /* accelerators: operands of matrix products by constants; f16 between steps (level 3) */
} hn_precision;

static inline const char *hn_precision_name(hn_precision p) {
  static const char *const names[] = {"f32", "bf16", "fp16", "tf32", "fp8"};
  return names[p];
}

/* How the caller's tensors lie: channels-last where `last` says so of an input (then they do), or of an
 * output (then they may: output_desc says whether they do). The host's memory only. */
typedef struct hn_ports {
  bool (*last)(void *arg, bool output, const char *name);
  void *arg;
} hn_ports;

typedef struct hn_packed_store hn_packed_store; /* weights that plans have in common: plan/packed.h */
typedef struct hn_packed_block hn_packed_block;
typedef HN_VEC(hn_packed_block *) hn_packed_blocks;
typedef struct hn_decisions hn_decisions; /* what lowering chose: choose.h */
typedef struct hn_saved hn_saved;         /* a saved plan's file: plan/saved.h */
typedef struct hn_tuned hn_tuned;         /* measured choices: tuned.h */
typedef struct hn_moving hn_moving;       /* what changes with the sizes of inputs: plan/line.h */

typedef struct hn_plan {
  hn_arena arena;  /* everything of the plan that is not the blob */
  hn_model *model; /* optimised, bound; retained */
  const hn_backend *backend;
  const hn_listing *tactics; /* of the backend, when the plan was begun; held */
  hn_device *device;
  hn_tenant tenant; /* as which the plan and its contexts hold memory */
  hone_machine machine;
  int level;
  hone_math math; /* of every step, save those of the nodes below: at most f32 */
  hn_precision precision;
  hone_dtype storage; /* of f32 values between steps: F32, F16 or BF16 */
  const char **f32_nodes;
  uint32_t n_f32_nodes;
  bool reference;
  bool separate;
  bool preview;
  bool prefer_memory;
  bool lends;      /* outputs made over an input are lent, and on an accelerator these inputs */
  hn_tuned *tuned; /* consulted while the plan is built; borrowed, or NULL */
  hone_chains chains;
  uint32_t fusions_off; /* bits 1 << hn_fusion */
  hn_misses misses;     /* fusions that nearly happened */
  bool weighed;         /* lowering had to choose between one step and several: both deserve to be measured */
  const hn_ports *ports;   /* while the plan is built; NULL: all is row-major */
  bool has_heap;           /* some slot's bytes are made at run time */
  uint32_t n_values;       /* by value id, of the main graph: */
  const hone_quant *quant; /* what its codes mean */
  const bool *says_codes;  /* it is a scale or zero point of these: its bytes are never left to packing */
  HN_VEC(hn_slot) slots;
  HN_VEC(hn_step) steps;
  uint32_t n_inputs, n_outputs;
  const hn_value **inputs, **outputs;
  hone_tensor_desc *input_desc, *output_desc; /* as callers see them */
  uint32_t slices; /* of the batch that a run takes one after the other, at least 1: the steps, slots and
                      values are those of one (plan/slices.h) */
  uint32_t *
      over; /* by output: the slot, a root, over which it may be made, or HN_NO_SLOT; NULL: none was placed */
  uint32_t *input_slot, *output_slot; /* input_slot HN_NO_SLOT: nobody reads it */
  uint64_t arena_bytes, naive_bytes, constant_bytes, workspace_bytes, blob_bytes;
  uint64_t host_bytes;     /* accelerators: the host arena */
  uint64_t staged_bytes;   /* accelerators: the block of inputs */
  void *blob;              /* the CPU's; NULL for saved plans: their file holds it */
  hn_packed_blocks blocks; /* held: with a store, and on other devices, the blob is one of these, and others'
                              weights are, too */
  uint64_t found_bytes;    /* of blob_bytes: others packed them, */
  uint64_t twin_bytes;     /* ...of which other steps of this plan */
  hn_decisions *decisions; /* recorded, for saving */
  hn_decisions *follow;    /* of a saved plan, while it is lowered again; NULL: none */
  hn_saved *saved;         /* the file that it came from, or NULL */
  hn_moving *moving;       /* of a plan that may be one for other sizes, or NULL */
  int32_t *node_step;      /* by source node: executing step or -1 */
  const char **node_fate;  /* by source node */
  const char **masks;      /* tactic globs */
  uint32_t n_masks;
  uint32_t lanes;        /* accelerators: how many are used, at least 1 */
  uint64_t *before;      /* bit (k, j): step j happens before step k; NULL: all in order */
  uint32_t before_words; /* of a row */
} hn_plan;

/* Elements from one pixel to the next of channels-last tensors on an accelerator: it reads 16 bytes at a
 * time, so pixels begin at multiples of that. Images may lie closer (plan/images.c): tactics look. */
static inline int64_t hn_channel_pitch(const hone_tensor_desc *d) {
  const int64_t vector = 16 / (int64_t)hone_dtype_size(d->dtype);
  return vector > 1 ? hn_fill_up(d->dim[1], vector) : 0;
}

/* Does the host do it in place of the device, with what lives there? */
static inline bool hn_step_falls_back(const hn_step *s) {
  return (s->kind == HN_STEP_REF && !s->shape_work) || s->kind == HN_STEP_CONTROL;
}

/* What does the step, in reports: a tactic's name, or a word. */
static inline const char *hn_step_doer(const hn_step *s) {
  if (s->tactic) return s->tactic->name;
  return s->kind == HN_STEP_CONTROL ? "interpreted"
         : s->kind == HN_STEP_LATE  ? "late"
         : s->shape_work            ? "shape"
                                    : "ref";
}

/* What a caller gives for input i: type and dimensions. */
static inline const hone_tensor_desc *hn_plan_given(const hn_plan *p, uint32_t i) {
  return p->slices > 1 ? &p->input_desc[i] : &p->inputs[i]->desc;
}

/* Does step a happen before step b? */
static inline bool hn_before(const hn_plan *p, uint32_t a, uint32_t b) {
  return p->before ? p->before[(size_t)b * p->before_words + a / 64] >> a % 64 & 1 : a < b;
}

static inline uint32_t hn_slot_root(const hn_plan *p, uint32_t s) {
  while (p->slots.ptr[s].alias != HN_NO_SLOT) s = p->slots.ptr[s].alias;
  return s;
}

/* Where the slot's bytes begin in its root's. */
static inline uint64_t hn_slot_offset(const hn_plan *p, uint32_t s) {
  return p->slots.ptr[s].alias == HN_NO_SLOT ? 0 : p->slots.ptr[s].offset;
}

/* As hn_no_memory, and names the largest of the tensors in `places` (bits 1 << HN_PLACE_*). */
hone_status hn_plan_no_memory(const hn_plan *plan, uint64_t bytes, const char *what, uint32_t places,
                              hone_error *error);

#endif
