#include "insight/diagnose/fusions.h"

static const struct {
  double saved_pct;
  hn_text source;
} fusions[] = {
#define FUSION(name, saved, en, zh) {saved, {en, zh}},
#include "insight/diagnose/fusions.def"
#undef FUSION
};

double hn_finding_quote(hn_diagnosis *d, hn_text label, hn_fusion fusion) {
  hn_finding_evidence(d, label, fusions[fusion].saved_pct, "%", fusions[fusion].source);
  return fusions[fusion].saved_pct;
}
