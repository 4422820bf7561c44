/* Runs the rules, ranks what they found. */
#include "insight/diagnose/rule.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

typedef struct owned_findings {
  hone_findings view; /* first: the pointer that callers hold */
  hn_arena arena;
} owned_findings;

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
  if (d.found.len) {
    owned->view.items = hn_arena_memdup(d.arena, d.found.ptr, d.found.len * sizeof *d.found.ptr);
    d.failed = d.failed || !owned->view.items;
  }
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
  hn_vec_free(&d.parts);
  return status;
}

void hone_findings_destroy(hone_findings *findings) {
  owned_findings *owned = (owned_findings *)findings;
  if (!owned) return;
  hn_arena_free(&owned->arena);
  hn_free(owned);
}
