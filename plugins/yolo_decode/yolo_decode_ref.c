/* What YoloDecode computes, in f64 and without any haste, its shapes, and what kernels take. */
#include "yolo_decode_op.h"

#include "../yolo_decode.h"

static hone_status wrong(hone_error *error, const char *what) {
  if (error) {
    error->status = HONE_ERROR_INPUT;
    strncpy(error->what, what, sizeof error->what - 1);
  }
  return HONE_ERROR_INPUT;
}

/* Is the dimension known, and neither `one` nor `other`? */
static bool differs(int64_t dim, int64_t one, int64_t other) {
  return dim >= 0 && dim != one && other >= 0 && dim != other;
}

hone_status yolo_decode_shape(const yolo_decode_attrs *attrs, const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *head = io->input[YOLO_HEAD], *cells = io->input[YOLO_CELLS],
                         *sizes = io->input[YOLO_SIZES];
  hone_tensor_desc *y = io->output[0];
  if (attrs->form != 3 && attrs->form != YOLO_V5) return wrong(error, "form is 3 or 5");
  if ((head->rank >= 0 && head->rank != 4) || (cells->rank >= 0 && cells->rank != 5) ||
      (sizes->rank >= 0 && sizes->rank != 5))
    return wrong(error,
                 "head is not [n, anchors * numbers, h, w], or cells or sizes not [1, anchors, h, w, 2]");
  if (head->rank < 0 || cells->rank < 0 || sizes->rank < 0) {
    if (y) y->rank = -1;
    return HONE_OK;
  }
  const int64_t anchors = sizes->dim[1];
  if (differs(cells->dim[0], 1, 1) || differs(sizes->dim[0], 1, 1) || differs(cells->dim[4], 2, 2) ||
      differs(sizes->dim[4], 2, 2) || differs(cells->dim[1], 1, anchors))
    return wrong(error, "cells or sizes are not [1, anchors, h, w, 2]");
  for (int i = 2; i < 4; i++)
    if (differs(cells->dim[i], 1, head->dim[i]) || differs(sizes->dim[i], 1, head->dim[i]))
      return wrong(error, "cells or sizes are not as high and wide as head, or 1");
  const bool known = anchors >= 0 && head->dim[1] >= 0;
  if (known && (!anchors || head->dim[1] % anchors || head->dim[1] / anchors < 5))
    return wrong(error, "head has not five numbers and more for each anchor of sizes");
  if (!y) return HONE_OK;
  const int64_t rows = anchors >= 0 && head->dim[2] >= 0 && head->dim[3] >= 0
                           ? anchors * head->dim[2] * head->dim[3]
                           : HONE_DIM_UNKNOWN;
  *y = hone_desc(head->dtype, 3,
                 (const int64_t[]){head->dim[0], rows, known ? head->dim[1] / anchors : HONE_DIM_UNKNOWN});
  return HONE_OK;
}

/* A dozen operations a number, for its exponential. */
void yolo_decode_count(const yolo_decode_attrs *attrs, const hone_infer *io, hone_cost *cost) {
  const hone_tensor_desc *head = io->input[YOLO_HEAD];
  (void)attrs;
  cost->macs = 0;
  cost->flops =
      12 * (double)head->dim[0] * (double)head->dim[1] * (double)head->dim[2] * (double)head->dim[3];
  cost->bytes = -1;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

void yolo_decode_ref(const yolo_decode_attrs *attrs, const hone_array in[3], const hone_array out[1]) {
  const yolo_sizes z = yolo_sizes_of(in[YOLO_HEAD].dim, in[YOLO_CELLS].dim, in[YOLO_SIZES].dim);
  const int64_t plane = z.high * z.across;
  for (int64_t i = 0; i < out[0].count; i++) {
    const int64_t k = i % z.wide, cell = i / z.wide % plane, anchor = i / z.wide / plane % z.anchors,
                  image = i / z.wide / plane / z.anchors, row = cell / z.across, column = cell % z.across;
    const double x = in[YOLO_HEAD].data[((image * z.anchors + anchor) * z.wide + k) * plane + cell];
    const double *at = in[YOLO_CELLS].data + anchor * z.cell[0] + row * z.cell[1] + column * z.cell[2],
                 *size = in[YOLO_SIZES].data + anchor * z.size[0] + row * z.size[1] + column * z.size[2];
    const double s = sigmoid(x), grown = attrs->form == YOLO_V5 ? 4 * s * s : exp(x);
    double y = s;
    if (k < 2) {
      y = ((attrs->form == YOLO_V5 ? 2 * s : s) + at[k]) * attrs->stride;
      if (hone_beyond(in, fabs(at[k]) + 1)) y = NAN;
    } else if (k < 4) {
      y = grown * size[k - 2];
      if (hone_beyond(in, grown)) y = NAN;
    }
    out[0].data[i] = y;
  }
}

bool yolo_decode_accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  const hone_dtype type = s->input[YOLO_HEAD].desc.dtype;
  if (s->n_epilogue) return hone_refuse(why, "it takes no epilogue");
  if (strcmp(m->device, "cpu") != 0 && hone_desc_count(&s->input[YOLO_HEAD].desc) >= 1ll << 31)
    return hone_refuse(why, "more than 2^31 numbers");
  if (type != HONE_DTYPE_F32 && type != HONE_DTYPE_F16) return hone_refuse(why, "not f32 or f16");
  if (s->output[0].desc.dtype != type) return hone_refuse(why, "a result of another type");
  for (uint32_t i = 0; i < 3; i++) {
    const hone_dtype t = s->input[i].desc.dtype;
    if (t != HONE_DTYPE_F32 && t != HONE_DTYPE_F16) return hone_refuse(why, "operands of other types");
    if (s->input[i].desc.layout != HONE_LAYOUT_ROW_MAJOR) return hone_refuse(why, "not row-major");
  }
  if (s->output[0].desc.layout != HONE_LAYOUT_ROW_MAJOR) return hone_refuse(why, "not row-major");
  return true;
}

/* Seconds a number: an exponential and a division. As hone predicts its own kernels, of values that are near;
 * within a network both take longer, the nodes that this stands for 1.7 times as long as this. */
double yolo_decode_cost(const hone_step *s, const hone_machine *m) {
  const double move = hone_memory_seconds(m, hone_step_bytes(s));
  if (strcmp(m->device, "cpu") != 0) return 1.5 * move + m->launch_s;
  const double each = m->isa & HONE_ISA_AVX512 ? 0.6e-9 : m->isa & HONE_ISA_AVX2 ? 0.8e-9 : 1.6e-9;
  const double busy = (double)hone_desc_count(&s->output[0].desc) * each / (m->threads ? m->threads : 1);
  return busy > move ? busy : move;
}
