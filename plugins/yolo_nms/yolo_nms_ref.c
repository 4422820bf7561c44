/* What YoloNms computes: NonMaxSuppression of boxes (x, y, w, h of the head) with scores obj * class, in f32.
 */
#include "yolo_nms_op.h"

#include "../yolo_nms.h"
#include <stdlib.h>

hone_status yolo_nms_shape(const yolo_nms_attrs *attrs, const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  if (x->rank >= 0 && (x->rank != 3 || (x->dim[2] >= 0 && x->dim[2] < 6))) {
    error->status = HONE_ERROR_INPUT;
    strcpy(error->what, "the head is not [images, boxes, 5 + classes]");
    return HONE_ERROR_INPUT;
  }
  for (uint32_t i = 0; i < io->n_outputs; i++) {
    hone_tensor_desc *y = io->output[i];
    if (!y) continue;
    const bool known = x->rank == 3 && x->dim[0] >= 0 && x->dim[1] >= 0 && x->dim[2] >= 0;
    const int64_t all =
        known ? x->dim[0] * (x->dim[2] - 5) * yolo_most(attrs->most, x->dim[1]) : HONE_DIM_UNKNOWN;
    *y = hone_desc(HONE_DTYPE_I64, i ? 1 : 2, i ? (const int64_t[]){1} : (const int64_t[]){all, 3});
  }
  return HONE_OK;
}

/* Class k of image b: chosen boxes in order of score; the plain way, each time the best that is left. */
static int64_t class_of(const yolo_nms_attrs *a, const double *head, int64_t boxes, int64_t wide, int64_t k,
                        int64_t *kept) {
  int64_t n = 0;
  for (int64_t most = yolo_most(a->most, boxes); n < most;) {
    int64_t best = -1;
    float score = 0;
    for (int64_t i = 0; i < boxes; i++) {
      const double *row = head + i * wide;
      const float s = (float)row[4] * (float)row[5 + k];
      bool free_place = s > a->score && (best < 0 || s > score);
      for (int64_t j = 0; free_place && j < n; j++) {
        const double *r = head + kept[j] * wide;
        free_place = kept[j] != i &&
                     !yolo_overlap(yolo_corners((float)row[0], (float)row[1], (float)row[2], (float)row[3]),
                                   yolo_corners((float)r[0], (float)r[1], (float)r[2], (float)r[3]), a->iou);
      }
      if (free_place) best = i, score = s;
    }
    if (best < 0) break;
    kept[n++] = best;
  }
  return n;
}

void yolo_nms_ref(const yolo_nms_attrs *attrs, const hone_array in[1], const hone_array out[2]) {
  const int64_t images = in[0].dim[0], boxes = in[0].dim[1], wide = in[0].dim[2];
  int64_t *kept = malloc((size_t)(yolo_most(attrs->most, boxes) + 1) * sizeof *kept), found = 0;
  for (int64_t i = 0; i < out[0].count; i++) out[0].data[i] = -1;
  for (int64_t b = 0; kept && b < images; b++)
    for (int64_t k = 0; k < wide - 5; k++) {
      const int64_t n = class_of(attrs, in[0].data + b * boxes * wide, boxes, wide, k, kept);
      for (int64_t i = 0; i < n; i++, found++) {
        out[0].data[3 * found] = (double)b;
        out[0].data[3 * found + 1] = (double)k;
        out[0].data[3 * found + 2] = (double)kept[i];
      }
    }
  if (out[1].count) out[1].data[0] = (double)found;
  free(kept);
}

bool yolo_nms_accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  const hone_dtype type = s->input[0].desc.dtype;
  if (s->n_epilogue) return hone_refuse(why, "it takes no epilogue");
  if (type != HONE_DTYPE_F32 && type != HONE_DTYPE_F16) return hone_refuse(why, "not f32 or f16");
  if (s->input[0].desc.layout != HONE_LAYOUT_ROW_MAJOR) return hone_refuse(why, "not row-major");
  if (s->n_outputs < 2 || s->output[1].desc.dtype == HONE_DTYPE_NONE ||
      s->output[0].desc.dtype == HONE_DTYPE_NONE)
    return hone_refuse(why, "an output is not wanted");
  const hone_tensor_desc *x = &s->input[0].desc;
  if ((double)x->dim[0] * (double)x->dim[1] * (double)x->dim[2] > 0x1p31)
    return hone_refuse(why, "more than 2^31 numbers");
  if (strcmp(m->device, "cuda") == 0 && !(x->dim[0] && x->dim[1])) return hone_refuse(why, "no boxes");
  return true;
}

hone_status yolo_nms_need(const yolo_nms_attrs *attrs, const hone_step *s, const hone_machine *m,
                          hone_tactic_need *need, hone_error *error) {
  (void)error;
  const hone_tensor_desc *x = &s->input[0].desc;
  need->workspace_bytes = strcmp(m->device, "cpu") == 0 ? yolo_nms_room_of(x, attrs->most, m->threads).bytes
                                                        : yolo_nms_device_room_of(x, attrs->most).bytes;
  return HONE_OK;
}

double yolo_nms_cost(const hone_step *s, const hone_machine *m) {
  const double sweep = hone_memory_seconds(m, hone_step_bytes(s));
  return strcmp(m->device, "cpu") == 0 ? 2 * sweep : sweep + 4 * m->launch_s;
}
