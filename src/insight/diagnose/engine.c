/* Runs the rules, ranks what they found. */
#include "insight/diagnose/rule.h"

#include "base/error.h"
#include "base/mem.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct owned_findings {
  hone_findings view; /* first: the pointer that callers hold */
  hn_arena arena;
} owned_findings;

/* ---- building findings ---- */

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
  d->evidence.len = d->commands.len = d->purposes.len = d->nodes.len = d->savings.len = d->beside.len = 0;
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
  f->node_saved_pct = divide_saving(d, f->predicted_saved_pct);
  if (!hn_vec_push(&d->found, *f)) d->failed = true;
}

/* ---- the run ---- */

/* What makes it faster stands first, then what only shows more. */
static void looks_last(hn_diagnosis *d, hone_finding *f) {
  const size_t n = f->command_count;
  const char **commands = HN_NEW_ARRAY(d->arena, const char *, n + 1);
  hone_purpose *purposes = HN_NEW_ARRAY(d->arena, hone_purpose, n + 1);
  if (!commands || !purposes) {
    d->failed = true;
    return;
  }
  size_t at = 0;
  for (int purpose = HONE_PURPOSE_REMEDY; purpose <= HONE_PURPOSE_PROBE; purpose++)
    for (size_t i = 0; i < n; i++)
      if (f->purposes[i] == (hone_purpose)purpose) {
        commands[at] = f->commands[i];
        purposes[at++] = f->purposes[i];
      }
  f->commands = commands;
  f->purposes = purposes;
}

static int by_rank(const void *pa, const void *pb) {
  const hone_finding *a = pa, *b = pb;
  if (a->category != b->category) return a->category < b->category ? -1 : 1;
  if (a->severity != b->severity) return a->severity < b->severity ? -1 : 1;
  if (a->predicted_gain_pct != b->predicted_gain_pct)
    return a->predicted_gain_pct > b->predicted_gain_pct ? -1 : 1;
  return strcmp(a->id, b->id);
}

hone_status hone_diagnose(const hone_profile *profile, const hone_diagnose_options *options,
                          hone_findings **findings, hone_error *error) {
  if (!profile || !findings)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_diagnose: profile and findings may not be NULL");
  const uint64_t lost = hn_mem_lost();
  *findings = NULL;
  /* Rules compare layers with each other, so they need all of them. What findings keep of the profile's texts
   * belongs to the facts. */
  hone_profile *whole = NULL;
  const hone_thresholds *t = options && options->thresholds ? options->thresholds : hn_thresholds_default();
  const bool other_limits = t->roof_reached != HN_ROOF_REACHED || t->roof_far != HN_ROOF_FAR;
  if (profile->filtered || other_limits) {
    hone_status status = hone_profile_create(profile->facts, NULL, &whole, error);
    if (status) return status;
    for (size_t i = 0; i < whole->layer_count && other_limits; i++)
      hn_bound_classify((hone_layer *)&whole->layers[i], t->roof_reached, t->roof_far);
    profile = whole;
  }
  owned_findings *owned = hn_calloc(1, sizeof *owned);
  if (!owned) {
    hone_profile_destroy(whole);
    return hn_fail_memory(error, sizeof *owned, "the findings");
  }
  const hone_facts_meta *meta = hone_facts_get_meta(profile->facts);
  const hone_diagnose_options none = {0}, *o = options ? options : &none;
  hn_diagnosis d = {.p = profile,
                    .facts = profile->facts,
                    .typical_wall_ms = hn_typical_wall_ms(profile),
                    .t = t,
                    .float_profile = o->float_profile,
                    .language = o->language,
                    .tool = hn_tool_of(meta->tool),
                    .arena = &owned->arena};
  /* What is left of a record that is mostly pauses: shares of it still tell where the computing goes. */
  if (hn_is_window(&d)) d.typical_wall_ms = hn_typical_work_ms(profile);
  d.model = meta->model && *meta->model ? hn_shell_word(&d, meta->model) : "MODEL.onnx";
  const hn_listing *rules = hn_registry_take(&hn_rules);
  for (uint32_t i = 0; i < rules->n && !d.failed; i++) {
    const struct hn_rule *rule = rules->unit[i];
    d.rule = rule->name;
    rule->run(&d);
  }
  hn_listing_drop(rules);
  hn_findings_merge(&d);
  for (size_t i = 0; i < d.found.len && !d.failed; i++) looks_last(&d, &d.found.ptr[i]);
  if (d.found.len) qsort(d.found.ptr, d.found.len, sizeof *d.found.ptr, by_rank);
  owned->view.items = keep(&d, d.found.ptr, d.found.len, sizeof *d.found.ptr);
  owned->view.count = d.found.len;
  owned->view.language = o->language;
  hone_status status = d.failed ? hn_fail_memory(error, owned->arena.used, "the findings") : HONE_OK;
  status = hn_settle(status, lost, error);
  if (status) {
    hone_findings_destroy(&owned->view);
  } else
    *findings = &owned->view;
  hone_profile_destroy(whole);
  hn_vec_free(&d.found);
  hn_vec_free(&d.evidence);
  hn_vec_free(&d.commands);
  hn_vec_free(&d.purposes);
  hn_vec_free(&d.nodes);
  hn_vec_free(&d.savings);
  hn_vec_free(&d.beside);
  return status;
}

void hone_findings_destroy(hone_findings *findings) {
  owned_findings *owned = (owned_findings *)findings;
  if (!owned) return;
  hn_arena_free(&owned->arena);
  hn_free(owned);
}
