/* argmax: the class of each row with the greatest value (hone_post_argmax), which is the answer's score. */
#include "api/chain/labels.h"
#include "base/error.h"

#include <hone/post.h>

typedef struct settings {
  const char *file;
  hn_chain_labels labels;
} settings;

static const settings defaults = {0};
static const hn_member members[] = {{"labels", HN_MEMBER_FILE, offsetof(settings, file), 0, 0, NULL}, {0}};

static hone_status ready(hone_chain *c, hn_stage *s, hone_error *error) {
  settings *o = s->settings;
  return o->file ? hn_chain_labels_read(c, s, o->file, &o->labels, error) : HONE_OK;
}

static hone_status run(hone_chain *c, const hn_stage *s, const hn_passed *const *in, hn_passed *out,
                       hone_error *error) {
  const settings *o = s->settings;
  const hn_passed *v = in[0];
  hone_status status = hn_passed_answers(c, out, v->items, error);
  for (uint32_t b = 0; b < v->n && status == HONE_OK; b++)
    for (uint32_t r = 0; r < v->batch[b].n && status == HONE_OK; r++) {
      const float *row;
      float score;
      int64_t count, best;
      status = hn_batch_row(c, s, &v->batch[b], r, &row, &count, error);
      if (status != HONE_OK) break;
      const hone_tensor t = {hone_desc(HONE_DTYPE_F32, 1, &count), (void *)(uintptr_t)row};
      const uint32_t item = v->batch[b].item[r];
      status = hone_post_argmax(&t, 0, &best, &score, error);
      if (status == HONE_OK)
        out->answer[item] = (hone_chain_answer){hn_chain_label(&o->labels, best), best, score, item};
    }
  out->items = v->items;
  return status;
}

HN_LINK_OF_ANSWERS(argmax);
