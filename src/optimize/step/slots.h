/* Slots of a plan as lowering makes them, and the forms in which values lie in them. */
#ifndef HN_OPTIMIZE_STEP_SLOTS_H
#define HN_OPTIMIZE_STEP_SLOTS_H

#include "optimize/step/step.h"

/* How a value lies in memory. */
typedef uint32_t hn_form;
enum {
  HN_ROW = HONE_LAYOUT_ROW_MAJOR,
  HN_LAST = HONE_LAYOUT_CHANNELS_LAST,
  HN_NARROW = 2, /* with one of the two: f32 in the plan's storage type */
  HN_HOST = 4,   /* row-major in the host's memory, of plans whose device has its own */
  HN_FORMS = 5
};

/* Each HN_NO_SLOT when memory is short. */
uint32_t hn_slot_new(hn_plan *p, const hone_tensor_desc *desc, const hn_value *value, hn_place place);
/* Another view of the bytes of slot `of`. */
uint32_t hn_slot_alias(hn_plan *p, uint32_t of, const hone_tensor_desc *desc, const hn_value *value);
/* A part of slot `of`, which lies row-major; it begins at element `at`. */
uint32_t hn_slot_part(hn_plan *p, uint32_t of, const hone_tensor_desc *desc, int64_t at,
                      const hn_value *value);
/* A vector of `n` floats in the plan. */
uint32_t hn_slot_vector(hn_plan *p, const float *data, int64_t n);

/* What the codes of v mean where they lie as d says; count 0: they are none, or nobody says it. */
hone_quant hn_quant_of(const hn_plan *p, const hn_value *v, const hone_tensor_desc *d);

/* A value's descriptor in a form. */
hone_tensor_desc hn_laid_out(const hn_plan *p, const hone_tensor_desc *d, hn_form form);
/* A strided descriptor of such a value: only its type and place change. */
hone_tensor_desc hn_stored(const hn_plan *p, const hone_tensor_desc *d, hn_form form);
/* The form in which callers and steps on the host see values. */
hn_form hn_home(const hn_plan *p);

#endif
