/* How the kernel for the GPU is launched: a block for each 32 cells of an anchor. */
#include "yolo_decode_op.h"

#include "../yolo_decode.h"
#include <hone/cuda.h>
#include <stdio.h>

typedef struct decode_args { /* the same as in yolo_decode_cuda.cu */
  const void *head, *cells, *sizes;
  void *boxes;
  long long cell[3], size[3];
  uint32_t anchors, wide, plane, across, pieces;
  float stride;
  int five;
} decode_args;

enum { CELLS = 32, THREADS = 256 };

static const char *word(const hone_step *s, int input) {
  return s->input[input].desc.dtype == HONE_DTYPE_F16 ? "f16" : "f32";
}

hone_status yolo_decode_cuda(const yolo_decode_attrs *attrs, const hone_step_run *run, const char *text,
                             hone_error *error) {
  const hone_step *s = run->step;
  const yolo_sizes z = yolo_sizes_of(s->input[YOLO_HEAD].desc.dim, s->input[YOLO_CELLS].desc.dim,
                                     s->input[YOLO_SIZES].desc.dim);
  decode_args a = {.head = run->in[YOLO_HEAD],
                   .cells = run->in[YOLO_CELLS],
                   .sizes = run->in[YOLO_SIZES],
                   .boxes = run->out[0],
                   .anchors = (uint32_t)z.anchors,
                   .wide = (uint32_t)z.wide,
                   .plane = (uint32_t)(z.high * z.across),
                   .across = (uint32_t)z.across,
                   .stride = attrs->stride,
                   .five = attrs->form == YOLO_V5};
  a.pieces = a.plane / CELLS + (a.plane % CELLS > 0);
  for (int i = 0; i < 3; i++) a.cell[i] = z.cell[i], a.size[i] = z.size[i];
  const long long blocks = z.images * z.anchors * a.pieces;
  if (!blocks) return HONE_OK;
  char head[200];
  snprintf(head, sizeof head,
           "#define LOAD hn_load_%s\n#define STORE hn_store_%s\n#define CELL hn_load_%s\n#define SIZE "
           "hn_load_%s\n",
           word(s, YOLO_HEAD), word(s, YOLO_HEAD), word(s, YOLO_CELLS), word(s, YOLO_SIZES));
  const hone_cuda_kernel kernel = {
      HONE_DESC_HEAD(hone_cuda_kernel), .head = head,       .text = text, .entry = "yolo_decode",
      .grid = {(uint32_t)blocks, 1, 1}, .threads = THREADS, .overlap = 1};
  return hone_cuda_launch(run, &kernel, &a, sizeof a, error);
}
