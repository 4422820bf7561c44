/* Near misses of lowering: the first condition of a fusion held, and one thing was against it. What is
 * recorded is what stood in the way; words are made where somebody reads them (hn_miss_say). */
#ifndef HN_OPTIMIZE_STEP_NEAR_H
#define HN_OPTIMIZE_STEP_NEAR_H

#include "base/vec.h"
#include "model/ir/graph.h"
#include "optimize/step/fusions.h"

typedef enum hn_miss_why {
  HN_MISS_NONE = 0,
  /* what lies between, `value` */
  HN_MISS_OUTPUT,   /* is an output of the model */
  HN_MISS_READ,     /* is read by `other`, too */
  HN_MISS_TWICE,    /* is read twice by the node that would join */
  HN_MISS_BODY,     /* is read inside of a body, by `other` */
  HN_MISS_SHAPE,    /* has not the shape of the result, `result` */
  HN_MISS_TYPE,     /* is of another type than f32 */
  HN_MISS_UNKNOWN,  /* has dimensions that are not known */
  HN_MISS_COMPUTED, /* is no constant */
  /* the node that would join */
  HN_MISS_OPERANDS,  /* has `count` operands */
  HN_MISS_FUNCTION,  /* is a function that epilogues have not */
  HN_MISS_LEVEL,     /* joins at level `enable_level` */
  HN_MISS_MANY,      /* is one more than `count` */
  HN_MISS_REGISTERS, /* has more operands or values at a time than a program holds */
  HN_MISS_TAKEN,     /* is part of another step */
  /* the tactics */
  HN_MISS_TACTIC, /* none takes the whole */
  HN_MISS_SLOWER, /* predicted, or measured: `together` and `apart` seconds */
  /* codes of 8 bits */
  HN_MISS_CODES,      /* operand `value` does not come from a DequantizeLinear of constant parameters */
  HN_MISS_SCALES,     /* scales of the weights are neither one nor one an output channel */
  HN_MISS_BIAS,       /* the bias, `value`, is not in units of the products' scale */
  HN_MISS_RANGE,      /* the codes go beyond what the activation cuts off */
  HN_MISS_QUANTISE,   /* no QuantizeLinear of constant parameters follows */
  HN_MISS_FORM,       /* the operator has no form of integers */
  HN_MISS_SAME_CODES, /* both sides must have the same scale and zero point */
  HN_MISS_MATCHER     /* what the matcher said: `said` */
} hn_miss_why;

enum { HN_MISS_NODES = 12, HN_MISSES_KEPT = 32 };

typedef struct hn_miss {
  hn_fusion fusion;
  hn_miss_why why;
  int enable_level; /* the lowest that would do it; 0: none */
  uint32_t n_nodes; /* what would have been one step, at most HN_MISS_NODES of it */
  const hone_node *node[HN_MISS_NODES];
  const hone_node *other;
  const hn_value *value, *result;
  uint32_t count;
  double together, apart;
  const char *said;
} hn_miss;

/* Those of a plan: the first HN_MISSES_KEPT of each fusion, and how many more there were. */
typedef struct hn_misses {
  HN_VEC(hn_miss) list;
  uint32_t more[HN_FUSIONS];
} hn_misses;

/* Lost without a word when memory is short: it is a by-product. The same two first nodes again, soon after:
 * once. */
void hn_miss_add(hn_misses *to, const hn_miss *miss);
/* When all are there: leaves HN_MISSES_KEPT of each fusion. */
void hn_misses_bound(hn_misses *m);
void hn_miss_say(const hn_miss *miss, char *buf, size_t size);
/* Traffic of what lies between the nodes; 0: not known. */
double hn_miss_bytes(const hn_miss *miss);

#endif
