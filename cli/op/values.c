/* See values.h. */
#include "cli/op/values.h"

#include "cli/op/numbers.h"

#include <math.h>
#include <stdbool.h>

const char *op_values_name(op_values v) {
  static const char *const names[OP_VALUES] = {"normal values",        "small whole numbers",
                                               "numbers of all sizes", "NaN and infinities",
                                               "denormal numbers",     "extreme numbers"};
  return v < OP_VALUES ? names[v] : "";
}

/* Irwin-Hall: close to a normal distribution. */
static double normal(op_random *r) {
  double sum = -6;
  for (int i = 0; i < 12; i++) sum += op_unit(r);
  return sum;
}

static double sign(op_random *r, double v) { return op_below(r, 2) ? v : -v; }

static double real(op_random *r, op_values kind, hone_dtype d) {
  const double largest = op_largest(d), least = op_normal(d);
  switch (kind) {
  case OP_SMALL: return (double)op_below(r, 9) - 4;
  case OP_WIDE: return sign(r, exp2((op_unit(r) - 0.5) * (d == HONE_DTYPE_F16 ? 16 : 48)));
  case OP_SPECIAL:
    switch (op_below(r, 12)) {
    case 0: return NAN;
    case 1: return INFINITY;
    case 2: return -(double)INFINITY;
    case 3: return 0;
    case 4: return -0.0;
    default: return normal(r);
    }
  case OP_DENORMAL:
    return op_below(r, 8) ? sign(r, op_smallest(d) * floor(1 + op_unit(r) * least / op_smallest(d)))
                          : sign(r, least);
  case OP_EXTREME: {
    const double one_of[] = {largest, largest / 2, sqrt(largest), 100, 1, 1e-3, least, op_smallest(d), 0};
    return sign(r, one_of[op_below(r, sizeof one_of / sizeof *one_of)]);
  }
  default: return normal(r);
  }
}

static double whole(op_random *r, op_values kind, hone_dtype d) {
  const bool below = hone_dtype_is_signed_int(d);
  const double reach = exp2(8.0 * (double)hone_dtype_size(d) - (below ? 1 : 0));
  if (kind == OP_EXTREME && op_below(r, 3) == 0) return below && op_below(r, 2) ? -reach : reach;
  if (kind == OP_WIDE && hone_dtype_size(d) == 1)
    return floor(op_unit(r) * reach) - (below && op_below(r, 2) ? reach : 0);
  return (double)op_below(r, 13) - (below ? 6 : 0);
}

void op_fill(op_random *r, op_values kind, const hone_tensor *t) {
  const hone_dtype d = t->desc.dtype;
  const int64_t n = hone_desc_count(&t->desc);
  for (int64_t i = 0; i < n; i++)
    op_set_element(d, t->data, i,
                   hone_dtype_is_float(d) ? real(r, kind, d)
                   : d == HONE_DTYPE_BOOL ? op_below(r, 2)
                                          : whole(r, kind, d));
}
