/* What a search of sound (Whisper) says of words that are moments: they are the last of all words, the first
 * opens and the next closes a span of text, and time never goes back. */
#include <float.h>
#include <math.h>

#include "base/error.h"
#include "model/ir/search.h"

enum { FIRST_SPAN = 50 }; /* how late the first moment may be */

hone_status hn_search_times_begin(hn_search *s, hone_error *error) {
  const hone_node *n = s->node;
  s->times = (hn_search_times){.on = true,
                               .first = hone_node_int(n, "beginning_timestamp_token_id", -1),
                               .none = hone_node_int(n, "no_timestamps_token_id", -1),
                               .model = hone_node_int(n, "start_of_lm_token_id", -1),
                               .start = hone_node_int(n, "decoder_start_token_id", -1),
                               .translate = hone_node_int(n, "translate_token_id", -1),
                               .transcribe = hone_node_int(n, "transcribe_token_id", -1)};
  if (s->times.first > 0) return HONE_OK;
  return hn_fail(error, HONE_ERROR_INPUT, "logits_processor 1 needs beginning_timestamp_token_id");
}

static void forbid(hn_search *s, int64_t from, int64_t to) {
  for (int64_t w = from < 0 ? 0 : from; w < to && w < s->words; w++) s->score[w] = -FLT_MAX;
}

static void forbid_one(hn_search *s, int64_t word) { forbid(s, word, word < 0 ? 0 : word + 1); }

/* Together likelier than any other word: then one of them it is. */
static void prefer_moments(hn_search *s, int64_t first) {
  float top = -INFINITY, other = -INFINITY;
  double sum = 0;
  for (int64_t w = 0; w < s->words; w++) {
    float *most = w < first ? &other : &top;
    if (s->score[w] > *most) *most = s->score[w];
  }
  for (int64_t w = first; w < s->words; w++) sum += expf(s->score[w] - top);
  if (top + logf((float)sum) > other) forbid(s, 0, first);
}

void hn_search_times_rule(hn_search *s, int64_t row) {
  const hn_search_times *t = &s->times;
  const int32_t *text = s->text + row * s->longest;
  const int64_t n = s->length, first = t->first;
  int64_t begin = 0, last = -1; /* words up to the first moment; the last moment */
  while (begin < n && text[begin++] < first) continue;
  for (int64_t i = 0; i < n; i++)
    if (text[i] >= first) last = text[i];
  forbid_one(s, t->none);
  forbid_one(s, t->model);
  if (n > begin) forbid_one(s, t->start), forbid_one(s, t->translate), forbid_one(s, t->transcribe);
  const bool moment = text[n - 1] >= first, before = n <= begin || text[n - 2] >= first;
  if (moment && before) forbid(s, first, s->words);
  if (moment && !before) forbid(s, 0, s->end);
  if (last >= 0) forbid(s, first, moment && !before ? last : last + 1);
  if (n == begin) forbid(s, first + FIRST_SPAN + 1, s->words);
  prefer_moments(s, first);
}
