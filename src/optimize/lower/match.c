/* Patterns of several nodes that become one unit. */
#include "optimize/lower/lower.h"

hone_status hn_lower_patterns(hn_lowering *l, hone_error *error) {
  (void)l;
  (void)error;
  return HONE_OK;
}
