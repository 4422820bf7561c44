/* What may have been seen in a constant that follows from sizes, when a pass or lowering took it away. */
#include "optimize/plan/line_inside.h"
#include "optimize/plan/plan.h"

#include <string.h>

/* Steps that lowering looked at the constants of: attention knows what masks hide. */
static bool looks(const hn_step *s) {
  return s->desc.node && strcmp(s->desc.node->op_type, "FusedAttention") == 0;
}

enum { READ = 1, LOOKED = 2 };

uint8_t *hn_content_readers(const hn_plan *p) {
  uint8_t *of = hn_calloc(p->model->next_value_id + 1, 1);
  for (size_t k = 0; of && k < p->steps.len; k++) {
    const hn_step *s = &p->steps.ptr[k];
    for (uint32_t i = 0; i < s->desc.n_inputs + s->n_captured; i++) {
      const hn_value *v = s->in[i] == HN_NO_SLOT ? NULL : p->slots.ptr[hn_slot_root(p, s->in[i])].value;
      if (v) of[v->id] |= looks(s) ? LOOKED : READ;
    }
  }
  return of;
}

bool hn_content_seen(const uint8_t *readers, const hn_value *v) {
  return v->sized && v->uses != v->folds && readers[v->id] != READ;
}

/* How many elements from the beginning of a row are its first one. */
static int64_t run(const char *row, int64_t n, size_t element) {
  int64_t k = 1;
  while (k < n && memcmp(row, row + (size_t)k * element, element) == 0) k++;
  return k;
}

static uint64_t word(uint64_t kind, const void *a, const void *b, int64_t at, size_t element) {
  uint64_t h = hn_hash(a, element, kind) ^ hn_hash(&at, sizeof at, kind + 1);
  if (b) h = h * 31 + hn_hash(b, element, kind + 2);
  return h ? h : 1;
}

/* Rows of `first` and then `second`, one more of the first with every row; *end: of the first in the last. */
static bool triangle(const char *m, int64_t rows, int64_t n, size_t element, const char *first,
                     const char *second, int64_t *end) {
  int64_t shift = INT64_MIN;
  for (int64_t i = 0; i < rows; i++) {
    const char *row = m + (size_t)(i * n) * element;
    const bool starts = memcmp(row, first, element) == 0;
    const int64_t k = run(row, n, element), border = starts ? k : 0;
    if (!starts && memcmp(row, second, element) != 0) return false;
    if (starts ? k < n && (memcmp(row + (size_t)k * element, second, element) != 0 ||
                           run(row + (size_t)k * element, n - k, element) != n - k)
               : k != n)
      return false;
    if (border == 0 || border == n) continue; /* cut off */
    if (shift != INT64_MIN && border - i != shift) return false;
    shift = border - i;
  }
  *end = shift + rows - n;
  if (shift == INT64_MIN) return false;
  for (int64_t i = 0; i < rows; i++) { /* where it is cut off, too */
    const int64_t want = i + shift < 0 ? 0 : i + shift > n ? n : i + shift;
    const char *row = m + (size_t)(i * n) * element;
    const bool starts = memcmp(row, first, element) == 0;
    if ((starts ? run(row, n, element) : 0) != want) return false;
  }
  return true;
}

static int64_t integer(const hone_tensor_desc *d, const char *data, int64_t i) {
  return d->dtype == HONE_DTYPE_I64 ? ((const int64_t *)(const void *)data)[i]
                                    : ((const int32_t *)(const void *)data)[i];
}

static uint64_t in_a_row(const hone_tensor_desc *d, const char *data, int64_t count) {
  if (count < 2 || (d->dtype != HONE_DTYPE_I64 && d->dtype != HONE_DTYPE_I32)) return 0;
  const int64_t step = integer(d, data, 1) - integer(d, data, 0);
  for (int64_t i = 2; i < count; i++)
    if (integer(d, data, i) - integer(d, data, i - 1) != step) return 0;
  return word(7, &step, NULL, 0, sizeof step);
}

uint64_t hn_content_pattern(const hone_tensor_desc *d, const void *data) {
  const char *at = data;
  const size_t element = hone_dtype_size(d->dtype);
  const int64_t count = hone_desc_count(d);
  if (!data || !element || count < 1) return 0;
  if (run(at, count, element) == count) return word(1, at, NULL, 0, element);
  if (d->rank < 2) return in_a_row(d, at, count);
  const int64_t rows = d->dim[d->rank - 2], n = d->dim[d->rank - 1], each = rows * n;
  const char *other = at + (size_t)run(at, count, element) * element,
             *corner = at + (size_t)(n - 1) * element;
  const bool upper = memcmp(at, corner, element) == 0; /* the first row is one value */
  int64_t end = 0;
  /* What the first row begins with is right of the border only where it has nothing left of it. */
  for (int turn = 0; turn < 2; turn++) {
    const char *first = turn ? other : at, *second = turn ? at : other;
    if (turn && !upper) break;
    bool good = true;
    int64_t last = 0;
    for (int64_t i = 0; i < count / each && good; i++) {
      good = triangle(at + (size_t)(i * each) * element, rows, n, element, first, second, &end) &&
             (i == 0 || end == last);
      last = end;
    }
    if (good) return word(3, first, second, end, element);
  }
  return in_a_row(d, at, count);
}
