/* ctc: rows of probabilities over time become text: the most probable class of each step, repeats and blanks
 * left out (hone_post_ctc). */
#include "api/chain/labels.h"
#include "base/error.h"

#include <hone/post.h>

typedef struct settings {
  const char *dictionary;
  bool space, logits;
  int64_t blank;
  hn_chain_labels labels;
} settings;

static const settings defaults = {0};
static const hn_member members[] = {
    {"dictionary", HN_MEMBER_FILE, offsetof(settings, dictionary), 0, 0, NULL},
    {"space", HN_MEMBER_FLAG, offsetof(settings, space), 0, 0, NULL},
    {"logits", HN_MEMBER_FLAG, offsetof(settings, logits), 0, 0, NULL},
    {"blank", HN_MEMBER_COUNT, offsetof(settings, blank), 0, 1e9, NULL},
    {0}};

static hone_status ready(hone_chain *c, hn_stage *s, hone_error *error) {
  settings *o = s->settings;
  if (!o->dictionary)
    return hn_stage_fail(c, s, HONE_ERROR_INPUT, error, "a ctc stage wants \"dictionary\": a file of labels");
  const hone_status status = hn_chain_labels_read(c, s, o->dictionary, &o->labels, error);
  if (status == HONE_OK && o->space) o->labels.text[o->labels.n++] = " ";
  return status;
}

/* Every class has a label, but for the blank. */
static hone_status check(hone_chain *c, const hn_stage *s, const hn_passed *v, const hone_tensor_desc *d,
                         uint32_t n, hone_error *error) {
  const settings *o = s->settings;
  char text[128];
  if (d->rank == 3 && d->dim[0] == (int64_t)n && d->dim[2] == (int64_t)o->labels.n + 1) return HONE_OK;
  hn_stage_fail(c, s, HONE_ERROR_INPUT, error, "'%s' and the dictionary do not go together", v->name);
  hn_error_expected(error, "[%u x steps x %u]: %u labels%s and the blank", n, o->labels.n + 1, o->labels.n,
                    o->space ? " (the space is one)" : "");
  hn_error_got(error, "%s", hone_desc_format(d, text, sizeof text));
  if (d->rank == 3 && d->dim[2] == (int64_t)o->labels.n + 2 && !o->space)
    hn_error_hint(error, "\"space\": true makes the last class a space");
  return HONE_ERROR_INPUT;
}

static hone_status decode(hone_chain *c, const settings *o, const hone_tensor *t, uint32_t row, uint32_t item,
                          hone_chain_answer *to, hone_error *error) {
  const hone_ctc_options options = {
      .blank = (uint32_t)o->blank, .labels = o->labels.text, .n_labels = o->labels.n, .logits = o->logits};
  hone_ctc text = {0};
  hone_status status = hone_post_ctc(t, row, &options, &text, error);
  if (status != HONE_OK) return status;
  *to = (hone_chain_answer){hn_arena_strdup(&c->arena, text.text ? text.text : ""), -1, (float)text.score,
                            item};
  if (!to->text) status = hn_fail_memory(error, 0, "a text");
  hone_ctc_free(&text);
  return status;
}

static hone_status run(hone_chain *c, const hn_stage *s, const hn_passed *const *in, hn_passed *out,
                       hone_error *error) {
  const hn_passed *v = in[0];
  hone_status status = hn_passed_answers(c, out, v->items, error);
  for (uint32_t b = 0; b < v->n && status == HONE_OK; b++) {
    const hone_chain_batch *batch = &v->batch[b];
    status = check(c, s, v, &batch->tensor.desc, batch->n, error);
    for (uint32_t r = 0; r < batch->n && status == HONE_OK; r++)
      status = decode(c, s->settings, &batch->tensor, r, batch->item[r], &out->answer[batch->item[r]], error);
  }
  out->items = v->items;
  return status;
}

HN_LINK_OF_ANSWERS(ctc);
