/* NonMaxSuppression: of each class of each image, the best boxes that do not overlap a better one too much.
 * Equal scores go to the lower index. */
#include "model/ops/detection/kept_boxes.h"
#include "model/ops/search/best.h"
#include "model/ops/search/order.h"

enum { BOXES, SCORES, MAX_BOXES, IOU_THRESHOLD, SCORE_THRESHOLD };

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *b = io->input[BOXES], *s = io->input[SCORES];
  const int64_t dims[] = {HONE_DIM_UNKNOWN, 3};
  hone_status st = hn_infer_dtype_in(io, SCORES, HONE_TYPES(HONE_DTYPE_F32), error);
  if (!st) st = hn_infer_dtype_in(io, MAX_BOXES, HONE_TYPES(HONE_DTYPE_I64), error);
  if (!st) st = hn_infer_dtype_in(io, IOU_THRESHOLD, HONE_TYPES(HONE_DTYPE_F32), error);
  if (!st) st = hn_infer_dtype_in(io, SCORE_THRESHOLD, HONE_TYPES(HONE_DTYPE_F32), error);
  if (st) return st;
  int64_t format = hone_node_int(io->node, "center_point_box", 0);
  if (format != 0 && format != 1)
    return hn_op_bad(io->node, error, "center_point_box is %lld", (long long)format);
  if (b->rank >= 0 && (b->rank != 3 || (b->dim[2] >= 0 && b->dim[2] != 4)))
    return hn_op_bad(io->node, error, "boxes are not [batches, boxes, 4]");
  if (s->rank >= 0 && s->rank != 3)
    return hn_op_bad(io->node, error, "scores have rank %d, expected 3", (int)s->rank);
  if (b->rank == 3 && s->rank == 3)
    for (int32_t d = 0; d < 2; d++) {
      int64_t n = b->dim[d], m = s->dim[d ? 2 : 0];
      if (n >= 0 && m >= 0 && n != m)
        return hn_op_bad(io->node, error, "boxes and scores have %lld and %lld %s", (long long)n,
                         (long long)m, d ? "boxes" : "batches");
    }
  hn_infer_set(io, 0, HONE_DTYPE_I64, 2, dims);
  return HONE_OK;
}

/* At most every class keeps all of its boxes, or as many as it may. */
static hone_status most(const hone_infer *io, hone_error *error) {
  hone_status status = infer(io, error);
  const hone_tensor_desc *s = io->input[SCORES];
  if (status || !io->output[0]) return status;
  if (s->rank != 3) return hn_op_bad(io->node, error, "scores have rank %d, expected 3", (int)s->rank);
  int64_t each = 0;
  if (hn_has_input(io, MAX_BOXES)) {
    each = s->dim[2];
    if (io->value[MAX_BOXES] && hn_count(io->value[MAX_BOXES]) == 1)
      each = hn_min(each, hn_max(0, hn_get_i64(io->value[MAX_BOXES], 0)));
  }
  io->output[0]->dim[0] = s->dim[0] * s->dim[1] * each;
  return HONE_OK;
}

/* Corners in order: least y, least x, greatest y, greatest x. */
static void corners(const float *box, bool center, float *c) {
  float y0 = box[0], x0 = box[1], y1 = box[2], x1 = box[3];
  if (center) {
    y0 = box[1] - box[3] / 2;
    y1 = box[1] + box[3] / 2;
    x0 = box[0] - box[2] / 2;
    x1 = box[0] + box[2] / 2;
  }
  c[0] = fminf(y0, y1);
  c[1] = fminf(x0, x1);
  c[2] = fmaxf(y0, y1);
  c[3] = fmaxf(x0, x1);
}

/* Chooses boxes of one class, whose indices come the best first; writes those of the chosen to kept[] in
 * order of score and returns their number. */
static int64_t suppress(hone_call *call, const int64_t *index, int64_t n, const float *corner, int64_t most,
                        float iou, hn_kept_boxes *boxes, int64_t *kept) {
  int64_t chosen = 0;
  if (n) hn_kept_boxes_start(boxes, corner, index, n);
  for (int64_t i = 0; i < n && chosen < most; i++) {
    if ((i & 255) == 0 && call->stopped(call)) return -1;
    const hn_box b = hn_box_of(corner + 4 * index[i]);
    if (hn_kept_boxes_overlap(boxes, &b, iou)) continue;
    hn_kept_boxes_add(boxes, &b);
    kept[chosen++] = index[i];
  }
  return chosen;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const float *boxes = call->input[BOXES]->data, *scores = call->input[SCORES]->data;
  const hone_tensor_desc *sd = &call->input[SCORES]->desc;
  int64_t batches = sd->dim[0], classes = sd->dim[1], n = sd->dim[2], found = 0;
  for (uint32_t i = MAX_BOXES; i <= SCORE_THRESHOLD; i++)
    if (hn_call_has(call, i) && hn_count(call->input[i]) != 1)
      return hn_op_bad(call->node, error, "input %u is not one value", i);
  int64_t most = hn_call_has(call, MAX_BOXES) ? hn_get_i64(call->input[MAX_BOXES], 0) : 0;
  float iou = hn_call_has(call, IOU_THRESHOLD) ? *(const float *)call->input[IOU_THRESHOLD]->data : 0;
  bool limited = hn_call_has(call, SCORE_THRESHOLD);
  float least = limited ? *(const float *)call->input[SCORE_THRESHOLD]->data : 0;
  bool center = hone_node_int(call->node, "center_point_box", 0) == 1;
  if (!(iou >= 0 && iou <= 1)) return hn_op_bad(call->node, error, "iou_threshold is %g", (double)iou);
  most = hn_min(hn_max(most, 0), n);
  int64_t *key = hn_scratch(call, n, sizeof *key, error), *index = NULL, *order = NULL, *spare = NULL;
  if (key) index = hn_scratch(call, n, sizeof *index, error);
  if (index) order = hn_scratch(call, n, sizeof *order, error);
  if (order) spare = hn_scratch(call, hn_best_spare(n, n), sizeof *spare, error);
  float *corner = spare ? hn_scratch(call, n, 4 * sizeof *corner, error) : NULL;
  int64_t *kept = corner ? hn_scratch(call, n, sizeof *kept, error) : NULL;
  int64_t *out = kept ? hn_scratch(call, batches * classes * most, 3 * sizeof *out, error) : NULL;
  hn_kept_boxes near;
  if (!out || hn_kept_boxes_init(call, n, &near, error)) return HONE_ERROR_MEMORY;
  for (int64_t b = 0; b < batches && most; b++) {
    for (int64_t i = 0; i < n; i++) corners(boxes + (b * n + i) * 4, center, corner + 4 * i);
    for (int64_t k = 0; k < classes; k++) {
      const float *s = scores + (b * classes + k) * n;
      int64_t m = 0;
      hn_order_keys(key, s, HONE_DTYPE_F32, 0, n);
      for (int64_t i = 0; i < n; i++)
        if (limited ? s[i] > least : !isnan(s[i])) key[m] = key[i], kept[m++] = i;
      hn_best(order, key, m, m, spare);
      for (int64_t i = 0; i < m; i++) index[i] = kept[order[i]];
      int64_t chosen = suppress(call, index, m, corner, most, iou, &near, kept);
      if (chosen < 0) return HONE_ERROR_CANCELLED;
      for (int64_t i = 0; i < chosen; i++, found++) {
        out[3 * found] = b;
        out[3 * found + 1] = k;
        out[3 * found + 2] = kept[i];
      }
    }
  }
  const int64_t dims[] = {found, 3};
  hone_tensor_desc d = hone_desc(HONE_DTYPE_I64, 2, dims);
  hone_status s = call->alloc_output(call, 0, &d, error);
  if (!s && call->output[0]) hn_copy_elements(call->output[0]->data, out, 3 * found, HONE_DTYPE_I64);
  return s;
}

static const hone_attr_desc attrs[] = {{"center_point_box", HONE_ATTR_INT, false, 0, 0}, {0}};

HN_OP(non_max_suppression) = {HN_OP_HEAD,
                              .op_type = "NonMaxSuppression",
                              .since = 10,
                              .flags = HONE_OP_DATA_DEPENDENT,
                              HN_INPUTS(2, 5),
                              HN_OUTPUTS(1, 1),
                              .types = HONE_TYPES(HONE_DTYPE_F32),
                              .attrs = attrs,
                              .infer = infer,
                              .most = most,
                              .reference = reference};
