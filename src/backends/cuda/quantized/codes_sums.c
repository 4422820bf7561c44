#include "backends/cuda/quantized/codes_sums.h"

#include <string.h>

#include "backends/cuda/quantized/codes_sums_args.h"
#include "backends/cuda/step/launch.h"
#include "backends/cuda/step/step.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/mem.h"

/* Sums that are worth a detour through memory lie in L2, or nearly. */
#define MOST_SUMS ((int64_t)256 << 20)

/* Whether output row i reads row i of x, all rows at one distance. */
static bool whole_rows(const hn_product *p, hone_reason *why) {
  const hn_product_args *g = &p->args;
  int64_t products = 1;
  for (uint32_t i = 0; i < g->n_batch; i++) products *= g->batch[i];
  if (products != 1) return hn_refuse(why, "more than one product");
  if (!p->constant) return hn_refuse(why, "weights are not constant");
  if (!p->one_tap || g->a_col != 1) return hn_refuse(why, "rows are not runs of memory");
  if (g->stride_z != 1 || g->stride_y != 1 || g->stride_x != 1 || g->in_z != (i32)g->grid_z ||
      g->in_y != (i32)g->grid_y || g->in_x != (i32)g->grid_x)
    return hn_refuse(why, "not a convolution of 1x1 at stride 1");
  const int64_t pixels = (int64_t)g->grid_z * g->grid_y * g->grid_x;
  if (g->m != pixels && g->image != pixels * g->pixel)
    return hn_refuse(why, "images do not follow each other");
  return true;
}

bool hn_codes_sums_of(const hone_step *s, hn_codes_sums *q, hone_reason *why) {
  memset(q, 0, sizeof *q);
  if (!hn_codes_product(s, &q->c, &q->p, why) || !whole_rows(&q->p, why)) return false;
  const hn_product_args *g = &q->p.args;
  q->rows = g->m, q->row = g->pixel;
  q->columns = (int64_t)hn_round_up(g->n, 16), q->depth = (int64_t)hn_round_up(g->k, 16);
  const bool bytes = q->p.a_type == HONE_DTYPE_U8;
  q->copied = bytes || g->k % 16 || g->pixel % 16;
  q->c.taken = bytes ? 128 : 0;
  const int64_t sums = q->rows * q->columns * (int64_t)sizeof(int32_t);
  if (sums > MOST_SUMS) return hn_refuse(why, "sums of %lld MiB", (long long)(sums >> 20));
  if (q->rows * q->depth > INT32_MAX) return hn_refuse(why, "more than 2^31 codes");
  q->at_sums = q->copied ? hn_round_up((size_t)(q->rows * q->depth), 256) : 0;
  q->at_library = q->at_sums + hn_round_up((size_t)sums, 256);
  return true;
}

hn_codes_blob hn_codes_sums_blob(const hn_codes_sums *q) {
  return hn_codes_blob_of(&q->c, (size_t)(q->columns * q->depth));
}

hone_status hn_codes_sums_pack(const hone_step *s, hn_codes_sums *q, void *blob, hone_error *error) {
  int8_t *weights = hn_codes_weights(s, &q->c);
  if (!weights)
    return hn_fail_memory(error, (size_t)hone_desc_count(&s->input[HN_QLINEAR_W].desc), "packing weights");
  const hn_codes_blob b = hn_codes_sums_blob(q);
  hn_product_pack(&q->c.inner, &q->p, false, HN_PRODUCT_I8, blob);
  hn_codes_vectors(s, &q->c, weights, &b, blob);
  hn_free(weights);
  return HONE_OK;
}

static void prefix(const hn_codes_sums *q, bool aligned, hn_str *text) {
  char more[128];
  hn_str_printf(text, "#define HN_CODE %s\n#define HN_STORE %u\n#define HN_W %d\n%s",
                hone_dtype_name(q->p.out_type), q->p.store, aligned ? 16 : 1,
                hn_codes_prefix(&q->c, false, more, sizeof more));
}

hone_status hn_codes_sums_begin(const hone_step_run *run, hn_codes_sums *q, const void **x,
                                hone_error *error) {
  *x = run->in[HN_QLINEAR_X];
  if (!q->copied)
    return hn_product_aligned(*x) ? HONE_OK
                                  : hn_fail(error, HONE_ERROR_INTERNAL, "%s: a tensor lies at an odd address",
                                            run->step->anchor);
  const int64_t sixteens = q->depth / 16;
  const hn_codes_signed_args a = {.x = *x,
                                  .y = run->workspace,
                                  .row = q->row,
                                  .sixteens = hn_cuda_divisor((u32)sixteens),
                                  .length = q->p.args.k,
                                  .all = (u32)(q->rows * sixteens),
                                  .flip = q->c.taken ? 0x80808080u : 0};
  hn_str text = {0};
  prefix(q, hn_product_aligned(*x) && q->row % 16 == 0, &text);
  const hone_status st = hn_cuda_launch_line(hn_cuda_queue_of(run), "codes_sums", &text, "codes_signed",
                                             a.all, 256, &a, sizeof a, error);
  hn_str_free(&text);
  *x = run->workspace;
  return st;
}

hone_status hn_codes_sums_end(const hone_step_run *run, hn_codes_sums *q, hone_error *error) {
  const hn_codes_blob b = hn_codes_sums_blob(q);
  hn_codes_bind(run, &b, &q->c);
  if (!hn_product_aligned(run->out[0]) || !hn_product_aligned(q->c.args.added)) q->p.store = 1;
  const int64_t eights = (int64_t)hn_div_up(q->p.args.n, 8);
  hn_codes_sums_args a = {.product = q->p.args,
                          .sums = (const char *)run->workspace + q->at_sums,
                          .pitch = q->columns,
                          .eights = hn_cuda_divisor((u32)eights),
                          .all = (u32)(q->rows * eights)};
  a.product.out = run->out[0];
  a.product.codes = q->c.args;
  a.product.epilogue.channels = (i32)q->p.args.n;
  hn_str text = {0};
  prefix(q, true, &text);
  const hone_status st = hn_cuda_launch_line(hn_cuda_queue_of(run), "codes_sums", &text, "codes_requantise",
                                             a.all, 256, &a, sizeof a, error);
  hn_str_free(&text);
  return st;
}

double hn_codes_sums_seconds(const hone_machine *m, const hn_codes_sums *q) {
  const double sums = 4.0 * (double)q->rows * (double)q->columns;
  const double codes = (double)q->rows * ((double)q->p.args.n + (q->copied ? 2.0 * (double)q->depth : 0));
  return (q->copied ? 2 : 1) * (1e-6 + m->launch_s) + hn_cuda_seconds(m, 0, 0, sums + codes, 0.7);
}
