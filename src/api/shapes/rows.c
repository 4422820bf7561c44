#include "api/shapes/rows.h"
#include "base/dims.h"

#include <string.h>

/* Dimensions in front of `axis`, the last one that differs, are counted; what is behind it is one run. */
static int32_t last_difference(const hone_tensor_desc *a, const hone_tensor_desc *b) {
  int32_t axis = a->rank - 1;
  while (axis > 0 && a->dim[axis] == b->dim[axis]) axis--;
  return axis;
}

static size_t run_of(const hone_tensor_desc *d, int32_t axis) {
  return hone_dtype_size(d->dtype) * (size_t)hn_dims(d, axis + 1, d->rank);
}

/* Calls for every index of `over` up to the axis: the bytes of that index in `from`, clamped to its size, go
 * to those in `to`. */
static void copy(const hone_tensor *from, const hone_tensor *to, const hone_tensor_desc *over) {
  const hone_tensor_desc *f = &from->desc, *t = &to->desc;
  if (!over->rank) {
    memcpy(to->data, from->data, hone_dtype_size(f->dtype));
    return;
  }
  const int32_t axis = last_difference(f, t);
  const size_t run = run_of(f, axis);
  const int64_t count = hn_dims(over, 0, axis + 1);
  int64_t index[HONE_MAX_RANK] = {0};
  for (int64_t i = 0; i < count && run; i++) {
    int64_t a = 0, b = 0;
    for (int32_t k = 0; k <= axis; k++) {
      const int64_t there = index[k] < f->dim[k] ? index[k] : f->dim[k] - 1;
      a = a * f->dim[k] + there, b = b * t->dim[k] + index[k];
    }
    memcpy((char *)to->data + (size_t)b * run, (const char *)from->data + (size_t)a * run, run);
    for (int32_t k = axis; k >= 0 && ++index[k] == over->dim[k]; k--) index[k] = 0;
  }
}

void hn_rows_fill(const hone_tensor *small, const hone_tensor *large) { copy(small, large, &large->desc); }
void hn_rows_cut(const hone_tensor *large, const hone_tensor *small) { copy(large, small, &small->desc); }

bool hn_rows_prefix(const hone_tensor_desc *small, const hone_tensor_desc *large) {
  int32_t axis = 0;
  while (axis < small->rank && small->dim[axis] == 1 && large->dim[axis] == 1) axis++;
  for (int32_t k = axis + 1; k < small->rank; k++)
    if (small->dim[k] != large->dim[k]) return false;
  return true;
}
