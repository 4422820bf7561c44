#include "backends/cuda/movement/moves.h"

#include <string.h>

#include "backends/cuda/device/moves_args.h"
#include "backends/cuda/movement/tile.h"
#include "backends/cuda/step/launch.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"

enum { THREADS = 256, EACH = 4, FEW = 4 /* rows or columns that are not worth a transpose */ };

/* Takes boxes. Without a run it only looks whether they can be taken, and how many launches they are. */
typedef struct taker {
  hn_boxes boxes;
  const hone_step *step;
  const hone_step_run *run;
  hn_copy_args args;
  uint32_t blocks, launches;
  uint64_t bare;  /* bit i: some box of output i left its channel padding alone */
  double singles; /* bytes that move element by element */
  hone_status status;
  hone_error *error;
  hone_reason why;
  bool refused;
} taker;

static void flush(taker *t) {
  if (t->args.pieces == 0 || t->status != HONE_OK) return;
  t->launches++;
  if (t->run) {
    const hn_cuda_kernel kernel = {"copy", NULL, "copy"};
    const hn_cuda_shape shape = {.grid = {t->blocks, 1, 1}, .threads = THREADS, .overlap = true};
    t->status = hn_cuda_launch(hn_cuda_queue_of(t->run), &kernel, &shape, &t->args, sizeof t->args, t->error);
  }
  memset(&t->args, 0, sizeof t->args);
  t->blocks = 0;
}

static void refuse(taker *t, const char *what) {
  if (!t->refused) hn_refuse(&t->why, "%s", what);
  t->refused = true;
  if (t->run && t->status == HONE_OK)
    t->status = hn_fail(t->error, HONE_ERROR_INTERNAL, "%s: %s", t->step->anchor, what);
}

static bool divides(int64_t unit, int64_t bytes) { return bytes % unit == 0; }

/* The widest unit in which the runs of both sides can be copied. */
static int widest_unit(const hn_nest *n, int32_t element, const char *to, const char *from, bool fill) {
  const int32_t last = n->rank - 1;
  int unit = element;
  if (n->stride[0][last] != 1 || (!fill && n->stride[1][last] != 1)) return unit;
  for (int u = 16; u > element; u /= 2) {
    bool fits = divides(u, n->dim[last] * element) && divides(u, (intptr_t)to) &&
                (fill || divides(u, (intptr_t)from));
    for (int32_t i = 0; i < last && fits; i++)
      fits = divides(u, n->stride[0][i] * element) && (fill || divides(u, n->stride[1][i] * element));
    if (fits) return u;
  }
  return unit;
}

/* from NULL: the fill. */
static void add_piece(taker *t, const hn_nest *n, int32_t element, char *to, const char *from,
                      uint64_t fill) {
  const int unit = widest_unit(n, element, to, from, !from);
  const int32_t last = n->rank - 1;
  const int64_t units = hn_nest_count(n) * element / unit;
  if (n->rank > HN_COPY_RANK) {
    refuse(t, "more than 8 dimensions remain");
    return;
  }
  if (units >= 0x7fffffff) {
    refuse(t, "more than 2^31 units");
    return;
  }
  hn_copy_piece *p = &t->args.piece[t->args.pieces++];
  memset(p, 0, sizeof *p);
  p->to = to, p->from = from;
  for (int32_t at = 0; at < 8; at += element)
    p->fill |= (element == 8 ? fill : fill & ((1ull << 8 * element) - 1)) << 8 * at;
  p->units = (uint32_t)units, p->first_block = t->blocks, p->rank = n->rank;
  while (1 << p->log_unit < unit) p->log_unit++;
  for (int32_t i = 0; i < n->rank; i++) {
    const int64_t step = i == last ? (unit == element ? element : unit) : element;
    p->to_stride[i] = n->stride[0][i] * step;
    p->from_stride[i] = n->stride[1][i] * step;
    p->dim[i] = hn_cuda_divisor((uint32_t)(i == last ? n->dim[i] * element / unit : n->dim[i]));
  }
  if (unit == element) t->singles += (double)units * element;
  t->blocks += hn_cuda_blocks(units, THREADS * EACH);
  if (t->args.pieces == HN_COPY_PIECES) flush(t);
}

/* All channels of channels-last tensors: their padding is zeros on one side and becomes zeros on the other,
 * so that whole vectors can be copied. */
static bool with_padding(const taker *t, hn_box *b) {
  const hone_tensor_desc *y = &t->step->output[b->dst.tensor].desc;
  if (y->layout != HONE_LAYOUT_CHANNELS_LAST || y->channel_pitch <= y->dim[1]) return true;
  if (b->src.tensor == HN_BOX_FILL) return false;
  const hone_tensor_desc *x = &t->step->input[b->src.tensor].desc;
  const int64_t vector = 16 / b->element, whole = hn_fill_up(y->dim[1], vector);
  if (x->layout != HONE_LAYOUT_CHANNELS_LAST || x->dim[1] != y->dim[1] || b->dst.at % y->channel_pitch ||
      b->src.at % x->channel_pitch || x->channel_pitch < whole || y->channel_pitch != whole || whole == 1)
    return false;
  for (int32_t i = 0; i < b->rank; i++)
    if (b->dim[i] == y->dim[1] && b->dst.stride[i] == 1 && b->src.stride[i] == 1) {
      b->dim[i] = whole;
      return true;
    }
  return false;
}

static void take(hn_boxes *self, const hn_box *box) {
  taker *t = (taker *)self;
  hn_box b = *box;
  hn_nest n;
  if (t->status != HONE_OK || t->refused) return;
  const bool fill = b.src.tensor == HN_BOX_FILL;
  if (b.dst.tensor < 64 && !with_padding(t, &b)) t->bare |= 1ull << b.dst.tensor;
  hn_nest_begin(&n, b.rank, b.dim);
  hn_nest_add(&n, b.dst.stride);
  hn_nest_add(&n, b.src.stride);
  hn_nest_finish(&n);
  if (hn_nest_count(&n) == 0) return;
  /* Planning looks at the alignment of the first elements; bases are multiples of 256 then. */
  char *to = (t->run ? (char *)t->run->out[b.dst.tensor] : (char *)4096) + b.dst.at * b.element;
  const char *from =
      fill ? NULL
           : (t->run ? (const char *)t->run->in[b.src.tensor] : (const char *)4096) + b.src.at * b.element;
  int32_t source;
  if (!fill && hn_cuda_tile_of(&n, &source) && n.dim[n.rank - 1] > FEW && n.dim[source] > FEW) {
    const hone_dtype bits = hn_cuda_bits_of_size(b.element);
    const hn_cuda_tile tile = {.nest = &n, .source = source, .from = bits, .to = bits};
    t->launches++;
    if (t->run) t->status = hn_cuda_tile_launch(hn_cuda_queue_of(t->run), &tile, to, from, t->error);
    return;
  }
  add_piece(t, &n, b.element, to, from, t->boxes.fill);
}

/* Zeros into the channel padding of outputs where no box has brought them. */
static void clear_padding(taker *t) {
  const uint64_t fill = t->boxes.fill;
  t->boxes.fill = 0;
  for (uint32_t i = 0; i < t->step->n_outputs; i++) {
    const hone_tensor_desc *y = &t->step->output[i].desc;
    const bool padded = y->layout == HONE_LAYOUT_CHANNELS_LAST && y->channel_pitch > y->dim[1];
    if (!padded || (i < 64 && !(t->bare >> i & 1))) continue;
    hn_box b = {.element = (int32_t)hone_dtype_size(y->dtype), .rank = y->rank, .src.tensor = HN_BOX_FILL};
    b.dst = hn_box_side_of(i, y);
    b.dst.at = y->dim[1];
    for (int32_t k = 0; k < y->rank; k++) b.dim[k] = k == 1 ? y->channel_pitch - y->dim[1] : y->dim[k];
    b.dst.stride[1] = 1;
    take(&t->boxes, &b);
  }
  t->boxes.fill = fill;
}

static bool take_all(hn_boxes_build build, taker *t, hone_reason *why) {
  t->boxes.add = take;
  if (t->step->n_outputs > 64) return hn_refuse(why, "more than 64 outputs");
  if (!build(t->step, &t->boxes, why)) return false;
  clear_padding(t);
  flush(t);
  return t->refused ? hn_refuse(why, "%s", t->why.text) : true;
}

bool hn_cuda_moves_accepts(const hone_step *s, const hone_machine *m, const hn_cuda_moves_config *config,
                           hone_reason *why) {
  (void)m;
  taker t = {.step = s};
  return take_all(config->build, &t, why);
}

double hn_cuda_moves_cost(const hone_step *s, const hone_machine *m, const hn_cuda_moves_config *config) {
  taker t = {.step = s};
  double bytes = 0;
  if (!take_all(config->build, &t, NULL)) return HN_REFUSED_SECONDS;
  for (uint32_t i = 0; i < s->n_outputs; i++) bytes += 2.0 * (double)hone_desc_bytes(&s->output[i].desc);
  return hn_cuda_seconds(m, 0, 0, bytes + 4 * t.singles, 0.85) +
         (t.launches > 1 ? t.launches - 1 : 0) * m->launch_s;
}

hone_status hn_cuda_moves_run(const hone_step_run *run, const hn_cuda_moves_config *config,
                              hone_error *error) {
  taker t = {.step = run->step, .run = run, .error = error};
  hone_reason why = {""};
  if (!take_all(config->build, &t, &why) && t.status == HONE_OK)
    return hn_not_described(run->step, &why, error);
  return t.status;
}

hone_status hn_cuda_moves_whole(hn_cuda_queue *q, void *to, const void *from, int64_t bytes,
                                hone_error *error) {
  hn_copy_args a;
  hn_nest n;
  if (bytes == 0) return HONE_OK;
  memset(&a, 0, sizeof a);
  const int64_t one = 1;
  hn_nest_begin(&n, 1, &bytes);
  hn_nest_add(&n, &one);
  hn_nest_add(&n, &one);
  const int unit = widest_unit(&n, 1, to, from, false);
  if (bytes / unit >= 0x7fffffff)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "a copy of more than 2^31 units");
  hn_copy_piece *p = &a.piece[a.pieces++];
  p->to = to, p->from = from, p->units = (uint32_t)(bytes / unit), p->rank = 1;
  while (1 << p->log_unit < unit) p->log_unit++;
  p->to_stride[0] = p->from_stride[0] = unit;
  const hn_cuda_kernel kernel = {"copy", NULL, "copy"};
  const hn_cuda_shape shape = {
      .grid = {hn_cuda_blocks(p->units, THREADS * EACH), 1, 1}, .threads = THREADS, .overlap = true};
  return hn_cuda_launch(q, &kernel, &shape, &a, sizeof a, error);
}
