/* EmbedLayerNormalization: the rows of the tables are what a layer normalisation adds up. */
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/norm/norm.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"

enum { WORDS, SEGMENTS, WORD_TABLE, PLACE_TABLE, SEGMENT_TABLE, GAMMA, BETA, MASK, PLACES };
enum { Y, MASK_INDEX, SUM };

typedef struct blob_head {
  hn_isa isa;
  int64_t batch, words, size, places, per_task; /* places: how many are given; 0: they count */
  int64_t rows[3];                              /* of the tables of words, places and segments */
  bool wide, mask_wide, counts, sum;
  float epsilon;
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_norm_find(h->isa)) return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  if (!s->node || s->n_epilogue || !hn_step_gives(s, Y)) return hn_refuse(why, "no epilogue");
  const hone_dtype ids = s->input[WORDS].desc.dtype;
  for (uint32_t i = 0; i < s->n_inputs; i++) {
    const hone_tensor_desc *d = &s->input[i].desc;
    const bool number = i == WORDS || i == SEGMENTS || i == PLACES;
    if (!hn_step_has(s, i)) continue;
    if (!hn_step_plain(d)) return hn_refuse(why, "input %u is not row-major, or of unknown shape", i);
    if (number ? d->dtype != ids : i != MASK && d->dtype != HONE_DTYPE_F32)
      return hn_refuse(why, "input %u is %s", i, hone_dtype_name(d->dtype));
  }
  for (uint32_t i = 0; i < s->n_outputs; i++)
    if (hn_step_gives(s, i) &&
        (!hn_step_plain(&s->output[i].desc) ||
         s->output[i].desc.dtype != (i == MASK_INDEX ? HONE_DTYPE_I32 : HONE_DTYPE_F32)))
      return hn_refuse(why, "output %u is not row-major, of its own type and of known shape", i);
  if (ids != HONE_DTYPE_I32 && ids != HONE_DTYPE_I64)
    return hn_refuse(why, "words are %s", hone_dtype_name(ids));
  if (hn_step_has(s, MASK)) {
    const hone_dtype mask = s->input[MASK].desc.dtype;
    if (mask != HONE_DTYPE_I32 && mask != HONE_DTYPE_I64)
      return hn_refuse(why, "the mask is %s", hone_dtype_name(mask));
    h->mask_wide = mask == HONE_DTYPE_I64;
  }
  const hone_tensor_desc *words = &s->input[WORDS].desc;
  h->wide = ids == HONE_DTYPE_I64;
  h->batch = words->dim[0], h->words = words->dim[1], h->size = s->input[WORD_TABLE].desc.dim[1];
  if (hone_desc_count(&s->output[Y].desc) < 1) return hn_refuse(why, "an empty operand");
  for (uint32_t i = 0; i < 3; i++)
    h->rows[i] = hn_step_has(s, WORD_TABLE + i) ? s->input[WORD_TABLE + i].desc.dim[0] : 0;
  h->places = hn_step_has(s, PLACES) ? hone_desc_count(&s->input[PLACES].desc) : 0;
  h->epsilon = hone_node_float(s->node, "epsilon", 1e-12f);
  h->counts = hn_step_gives(s, MASK_INDEX), h->sum = hn_step_gives(s, SUM);
  h->per_task = 8192 / h->size + 1;
  return true;
}

HN_DESCRIBED(blob_head)

static double cost(const hone_step *s, const hone_machine *m) {
  const double n = (double)hone_desc_count(&s->output[Y].desc);
  return hn_step_seconds(m, 16 * n, 12 * n, 0.5);
}

static int64_t number(const void *of, bool wide, int64_t i) {
  return wide ? ((const int64_t *)of)[i] : ((const int32_t *)of)[i];
}

static int64_t place(const hone_step_run *r, const blob_head *h, int64_t t) {
  return h->places ? number(r->in[PLACES], h->wide, t % h->places) : t % h->words;
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const hone_step_run *r = arg;
  const blob_head *h = r->blob;
  const struct hn_norm_ops *ops = hn_norm_find(h->isa);
  const int64_t first = index * h->per_task, all = h->batch * h->words,
                end = first + h->per_task < all ? first + h->per_task : all, n = h->size;
  const float *const *table = (const float *const *)(const void *)(r->in + WORD_TABLE);
  (void)thread;
  for (int64_t t = first; t < end; t++) {
    const bool segments = hn_step_has(r->step, SEGMENTS) && !HN_FAULT("embed_segment");
    struct hn_norm_row row = {.x = table[0] + number(r->in[WORDS], h->wide, t) * n,
                              .residual = table[1] + place(r, h, t) * n,
                              .bias = segments ? table[2] + number(r->in[SEGMENTS], h->wide, t) * n : NULL,
                              .gamma = r->in[GAMMA],
                              .beta = r->in[BETA],
                              .y = (float *)r->out[Y] + t * n,
                              .h = h->sum ? (float *)r->out[SUM] + t * n : NULL,
                              .n = (size_t)n,
                              .eps = h->epsilon};
    ops->row(&row);
  }
}

static hone_status check(const hone_step_run *r, const blob_head *h, hone_error *error) {
  for (int64_t t = 0; t < h->batch * h->words; t++) {
    const bool segments = hn_step_has(r->step, SEGMENTS);
    const int64_t id[3] = {number(r->in[WORDS], h->wide, t), place(r, h, t),
                           segments ? number(r->in[SEGMENTS], h->wide, t) : 0};
    for (uint32_t i = 0; i < (segments ? 3u : 2u); i++)
      if (id[i] < 0 || id[i] >= h->rows[i])
        return hn_fail(error, HONE_ERROR_INPUT,
                       "EmbedLayerNormalization: number %lld is not in table %u of %lld rows",
                       (long long)id[i], WORD_TABLE + i, (long long)h->rows[i]);
  }
  return HONE_OK;
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  const hone_status s = check(r, h, error);
  if (s) return s;
  r->parallel(r->pool, hn_div_up(h->batch * h->words, h->per_task), task, (void *)(uintptr_t)r);
  for (int64_t b = 0; b < h->batch && h->counts; b++) {
    int32_t kept = 0;
    for (int64_t i = 0; i < h->words && hn_step_has(r->step, MASK); i++)
      kept += number(r->in[MASK], h->mask_wide, b * h->words + i) == 1;
    ((int32_t *)r->out[MASK_INDEX])[b] = kept;
  }
  return HONE_OK;
}

HN_TACTIC(cpu, embed_layer_norm, "com.microsoft.EmbedLayerNormalization", 1, .accepts = accepts, .cost = cost,
          .need = need, .prepack = prepack, .run = run);
