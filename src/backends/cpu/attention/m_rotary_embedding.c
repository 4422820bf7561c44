/* MRotaryEmbedding: pairs of a head's values turned by the angles of three positions. A token's row of both
 * caches is put together once and turns all its heads. */
#include <string.h>

#include "backends/cpu/kernels/attention/attention.h"
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"

enum { X, POSITIONS, COS, SIN };
enum { STREAMS = 3, MOST_PAIRS = 512 };

typedef struct blob_head {
  int64_t batch, heads, tokens, size, half, token, head; /* as in rotary_embedding.c */
  int64_t rows, per_task;
  bool neighbours;
  hn_isa isa;
  uint8_t stream[MOST_PAIRS]; /* whose position turns a pair */
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[X].desc, *p = &s->input[POSITIONS].desc, *cos = &s->input[COS].desc,
                         *sin = &s->input[SIN].desc;
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_attention_find(h->isa)) return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  if (!s->node || s->n_epilogue) return hn_refuse(why, "turning has no epilogue");
  if (x->dtype != HONE_DTYPE_F32 || cos->dtype != HONE_DTYPE_F32 || sin->dtype != HONE_DTYPE_F32 ||
      s->output[0].desc.dtype != HONE_DTYPE_F32 || p->dtype != HONE_DTYPE_I64)
    return hn_refuse(why, "an operand is not f32");
  if ((x->rank != 3 && x->rank != 4) || p->rank != 3 || cos->rank != 2 || !hone_desc_known(x) ||
      !hone_desc_known(p) || !hone_desc_known(cos) || !hone_desc_known(sin) || hone_desc_count(x) == 0 ||
      hone_desc_count(cos) == 0)
    return hn_refuse(why, "shapes are not known, or empty");
  if (x->layout != HONE_LAYOUT_ROW_MAJOR || s->output[0].desc.layout != HONE_LAYOUT_ROW_MAJOR)
    return hn_refuse(why, "not row-major");
  const bool packed = x->rank == 3;
  const int64_t given = hone_node_int(s->node, "num_heads", 0),
                turned = hone_node_int(s->node, "rotary_embedding_dim", 0);
  h->half = cos->dim[1], h->rows = cos->dim[0];
  h->batch = x->dim[0], h->tokens = packed ? x->dim[1] : x->dim[2];
  h->heads = !packed ? x->dim[1] : given ? given : x->dim[2] / (2 * h->half);
  if (h->heads < 1) return hn_refuse(why, "the number of heads is not known");
  h->size = packed ? x->dim[2] / h->heads : x->dim[3];
  if (h->half > MOST_PAIRS) return hn_refuse(why, "%lld pairs a head", (long long)h->half);
  if ((turned ? turned : h->size) != 2 * h->half || hone_desc_count(sin) != hone_desc_count(cos))
    return hn_refuse(why, "the caches have another width");
  size_t n = 0;
  const int64_t *section = hone_node_ints(s->node, "mrope_section", &n);
  if (n != STREAMS) return hn_refuse(why, "there are not three sections");
  const bool interleaved = hone_node_int(s->node, "mrope_layout", 0) == 1;
  for (int64_t i = 0; i < h->half; i++)
    h->stream[i] = (uint8_t)(interleaved                   ? i % 3 && i < 3 * section[i % 3] ? i % 3 : 0
                             : i < section[0]              ? 0
                             : i < section[0] + section[1] ? 1
                                                           : 2);
  h->token = packed ? h->heads * h->size : h->size;
  h->head = packed ? h->size : h->tokens * h->size;
  h->neighbours = hone_node_int(s->node, "interleaved", 0) != 0;
  h->per_task = 8192 / (h->heads * h->size) + 1;
  return true;
}

HN_DESCRIBED(blob_head)

static double cost(const hone_step *s, const hone_machine *m) {
  const double n = (double)hone_desc_count(&s->input[X].desc);
  return hn_step_seconds(m, 4 * n, 8 * n, 0.2);
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const hone_step_run *r = arg;
  const blob_head *h = r->blob;
  const hn_attention_ops *ops = hn_attention_find(h->isa);
  const int64_t *positions = r->in[POSITIONS];
  const int64_t first = index * h->per_task, all = h->batch * h->tokens,
                end = first + h->per_task < all ? first + h->per_task : all;
  float c[MOST_PAIRS], w[MOST_PAIRS];
  (void)thread;
  for (int64_t t = first; t < end; t++) {
    const int64_t at = t / h->tokens * h->heads * h->tokens * h->size + t % h->tokens * h->token;
    for (int64_t i = 0; i < h->half; i++) {
      const int64_t from =
          positions[(HN_FAULT("m_rotary_stream") ? 0 : h->stream[i]) * all + t] * h->half + i;
      c[i] = ((const float *)r->in[COS])[from];
      w[i] = ((const float *)r->in[SIN])[from];
    }
    for (int64_t k = 0; k < h->heads; k++) {
      const float *x = (const float *)r->in[X] + at + k * h->head;
      float *y = (float *)r->out[0] + at + k * h->head;
      ops->turn(y, x, c, w, (size_t)h->half, h->neighbours);
      const int64_t rest = h->size - 2 * h->half;
      if (rest) memcpy(y + 2 * h->half, x + 2 * h->half, (size_t)rest * sizeof *y);
    }
  }
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  const int64_t all = h->batch * h->tokens, *positions = r->in[POSITIONS];
  for (int64_t t = 0; t < STREAMS * all; t++)
    if (positions[t] < 0 || positions[t] >= h->rows)
      return hn_fail(error, HONE_ERROR_INPUT, "MRotaryEmbedding: position %lld is not in the caches of %lld",
                     (long long)positions[t], (long long)h->rows);
  r->parallel(r->pool, hn_div_up(all, h->per_task), task, (void *)(uintptr_t)r);
  return HONE_OK;
}

HN_TACTIC(cpu, m_rotary_embedding, "com.microsoft.MRotaryEmbedding", 1, .accepts = accepts, .cost = cost,
          .need = need, .prepack = prepack, .run = run);
