/* YoloNms on the processor. One sweep over the head collects the candidates of all classes; then each class
 * takes its best ones from a heap and compares them with those it keeps, a vector of them at a time. */
#include "yolo_nms_op.h"

#include "../yolo_nms.h"
#if defined(__F16C__)
#include <immintrin.h>
#endif

enum { GROUP = YOLO_GROUP }; /* rows that one look serves: in most there is no candidate */

typedef struct job {
  const hone_step_run *run;
  int64_t image, boxes, wide, classes, most;
  int64_t pieces, piece; /* of the boxes of an image, and their length */
  float least, iou;
  uint64_t *list;   /* [classes][boxes] candidates; a piece begins where its first box would be */
  uint32_t *found;  /* [pieces][classes] candidates; then [classes] boxes that are kept */
  yolo_box *corner; /* [boxes] of candidates */
  float *kept;      /* [threads][5][room] corners and areas of the boxes that a class keeps */
  float *row;       /* [threads][GROUP][wide] of a head in f16 */
  int64_t room;
} job;

/* Is any lane set? */
static inline bool any_of(hone_vi mask) {
#if HONE_LANES == 16
  return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif HONE_LANES == 8
  return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#else
  return (mask[0] | mask[1] | mask[2] | mask[3]) != 0;
#endif
}

/* A candidate as a number: the better its score the smaller, then by its box. */
static inline uint64_t key_of(float score, int64_t box) {
  const float s = score + 0.0f; /* -0 is 0 */
  uint32_t bits;
  memcpy(&bits, &s, sizeof bits);
  const uint32_t rising = bits >> 31 ? ~bits : bits | 0x80000000u;
  return (uint64_t)~rising << 32 | (uint32_t)box;
}

/* ------------------------------------------------------------------ candidates */

/* Lanes whose class is above the threshold, of all vectors; at least one vector of classes. */
static inline hone_vi above(const float *row, int64_t classes, float least) {
  const float object = row[4], *score = row + 5;
  hone_vi some = {0};
  int64_t k = 0;
  for (; k + HONE_LANES <= classes; k += HONE_LANES)
    some |= hone_load(score + k, HONE_LANES) * object > least;
  if (k < classes) some |= hone_load(score + classes - HONE_LANES, HONE_LANES) * object > least;
  return some;
}

/* Appends a box to the classes in which it is above the threshold. */
static void collect(const job *j, const float *row, int64_t box, int64_t first, uint32_t *found) {
  const float object = row[4];
  j->corner[box] = yolo_corners(row[0], row[1], row[2], row[3]);
  for (int64_t k = 0; k < j->classes; k++) {
    const float score = row[5 + k] * object;
    if (score > j->least) j->list[k * j->boxes + first + found[k]++] = key_of(score, box);
  }
}

static void widen(const uint16_t *from, int64_t n, float *to) {
  int64_t i = 0;
#if HONE_LANES == 16
  for (; i + 16 <= n; i += 16)
    _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + i))));
#endif
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
#endif
  for (; i < n; i++) to[i] = hone_from_f16(from[i]);
}

static void sweep(void *arg, int64_t task, uint32_t thread) {
  const job *j = (const job *)arg;
  const bool half = j->run->step->input[0].desc.dtype == HONE_DTYPE_F16, few = j->classes < HONE_LANES;
  const int64_t first = task * j->piece, end = first + j->piece < j->boxes ? first + j->piece : j->boxes;
  uint32_t *found = j->found + task * j->classes;
  float *room = j->row + (int64_t)thread * GROUP * j->wide;
  memset(found, 0, (size_t)j->classes * sizeof *found);
  for (int64_t i = first; i < end; i += GROUP) {
    const int rows = end - i < GROUP ? (int)(end - i) : GROUP;
    const int64_t at = (j->image * j->boxes + i) * j->wide;
    const float *row = (const float *)j->run->in[0] + at;
    if (half) widen((const uint16_t *)j->run->in[0] + at, rows * j->wide, room), row = room;
    hone_vi some = {0};
    for (int r = 0; r < rows && !few; r++) some |= above(row + r * j->wide, j->classes, j->least);
    if (few || any_of(some))
      for (int r = 0; r < rows; r++) collect(j, row + r * j->wide, i + r, first, found);
  }
}

/* ------------------------------------------------------------------ classes */

/* The heap of n numbers, whose first may be too large. */
static void sink(uint64_t *heap, int64_t n, int64_t at) {
  const uint64_t x = heap[at];
  for (int64_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && heap[child + 1] < heap[child]) child++;
    if (heap[child] >= x) break;
    heap[at] = heap[child];
  }
  heap[at] = x;
}

/* Does the box overlap one of the n kept ones? Both have areas above 0, so that nothing is NaN. */
static bool is_taken(const float *kept, int64_t room, int64_t n, yolo_box b, float area, float iou) {
  for (int64_t i = 0; i < n; i += HONE_LANES) {
    const float *k = kept + i;
    const hone_vf high = hone_min(hone_load(k + 2 * room, HONE_LANES), hone_all(b.y1)) -
                         hone_max(hone_load(k, HONE_LANES), hone_all(b.y0)),
                  wide = hone_min(hone_load(k + 3 * room, HONE_LANES), hone_all(b.x1)) -
                         hone_max(hone_load(k + room, HONE_LANES), hone_all(b.x0));
    const hone_vi meet = (high > 0) & (wide > 0);
    if (!any_of(meet)) continue;
    hone_vf both = high * wide;
    __asm__("" : "+x"(both)); /* not joined with the difference */
    const hone_vf either = hone_load(k + 4 * room, HONE_LANES) + area - both;
    if (any_of(meet & (either > 0) & (both / either > iou))) return true;
  }
  return false;
}

static void keep(float *kept, int64_t room, int64_t n, yolo_box b, float area) {
  const float value[5] = {b.y0, b.x0, b.y1, b.x1, area};
  for (int i = 0; i < 5; i++) {
    if (n % HONE_LANES == 0) memset(kept + i * room + n, 0, HONE_LANES * sizeof *kept);
    kept[i * room + n] = value[i];
  }
}

/* The pieces of a class, one behind the other. */
static int64_t gather(const job *j, int64_t class, uint64_t *list) {
  int64_t n = 0;
  for (int64_t p = 0; p < j->pieces; p++) {
    const int64_t more = j->found[p * j->classes + class];
    if (p) memmove(list + n, list + p * j->piece, (size_t)more * sizeof *list);
    n += more;
  }
  return n;
}

/* The boxes that class `task` keeps stand at the end of its list, the last one first. */
static void suppress(void *arg, int64_t task, uint32_t thread) {
  const job *j = (const job *)arg;
  uint64_t *heap = j->list + task * j->boxes;
  float *kept = j->kept + (int64_t)thread * 5 * j->room;
  const int64_t n = gather(j, task, heap);
  int64_t chosen = 0, with_area = 0;
  for (int64_t i = n / 2; i-- > 0;) sink(heap, n, i);
  for (int64_t left = n; left > 0 && chosen < j->most;) {
    const uint32_t box = (uint32_t)heap[0];
    const yolo_box b = j->corner[box];
    const float area = yolo_area(b);
    heap[0] = heap[--left];
    sink(heap, left, 0);
    if (area > 0) {
      if (is_taken(kept, j->room, with_area, b, area, j->iou)) continue;
      keep(kept, j->room, with_area++, b, area);
    }
    heap[n - ++chosen] = box;
  }
  j->found[j->pieces * j->classes + task] = (uint32_t)chosen;
}

/* Rows (image, class, box) of the classes, in their order. */
static int64_t write_rows(const job *j, int64_t *to) {
  int64_t rows = 0;
  for (int64_t k = 0; k < j->classes; k++) {
    int64_t n = 0;
    for (int64_t p = 0; p < j->pieces; p++) n += j->found[p * j->classes + k];
    for (int64_t i = 1; i <= j->found[j->pieces * j->classes + k]; i++, rows++) {
      to[3 * rows] = j->image, to[3 * rows + 1] = k;
      to[3 * rows + 2] = (int64_t)j->list[k * j->boxes + n - i];
    }
  }
  return rows;
}

hone_status HONE_KERNEL(yolo_nms)(const yolo_nms_attrs *attrs, const hone_step_run *run, hone_error *error) {
  const hone_tensor_desc *x = &run->step->input[0].desc;
  const int64_t filled = hone_desc_count(&run->step->output[0].desc);
  const yolo_nms_room room = yolo_nms_room_of(x, attrs->most, run->threads);
  char *work = run->workspace;
  job j = {.run = run,
           .boxes = x->dim[1],
           .wide = x->dim[2],
           .classes = x->dim[2] - 5,
           .most = room.most,
           .pieces = room.pieces,
           .piece = room.piece,
           .least = attrs->score,
           .iou = attrs->iou,
           .list = (uint64_t *)(work + room.list),
           .found = (uint32_t *)(work + room.found),
           .corner = (yolo_box *)(work + room.corner),
           .kept = (float *)(work + room.kept),
           .row = (float *)(work + room.row),
           .room = room.kept_each};
  int64_t *to = run->out[0], rows = 0;
  (void)error;
  for (; j.image < x->dim[0] && j.most > 0; j.image++) {
    run->parallel(run->pool, j.pieces, sweep, &j);
    run->parallel(run->pool, j.classes, suppress, &j);
    rows += write_rows(&j, to + 3 * rows);
  }
  memset(to + 3 * rows, 0xff, (size_t)(filled - 3 * rows) * sizeof *to); /* -1 */
  *(int64_t *)run->out[1] = rows;
  return HONE_OK;
}
