/* How the kernels for the GPU are launched: three, one behind the other. */
#include "yolo_nms_op.h"

#include "../yolo_nms.h"
#include <hone/cuda.h>

typedef struct yolo_args { /* the same as in yolo_nms_cuda.cu */
  const void *head;
  void *rows, *count, *chosen, *kept, *key;
  long long images, boxes, wide, classes, most, filled;
  float least, iou;
} yolo_args;

enum { THREADS = 256, SUPPRESS_THREADS = 512, BOXES = 32 };

hone_status yolo_nms_cuda(const yolo_nms_attrs *attrs, const hone_step_run *run, const char *text,
                          hone_error *error) {
  const hone_tensor_desc *x = &run->step->input[0].desc;
  const yolo_nms_device_room room = yolo_nms_device_room_of(x, attrs->most);
  char *work = run->workspace;
  const yolo_args a = {.head = run->in[0],
                       .rows = run->out[0],
                       .count = run->out[1],
                       .chosen = work + room.chosen,
                       .kept = work + room.kept,
                       .key = work + room.key,
                       .images = x->dim[0],
                       .boxes = x->dim[1],
                       .wide = x->dim[2],
                       .classes = x->dim[2] - 5,
                       .most = yolo_most(attrs->most, x->dim[1]),
                       .filled = hone_desc_count(&run->step->output[0].desc),
                       .least = attrs->score,
                       .iou = attrs->iou};
  const long long lines = a.images * a.classes;
  const struct {
    const char *entry;
    long long blocks;
    uint32_t threads;
  } launch[] = {{"yolo_sweep", a.classes ? a.images * ((a.boxes + BOXES - 1) / BOXES) : 0, THREADS},
                {"yolo_suppress", lines, SUPPRESS_THREADS},
                {"yolo_write", lines ? lines : 1, THREADS}};
  for (int i = 0; i < 3; i++) {
    if (!launch[i].blocks) continue;
    const hone_cuda_kernel kernel = {HONE_DESC_HEAD(hone_cuda_kernel),
                                     .head = x->dtype == HONE_DTYPE_F16 ? "#define LOAD hn_load_f16\n"
                                                                        : "#define LOAD hn_load_f32\n",
                                     .text = text,
                                     .entry = launch[i].entry,
                                     .grid = {(uint32_t)launch[i].blocks, 1, 1},
                                     .threads = launch[i].threads,
                                     .overlap = 1};
    const hone_status status = hone_cuda_launch(run, &kernel, &a, sizeof a, error);
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}
