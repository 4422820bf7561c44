/* One root cause, one finding: consequences are folded into what causes them. */
#include "insight/diagnose/rule.h"

#include <string.h>

static const struct {
  const char *root, *symptom;
  enum { WHERE_BOTH, BY_OPTIMIZER, ON_ITS_NODES, BY_SAVING } when;
} merges[] = {
#define MERGE(root, symptom) {#root, #symptom, WHERE_BOTH},
#define MERGE_OPTIMIZER(root, symptom) {#root, #symptom, BY_OPTIMIZER},
#define MERGE_NODES(root, symptom) {#root, #symptom, ON_ITS_NODES},
#define MERGE_SAVING(root, symptom) {#root, #symptom, BY_SAVING},
#include "insight/diagnose/merges.def"
#undef MERGE
#undef MERGE_OPTIMIZER
#undef MERGE_NODES
#undef MERGE_SAVING
};

static bool of_rule(const hone_finding *f, const char *rule) {
  size_t n = strlen(rule);
  return strncmp(f->id, rule, n) == 0 && (f->id[n] == 0 || f->id[n] == ':');
}

/* The root speaks of all of the symptom's nodes, and saves a large part of what the symptom promises there.
 */
static bool explains_nodes(const hn_diagnosis *d, const hone_finding *root, const hone_finding *symptom) {
  double saved = 0;
  for (size_t i = 0; i < symptom->node_count; i++) {
    size_t k = 0;
    while (k < root->node_count && strcmp(root->nodes[k], symptom->nodes[i]) != 0) k++;
    if (k == root->node_count) return false;
    saved += root->node_saved_pct[k];
  }
  return symptom->node_count && 100 * saved >= d->t->merge_share * symptom->predicted_saved_pct;
}

static bool explains(const hn_diagnosis *d, const hone_finding *root, const hone_finding *symptom) {
  if (root->category == HONE_CATEGORY_NOTE) return false;
  const bool saves = 100 * root->predicted_saved_pct >= d->t->merge_share * symptom->predicted_saved_pct;
  if (!saves && 100 * root->p < d->t->merge_share * symptom->p) return false;
  for (size_t i = 0; i < sizeof merges / sizeof *merges; i++)
    if (of_rule(root, merges[i].root) && of_rule(symptom, merges[i].symptom) &&
        (merges[i].when != BY_OPTIMIZER || (saves && root->remedy == HONE_REMEDY_OPTIMIZER)) &&
        (merges[i].when != ON_ITS_NODES || explains_nodes(d, root, symptom)) &&
        (merges[i].when != BY_SAVING || saves))
      return true;
  return false;
}

static bool has_text(const char *const *list, size_t n, const char *text) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(list[i], text) == 0) return true;
  return false;
}

static bool has_evidence(const hone_finding *f, const char *name) {
  for (size_t i = 0; i < f->evidence_count; i++)
    if (strcmp(f->evidence[i].name, name) == 0) return true;
  return false;
}

/* a[0..n) and what of b[0..m) is not among them. */
static const char *const *joined(hn_diagnosis *d, const char *const *a, size_t n, const char *const *b,
                                 size_t m, size_t *count) {
  const char **list = HN_NEW_ARRAY(d->arena, const char *, n + m + 1);
  *count = 0;
  if (!list) {
    d->failed = true;
    return NULL;
  }
  for (size_t i = 0; i < n; i++) list[(*count)++] = a[i];
  for (size_t i = 0; i < m; i++)
    if (!has_text(a, n, b[i])) list[(*count)++] = b[i];
  return list;
}

/* Has the root taken in a finding of the same rule before? */
static bool has_kind(const hone_finding *root, const hone_finding *symptom) {
  const size_t n = strcspn(symptom->id, ":");
  for (size_t i = 0; i < root->merged_count; i++)
    if (strcspn(root->merged[i], ":") == n && memcmp(root->merged[i], symptom->id, n) == 0) return true;
  return false;
}

/* The symptom's commands that the root has not, behind its own, with what they are for. */
static void join_commands(hn_diagnosis *d, hone_finding *root, const hone_finding *symptom) {
  const size_t n = root->command_count;
  size_t count, all = n;
  const char *const *commands =
      joined(d, root->commands, n, symptom->commands, symptom->command_count, &count);
  hone_purpose *purposes = HN_NEW_ARRAY(d->arena, hone_purpose, n + symptom->command_count + 1);
  if (!commands || !purposes) {
    d->failed = true;
    return;
  }
  for (size_t i = 0; i < n; i++) purposes[i] = root->purposes[i];
  for (size_t i = 0; i < symptom->command_count; i++)
    if (!has_text(root->commands, n, symptom->commands[i])) purposes[all++] = symptom->purposes[i];
  root->commands = commands;
  root->purposes = purposes;
  root->command_count = count;
}

/* The root keeps its own prediction; what the symptom might bring in addition widens the range. */
static void absorb(hn_diagnosis *d, hone_finding *root, const hone_finding *symptom) {
  size_t n = root->evidence_count + symptom->evidence_count;
  hone_evidence *evidence = HN_NEW_ARRAY(d->arena, hone_evidence, n + 1);
  if (!evidence) {
    d->failed = true;
    return;
  }
  n = 0;
  for (size_t i = 0; i < root->evidence_count; i++) evidence[n++] = root->evidence[i];
  for (size_t i = 0; i < symptom->evidence_count; i++)
    if (!has_evidence(root, symptom->evidence[i].name)) evidence[n++] = symptom->evidence[i];
  root->evidence = evidence;
  root->evidence_count = n;
  /* The next of several symptoms of one kind only says the same of another layer. */
  if (!has_kind(root, symptom)) join_commands(d, root, symptom);
  root->merged = joined(d, root->merged, root->merged_count, &symptom->id, 1, &root->merged_count);
  root->merged = joined(d, root->merged, root->merged_count, symptom->merged, symptom->merged_count,
                        &root->merged_count);
  if (symptom->gain_high_pct > root->gain_high_pct) root->gain_high_pct = symptom->gain_high_pct;
}

void hn_findings_merge(hn_diagnosis *d) {
  /* A symptom joins the weightiest of its roots; what it has taken in itself goes along, so the order of
   * merging does not matter. */
  for (bool again = true; again && !d->failed;) {
    again = false;
    for (size_t s = 0; s < d->found.len && !again; s++) {
      hone_finding *best = NULL;
      for (size_t r = 0; r < d->found.len; r++) {
        hone_finding *root = &d->found.ptr[r];
        if (r == s || !explains(d, root, &d->found.ptr[s])) continue;
        if (!best || root->predicted_gain_pct > best->predicted_gain_pct) best = root;
      }
      if (!best) continue;
      absorb(d, best, &d->found.ptr[s]);
      memmove(&d->found.ptr[s], &d->found.ptr[s + 1], (d->found.len - s - 1) * sizeof *d->found.ptr);
      d->found.len--;
      again = true;
    }
  }
}
