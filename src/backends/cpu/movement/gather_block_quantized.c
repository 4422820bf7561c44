/* GatherBlockQuantized along the first dimension of rows whose codes lie one after the other, in blocks with
 * a scale each: only what is gathered is decoded. */
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/nbits/nbits.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/dims.h"
#include "base/error.h"
#include "base/integers.h"
#include "model/ops/microsoft/codes/nbits.h"

enum { DATA, INDICES, SCALES, ZEROS };

typedef struct blob_head {
  hn_isa isa;
  int64_t rows, lines, length; /* a row is lines of so many codes, each with blocks of its own */
  int64_t block, blocks, bits, indices;
  uint32_t flip; /* turns signed codes into unsigned ones */
  float zero;    /* where there are no zero points */
  bool wide, zeros;
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[DATA].desc, *i = &s->input[INDICES].desc, *f = &s->input[SCALES].desc,
                         *y = &s->output[0].desc;
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_nbits_find(h->isa)) return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  if (!s->node || s->n_epilogue) return hn_refuse(why, "no epilogue");
  if (x->dtype != HONE_DTYPE_U8 && x->dtype != HONE_DTYPE_U4 && x->dtype != HONE_DTYPE_I4)
    return hn_refuse(why, "codes of %s", hone_dtype_name(x->dtype));
  if (f->dtype != HONE_DTYPE_F32 || y->dtype != HONE_DTYPE_F32)
    return hn_refuse(why, "the result is not f32");
  if (!hn_step_plain(x) || !hn_step_plain(i) || !hn_step_plain(f) || !hn_step_plain(y) || x->rank < 2 ||
      f->rank != x->rank)
    return hn_refuse(why, "not row-major, or of unknown shape");
  int64_t gather = hone_node_int(s->node, "gather_axis", 0),
          axis = hone_node_int(s->node, "quantize_axis", 1);
  if (gather < 0) gather += x->rank;
  if (axis < 0) axis += x->rank;
  if (gather != 0 || axis != x->rank - 1) return hn_refuse(why, "along other axes");
  h->wide = i->dtype == HONE_DTYPE_I64;
  /* Elements of 4 bits have a byte each in memory, signed ones with their sign in all of it. */
  h->bits = x->dtype == HONE_DTYPE_U8 ? hone_node_int(s->node, "bits", 4) : 8;
  h->block = hone_node_int(s->node, "block_size", 128);
  h->rows = x->dim[0], h->lines = hn_dims(x, 1, x->rank - 1), h->blocks = f->dim[f->rank - 1];
  h->length = x->dim[x->rank - 1] * (x->dtype == HONE_DTYPE_U8 ? 8 / h->bits : 1);
  h->indices = hone_desc_count(i);
  if (h->length * h->bits % 8) return hn_refuse(why, "a line ends within a byte");
  h->zeros = hn_step_has(s, ZEROS);
  if (h->zeros && !hn_step_plain(&s->input[ZEROS].desc))
    return hn_refuse(why, "the zero points are not row-major");
  h->flip = x->dtype == HONE_DTYPE_I4 ? 128 : 0;
  h->zero = x->dtype == HONE_DTYPE_U4 ? 0.0f : (float)(1 << (h->bits - 1));
  return true;
}

HN_DESCRIBED(blob_head)

static double cost(const hone_step *s, const hone_machine *m) {
  const double n = (double)hone_desc_count(&s->output[0].desc);
  return hn_step_seconds(m, 4 * n, 5 * n, 0.3);
}

typedef struct job {
  const hone_step_run *run;
  const blob_head *h;
  const hn_nbits_ops *ops;
  int64_t per_task;
} job;

/* One line of a row, block by block. */
static void line(const job *j, int64_t at, float *y) {
  const blob_head *h = j->h;
  const uint8_t *codes = (const uint8_t *)j->run->in[DATA] + at * (h->length * h->bits / 8);
  const float *scale = (const float *)j->run->in[SCALES] + at * h->blocks;
  const uint8_t *zeros =
      h->zeros ? (const uint8_t *)j->run->in[ZEROS] + at * ((h->blocks * h->bits + 7) / 8) : NULL;
  for (int64_t b = 0; b < h->blocks; b++) {
    const int64_t from = b * h->block, n = h->length - from < h->block ? h->length - from : h->block;
    const float zero = zeros ? (float)(hn_nbits_code(zeros, h->bits, b) ^ h->flip) : h->zero;
    j->ops->decode(y + from, codes + from * h->bits / 8, (size_t)n, (uint32_t)h->bits, h->flip, zero,
                   scale[b]);
  }
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const blob_head *h = j->h;
  const int64_t size = h->lines * h->length, first = index * j->per_task,
                end = first + j->per_task < h->indices ? first + j->per_task : h->indices;
  (void)thread;
  for (int64_t i = first; i < end; i++) {
    int64_t row =
        h->wide ? ((const int64_t *)j->run->in[INDICES])[i] : ((const int32_t *)j->run->in[INDICES])[i];
    float *y = (float *)j->run->out[0] + i * size;
    if (row < 0) row += h->rows;
    if (row < 0 || row >= h->rows) /* as ONNX Runtime has it */
      memset(y, 0, (size_t)size * sizeof *y);
    else
      for (int64_t l = 0; l < h->lines; l++) line(j, row * h->lines + l, y + l * h->length);
  }
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  job j = {r, h, hn_nbits_find(h->isa), 8192 / (h->lines * h->length + 1) + 1};
  (void)error;
  if (h->indices) r->parallel(r->pool, hn_div_up(h->indices, j.per_task), task, &j);
  return HONE_OK;
}

HN_TACTIC(cpu, gather_block_quantized, "com.microsoft.GatherBlockQuantized", 1, .accepts = accepts,
          .cost = cost, .need = need, .prepack = prepack, .run = run);
