/* Equal: a == b; strings by their bytes. */
#include "model/ops/common/elementwise.h"

HN_BINARY_COMPARE_LOOPS(x == y)
HN_BINARY_LOOP(bool, uint8_t, bool, uint8_t, x == y)

static bool loop_string(const void *pa, int64_t sa, const void *pb, int64_t sb, void *pc, int64_t n) {
  const hone_string *a = pa, *b = pb;
  uint8_t *c = pc;
  for (int64_t i = 0; i < n; i++) {
    const hone_string *x = &a[i * sa], *y = &b[i * sb];
    c[i] = x->len == y->len && (x->len == 0 || memcmp(x->ptr, y->ptr, x->len) == 0);
  }
  return true;
}

static const hn_binary_loops loops = {.of = {[HONE_DTYPE_F32] = loop_f32,
                                             [HONE_DTYPE_F64] = loop_f64,
                                             HN_INT_LOOP_ENTRIES,
                                             [HONE_DTYPE_BOOL] = loop_bool,
                                             [HONE_DTYPE_STRING] = loop_string}};

HN_BINARY_OP(equal, "Equal", 1, HN_TYPES_ALL, HN_FUNCTION(HONE_PW_EQ, 2), hn_infer_compare);
