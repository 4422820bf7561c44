/* Lowering: from the graph to steps. Inside of optimize/lower only.
 *
 *   quantisation.c   what the codes of each value mean
 *   units.c      groups nodes into units: views, pointwise functions, anchors, fused patterns
 *   pattern_units.c, rotary.c, attention.c   what match/ finds in the graph, as units
 *   custom.c     whether a custom operator takes the place of its nodes
 *   qdq.c        float operators between DequantizeLinear and QuantizeLinear as what they mean in integers
 *   code_tables.c   functions between (de)quantisations as tables of codes
 *   codes_pointwise.c   pointwise functions from codes to codes
 *   codes_norms.c   norms from codes, to codes
 *   codes_sums.c   products of dequantised codes that stay f32
 *   integer_sums.c   products of codes that become f32 at once
 *   chain.c      joins convolutions around a depthwise one
 *   squeeze.c    joins an average, products of it and what they scale
 *   exact.c, stored.c   what stays f32 although the plan stores values narrow
 *   fuse.c       gives anchors their epilogues and grows pointwise groups
 *   pointwise.c  turns a group into a register program
 *   values.c     where values live: a slot for each form of a value
 *   draft.c      a step under construction, as tactics see it before anything is decided
 *   commit.c     a draft becomes a step of the plan, with the reformats that its inputs need
 *   late.c       what waits for shapes that only the run knows
 *   lower.c      emits the steps: layouts, views, tactics (hn_lower, lower.h)
 *
 * emit.h declares what the last four share.
 */
#ifndef HN_OPTIMIZE_LOWER_LOWERING_H
#define HN_OPTIMIZE_LOWER_LOWERING_H

#include "optimize/match/modes.h"
#include "optimize/step/anchor.h"
#include "optimize/step/choose.h"
#include "optimize/step/fusions.h"
#include "optimize/step/slots.h"

typedef enum hn_unit_kind {
  HN_UNIT_NODE,      /* anchor or anything else: one node */
  HN_UNIT_POINTWISE, /* one function of its operands; may be swallowed by a group or an epilogue */
  HN_UNIT_VIEW,      /* same elements in the same row-major order */
  HN_UNIT_PATTERN,   /* several nodes matched by a pattern with an anchor of its own */
  HN_UNIT_CODES,     /* a QuantizeLinear of functions of codes: one pointwise program with them absorbed */
  HN_UNIT_CHAIN      /* anchors one behind the other, each with its epilogue, as one step */
} hn_unit_kind;

enum { HN_UNIT_OPERANDS = 8 };

typedef struct hn_unit hn_unit;
struct hn_unit {
  hn_unit_kind kind;
  const char *anchor;    /* operator type or pattern name */
  const hone_node *node; /* root node (its output is the unit's) */
  uint32_t n_in;
  hn_value *const *in; /* operands */
  hn_value *out;       /* first output; the node may have more */
  uint32_t n_nodes;
  const hone_node **nodes; /* all nodes it stands for, root included */
  /* PATTERN: */
  const hn_strided *view; /* [n_in], or NULL: operands that tactics see as parts of other values (base NULL:
                             the operand as it is) */
  const hone_tensor_desc *out_view; /* the output with its dimensions in the tactic's order, or NULL */
  /* POINTWISE: */
  hone_pw_op op;
  float alpha, beta;
  bool chain; /* variadic (Sum, Max of many): op is applied from left to right; then times alpha for Mean */
  /* fusion: */
  hn_unit *into;       /* the unit that swallowed this one, or NULL */
  uint32_t n_absorbed; /* anchors: units of the epilogue, in order; pointwise roots: the group's units, root
                          last */
  hn_unit **absorbed;
  uint32_t order;   /* place of the root node in the graph */
  uint32_t n_parts; /* chains: the anchors' units, in order, with the views between them */
  hn_unit **parts;
  hn_value *const *inner; /* [n_parts] chains: what the part reads of the one before it; NULL: its input 0 */
  uint32_t n_notes;
  const hone_refusal *note; /* [n_notes] why fusions were not made; in the plan's arena */
};

typedef struct hn_lowering {
  hn_plan *plan;
  hn_arena *temp;
  HN_VEC(hn_unit *) units; /* in order of their root nodes */
  hn_unit **by_value;      /* value id -> unit that makes it */
  struct hn_draft *draft;  /* see hn_draft_scratch */
  struct hn_draft *guess;  /* of hn_lower_predict, which may be asked while that is in use */
  struct hn_draft *part;   /* of a chain that is being described */
  uint32_t **slot_of;      /* value id -> slot per form, HN_NO_SLOT where there is none */
  uint32_t *staged;        /* by plan input: its slot in the device's memory, or HN_NO_SLOT */
  bool *shape_value;       /* value id -> the host made it, as shape work (late.h) */
  uint8_t *says_shapes;    /* value id -> late.c's own */
  uint8_t *exact;          /* value id -> exact.c's own; NULL: nothing is stored narrow */
  bool stored;             /* which values of a processor's plan are narrow is decided (stored.c) */
  bool any;                /* whether a tactic takes the step is all that is asked */
  bool all_wide;           /* drafts: the step in f32 throughout, as no tactic mixes its types */
  bool filed;              /* drafts: weights of 16 bits stay as the file has them */
  bool narrow_constants;   /* drafts: constants of f32 as values are stored, as the tactic mixes no types */
  bool wide; /* drafts: what only the caller reads is made in f32, though the plan stores narrow */
} hn_lowering;

static inline bool hn_fuses(const hn_plan *p, hn_fusion f) { return !(p->fusions_off >> f & 1); }

/* Is the layout carried from step to step? Otherwise every step takes and gives row-major. */
static inline bool hn_carries_layout(const hn_plan *p) {
  return p->level >= 2 && hn_fuses(p, HN_FUSION_layout);
}

/* Records that `with` was nearly one step with `node`; nothing where `miss` says HN_MISS_NONE. */
static inline void hn_near(hn_lowering *l, hn_miss miss, const hone_node *node, const hone_node *with) {
  if (miss.why == HN_MISS_NONE) return;
  miss.node[0] = node;
  miss.node[1] = with;
  miss.n_nodes = with ? 2 : 1;
  hn_miss_add(&l->plan->misses, &miss);
}

/* quantisation.c: fills the plan's table of what codes mean */
hone_status hn_lower_quantisation(hn_lowering *l, hone_error *error);

/* units.c */
hone_status hn_lower_units(hn_lowering *l, hone_error *error);
/* What tactics call the node: its type, "domain.Type" outside of ONNX's own domain. NULL when memory is
 * short. */
const char *hn_anchor_of(hn_lowering *l, const hone_node *node);
/* The pointwise function of a node whose operands are f32 or bool, with immediates; false when it has none.
 * operands gets the values that are inputs of the function (at most HN_UNIT_OPERANDS). */
bool hn_pointwise_of(const hone_node *node, hn_unit *unit);
/* The same where dimensions are not known. */
bool hn_pointwise_function(const hone_node *node, hn_unit *unit);
/* A constant with one f32 value. */
bool hn_scalar_constant(const hn_value *value, float *out);

/* pattern_units.c: replaces what patterns.def (level 2) and plugins (level 1) describe by single units */
hone_status hn_lower_patterns(hn_lowering *l, hone_error *error);

/* attention.c: units of kind HN_UNIT_PATTERN, anchor FusedAttention, where a tactic takes them (level 2) */
hone_status hn_lower_attention(hn_lowering *l, hone_error *error);

/* rotary.c: units of kind HN_UNIT_PATTERN, anchor SpelledRotary, where a tactic takes them (level 2) */
hone_status hn_lower_rotary(hn_lowering *l, hone_error *error);

/* qdq.c: Conv, MatMul, Gemm and GlobalAveragePool between (de)quantisations become one unit each; what of
 * constants is dequantised for others is computed here (level 2) */
hone_status hn_lower_qdq(hn_lowering *l, hone_error *error);

/* The unit is run as a pointwise program. */
static inline bool hn_is_program(const hn_unit *u) {
  return u->kind == HN_UNIT_POINTWISE || u->kind == HN_UNIT_CODES;
}

/* integer_sums.c: ConvInteger and MatMulInteger with the Cast and the Mul behind them (level 2) */
hone_status hn_lower_integer_sums(hn_lowering *l, hone_error *error);

/* exact.c: what stays f32 although the plan stores values narrow, because 8-bit steps are computed from it,
 * or because it says places */
hone_status hn_lower_exact(hn_lowering *l, hone_error *error);
bool hn_is_exact(const hn_lowering *l, const hn_value *value);
void hn_keep_exact(hn_lowering *l, const hn_value *value);
bool hn_touches_exact(const hn_lowering *l, const hn_unit *unit, uint32_t n_epi);

/* values.c: the slot of a constant, made once for HN_ROW and HN_LAST each; HN_NO_SLOT when memory is short */
uint32_t hn_lower_constant(hn_lowering *l, const hn_value *value, hn_form form);
/* Whether the file has a constant of f32 in 16 bits; a slot for it as it lies there, for the weights of
 * MatMul and Gemm. */
enum { HN_PRODUCT_WEIGHTS = 1 };
bool hn_lower_is_filed(const hn_lowering *l, const hn_value *value);
uint32_t hn_lower_filed(hn_lowering *l, const hn_value *value);

/* draft.c: is the node one of those that the caller wants in f32? */
bool hn_stays_f32(const hn_plan *plan, const hone_node *node);
/* stored.c: which values lie in 16 bits, where a processor's plan may store them so */
hone_status hn_lower_stored(hn_lowering *l, hone_error *error);
/* lower.c: time of the best tactic for the unit with its whole epilogue, with f32 around it (wide) or with
 * the plan's storage type wherever values are not to stay f32. */
bool hn_lower_try(hn_lowering *l, const hn_unit *unit, bool wide, hn_estimate *estimate);

/* lower.c: true when some tactic takes the unit as it is, without an epilogue. */
bool hn_lower_takes(hn_lowering *l, const hn_unit *unit);
/* lower.c: the node of a value that would not be there, were the unit made: one that the unit sees through
 * views within another unit, or that another unit sees within this one; NULL: none. */
const hone_node *hn_lower_hidden(const hn_lowering *l, const hn_unit *unit);

/* fuse.c */
hone_status hn_lower_fuse(hn_lowering *l, hone_error *error);   /* epilogues: before tactics have their say */
hone_status hn_lower_groups(hn_lowering *l, hone_error *error); /* pointwise groups of what epilogues left */
bool hn_fusable_anchor(const hn_unit *unit);
/* The function that may come next in the epilogue of u, which is a product and ends with v so far; NULL:
 * none. */
hn_unit *hn_lower_next_function(hn_lowering *l, const hn_unit *u, const hn_value *v);
/* Why v cannot stay inside of a step that `with`, which reads it, is part of. */
hn_miss hn_lower_shared(const hn_lowering *l, hn_fusion fusion, const hn_value *v, const hn_unit *with);

/* chain.c: convolutions around a depthwise one become one step where that is predicted to be faster (level 2)
 */
hone_status hn_lower_chains(hn_lowering *l, hone_error *error);

/* The unit whose result v is; NULL: none. */
hn_unit *hn_lower_maker(const hn_lowering *l, const hn_value *v);
/* Nothing but one node of its graph reads it. */
bool hn_stays_inside(const hn_value *value);

/* squeeze.c: averages of all pixels, two products of them and the groups that read these become one step
 * where that is predicted to be faster (level 2, accelerators) */
hone_status hn_lower_squeezes(hn_lowering *l, hone_error *error);

/* lower.c: time of the best tactic for the unit with its whole epilogue; false when none takes
 * it.
 */
bool hn_lower_predict(hn_lowering *l, const hn_unit *unit, hn_estimate *estimate);
/* The same of the attention that ends at `root` and has this Softmax; false: no such attention would be made.
 */
bool hn_attention_predict(hn_lowering *l, const hone_node *softmax, const hone_node *root, hn_estimate *e);

/* pointwise.c: program of a group (its absorbed units, root last) over operand list in[]; false when it needs
 * too many registers or operands. n_in, in: the group's external operands. */
bool hn_pointwise_program(hn_lowering *l, hn_unit *const *group, uint32_t n, hn_value **in, uint32_t *n_in,
                          uint32_t max_in, hone_pw_program *program);

#endif
