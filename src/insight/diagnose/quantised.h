/* Where the time of a quantised network goes, by what keeps it from being faster: each layer has one cause.
 */
#ifndef HN_INSIGHT_QUANTISED_H
#define HN_INSIGHT_QUANTISED_H

#include "insight/diagnose/rule.h"

/* X(id, name): in the order in which readers would look. */
#define HN_INT8_CAUSES(X)                                                                                    \
  X(FINE, "fine")               /* 8 bits, near what the machine gives */                                    \
  X(CONVERSIONS, "conversions") /* QuantizeLinear, DequantizeLinear as steps */                              \
  X(REFORMATS, "reformats")                                                                                  \
  X(UNFUSED, "unfused")   /* computed in float although Q/DQ stand around it */                              \
  X(ISLANDS, "islands")   /* float layers between integer ones */                                            \
  X(ENDS, "ends")         /* float layers in front of and behind all of them */                              \
  X(UNITS, "units")       /* 8 bits on units that are not made for them */                                   \
  X(MEMORY, "memory")     /* 8 bits, as fast as their bytes come */                                          \
  X(CHANNELS, "channels") /* counts that leave units partly empty */                                         \
  X(SMALL, "small")       /* too little work */                                                              \
  X(KERNELS, "kernels")   /* far from the roof for none of these reasons */

typedef enum hn_int8_cause {
#define X(id, name) HN_INT8_##id,
  HN_INT8_CAUSES(X)
#undef X
      HN_INT8_CAUSE_COUNT
} hn_int8_cause;

typedef struct hn_int8_layer {
  hn_int8_cause cause;
  double saved_ms;    /* would go without it; NaN: not known */
  const char *reason; /* the near miss that speaks of it; NULL: none does */
} hn_int8_layer;

typedef struct hn_int8_account {
  hn_int8_layer *layer; /* of each layer of the profile, the diagnosis' arena; NULL: out of memory */
  double ms[HN_INT8_CAUSE_COUNT], saved_ms[HN_INT8_CAUSE_COUNT]; /* sums; NaN: of some layer not known */
  size_t layers[HN_INT8_CAUSE_COUNT];
  size_t int8;    /* layers on codes */
  double int8_ms; /* their time */
} hn_int8_account;

void hn_int8_account_make(hn_diagnosis *d, hn_int8_account *account);
/* The parts of the finding under way: every cause with a share that counts, most of what would go first. */
void hn_int8_parts(hn_diagnosis *d, const hn_int8_account *account);
/* What to type about a cause of some weight, in the finding under way. */
void hn_int8_do(hn_diagnosis *d, const hn_int8_account *account);

/* An x86 processor without instructions for products of bytes. */
bool hn_no_integer_units(const hn_diagnosis *d);

#endif
