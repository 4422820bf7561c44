#include "backends/cuda/product/product.h"

#include <string.h>

#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/step.h"
#include "backends/cuda/step/weights.h"
#include "base/error.h"
#include "base/half.h"
#include "base/integers.h"
#include "base/mem.h"
#include "optimize/step/conv_attr.h"
#include "optimize/step/anchor.h"

static bool is_real(hone_dtype t) {
  return t == HONE_DTYPE_F32 || t == HONE_DTYPE_F16 || t == HONE_DTYPE_BF16;
}

static bool is_code(hone_dtype t) { return t == HONE_DTYPE_U8 || t == HONE_DTYPE_I8; }

static uint32_t chunk_of(hone_dtype t) { return 16 / (uint32_t)hone_dtype_size(t); }

static bool has(const hone_step *s, uint32_t i) {
  return i < s->n_anchor_inputs && s->input[i].desc.dtype != HONE_DTYPE_NONE;
}

static bool types(const hone_step *s, hn_product *p, hone_reason *why) {
  if (s->n_anchor_inputs < 2 || !has(s, 0) || !has(s, 1)) return hn_refuse(why, "an operand is left out");
  p->a_type = s->input[0].desc.dtype, p->b_type = s->input[1].desc.dtype,
  p->out_type = s->output[0].desc.dtype;
  bool (*const fit)(hone_dtype) = is_code(p->a_type) && p->codes ? is_code : is_real;
  if (!fit(p->a_type) || !fit(p->b_type) || !fit(p->out_type))
    return hn_refuse(why, "operands are %s and %s", hone_dtype_name(p->a_type), hone_dtype_name(p->b_type));
  for (uint32_t i = 0; i < s->n_anchor_inputs; i++)
    if (has(s, i) && !hone_desc_known(&s->input[i].desc))
      return hn_refuse(why, "dimensions of input %u are not known", i);
  if (!hone_desc_known(&s->output[0].desc)) return hn_refuse(why, "dimensions of the output are not known");
  p->chunk = chunk_of(p->a_type);
  p->constant = s->input[1].constant != NULL;
  p->bias = HN_CUDA_NO_BIAS;
  p->args.alpha = p->args.beta = 1;
  p->args.n_batch = 1, p->args.batch[0] = 1;
  return hn_cuda_epilogue_accepts(s, why);
}

static bool fits(int64_t v) { return v >= 0 && v < 0x7fffffff; }

/* What follows from the rest. */
static bool finish(const hone_step *s, hn_product *p, hone_reason *why) {
  hn_product_args *g = &p->args;
  int64_t batches = 1;
  for (uint32_t i = 0; i < g->n_batch; i++) batches *= g->batch[i];
  if (!g->m || !g->n || !g->k || !batches) return hn_refuse(why, "an operand is empty");
  if (!fits(batches * (int64_t)g->m)) return hn_refuse(why, "more than 2^31 rows");
  g->k_chunks = hn_div_up(g->k, p->chunk);
  bool a = g->a_col == 1 && g->pixel % p->chunk == 0 && g->image % p->chunk == 0 && g->tap % p->chunk == 0,
       b = g->b_row == 1 && g->b_col % p->chunk == 0 && g->tap % p->chunk == 0,
       lines = g->b_col == 1 && g->b_row % p->chunk == 0 && g->n % p->chunk == 0;
  for (uint32_t i = 0; i < g->n_batch; i++) {
    a = a && (g->batch[i] == 1 || g->a_batch[i] % p->chunk == 0);
    b = b && (g->batch[i] == 1 || g->b_batch[i] % p->chunk == 0);
    lines = lines && (g->batch[i] == 1 || g->b_batch[i] % p->chunk == 0);
  }
  if (a) {
    const uint32_t chunks = g->tap / p->chunk, taps = 8 / chunks;
    g->step_c = 8 % chunks, g->step_y = (int32_t)taps / g->kernel_x, g->step_x = (int32_t)taps % g->kernel_x;
  }
  p->a_chunks = a, p->b_chunks = b && !p->conv, p->b_lines = lines && !p->conv;
  for (p->store = 8; p->store > 1; p->store = p->store == 8 ? 4 : 1)
    if (g->out_pitch % p->store == 0 && g->column_batch % p->store == 0 &&
        (!p->conv || g->stored % p->store == 0) && /* of a part of wider pixels no more is ours */
        (p->store == 8 || p->out_type == HONE_DTYPE_F32))
      break;
  p->flops = 2.0 * (double)batches * g->m * g->n * g->k;
  /* Weights count as they are packed. */
  double b_bytes = (double)g->n * g->k * (double)hone_dtype_size(p->a_type);
  for (uint32_t i = 0; i < g->n_batch; i++) b_bytes *= g->b_batch[i] ? g->batch[i] : 1;
  p->bytes = (double)hone_desc_bytes(&s->input[0].desc) + (double)hone_desc_bytes(&s->output[0].desc) +
             b_bytes + hn_cuda_epilogue_bytes(s);
  return true;
}

/* The anchor's own addend: through the epilogue where it is one value a column, else as a C of any form. */
static bool addend(const hone_step *s, hn_product *p, hone_reason *why) {
  hn_product_args *g = &p->args;
  p->c_type = HONE_DTYPE_NONE;
  g->beta = p->conv ? 1 : hone_node_float(s->node, "beta", 1.0f);
  if (!has(s, 2) || g->beta == 0) return true;
  const hone_tensor_desc *c = &s->input[2].desc;
  if (!is_real(c->dtype)) return hn_refuse(why, "the addend is %s", hone_dtype_name(c->dtype));
  if (g->beta == 1 && c->rank <= (p->conv ? 1 : 2) && (c->rank < 2 || c->dim[0] == 1) && c->rank &&
      c->dim[c->rank - 1] == hn_cuda_epilogue_channels(s)) {
    p->bias = 2;
    return true;
  }
  if (c->rank > 2 || c->layout == HONE_LAYOUT_CHANNELS_LAST) return hn_refuse(why, "C is no matrix");
  int64_t rows = c->rank > 1 ? c->dim[0] : 1, columns = c->rank ? c->dim[c->rank - 1] : 1;
  if ((rows != 1 && rows != g->m) || (columns != 1 && columns != g->n))
    return hn_refuse(why, "C does not broadcast to the product");
  g->c_row = rows == 1 ? 0 : c->stride[0];
  g->c_col = columns == 1 ? 0 : c->stride[c->rank - 1];
  p->c_type = c->dtype;
  return true;
}

static bool conv_of(const hone_step *s, hn_product *p, hone_reason *why) {
  hn_conv_attr a;
  hn_product_args *g = &p->args;
  if (!hn_conv_attr_of(s, &a, why)) return false;
  hn_conv_attr_flatten(&a);
  if (!a.y.even ||
      (a.y.batch > 1 && a.y.view.batch != a.y.size[0] * a.y.size[1] * a.y.size[2] * a.y.view.pixel))
    return hn_refuse(why, "output pixels are not evenly spaced");
  for (int i = 0; i < 3; i++)
    if (!fits(a.x.size[i]) || !fits(a.y.size[i]) || a.kernel[i] > 4096 || a.stride[i] > 65536 ||
        a.dilation[i] > 65536 || a.pad[i] < -65536 || a.pad[i] > 65536)
      return hn_refuse(why, "sizes beyond 2^31 or attributes beyond 65536");
  int64_t taps = a.kernel[0] * a.kernel[1] * a.kernel[2],
          m = a.y.batch * a.y.size[0] * a.y.size[1] * a.y.size[2];
  int64_t tap = (int64_t)hn_round_up((size_t)a.cin, p->chunk);
  if (!fits(taps * tap) || !fits(m) || !fits(a.cout)) return hn_refuse(why, "more than 2^31 rows or columns");
  p->conv = true;
  /* Whole chunks are read: what fills a tap's last one must be the zeros that follow the last channel. */
  if (a.groups > 1 || tap > a.x.view.pixel) tap = a.cin;
  g->m = (uint32_t)m, g->n = (uint32_t)a.cout, g->tap = (uint32_t)tap, g->channels = (uint32_t)a.cin;
  g->k = (uint32_t)(taps * tap);
  g->grid_z = (uint32_t)a.y.size[0], g->grid_y = (uint32_t)a.y.size[1], g->grid_x = (uint32_t)a.y.size[2];
  g->in_z = (int32_t)a.x.size[0], g->in_y = (int32_t)a.x.size[1], g->in_x = (int32_t)a.x.size[2];
  g->stride_z = (int32_t)a.stride[0], g->stride_y = (int32_t)a.stride[1], g->stride_x = (int32_t)a.stride[2];
  g->pad_z = (int32_t)a.pad[0], g->pad_y = (int32_t)a.pad[1], g->pad_x = (int32_t)a.pad[2];
  g->dilation_z = (int32_t)a.dilation[0], g->dilation_y = (int32_t)a.dilation[1];
  g->dilation_x = (int32_t)a.dilation[2];
  g->kernel_z = (int32_t)a.kernel[0], g->kernel_y = (int32_t)a.kernel[1], g->kernel_x = (int32_t)a.kernel[2];
  g->image = a.x.view.batch, g->pixel = a.x.view.pixel, g->a_col = 1;
  /* Weights as they come: [groups * cout][cin][taps]. */
  g->b_row = taps, g->b_col = a.cin * taps, g->b_tap = 1;
  g->batch[0] = (uint32_t)a.groups;
  g->a_batch[0] = a.cin, g->b_batch[0] = a.cout * a.cin * taps;
  g->column_batch = a.groups > 1 ? (uint32_t)a.cout : 0;
  g->out_pitch = a.y.view.pixel;
  g->stored = (uint32_t)hn_round_up((size_t)a.y.channels, chunk_of(p->out_type));
  if (g->stored > g->out_pitch) g->stored = (uint32_t)a.y.channels;
  bool inside = true; /* every tap of every pixel lies in the image */
  for (int i = 0; i < 3; i++)
    inside = inside && a.pad[i] == 0 && (a.y.size[i] - 1) * a.stride[i] < a.x.size[i];
  p->one_tap = taps == 1 && inside;
  return addend(s, p, why) && finish(s, p, why);
}

/* A matrix of m rows and k columns. */
static void rows_of(hn_product *p, int64_t m, int64_t k, int64_t row, int64_t col) {
  hn_product_args *g = &p->args;
  g->m = (uint32_t)m, g->k = g->tap = g->channels = (uint32_t)k;
  g->grid_z = g->grid_y = 1, g->grid_x = g->m;
  g->in_z = g->in_y = 1, g->in_x = (int32_t)m;
  g->stride_z = g->stride_y = g->stride_x = g->dilation_z = g->dilation_y = g->dilation_x = 1;
  g->kernel_z = g->kernel_y = g->kernel_x = 1;
  g->image = 0, g->pixel = row, g->a_col = col;
  p->one_tap = true;
}

static bool gemm_of(const hone_step *s, hn_product *p, hone_reason *why) {
  const hone_tensor_desc *a = &s->input[0].desc, *b = &s->input[1].desc, *y = &s->output[0].desc;
  if (a->rank != 2 || b->rank != 2 || y->layout != HONE_LAYOUT_ROW_MAJOR)
    return hn_refuse(why, "operands are not matrices");
  const int ta = hone_node_int(s->node, "transA", 0) != 0, tb = hone_node_int(s->node, "transB", 0) != 0;
  const int64_t m = a->dim[ta], k = a->dim[!ta], n = b->dim[!tb];
  if (b->dim[tb] != k) return hn_refuse(why, "inner dimensions differ");
  if (!fits(m) || !fits(n) || !fits(k)) return hn_refuse(why, "more than 2^31 rows or columns");
  rows_of(p, m, k, a->stride[ta], a->stride[!ta]);
  hn_product_args *g = &p->args;
  g->n = (uint32_t)n, g->b_row = b->stride[tb], g->b_col = b->stride[!tb];
  g->alpha = hone_node_float(s->node, "alpha", 1.0f);
  g->out_pitch = n;
  return addend(s, p, why) && finish(s, p, why);
}

static bool matmul_of(const hone_step *s, hn_product *p, hone_reason *why) {
  const hone_tensor_desc *a = &s->input[0].desc, *b = &s->input[1].desc, *y = &s->output[0].desc;
  if (a->rank < 1 || b->rank < 1) return hn_refuse(why, "an operand is a scalar");
  if (y->layout != HONE_LAYOUT_ROW_MAJOR || a->layout == HONE_LAYOUT_CHANNELS_LAST ||
      b->layout == HONE_LAYOUT_CHANNELS_LAST)
    return hn_refuse(why, "operands are channels-last");
  if ((a->rank == 1 || b->rank == 1) && s->n_epilogue)
    return hn_refuse(why, "a vector operand with an epilogue");
  const int32_t ra = a->rank > 2 ? a->rank - 2 : 0, rb = b->rank > 2 ? b->rank - 2 : 0, r = ra > rb ? ra : rb;
  const int64_t k = a->dim[a->rank - 1], n = b->rank > 1 ? b->dim[b->rank - 1] : 1;
  int64_t m = a->rank > 1 ? a->dim[a->rank - 2] : 1, row = a->rank > 1 ? a->stride[a->rank - 2] : k;
  if ((b->rank > 1 ? b->dim[b->rank - 2] : b->dim[0]) != k) return hn_refuse(why, "inner dimensions differ");
  hn_product_args *g = &p->args;
  g->n_batch = 0;
  bool shared = true; /* one B for all */
  for (int32_t i = 0; i < r; i++) {
    const int32_t ia = i - (r - ra), ib = i - (r - rb);
    const int64_t da = ia >= 0 ? a->dim[ia] : 1, db = ib >= 0 ? b->dim[ib] : 1;
    if (da != db && da != 1 && db != 1) return hn_refuse(why, "batch dimensions do not broadcast");
    if (da == 1 && db == 1) continue;
    if (g->n_batch == HN_PRODUCT_BATCH)
      return hn_refuse(why, "more than %d batch dimensions", HN_PRODUCT_BATCH);
    if (!fits(da) || !fits(db)) return hn_refuse(why, "a batch dimension beyond 2^31");
    g->batch[g->n_batch] = (uint32_t)(da == 1 ? db : da);
    g->a_batch[g->n_batch] = da == 1 ? 0 : a->stride[ia];
    g->b_batch[g->n_batch] = db == 1 ? 0 : b->stride[ib];
    shared = shared && db == 1;
    g->n_batch++;
  }
  /* One B and a dense A: the rows of all matrices are those of one. */
  bool dense = a->layout == HONE_LAYOUT_ROW_MAJOR;
  if (shared && dense && g->n_batch) {
    for (uint32_t i = 0; i < g->n_batch; i++) m *= g->batch[i];
    if (a->rank > 1) row = k;
    g->n_batch = 0;
  }
  if (!fits(m) || !fits(n) || !fits(k)) return hn_refuse(why, "more than 2^31 rows or columns");
  rows_of(p, m, k, row, a->stride[a->rank - 1]);
  g->n = (uint32_t)n;
  g->b_row = b->rank > 1 ? b->stride[b->rank - 2] : b->stride[0];
  g->b_col = b->rank > 1 ? b->stride[b->rank - 1] : 1;
  g->out_pitch = n, g->row_batch = g->m;
  if (!g->n_batch) g->n_batch = 1, g->batch[0] = 1, g->a_batch[0] = g->b_batch[0] = 0;
  return finish(s, p, why);
}

static bool product_of(const hone_step *s, hn_product *p, hone_reason *why) {
  if (!types(s, p, why)) return false;
  switch (hn_anchor_of_step(s).product) {
  case HONE_PRODUCT_CONV: return conv_of(s, p, why);
  case HONE_PRODUCT_GEMM: return gemm_of(s, p, why);
  default: return matmul_of(s, p, why);
  }
}

bool hn_product_of(const hone_step *s, hn_product *p, hone_reason *why) {
  memset(p, 0, sizeof *p);
  return product_of(s, p, why);
}

bool hn_product_of_codes(const hone_step *s, const hn_codes_args *codes, hn_product *p, hone_reason *why) {
  memset(p, 0, sizeof *p);
  p->codes = codes;
  return product_of(s, p, why);
}

/* ------------------------------------------------------------------ packing */

/* Products that have their own B; the others share one. */
static int64_t own_products(const hn_product *p) {
  int64_t n = 1;
  for (uint32_t i = 0; i < p->args.n_batch; i++) n *= p->args.b_batch[i] ? p->args.batch[i] : 1;
  return n;
}

size_t hn_product_pack_layout(hn_product *p, bool rows) {
  hn_product_args *g = &p->args;
  const int64_t wide = rows ? (int64_t)hn_round_up(g->n, 4) : (int64_t)g->k_chunks * p->chunk;
  int64_t at = rows ? (int64_t)g->k * wide : (int64_t)g->n * wide;
  g->b_row = rows ? wide : 1, g->b_col = rows ? 1 : wide, g->b_tap = (int64_t)g->tap * g->b_row;
  for (uint32_t i = g->n_batch; i-- > 0;)
    if (g->b_batch[i]) {
      g->b_batch[i] = at;
      at *= g->batch[i];
    }
  p->b_chunks = !rows;
  return (size_t)at;
}

float hn_product_to_tf32(float f) {
  uint32_t u = hn_f32_bits(f);
  if ((u & 0x7f800000u) == 0x7f800000u) return f;
  return hn_bits_f32((u + 0x1000u) & ~0x1fffu);
}

static void put(void *blob, int64_t at, const float *f, uint32_t count, hn_product_type type) {
  float *to = (float *)blob + at;
  uint16_t *half = (uint16_t *)blob + at;
  int8_t *code = (int8_t *)blob + at;
  switch (type) {
  case HN_PRODUCT_F32: memcpy(to, f, count * sizeof *f); break;
  case HN_PRODUCT_TF32:
    for (uint32_t i = 0; i < count; i++) to[i] = hn_product_to_tf32(f[i]);
    break;
  case HN_PRODUCT_F16:
    for (uint32_t i = 0; i < count; i++) half[i] = hn_f32_to_f16(f[i]);
    break;
  case HN_PRODUCT_BF16:
    for (uint32_t i = 0; i < count; i++) half[i] = hn_f32_to_bf16(f[i]);
    break;
  case HN_PRODUCT_I8:
    for (uint32_t i = 0; i < count; i++) code[i] = (int8_t)f[i];
  }
}

void hn_product_pack(const hone_step *s, const hn_product *p, bool rows, hn_product_type type, void *blob) {
  hn_product to = *p;
  const hn_product_args *g = &p->args, *t = &to.args;
  hn_product_pack_layout(&to, rows);
  for (int64_t i = 0; i < own_products(p); i++) {
    int64_t from_at = 0, to_at = 0, left = i;
    for (uint32_t d = g->n_batch; d-- > 0;) {
      if (!g->b_batch[d]) continue;
      from_at += left % g->batch[d] * g->b_batch[d];
      to_at += left % g->batch[d] * t->b_batch[d];
      left /= g->batch[d];
    }
    const hn_cuda_weights all = {.from = &s->input[1],
                                 .at = from_at,
                                 .by_column = g->b_col,
                                 .by_tap = g->b_tap,
                                 .by_channel = g->b_row,
                                 .columns = g->n,
                                 .taps = g->k / g->tap,
                                 .channels = g->channels};
    for (hn_cuda_weights_tile tile = {.all = all}; hn_cuda_weights_next(&tile);) {
      const int64_t at = to_at + tile.tap * t->b_tap + tile.channel * t->b_row + tile.column * t->b_col;
      for (uint32_t n = 0; n < tile.columns && !rows; n++)
        put(blob, at + n * t->b_col, tile.w[n], tile.channels, type);
      for (uint32_t c = 0; c < tile.channels && rows; c++) {
        float row[HN_CUDA_WEIGHTS_COLUMNS]; /* they are side by side in the blob, too */
        for (uint32_t n = 0; n < tile.columns; n++) row[n] = tile.w[n][c];
        put(blob, at + c * t->b_row, row, tile.columns, type);
      }
    }
  }
}

size_t hn_product_shared(const hn_product *p, bool rows, hn_product_type type, uint64_t *key) {
  hn_product to = *p;
  const int64_t of[] = {rows,          type,          (int64_t)hn_product_pack_layout(&to, rows),
                        to.args.b_row, to.args.b_col, to.args.b_tap};
  return hn_cuda_shared_blob("rows", of, sizeof of / sizeof *of, key);
}

/* ------------------------------------------------------------------ kernels */

static bool clusters(const hone_machine *m) { return m->arch >= 90; }

static size_t counters(const hn_product *p) { return hn_round_up((size_t)p->args.tiles * 4, 256); }

size_t hn_product_workspace(const hn_product *p, const hone_machine *m, uint32_t bm, uint32_t bn) {
  const hn_product_args *g = &p->args;
  return g->splits > 1 && !clusters(m) ? counters(p) + (size_t)g->tiles * g->splits * bm * bn * 4 : 0;
}

static void write_prefix(const hn_product *p, bool cluster, bool split, hn_str *text) {
  hn_str_printf(text, "#define %s %s\n#define HN_STORE %u\n", p->codes ? "HN_CODE" : "HN_OUT",
                hone_dtype_name(p->out_type), p->store);
  if (p->out_type != HONE_DTYPE_F32 && !p->codes) hn_str_puts(text, "#define HN_FAST_MATH 1\n");
  if (p->c_type != HONE_DTYPE_NONE) hn_str_printf(text, "#define HN_C %s\n", hn_cuda_type(p->c_type));
  if (p->one_tap) hn_str_puts(text, "#define HN_ONE_TAP 1\n");
  if (p->args.in_z == 1 && p->args.kernel_z == 1 && p->args.pad_z == 0)
    hn_str_puts(text, "#define HN_PLANE 1\n");
  if (cluster) hn_str_puts(text, "#define HN_CLUSTER 1\n");
  if (split) hn_str_puts(text, "#define HN_SPLIT 1\n");
}

hone_status hn_product_launch(const hone_step_run *run, hn_product *p, hn_str *text, const char *name,
                              hn_cuda_shape *shape, hone_error *error) {
  hn_cuda_queue *q = hn_cuda_queue_of(run);
  const bool many = p->args.splits > 1, cluster = many && clusters(hn_cuda_machine(q)),
             split = many && !cluster;
  if (!hn_product_aligned(run->out[0]) || (p->codes && !hn_product_aligned(p->codes->added))) p->store = 1;
  write_prefix(p, cluster, split, text);
  hone_status st = p->codes ? HONE_OK : hn_cuda_epilogue(run->step, p->bias, text, error);
  if (!st && text->failed) st = hn_fail_memory(error, text->cap, "device text");
  hn_product_args args = p->args;
  args.a = run->in[0];
  args.b = p->constant ? run->blob : run->in[1];
  args.c = p->c_type != HONE_DTYPE_NONE ? run->in[2] : NULL;
  args.out = run->out[0];
  args.work = run->workspace;
  if (p->codes) {
    args.codes = *p->codes;
    args.epilogue.channels = (int32_t)((args.batch[0] - 1) * args.column_batch + args.n); /* of all groups */
  } else {
    hn_cuda_epilogue_bind(run, p->bias, &args.epilogue);
  }
  if (!st && split) st = hn_cuda_zero(q, run->workspace, counters(p), error);
  const hn_cuda_kernel k = {name, text->ptr, name};
  shape->grid[0] = args.tiles * args.splits, shape->grid[1] = shape->grid[2] = 1;
  shape->cluster = cluster ? args.splits : 0;
  shape->overlap = !split; /* the counters are cleared in order */
  if (!st) st = hn_cuda_launch(q, &k, shape, &args, sizeof args, error);
  hn_str_free(text);
  return st;
}
