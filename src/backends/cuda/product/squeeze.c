/* Squeeze-and-excitation as one kernel (squeeze.cu): the parts of the step are an average over all pixels,
 * two products of it, and the program that reads what they make as a gate a channel of an image. */
#include "backends/cuda/product/squeeze.h"

#include <math.h>
#include <string.h>

#include "backends/cuda/product/product.h"
#include "backends/cuda/product/squeeze_args.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/program.h"
#include "backends/cuda/step/step.h"
#include "base/dims.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/mem.h"
#include "optimize/step/axes.h"

enum {
  MOST_PER = 4,
  MOST_HELD = 4,
  CHUNK = 8,
  VECTOR = 16,
  UNROLLED = 2,
  AVERAGE = 0,
  FIRST,
  LAST,
  SCALE,
  PARTS
};

/* How the threads of a block divide a product. */
typedef struct sums {
  uint32_t lanes, per, passes;
  uint32_t
      chunk; /* passes whose weights a thread fetches at once; all of them: before the images are there */
} sums;

typedef struct squeeze {
  const hone_step *part[PARTS];
  hn_product product[PARTS]; /* of FIRST and LAST */
  hone_dtype type;
  int32_t gate; /* input of SCALE */
  uint32_t tensors, threads, blocks, shared;
  int64_t images;
  double seconds;
  sums sums[2];         /* of FIRST and LAST */
  hn_squeeze_args args; /* without addresses */
} squeeze;

static bool alike(const hone_tensor_desc *a, const hone_tensor_desc *b) {
  if (a->dtype != b->dtype || !hone_desc_same_dims(a, b)) return false;
  for (int32_t i = 0; i < a->rank; i++)
    if (a->dim[i] > 1 && a->stride[i] != b->stride[i]) return false;
  return true;
}

/* x: whole vectors of channels, pixels at even distances. */
static bool read_images(squeeze *q, hone_reason *why) {
  const hone_tensor_desc *x = &q->part[AVERAGE]->input[0].desc;
  hn_squeeze_args *a = &q->args;
  if (!hone_desc_known(x) || x->rank < 3 || x->layout != HONE_LAYOUT_CHANNELS_LAST || !hn_cuda_type(x->dtype))
    return hn_refuse(why, "the images are not channels-last f32, f16 or bf16");
  q->type = x->dtype;
  const int64_t width = VECTOR / (int64_t)hone_dtype_size(x->dtype), channels = x->dim[1],
                pixels = hn_dims(x, 2, x->rank);
  q->images = x->dim[0];
  int64_t pixel = x->stride[x->rank - 1];
  for (int32_t i = x->rank - 1; i > 2; i--)
    if (x->stride[i - 1] != x->stride[i] * x->dim[i]) return hn_refuse(why, "pixels are not evenly spaced");
  if (!q->images || !channels || !pixels) return hn_refuse(why, "there is nothing to scale");
  if (x->stride[1] != 1 || pixel % width || x->stride[0] % width ||
      pixel < (int64_t)hn_round_up((size_t)channels, (size_t)width))
    return hn_refuse(why, "pixels are not whole vectors");
  if (pixels > INT32_MAX / 2 || pixel > INT32_MAX || channels > 1 << 20 || q->images > INT32_MAX / 16)
    return hn_refuse(why, "too large");
  a->image = x->stride[0], a->pixel = (i32)pixel, a->pixels = (i32)pixels, a->channels = (i32)channels;
  a->vectors = (i32)hn_div_up(channels, width);
  a->inverse = (float)(1.0 / (double)pixels);
  return true;
}

static bool read_average(const squeeze *q, hone_reason *why) {
  const hone_step *s = q->part[AVERAGE];
  const int32_t rank = s->input[0].desc.rank;
  uint32_t axes;
  if (s->n_epilogue) return hn_refuse(why, "the average has an epilogue");
  if (strcmp(s->anchor, "GlobalAveragePool") == 0) return true;
  if (strcmp(s->anchor, "ReduceMean") != 0) return hn_refuse(why, "%s is no average", s->anchor);
  if (!hn_step_axes(s, &axes, why)) return false;
  return axes == ((((uint32_t)1 << rank) - 1) & ~3u) ||
         hn_refuse(why, "the average is not one of all pixels");
}

static bool read_product(squeeze *q, int k, int64_t channels, hone_reason *why) {
  const hone_step *s = q->part[k];
  hn_product *p = &q->product[k];
  if (!hn_product_of(s, p, why) || !hn_cuda_epilogue_inside(s, why)) return false;
  if (!p->constant || p->c_type != HONE_DTYPE_NONE || p->args.alpha != 1 || p->args.n_batch != 1 ||
      p->args.batch[0] != 1)
    return hn_refuse(why, "a product is not one by constant weights, with a vector");
  if (p->bias >= 0 && !s->input[p->bias].constant) /* it is read before the kernel before has ended */
    return hn_refuse(why, "a product's vector is no constant");
  if (!p->one_tap || p->args.m != q->images || p->args.channels != channels)
    return hn_refuse(why, "a product is not one of the channels of an image");
  p->a_type = q->type, p->chunk = VECTOR / (uint32_t)hone_dtype_size(q->type); /* as they are packed */
  p->args.tap = (uint32_t)hn_round_up((size_t)channels, p->chunk), p->args.k = p->args.tap;
  p->args.k_chunks = p->args.k / p->chunk;
  return true;
}

static bool read_program(squeeze *q, const hone_step_part *part, hone_reason *why) {
  const hone_step *s = q->part[SCALE];
  const hone_tensor_desc *x = &q->part[AVERAGE]->input[0].desc;
  if (strcmp(s->anchor, "Pointwise") != 0 || s->n_outputs != 1 || s->n_epilogue ||
      !hn_cuda_program_accepts(s, why))
    return hn_refuse(why, "no program ends it");
  if (!alike(&s->output[0].desc, x))
    return hn_refuse(why, "the result lies otherwise than the images, or is of another type");
  q->gate = -1;
  for (uint32_t i = 0; i < s->n_inputs; i++) {
    if (part->input[i] == HONE_PART_CHAINED) {
      if (q->gate >= 0) return hn_refuse(why, "the gate is read twice");
      q->gate = (int32_t)i;
    } else if (!alike(&s->input[i].desc, x)) {
      return hn_refuse(why, "operand %u of the program lies otherwise than the images, or is of another type",
                       i);
    }
  }
  q->tensors = s->n_inputs - 1;
  if (q->gate < 0) return hn_refuse(why, "the program reads no gate");
  return q->tensors <= HN_SQUEEZE_TENSORS || hn_refuse(why, "more than %d tensors", HN_SQUEEZE_TENSORS);
}

/* ------------------------------------------------------------------ how it is divided */

/* `rows` sums over n vectors each: as few vectors a thread as can be, then few threads a sum. */
static bool divide_sums(int64_t rows, int64_t n, uint32_t threads, sums *to) {
  int64_t least = INT64_MAX;
  for (uint32_t lanes = 1; lanes <= 32; lanes *= 2) {
    const int64_t per = hn_div_up(n, lanes), passes = hn_div_up(rows, threads / lanes);
    if (per > MOST_PER || per * passes >= least) continue;
    least = per * passes;
    const int64_t chunk =
        per * passes <= MOST_HELD ? passes : hn_min(CHUNK / (uint32_t)per, (uint32_t)passes);
    *to = (sums){lanes, (uint32_t)per, (uint32_t)passes, (uint32_t)chunk};
  }
  return least < INT64_MAX;
}

/* Shared memory, in floats, each part at a multiple of 16 bytes. */
static int64_t lay_out(hn_squeeze_args *a, uint32_t blocks, int64_t width) {
  const struct {
    i32 *at;
    int64_t floats;
  } list[] = {{&a->at_sums, (int64_t)a->rows * a->slice * width},
              {&a->at_groups, (int64_t)a->groups * a->slice * width},
              {&a->at_mean, a->slice * width},
              {&a->at_partial, blocks * a->hidden_vectors * width},
              {&a->at_hidden, a->hidden_vectors * width},
              {&a->at_gate, a->slice * width}};
  int64_t all = 0;
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    if (all > 1 << 20) return all;
    *list[i].at = (i32)all;
    all += (int64_t)hn_round_up((size_t)list[i].floats, 4);
  }
  return all;
}

/* Fitted to 38 measurements of 9 shapes at 1 and 5 at 16 images on an H200
 * (docs/log/perf-log-gpu-networks.md): what every launch waits for (the sums, the meeting of the cluster, the
 * gates), what a block draws and writes, products, weights that come late; and clusters that wait for room,
 * from half of the multiprocessors on. */
static double seconds_of(const squeeze *q, const hone_machine *m, const hn_squeeze_args *a,
                         const sums both[2], uint32_t threads, uint32_t blocks) {
  const double sms = m->processors ? m->processors : 132, dram = m->dram_bytes > 0 ? m->dram_bytes : 4e12,
               l2 = m->cache_bytes > 0 ? m->cache_bytes : 8.3e12; /* of that machine */
  const double share = (double)q->images * blocks / sms, crowded = fmin(fmax((share - 0.5) / 0.25, 0), 1);
  const double pixel = (a->slice == 1 ? 2.0 : 1.0) * a->slice * VECTOR,
               drawn = a->part * pixel * (2.0 + q->tensors);
  const double late = (double)hn_div_up(both[0].passes, both[0].chunk) - 1 +
                      (double)hn_div_up(both[1].passes, both[1].chunk) - 1;
  const double memory =
      (double)q->images * (double)a->image * (double)hone_dtype_size(q->type) * (1.0 + q->tensors);
  const double work = drawn * (1 + share) / (0.75 * l2 / sms) + a->hidden * (4e-9 + 12e-9 * share);
  return fmax(work, memory / dram) + 2.3e-6 + 0.7e-6 * late + (blocks > 1 ? 1.2e-6 * crowded : 0) +
         (threads < 512 ? 0.1e-6 : 0);
}

static void try_cut(squeeze *q, const hone_machine *m, uint32_t threads, uint32_t blocks, uint32_t slices) {
  const int64_t width = VECTOR / (int64_t)hone_dtype_size(q->type);
  hn_squeeze_args a = q->args;
  a.slices = (i32)slices;
  a.slice = (i32)hn_div_up(a.vectors, slices);
  a.part = (i32)hn_div_up(a.pixels, blocks / slices);
  if (a.slice > (i32)threads) return;
  /* More than 8 are not promised: a whole Hopper chip has them together, where few of its processors work. */
  if (blocks > 8 && (m->arch != 90 || m->processors < 100 || q->images * blocks * 2 > m->processors)) return;
  a.rows = (i32)threads / a.slice;
  if (a.rows > a.part) a.rows = a.part;
  a.groups = (i32)(threads / (a.slice * width));
  if (a.groups > a.rows) a.groups = a.rows;
  if (!a.groups) a.groups = 1;
  sums both[2];
  if (!divide_sums(a.hidden, a.slice, threads, &both[0]) ||
      !divide_sums(a.slice * width, a.hidden_vectors, threads, &both[1]))
    return;
  const int64_t shared = lay_out(&a, blocks, width) * 4;
  if (shared > (int64_t)m->shared_bytes) return;
  const double seconds = seconds_of(q, m, &a, both, threads, blocks);
  if (seconds >= q->seconds) return;
  q->seconds = seconds, q->threads = threads, q->blocks = blocks, q->shared = (uint32_t)shared, q->args = a;
  memcpy(q->sums, both, sizeof both);
}

static bool describe(const hone_step *s, const hone_machine *m, const hn_squeeze_config *config, squeeze *q,
                     hone_reason *why) {
  memset(q, 0, sizeof *q);
  if (s->n_parts != PARTS) return hn_refuse(why, "%u parts", s->n_parts);
  if (s->n_inputs > HN_CUDA_PART_INPUTS) return hn_refuse(why, "more than %d inputs", HN_CUDA_PART_INPUTS);
  for (int k = 0; k < PARTS; k++) q->part[k] = s->part[k].step;
  if (!read_images(q, why) || !read_average(q, why) || !read_product(q, FIRST, q->args.channels, why))
    return false;
  const int64_t hidden = q->product[FIRST].args.n;
  if (!read_product(q, LAST, hidden, why) || !read_program(q, &s->part[SCALE], why)) return false;
  if (q->product[LAST].args.n != (uint32_t)q->args.channels)
    return hn_refuse(why, "there is not one gate a channel");
  if (hidden > 1 << 16) return hn_refuse(why, "too large");
  q->args.hidden = (i32)hidden;
  q->args.hidden_vectors = (i32)q->product[LAST].args.k_chunks;
  q->seconds = INFINITY;
  for (uint32_t blocks = 1; blocks <= (m->arch >= 90 ? 16 : 1); blocks *= 2)
    for (uint32_t slices = 1; slices <= blocks; slices *= 2) try_cut(q, m, config->threads, blocks, slices);
  return isfinite(q->seconds) || hn_refuse(why, "too many channels for a block");
}

static double cost_of(const squeeze *q, const hone_step *s, const hone_machine *m) {
  (void)s;
  return q->seconds + m->launch_s;
}

/* ------------------------------------------------------------------ weights */

static size_t packed_bytes(const squeeze *q, int k) {
  return (size_t)q->product[k].args.n * q->product[k].args.k_chunks * VECTOR;
}

static void need_of(const squeeze *q, const hone_step *s, const hone_machine *m, hone_tactic_need *need) {
  (void)m;
  need->blob_bytes = packed_bytes(q, FIRST) + packed_bytes(q, LAST);
  need->packed = 1u << s->part[FIRST].input[1] | 1u << s->part[LAST].input[1];
  need->bytewise = need->packed;
}

static hone_status fill(squeeze *q, const hone_step *s, void *blob, hone_error *error) {
  const hn_product_type type = q->type == HONE_DTYPE_F16    ? HN_PRODUCT_F16
                               : q->type == HONE_DTYPE_BF16 ? HN_PRODUCT_BF16
                                                            : HN_PRODUCT_F32;
  (void)s, (void)error;
  for (int k = FIRST; k <= LAST; k++)
    hn_product_pack(q->part[k], &q->product[k], false, type,
                    (char *)blob + (k == LAST ? packed_bytes(q, FIRST) : 0));
  return HONE_OK;
}

HN_FAMILY_DESCRIBED(hn_squeeze, squeeze, fill)

/* ------------------------------------------------------------------ run */

/* What a thread reads of a pixel, and the program on it. */
static void write_program(const squeeze *q, hn_str *t) {
  const hone_step *s = q->part[SCALE];
  const char *type = hn_cuda_type(q->type);
  hn_str_puts(t, "#include \"elements.cuh\"\n#include \"squeeze_args.h\"\ntypedef struct hn_raw {\n  u32 "
                 "r[HN_TENSORS][4];\n} hn_raw;\n"
                 "HN_FN void hn_fetch(const hn_squeeze_args *a, i64 at, hn_raw *r) {\n"
                 "  HN_UNROLL for (int i = 0; i < HN_TENSORS; i++)\n"
                 "    hn_ld_words(r->r[i], (const char *)a->tensor[i] + at * HN_SIZE, 16);\n}\n"
                 "HN_FN void hn_finish(const hn_squeeze_args *a, i64 at, i32 channel, const hn_raw *r, const "
                 "float *g) {\n"
                 "  float y[HN_W];\n  u32 w[4];\n  (void)channel;\n"
                 "  HN_UNROLL for (int k = 0; k < HN_W; k++) {\n");
  uint32_t tensor = 0;
  for (uint32_t i = 0; i < s->n_inputs; i++) {
    if ((int32_t)i == q->gate)
      hn_str_printf(t, "    const float i%u = g[k];\n", i);
    else
      hn_str_printf(t, "    const float i%u = hn_word_%s(r->r[%u], k);\n", i, type, tensor++);
  }
  hn_str_puts(t, "    float o0 = 0;\n");
  hn_cuda_program(s, t);
  const bool padded = q->args.channels % (VECTOR / (i32)hone_dtype_size(q->type)) != 0;
  hn_str_printf(t,
                "    y[k] = %s;\n  }\n  hn_pack_%s(w, y, HN_W);\n"
                "  hn_st_words((char *)a->y + at * HN_SIZE, w, 16);\n}\n",
                padded ? "channel + k < a->channels ? o0 : 0" : "o0", type);
}

static hone_status write_prefix(const squeeze *q, hn_str *t, hone_error *error) {
  hn_cuda_define_type(t, q->type);
  hn_str_printf(t,
                "#define HN_W %d\n#define HN_THREADS %u\n#define HN_BLOCKS %u\n#define HN_TENSORS "
                "%u\n#define HN_UNROLLED %d\n",
                VECTOR / (int)hone_dtype_size(q->type), q->threads, q->blocks, q->tensors, UNROLLED);
  for (int k = 0; k < 2; k++)
    hn_str_printf(t,
                  "#define HN_LANES%d %u\n#define HN_PER%d %u\n#define HN_PASSES%d %u\n#define HN_CHUNK%d "
                  "%u\n#define HN_HELD%d %d\n",
                  k + 1, q->sums[k].lanes, k + 1, q->sums[k].per, k + 1, q->sums[k].passes, k + 1,
                  q->sums[k].chunk, k + 1, q->sums[k].per * q->sums[k].passes <= MOST_HELD);
  hone_status status = hn_cuda_epilogue(q->part[FIRST], q->product[FIRST].bias, t, error);
  if (!status) status = hn_cuda_epilogue_inner1(q->part[LAST], q->product[LAST].bias, t, error);
  if (status) return status;
  write_program(q, t);
  return t->failed ? hn_fail_memory(error, t->cap, "device text") : HONE_OK;
}

hone_status hn_squeeze_run(const hone_step_run *r, const hn_squeeze_config *config, hone_error *error) {
  hn_cuda_queue *queue = hn_cuda_queue_of(r);
  const hone_step *s = r->step;
  squeeze q;
  hone_reason why = {""};
  if (!describe(s, hn_cuda_machine(queue), config, &q, &why)) return hn_not_described(s, &why, error);
  hn_cuda_part part[PARTS];
  for (uint32_t k = 0; k < PARTS; k++) hn_cuda_part_run(r, k, &part[k]);
  hn_squeeze_args *a = &q.args;
  a->x = part[AVERAGE].in[0], a->y = r->out[0];
  bool aligned = hn_product_aligned(a->x) && hn_product_aligned(a->y);
  for (uint32_t i = 0, n = 0; i < q.part[SCALE]->n_inputs; i++) {
    if ((int32_t)i == q.gate) continue;
    aligned = aligned && hn_product_aligned(part[SCALE].in[i]);
    a->tensor[n++] = part[SCALE].in[i];
  }
  if (!aligned) return hn_fail(error, HONE_ERROR_INTERNAL, "%s: a tensor lies at an odd address", s->anchor);
  a->first = r->blob, a->last = (const char *)r->blob + packed_bytes(&q, FIRST);
  hn_cuda_epilogue_bind(&part[FIRST].run, q.product[FIRST].bias, &a->inner);
  hn_cuda_epilogue_bind(&part[LAST].run, q.product[LAST].bias, &a->outer);
  hn_cuda_epilogue_sizes(q.part[FIRST], q.product[FIRST].bias, a->inner_bytes);
  hn_cuda_epilogue_sizes(q.part[LAST], q.product[LAST].bias, a->outer_bytes);
  hn_str text = {0};
  hone_status status = write_prefix(&q, &text, error);
  const hn_cuda_kernel kernel = {"squeeze", text.ptr, "squeeze"};
  const hn_cuda_shape shape = {.grid = {(uint32_t)q.images * q.blocks, 1, 1},
                               .threads = q.threads,
                               .shared = q.shared,
                               .cluster = q.blocks > 1 ? q.blocks : 0,
                               .overlap = true};
  if (!status) status = hn_cuda_launch(queue, &kernel, &shape, a, sizeof *a, error);
  hn_str_free(&text);
  return status;
}
