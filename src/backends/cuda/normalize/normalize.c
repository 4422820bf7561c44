#include "backends/cuda/normalize/normalize.h"

#include <string.h>

#include "backends/cuda/normalize/normalize_args.h"
#include "backends/cuda/normalize/walk.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/launch.h"
#include "backends/cuda/step/quantise.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"

enum {
  MOST_KEPT = 32,  /* values of a row that a thread keeps */
  MOST_PARTS = 64, /* of a row, on blocks of their own */
  PART_EACH = 4    /* vectors of a part that a thread takes; twice as many single elements across memory */
};

hn_rows hn_rows_make(hn_row_kind kind, uint32_t axes) {
  return (hn_rows){.kind = kind,
                   .axes = axes,
                   .planes = 1,
                   .each = 1,
                   .inner = 1,
                   .scale = HN_ROWS_NONE,
                   .shift = HN_ROWS_NONE,
                   .skip = HN_ROWS_NONE,
                   .bias = HN_ROWS_NONE,
                   .x_scale = HN_ROWS_NONE,
                   .x_zero = HN_ROWS_NONE,
                   .y_scale = HN_ROWS_NONE,
                   .y_zero = HN_ROWS_NONE,
                   .mean = HN_ROWS_NONE,
                   .inv_std = HN_ROWS_NONE,
                   .sum = HN_ROWS_NONE};
}

bool hn_rows_axis(const hone_step *s, int64_t otherwise, bool trailing, uint32_t *axes, hone_reason *why) {
  const int32_t rank = s->input[0].desc.rank;
  int64_t axis = s->node ? hone_node_int(s->node, "axis", otherwise) : otherwise;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank + (trailing ? 1 : 0)) return hn_refuse(why, "axis outside the rank");
  *axes = trailing ? ((1u << rank) - 1u) & ~((1u << axis) - 1u) : 1u << axis;
  return true;
}

typedef struct plan {
  hn_walk_args kept, gone;
  int64_t rows, length, elements;
  bool columns;
  int width, keep;
  uint32_t group, threads;
  int64_t parts, part; /* of a row; vectors of one */
  bool crowded;        /* more threads than are on the device at once with many registers each */
} plan;

static bool input_at(const hone_step *s, uint32_t i) { return i != HN_ROWS_NONE && hn_cuda_has(s, i); }
static bool output_at(const hone_step *s, uint32_t i) { return i != HN_ROWS_NONE && hn_cuda_gives(s, i); }

static bool has_parts(const hone_step *s, const hn_rows *rows) {
  return rows->kind >= HN_ROWS_MOMENTS && !input_at(s, rows->skip) && !input_at(s, rows->bias) &&
         !output_at(s, rows->sum);
}

/* Rows that a block would walk along for long while other multiprocessors have none: blocks share them, in
 * two launches (H200: a row of 200,704 elements took 65 us by one block). */
static void divide(const hone_step *s, const hn_rows *rows, int64_t processors, plan *p) {
  p->parts = 1, p->part = p->length;
  const uint32_t group = p->columns ? 8 : 256; /* across memory a warp reads 32 numbers that lie together */
  const int64_t each = p->columns ? group * PART_EACH * 2 : group * PART_EACH;
  const int64_t blocks = hn_div_up(p->rows * group, 256), room = processors * 2 / (blocks ? blocks : 1);
  if (!has_parts(s, rows) || p->length < 4 * each || room < 2) return;
  p->group = group, p->threads = 256;
  int64_t parts = hn_div_up(p->length, each);
  if (parts > room) parts = room;
  if (parts > MOST_PARTS) parts = MOST_PARTS;
  p->part = hn_div_up(p->length, parts);
  p->parts = hn_div_up(p->length, p->part);
}

static bool is_code(hone_dtype t) { return t == HONE_DTYPE_U8 || t == HONE_DTYPE_I8; }

/* Elements that are read together. Of codes 16 bytes are so many that a warp's last round would be mostly
 * idle, and of few rows few threads had all the work. */
static int widest(hone_dtype type, const plan *p, int64_t processors) {
  int width = (int)(16 / hone_dtype_size(type));
  while (is_code(type) && width > 4 && (p->rows <= processors || p->length % (32 * width))) width /= 2;
  return width;
}

static bool make(const hone_step *s, const hn_rows *rows, const hone_machine *m, bool aligned, plan *p,
                 hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  const uint32_t all = x->rank ? (1u << x->rank) - 1u : 0;
  memset(p, 0, sizeof *p);
  if (!hn_cuda_walk(&p->kept, x->rank, x->dim, x->stride, y->stride, all & ~rows->axes, &p->rows, why) ||
      !hn_cuda_walk(&p->gone, x->rank, x->dim, x->stride, y->stride, rows->axes, &p->length, why))
    return false;
  p->elements = p->length;
  const int64_t kept_step = p->kept.x[p->kept.rank - 1], gone_step = p->gone.x[p->gone.rank - 1];
  p->columns = kept_step == 1 && p->kept.dim[p->kept.rank - 1].by > 1 && gone_step != 1 && p->length > 1;
  p->width = 1;
  const int64_t processors = m && m->processors ? m->processors : 108;
  const int width = widest(x->dtype, p, processors);
  bool even = aligned && !p->columns && p->length > width;
  for (int32_t i = 0; i < p->kept.rank; i++)
    even = even && p->kept.x[i] % width == 0 && p->kept.y[i] % width == 0;
  if (even && hn_cuda_walk_vectors(&p->gone, width, true, &p->length)) p->width = width;
  /* Threads of a row: a few vectors each while there are rows enough, more where there are not. */
  p->threads = 256, p->group = 1;
  int64_t want = p->columns ? processors * 512 / (p->rows > 0 ? p->rows : 1) : (p->length + 3) / 4;
  const int64_t few = processors * 1024 / (p->rows > 0 ? p->rows : 1);
  if (!p->columns && want < 32 && want < few) want = few < 32 ? few : 32;
  if (!p->columns && want < 32 && p->length > 8) want = 32;
  const int64_t most = p->columns ? 32 : 256;
  while ((int64_t)p->group < want && p->group < most && (int64_t)p->group < p->length) p->group *= 2;
  if (!p->columns && p->group == 256 && p->length > 256 * 8 && p->rows < processors * 4)
    p->group = p->threads = 1024;
  /* Few rows lie on as many multiprocessors as there are. */
  while (!p->columns && p->threads > 32 && p->threads > p->group &&
         p->rows * p->group < processors * (int64_t)p->threads)
    p->threads /= 2;
  divide(s, rows, processors, p);
  const int64_t kept = hn_div_up(p->part, p->group);
  p->keep = kept * p->width <= MOST_KEPT ? (int)kept : 0;
  p->crowded = p->threads == 256 && p->rows * p->group > processors * 512;
  return true;
}

/* A scale or a zero point of one constant number; a zero point may be left out. */
static bool number_at(const hone_step *s, uint32_t i, hone_dtype type, float *out, hone_reason *why) {
  *out = 0;
  if (!input_at(s, i)) return type != HONE_DTYPE_F32 || hn_refuse(why, "a scale is left out");
  const hone_step_tensor *t = &s->input[i];
  if (!t->constant || t->desc.dtype != type || hone_desc_count(&t->desc) != 1)
    return hn_refuse(why, "a scale or zero point is not one constant number");
  *out = type == HONE_DTYPE_F32  ? *(const float *)t->constant
         : type == HONE_DTYPE_I8 ? (float)*(const int8_t *)t->constant
                                 : (float)*(const uint8_t *)t->constant;
  return true;
}

/* Both sides' types, and the numbers of their codes. */
static bool sides(const hone_step *s, const hn_rows *rows, hn_normalize_args *a, hone_reason *why) {
  const hone_dtype x = s->input[0].desc.dtype, y = s->output[0].desc.dtype;
  const bool reads = input_at(s, rows->x_scale), writes = input_at(s, rows->y_scale);
  float scale, zero;
  if (reads ? !is_code(x) : !hn_cuda_type(x)) return hn_refuse(why, "reads %s", hone_dtype_name(x));
  if (writes ? !is_code(y) : !hn_cuda_type(y)) return hn_refuse(why, "makes %s", hone_dtype_name(y));
  if (reads && (!number_at(s, rows->x_scale, HONE_DTYPE_F32, &a->x_scale, why) ||
                !number_at(s, rows->x_zero, x, &a->x_zero, why)))
    return false;
  if (x == HONE_DTYPE_I8) a->x_zero += 128;
  return !writes || (number_at(s, rows->y_scale, HONE_DTYPE_F32, &scale, why) &&
                     number_at(s, rows->y_zero, y, &zero, why) &&
                     hn_cuda_quantise(scale, (int32_t)zero, y, &a->codes, why));
}

bool hn_cuda_rows_accepts(const hone_step *s, const hn_rows *rows, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  plan p;
  if (!hn_cuda_known(s, why)) return false;
  hn_normalize_args a;
  if (!sides(s, rows, &a, why)) return false;
  if (s->n_epilogue) return hn_refuse(why, "functions of rows have no epilogue");
  if (!hone_desc_same_dims(x, y)) return hn_refuse(why, "input and output differ in dimensions");
  if (hone_desc_count(x) == 0) return hn_refuse(why, "an empty input");
  const uint32_t vectors[] = {rows->scale, rows->shift, rows->bias};
  hone_dtype type = HONE_DTYPE_NONE;
  int64_t row = 1;
  for (int32_t i = 0; i < x->rank; i++) row *= rows->axes >> i & 1 ? x->dim[i] : 1;
  for (int i = 0; i < 3; i++) {
    if (!input_at(s, vectors[i])) continue;
    const hone_tensor_desc *d = &s->input[vectors[i]].desc;
    if (!hn_cuda_type(d->dtype) || (type && type != d->dtype))
      return hn_refuse(why, "scale and shift differ in type");
    type = d->dtype;
    if (d->layout != HONE_LAYOUT_ROW_MAJOR) return hn_refuse(why, "scale or shift is not dense");
    if (rows->place == HN_AT_ELEMENT && hone_desc_count(d) != row)
      return hn_refuse(why, "scale or shift has not one number for each of a row");
  }
  if (input_at(s, rows->skip)) {
    const hone_tensor_desc *d = &s->input[rows->skip].desc;
    if (d->dtype != x->dtype || !hone_desc_same_dims(d, x))
      return hn_refuse(why, "what is added differs from the input");
    for (int32_t i = 0; i < x->rank; i++)
      if (x->dim[i] > 1 && d->stride[i] != x->stride[i])
        return hn_refuse(why, "what is added lies otherwise than the input");
  }
  for (uint32_t i = 1; i < s->n_outputs; i++) {
    if (!hn_cuda_gives(s, i)) continue;
    const hone_tensor_desc *d = &s->output[i].desc;
    if (i == rows->sum) {
      if (d->dtype != y->dtype || memcmp(d->stride, y->stride, sizeof *d->stride * (size_t)y->rank) != 0)
        return hn_refuse(why, "output %u lies otherwise than the first", i);
    } else if ((i != rows->mean && i != rows->inv_std) || d->dtype != HONE_DTYPE_F32) {
      return hn_refuse(why, "output %u is not computed", i);
    } else if (d->layout != HONE_LAYOUT_ROW_MAJOR) {
      return hn_refuse(why, "moments do not lie densely");
    }
  }
  return make(s, rows, NULL, true, &p, why);
}

double hn_cuda_rows_cost(const hone_step *s, const hone_machine *m) {
  return hn_cuda_seconds(m, 10 * (double)hone_desc_count(&s->input[0].desc), m->peak_flops / 4,
                         hn_cuda_bytes(s), 0.7);
}

/* As many parts as any alignment of operands leads to. */
hone_status hn_cuda_rows_need(const hone_step *s, const hone_machine *m, const hn_rows *rows,
                              hone_tactic_need *n) {
  plan vectors, single;
  hone_reason why = {""};
  if (!make(s, rows, m, true, &vectors, &why) || !make(s, rows, m, false, &single, &why)) return HONE_OK;
  if (vectors.parts > 1 || single.parts > 1)
    n->workspace_bytes = (size_t)vectors.rows * MOST_PARTS * 2 * sizeof(float);
  return HONE_OK;
}

/* Factors that no kernel makes, of which a thread wants no more than of the row. Where threads wait for room,
 * registers are better spent on more of them. */
static bool early(const hone_step *s, const hn_rows *rows, const plan *p) {
  const bool scale = !input_at(s, rows->scale) || s->input[rows->scale].constant,
             shift = !input_at(s, rows->shift) || s->input[rows->shift].constant;
  return rows->place == HN_AT_ELEMENT && p->keep && p->parts == 1 && !p->crowded && p->width > 1 && scale &&
         shift;
}

/* pass: of parts (HN_PARTS). */
static void write_prefix(const hone_step *s, const hn_rows *rows, const plan *p, int pass, hn_str *t) {
  const hone_dtype x = s->input[0].desc.dtype, y = s->output[0].desc.dtype;
  const uint32_t vectors[] = {rows->scale, rows->shift, rows->bias};
  hone_dtype type = HONE_DTYPE_F32;
  for (int i = 0; i < 3; i++)
    if (input_at(s, vectors[i])) type = s->input[vectors[i]].desc.dtype;
  hn_str_printf(t, "#define HN_TYPE %s\n#define HN_OUT %s\n#define HN_VECTOR %s\n", hone_dtype_name(x),
                hone_dtype_name(y), hone_dtype_name(type));
  hn_str_printf(t, "#define HN_W %d\n#define HN_OUT_WORDS %d\n#define HN_VECTOR_WORDS %d\n", p->width,
                p->width * (int)hone_dtype_size(y) / 4, p->width * (int)hone_dtype_size(type) / 4);
  hn_str_printf(t, "#define HN_GROUP %u\n#define HN_THREADS %u\n#define HN_BLOCKS %d\n", p->group, p->threads,
                p->crowded ? 4 : 1);
  hn_str_printf(t, "#define HN_KEPT_RANK %d\n#define HN_GONE_RANK %d\n", p->kept.rank, p->gone.rank);
  hn_str_printf(t, "#define HN_COLUMNS %d\n#define HN_KEEP %d\n#define HN_KIND %d\n#define HN_PLACE %d\n",
                p->columns, p->keep, (int)rows->kind, (int)rows->place);
  hn_str_printf(t, "#define HN_PARTS %d\n", pass);
  hn_str_printf(t, "#define HN_EARLY %d\n#define HN_SKIP %d\n", early(s, rows, p),
                input_at(s, rows->skip) || input_at(s, rows->bias) || output_at(s, rows->sum));
  if (input_at(s, rows->x_scale))
    hn_str_printf(t, "#define HN_CODES_IN %s\n", x == HONE_DTYPE_I8 ? "0x80" : "0");
  if (input_at(s, rows->y_scale)) hn_str_puts(t, "#define HN_CODES_OUT 1\n");
  if (y == HONE_DTYPE_F16 || y == HONE_DTYPE_BF16) hn_str_puts(t, "#define HN_FAST_MATH\n");
}

hone_status hn_cuda_rows_run(const hone_step_run *r, const hn_rows *rows, hone_error *error) {
  const hone_step *s = r->step;
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  hone_reason why = {""};
  plan p;
#define IN(i) (input_at(s, rows->i) ? r->in[rows->i] : NULL)
#define OUT(i) (output_at(s, rows->i) ? r->out[rows->i] : NULL)
  hn_normalize_args a = {.x = r->in[0],
                         .y = r->out[0],
                         .skip = IN(skip),
                         .bias = IN(bias),
                         .scale = IN(scale),
                         .shift = IN(shift)};
  a.mean = OUT(mean), a.inv_std = OUT(inv_std), a.sum = OUT(sum);
  const bool aligned = ((uintptr_t)a.x | (uintptr_t)a.y | (uintptr_t)a.skip | (uintptr_t)a.bias |
                        (uintptr_t)a.sum | (uintptr_t)a.scale | (uintptr_t)a.shift) %
                           16 ==
                       0;
  if (!make(s, rows, hn_cuda_machine(q), aligned, &p, &why) || !sides(s, rows, &a, &why))
    return hn_not_described(s, &why, error);
  const hone_tensor_desc *y = &s->output[0].desc;
  hone_status status = HONE_OK;
  if (y->layout == HONE_LAYOUT_CHANNELS_LAST && y->channel_pitch > y->dim[1])
    status = hn_cuda_zero(q, r->out[0], (size_t)hone_desc_bytes(y), error);
  a.kept = p.kept, a.gone = p.gone;
  a.rows = (u32)p.rows, a.length = (u32)p.length, a.elements = (u32)p.elements;
  a.epsilon = rows->epsilon;
  a.each = (i32)rows->each, a.inner = (i32)rows->inner, a.planes = hn_cuda_divisor((uint32_t)rows->planes);
  a.partial = r->workspace, a.part = (u32)p.part, a.parts = hn_cuda_divisor((uint32_t)p.parts);
  const int64_t blocks = hn_div_up(p.rows * p.group, p.threads) * p.parts;
  for (int pass = p.parts > 1; !status && pass <= (p.parts > 1 ? 2 : 0); pass++) {
    hn_str text = {0};
    write_prefix(s, rows, &p, pass, &text);
    status = hn_cuda_launch_line(q, "normalize", &text, "hn_normalize", blocks * p.threads, p.threads, &a,
                                 sizeof a, error);
    hn_str_free(&text);
  }
  return status;
}
