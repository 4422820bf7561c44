/* What passes about codes of 8 bits share: QuantizeLinear and DequantizeLinear with constant parameters, and
 * what moves elements without looking at them. */
#ifndef HN_OPTIMIZE_PASSES_CODES_H
#define HN_OPTIMIZE_PASSES_CODES_H

#include "optimize/passes/common/pass.h"

enum {
  HN_MOVE_SAME_COUNT = 1, /* keeps all elements */
  HN_MOVE_MANY_OUT = 2,
  HN_MOVE_PADS = 4,
  HN_MOVE_RESIZES = 8
};

typedef struct hn_code_move {
  const char *op;
  uint32_t what;
} hn_code_move;

/* NULL: it does not move elements of its first input. */
const hn_code_move *hn_code_move_of(const hone_node *n);

/* What one scale and one zero point make of codes. */
typedef struct hn_code_map {
  float scale;
  int32_t zero;
  hone_dtype dtype;
} hn_code_map;

/* Of a QuantizeLinear or DequantizeLinear with one scale, by the codes that it makes or reads. */
hn_code_map hn_code_map_of(const hone_node *n, const hn_value *codes);
/* The same codes mean the same numbers, and these become the same codes again. */
bool hn_code_map_same(hn_code_map a, hn_code_map b);

hn_value *hn_zero_of(const hone_node *n); /* may be NULL */
/* The DequantizeLinear of 8 bits that makes v; single: of one scale. NULL: there is none. */
const hone_node *hn_codes_behind(const hn_value *v, bool single);
/* A QuantizeLinear from f32 to 8 bits of one scale. */
bool hn_quantises(const hone_node *n);

#endif
