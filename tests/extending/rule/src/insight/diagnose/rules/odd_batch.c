/* A batch that is no multiple of two: a note, as it is the caller's to choose. */
#include "insight/diagnose/rule.h"

static void run(hn_diagnosis *d) {
  const double batch = hone_facts_get_meta(d->facts)->batch;
  if (batch < 3 || (int64_t)batch % 2 == 0) return;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "The batch is odd: %.0f", "批大小为奇数：%.0f", batch);
  f->category = HONE_CATEGORY_NOTE;
  f->subject = HN_WORDS(d, "the batch", "批大小");
  f->quantity = HONE_QUANTITY_WALL;
  f->remedy = HONE_REMEDY_USER;
  f->cause = HN_WORDS(d, "Two samples at a time leave one alone.", "每次两个样本，最后会剩下一个。");
  hn_finding_evidence(d, HN_T("batch", "批大小"), batch, "", HN_SOURCE_RECORD);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_odd_batch = {"odd_batch", run};
