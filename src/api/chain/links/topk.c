/* topk: the best classes of each row, the best first (hone_post_top_k). */
#include "api/chain/labels.h"
#include "base/error.h"

#include <hone/post.h>
#include <math.h>

typedef struct settings {
  int64_t k;
  double least;
  const char *file;
  hn_chain_labels labels;
} settings;

static const settings defaults = {.k = 5, .least = -INFINITY};
static const hn_member members[] = {{"k", HN_MEMBER_COUNT, offsetof(settings, k), 1, 1e6, NULL},
                                    {"least", HN_MEMBER_REAL, offsetof(settings, least), -1e30, 1e30, NULL},
                                    {"labels", HN_MEMBER_FILE, offsetof(settings, file), 0, 0, NULL},
                                    {0}};

static hone_status ready(hone_chain *c, hn_stage *s, hone_error *error) {
  settings *o = s->settings;
  return o->file ? hn_chain_labels_read(c, s, o->file, &o->labels, error) : HONE_OK;
}

static hone_status run(hone_chain *c, const hn_stage *s, const hn_passed *const *in, hn_passed *out,
                       hone_error *error) {
  const settings *o = s->settings;
  const hn_passed *v = in[0];
  hone_ranked *best = HN_NEW_ARRAY(&c->scratch, hone_ranked, (size_t)o->k);
  hone_status status = hn_passed_answers(c, out, v->items * (uint32_t)o->k, error);
  if (!best) return hn_fail_memory(error, (size_t)o->k * sizeof *best, s->name);
  out->n = 0;
  for (uint32_t b = 0; b < v->n && status == HONE_OK; b++)
    for (uint32_t r = 0; r < v->batch[b].n && status == HONE_OK; r++) {
      const float *row;
      int64_t count;
      uint32_t n = 0;
      status = hn_batch_row(c, s, &v->batch[b], r, &row, &count, error);
      if (status == HONE_OK)
        status = hone_post_top_k(row, (uint32_t)count, (uint32_t)o->k, (float)o->least, best, &n, error);
      for (uint32_t i = 0; i < n && status == HONE_OK; i++)
        out->answer[out->n++] = (hone_chain_answer){hn_chain_label(&o->labels, best[i].index), best[i].index,
                                                    best[i].score, v->batch[b].item[r]};
    }
  out->items = v->items;
  return status;
}

HN_LINK_OF_ANSWERS(topk);
