/* Building one finding: texts, evidence, layers, gain. Rules call it, and commands.c for its texts. */
#include "insight/diagnose/rule.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *hn_say(hn_diagnosis *d, const char *format, ...) {
  char small[512];
  va_list ap;
  va_start(ap, format);
  int n = vsnprintf(small, sizeof small, format, ap);
  va_end(ap);
  char *text = n < 0 ? NULL : hn_arena_alloc(d->arena, (size_t)n + 1);
  if (!text) {
    d->failed = true;
    return "";
  }
  if ((size_t)n < sizeof small) return memcpy(text, small, (size_t)n + 1);
  va_start(ap, format);
  vsnprintf(text, (size_t)n + 1, format, ap);
  va_end(ap);
  return text;
}

hone_finding *hn_finding_begin(hn_diagnosis *d, const char *what) {
  d->current = (hone_finding){.id = hn_say(d, "%s%s%s", d->rule, what ? ":" : "", what ? what : "")};
  d->worst = HONE_SEVERITY_HIGH;
  d->current.category = HONE_CATEGORY_MICRO;
  d->evidence.len = d->commands.len = d->purposes.len = d->nodes.len = d->savings.len = d->beside.len =
      d->parts.len = 0;
  return &d->current;
}

static void add_evidence(hn_diagnosis *d, hn_text name, double value, const char *unit, const char *where) {
  hone_evidence e = {name.en, HN_WORDS(d, name.en, name.zh), value, unit, where};
  if (!hn_vec_push(&d->evidence, e)) d->failed = true;
}

void hn_finding_evidence(hn_diagnosis *d, hn_text name, double value, const char *unit, hn_text source) {
  add_evidence(d, name, value, unit, HN_WORDS(d, source.en, source.zh));
}

void hn_finding_evidence_at(hn_diagnosis *d, hn_text name, double value, const char *unit,
                            const char *where) {
  add_evidence(d, name, value, unit, where && *where ? where : "?");
}

void hn_finding_layer(hn_diagnosis *d, const hone_layer *layer, double saving_ms) {
  const char *const *names = layer->onnx_node_count ? layer->onnx_nodes : &layer->name;
  size_t n = layer->onnx_node_count ? layer->onnx_node_count : 1;
  for (size_t i = 0; i < n; i++)
    if (!hn_vec_push(&d->nodes, names[i]) || !hn_vec_push(&d->savings, saving_ms / (double)n))
      d->failed = true;
}

void hn_finding_beside(hn_diagnosis *d, const hone_layer *layer) {
  const char *const *names = layer->onnx_node_count ? layer->onnx_nodes : &layer->name;
  const size_t n = layer->onnx_node_count ? layer->onnx_node_count : 1;
  for (size_t i = 0; i < n; i++) {
    bool known = false;
    for (size_t k = 0; k < d->beside.len; k++) known = known || strcmp(d->beside.ptr[k], names[i]) == 0;
    if (!known && !hn_vec_push(&d->beside, names[i])) d->failed = true;
  }
}

void hn_finding_part(hn_diagnosis *d, const hone_part *part) {
  if (!hn_vec_push(&d->parts, *part)) d->failed = true;
}

double hone_amdahl(double p, double s) { return 1 / ((1 - p) + p / s); }

static double gain_pct(double p, double s) { return 100 * (hone_amdahl(p, s) - 1); }

void hn_finding_range(hn_diagnosis *d, double s_low, double s_high) {
  hone_finding *f = &d->current;
  f->s_low = s_low < 1 ? 1 : s_low > f->s ? f->s : s_low;
  f->s_high = s_high < f->s ? f->s : s_high;
  f->gain_low_pct = gain_pct(f->p, f->s_low);
  f->gain_high_pct = gain_pct(f->p, f->s_high);
}

/* The speed-up with which `factor` times as much of P would be saved; never more than half of what S leaves.
 */
static double scaled_speedup(double s, double factor) {
  double kept = 1 - (1 - 1 / s) * factor;
  return 1 / (kept < 0.5 / s ? 0.5 / s : kept);
}

void hn_finding_gain(hn_diagnosis *d, double p, double s, hone_basis basis, const char *words,
                     double confidence) {
  const double errors[] = {d->t->range_measured, d->t->range_roofline, d->t->range_table, d->t->range_model};
  hone_finding *f = &d->current;
  f->p = p < 0 ? 0 : p > 1 ? 1 : p;
  f->s = s < 1 ? 1 : s;
  f->basis = basis;
  f->s_basis = hn_is_window(d) && p > 0
                   ? HN_SAY(d, "%s; shares are of what was computed, without the pauses of the record",
                            "%s；占比只计算实际计算的部分，不含记录中的停顿", words)
                   : words;
  f->confidence = confidence;
  f->predicted_saved_pct = 100 * f->p * (1 - 1 / f->s);
  f->predicted_gain_pct = gain_pct(f->p, f->s);
  double error = errors[basis] / 100;
  hn_finding_range(d, scaled_speedup(f->s, 1 - (error < 1 ? error : 1)), scaled_speedup(f->s, 1 + error));
}

static const void *keep(hn_diagnosis *d, const void *items, size_t count, size_t size) {
  if (!count) return NULL;
  void *copy = hn_arena_memdup(d->arena, items, count * size);
  if (!copy) d->failed = true;
  return copy;
}

/* The finding's saving, divided among its nodes as the rule said. */
static const double *divide_saving(hn_diagnosis *d, double saved_pct) {
  double sum = 0;
  for (size_t i = 0; i < d->savings.len; i++) sum += d->savings.ptr[i];
  for (size_t i = 0; i < d->savings.len; i++)
    d->savings.ptr[i] = sum > 0 ? saved_pct * d->savings.ptr[i] / sum : saved_pct / (double)d->savings.len;
  return keep(d, d->savings.ptr, d->savings.len, sizeof *d->savings.ptr);
}

void hn_finding_end(hn_diagnosis *d) {
  hone_finding *f = &d->current;
  const bool note = f->category == HONE_CATEGORY_NOTE;
  if (note) {
    d->worst = HONE_SEVERITY_LOW;
    if (!f->s_basis)
      hn_finding_gain(d, 0, 1, HONE_BASIS_MEASURED,
                      HN_WORDS(d, "nothing: it is about the measurement", "无：只涉及测量本身"), 1);
  } else if (!(f->predicted_gain_pct >= d->t->min_gain))
    return;
  for (size_t i = 0; i < d->found.len; i++)
    if (strcmp(d->found.ptr[i].id, f->id) == 0) return; /* the same thing twice: the first stands */
  f->severity = f->predicted_gain_pct >= d->t->high_gain     ? HONE_SEVERITY_HIGH
                : f->predicted_gain_pct >= d->t->medium_gain ? HONE_SEVERITY_MEDIUM
                                                             : HONE_SEVERITY_LOW;
  /* What is hardly believed does not shout: one step lower. */
  if (f->confidence < d->t->sure && f->severity < HONE_SEVERITY_LOW) f->severity++;
  if (f->severity < d->worst) f->severity = d->worst;
  f->evidence = keep(d, d->evidence.ptr, d->evidence.len, sizeof *d->evidence.ptr);
  f->evidence_count = d->evidence.len;
  f->commands = keep(d, d->commands.ptr, d->commands.len, sizeof *d->commands.ptr);
  f->purposes = keep(d, d->purposes.ptr, d->purposes.len, sizeof *d->purposes.ptr);
  f->command_count = d->commands.len;
  f->nodes = keep(d, d->nodes.ptr, d->nodes.len, sizeof *d->nodes.ptr);
  f->node_count = d->nodes.len;
  f->beside = keep(d, d->beside.ptr, d->beside.len, sizeof *d->beside.ptr);
  f->beside_count = d->beside.len;
  f->parts = keep(d, d->parts.ptr, d->parts.len, sizeof *d->parts.ptr);
  f->part_count = d->parts.len;
  f->node_saved_pct = divide_saving(d, f->predicted_saved_pct);
  if (!hn_vec_push(&d->found, *f)) d->failed = true;
}
