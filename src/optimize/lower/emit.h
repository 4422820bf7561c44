/* Where values live, drafts and the committing of steps: what lower.c is made of. Inside of optimize/lower
 * only.
 *
 *   values.c  where values live: a slot for each form of a value
 *   draft.c   a step under construction, as tactics see it before anything is decided
 *   commit.c  a draft becomes a step of the plan, with the reformats that its inputs need
 */
#ifndef HN_OPTIMIZE_LOWER_EMIT_H
#define HN_OPTIMIZE_LOWER_EMIT_H

#include "optimize/lower/lowering.h"
#include "optimize/match/modes.h"

enum { HN_MAX_IN = 64 }; /* of DenseNet's Concats the widest has 49 */

/* values.c */
/* The slots of a value, one per form; NULL when memory is short. */
uint32_t *hn_slots_of(hn_lowering *l, const hn_value *v);
/* A form in which the value is there already, of those in the list; HN_FORMS: none. */
hn_form hn_form_at_hand(hn_lowering *l, const hn_value *v, const hn_form *list, uint32_t n);

/* draft.c */
typedef struct hn_draft {
  hone_step step;
  hone_step_tensor in[HN_MAX_IN + HONE_MAX_EPILOGUE];
  hone_step_tensor out[HN_UNIT_OPERANDS];
  const hn_value *in_value[HN_MAX_IN + HONE_MAX_EPILOGUE]; /* NULL: left out, or a vector */
  uint32_t in_slot[HN_MAX_IN + HONE_MAX_EPILOGUE]; /* vectors and constants: their slot; else HN_NO_SLOT */
  hn_form in_form[HN_MAX_IN + HONE_MAX_EPILOGUE];
  const hn_strided *in_view[HN_MAX_IN + HONE_MAX_EPILOGUE]; /* not NULL: this part of in_value */
  hn_value *out_value[HN_UNIT_OPERANDS];
  hn_form out_form[HN_UNIT_OPERANDS];
  hn_form
      form; /* of what follows the output: HN_ROW, HN_LAST, or HN_HOST; HN_NARROW where f32 is stored so */
  bool careful; /* it computes with what stays f32 although the plan stores narrow (exact.c) */
  hone_pw_program program;
} hn_draft;

/* The one draft of this lowering: it is large, and only one is looked at at a time. NULL: out of memory. */
hn_draft *hn_draft_scratch(hn_lowering *l);
/* Describes unit u with its first n_epi absorbed units as epilogue (pointwise roots: the whole group). False:
 * not expressible in this form (HN_ROW, HN_LAST, HN_HOST). */
bool hn_draft_make(hn_lowering *l, const hn_unit *u, uint32_t n_epi, hn_form form, hn_draft *d);
/* Does it give too few dimensions for channels to be the last of them, of an input that has more? Channels of
 * that may be last all the same. */
static inline bool hn_drops_dims(const hn_unit *u) {
  return !hn_is_program(u) && u->n_in && u->in[0] && u->out && u->in[0]->desc.rank >= 3 &&
         u->out->desc.rank >= 0 && u->out->desc.rank < 3;
}
/* Are the shapes of all inputs and outputs known? */
bool hn_draft_known(const hn_draft *d);
/* Does nothing but the caller read the value? */
bool hn_only_returned(const hn_value *v);
double hn_step_tensor_bytes(const hone_step_tensor *t);

/* commit.c */
/* The slot that holds v in this form, made when needed. */
hone_status hn_slot_for(hn_lowering *l, const hn_value *v, hn_form form, uint32_t *out, hone_error *error);
/* Records which graph nodes (and so which nodes of the file) the step stands for. */
hone_status hn_step_own(hn_lowering *l, hn_step *s, const hn_unit *u, uint32_t n_epi, hone_error *error);
/* Appends the drafted step to the plan. */
hone_status hn_draft_commit(hn_lowering *l, const hn_unit *u, uint32_t n_epi, hn_draft *d, hn_step_kind kind,
                            const hone_tactic_desc *tactic, double predicted, hn_refusals *refused,
                            hone_error *error);

#endif
