/* YoloNms: boxes of a YOLO head that NonMaxSuppression keeps. Made from yolo_nms.json by `hone op build`: what is changed here is lost. */
#ifndef YOLO_NMS_OP_H
#define YOLO_NMS_OP_H

#include <hone/kernel.h>

typedef struct yolo_nms_attrs {
  int64_t most;
  float iou;
  float score;
} yolo_nms_attrs;

yolo_nms_attrs yolo_nms_attrs_of(const hone_node *node);

/* yolo_nms_ref.c: one execution in f64, the truth that kernels are compared with. in: head; out: selected count, whose data is to be filled. */
void yolo_nms_ref(const yolo_nms_attrs *attrs, const hone_array in[1], const hone_array out[2]);

/* yolo_nms_ref.c: rank and dimensions of io->output[...]->dim from those of io->input; unknown ones are < 0. */
hone_status yolo_nms_shape(const yolo_nms_attrs *attrs, const hone_infer *io, hone_error *error);

/* yolo_nms_ref.c: bytes of packed constants and of workspace, of a step that is accepted. */
hone_status yolo_nms_need(const yolo_nms_attrs *attrs, const hone_step *s, const hone_machine *m, hone_tactic_need *need, hone_error *error);

/* yolo_nms_cpu.c, compiled once for each instruction set. */
hone_status HONE_KERNEL(yolo_nms)(const yolo_nms_attrs *attrs, const hone_step_run *run, hone_error *error);

/* yolo_nms_cuda.c: launches the kernels of text (yolo_nms_cuda.cu) with hone_cuda_launch (hone/cuda.h). */
hone_status yolo_nms_cuda(const yolo_nms_attrs *attrs, const hone_step_run *run, const char *text, hone_error *error);

#endif
