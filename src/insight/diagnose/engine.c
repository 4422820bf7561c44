/* Runs the rules, ranks what they found. */
#include "insight/diagnose/rule.h"

#include "base/error.h"
#include "base/mem.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RULE(name) extern const struct hn_rule hn_rule_##name;
#include "insight/diagnose/rules.def"
#undef RULE

static const struct hn_rule *const rules[] = {
#define RULE(name) &hn_rule_##name,
#include "insight/diagnose/rules.def"
#undef RULE
};

static const struct hone_thresholds defaults = {
#define THRESHOLD(name, value, unit, source) .name = (value),
#include "insight/diagnose/thresholds.def"
#undef THRESHOLD
};

typedef struct owned_findings {
  hone_findings view; /* first: the pointer that callers hold */
  hn_arena arena;
} owned_findings;

#define WORD(id, word) word,
static const char *const quantity_names[] = {HONE_QUANTITIES(WORD)};
static const char *const remedy_names[] = {HONE_REMEDIES(WORD)};
static const char *const severity_names[] = {"high", "medium", "low"};

#define NAME_FUNCTION(function, type, names)                                                                 \
  const char *function(type value) {                                                                         \
    return (unsigned)value < sizeof names / sizeof *names ? names[value] : "?";                              \
  }
NAME_FUNCTION(hone_quantity_name, hone_quantity, quantity_names)
NAME_FUNCTION(hone_remedy_name, hone_remedy, remedy_names)
NAME_FUNCTION(hone_severity_name, hone_severity, severity_names)

/* ---- thresholds ---- */

hone_thresholds *hone_thresholds_create(void) {
  hone_thresholds *t = hn_malloc(sizeof *t);
  if (t) *t = defaults;
  return t;
}

void hone_thresholds_destroy(hone_thresholds *t) { hn_free(t); }

hone_status hone_thresholds_set(hone_thresholds *t, const char *name, double value, hone_error *error) {
  if (!isfinite(value)) return hn_fail(error, HONE_ERROR_USAGE, "threshold '%s' is not a number", name);
#define THRESHOLD(id, preset, unit, source)                                                                  \
  if (strcmp(name, #id) == 0) {                                                                              \
    t->id = value;                                                                                           \
    return HONE_OK;                                                                                          \
  }
#include "insight/diagnose/thresholds.def"
#undef THRESHOLD
  hone_status status = hn_fail(error, HONE_ERROR_USAGE, "there is no threshold '%s'", name);
  hn_error_hint(error, "docs/findings.md lists them");
  return status;
}

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

/* As a shell's word: quoted when it holds anything that a shell may take for more. */
static const char *shell_word(hn_diagnosis *d, const char *text) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+/:,=@%";
  if (*text && !text[strspn(text, plain)]) return text;
  size_t size = 3;
  for (const char *p = text; *p; p++) size += *p == '\'' ? 4 : 1;
  char *word = hn_arena_alloc(d->arena, size), *out = word;
  if (!word) {
    d->failed = true;
    return "";
  }
  *out++ = '\'';
  for (const char *p = text; *p; p++) {
    if (*p == '\'') {
      *out++ = '\'';
      *out++ = '\\';
      *out++ = '\'';
    }
    *out++ = *p;
  }
  out[0] = '\'';
  out[1] = 0;
  return word;
}

hone_finding *hn_finding_begin(hn_diagnosis *d, const char *what) {
  d->current = (hone_finding){.id = what ? hn_say(d, "%s:%s", d->rule, what) : d->rule};
  d->worst = HONE_SEVERITY_HIGH;
  d->evidence.len = d->commands.len = d->nodes.len = d->savings.len = 0;
  return &d->current;
}

void hn_finding_evidence(hn_diagnosis *d, const char *name, double value, const char *unit,
                         const char *source) {
  if (!hn_vec_push(&d->evidence, (hone_evidence){name, value, unit, source})) d->failed = true;
}

void hn_finding_command(hn_diagnosis *d, const char *format, ...) {
  char text[1024];
  va_list ap;
  va_start(ap, format);
  vsnprintf(text, sizeof text, format, ap);
  va_end(ap);
  if (!hn_vec_push(&d->commands, hn_say(d, "%s", text))) d->failed = true;
}

void hn_finding_layer(hn_diagnosis *d, const hone_layer *layer, double saving_ms) {
  const char *const *names = layer->onnx_node_count ? layer->onnx_nodes : &layer->name;
  size_t n = layer->onnx_node_count ? layer->onnx_node_count : 1;
  for (size_t i = 0; i < n; i++)
    if (!hn_vec_push(&d->nodes, names[i]) || !hn_vec_push(&d->savings, saving_ms / (double)n))
      d->failed = true;
}

double hone_amdahl(double p, double s) { return 1 / ((1 - p) + p / s); }

void hn_finding_gain(hn_diagnosis *d, double p, double s, const char *basis, double confidence) {
  hone_finding *f = &d->current;
  f->p = p < 0 ? 0 : p > 1 ? 1 : p;
  f->s = s < 1 ? 1 : s;
  f->s_basis = basis;
  f->confidence = confidence;
  f->predicted_saved_pct = 100 * f->p * (1 - 1 / f->s);
  f->predicted_gain_pct = 100 * (hone_amdahl(f->p, f->s) - 1);
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
  if (f->predicted_gain_pct < d->t->min_gain) return;
  for (size_t i = 0; i < d->found.len; i++)
    if (strcmp(d->found.ptr[i].id, f->id) == 0) return; /* the same thing twice: the first stands */
  f->severity = f->predicted_gain_pct >= d->t->high_gain     ? HONE_SEVERITY_HIGH
                : f->predicted_gain_pct >= d->t->medium_gain ? HONE_SEVERITY_MEDIUM
                                                             : HONE_SEVERITY_LOW;
  if (f->severity < d->worst) f->severity = d->worst;
  f->evidence = keep(d, d->evidence.ptr, d->evidence.len, sizeof *d->evidence.ptr);
  f->evidence_count = d->evidence.len;
  f->commands = keep(d, d->commands.ptr, d->commands.len, sizeof *d->commands.ptr);
  f->command_count = d->commands.len;
  f->nodes = keep(d, d->nodes.ptr, d->nodes.len, sizeof *d->nodes.ptr);
  f->node_count = d->nodes.len;
  f->node_saved_pct = divide_saving(d, f->predicted_saved_pct);
  if (!hn_vec_push(&d->found, *f)) d->failed = true;
}

/* ---- the run ---- */

static int by_rank(const void *pa, const void *pb) {
  const hone_finding *a = pa, *b = pb;
  if (a->structural != b->structural) return a->structural ? -1 : 1;
  if (a->severity != b->severity) return a->severity < b->severity ? -1 : 1;
  if (a->predicted_gain_pct != b->predicted_gain_pct)
    return a->predicted_gain_pct > b->predicted_gain_pct ? -1 : 1;
  return strcmp(a->id, b->id);
}

hone_status hone_diagnose(const hone_profile *profile, const hone_thresholds *thresholds,
                          hone_findings **findings, hone_error *error) {
  *findings = NULL;
  /* Rules compare layers with each other, so they need all of them. What findings keep of the profile's texts
   * belongs to the facts. */
  hone_profile *whole = NULL;
  if (profile->filtered) {
    hone_status status = hone_profile_create(profile->facts, NULL, &whole, error);
    if (status) return status;
    profile = whole;
  }
  owned_findings *owned = hn_calloc(1, sizeof *owned);
  if (!owned) {
    hone_profile_destroy(whole);
    return hn_fail_memory(error, sizeof *owned, "the findings");
  }
  const char *model = hone_facts_get_meta(profile->facts)->model;
  hn_diagnosis d = {.p = profile,
                    .facts = profile->facts,
                    .typical_wall_ms = hn_typical_wall_ms(profile),
                    .t = thresholds ? thresholds : &defaults,
                    .arena = &owned->arena};
  d.model = model ? shell_word(&d, model) : "MODEL.onnx";
  for (size_t i = 0; i < sizeof rules / sizeof *rules && !d.failed; i++) {
    d.rule = rules[i]->name;
    rules[i]->run(&d);
  }
  if (d.found.len) qsort(d.found.ptr, d.found.len, sizeof *d.found.ptr, by_rank);
  owned->view.items = keep(&d, d.found.ptr, d.found.len, sizeof *d.found.ptr);
  owned->view.count = d.found.len;
  hone_status status = HONE_OK;
  if (d.failed) {
    status = hn_fail_memory(error, owned->arena.used, "the findings");
    hone_findings_destroy(&owned->view);
  } else
    *findings = &owned->view;
  hone_profile_destroy(whole);
  hn_vec_free(&d.found);
  hn_vec_free(&d.evidence);
  hn_vec_free(&d.commands);
  hn_vec_free(&d.nodes);
  hn_vec_free(&d.savings);
  return status;
}

void hone_findings_destroy(hone_findings *findings) {
  owned_findings *owned = (owned_findings *)findings;
  if (!owned) return;
  hn_arena_free(&owned->arena);
  hn_free(owned);
}
