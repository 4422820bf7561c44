/* After the change: what did each finding really bring? And before it: what do all of them promise together?
 */
#include "insight/diagnose/rule.h"

#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

/* What one step of the plan afterwards executes, or one node that no step executes any more. */
typedef struct group {
  double before, after; /* ms */
  double predicted_pct; /* by all findings that the change speaks of */
} group;

typedef struct node_time {
  double before;    /* ms */
  group *group;     /* afterwards */
  double saved_pct; /* by the findings counted so far, for hone_findings_predict */
} node_time;

typedef struct node_times {
  hn_arena arena;
  hn_map by_name;
} node_times;

static node_time *at(node_times *t, const char *name) {
  node_time *n = hn_map_get(&t->by_name, name);
  if (n) return n;
  n = HN_NEW(&t->arena, node_time);
  return n && hn_map_set(&t->by_name, name, n) ? n : NULL;
}

static size_t names_of(const hone_layer *l, const char *const **names) {
  *names = l->onnx_node_count ? l->onnx_nodes : &l->name;
  return l->onnx_node_count ? l->onnx_node_count : 1;
}

/* A step that runs several nodes is divided evenly among them. */
static bool add_before(node_times *t, const hone_profile *p) {
  for (size_t i = 0; i < p->layer_count; i++) {
    const char *const *names;
    size_t n = names_of(&p->layers[i], &names);
    for (size_t k = 0; k < n; k++) {
      node_time *node = at(t, names[k]);
      if (!node) return false;
      node->before += hn_typical_ms(&p->layers[i]) / (double)n;
    }
  }
  return true;
}

static group *group_of(node_times *t, node_time *n, group *wanted) {
  if (n->group) return n->group;
  n->group = wanted ? wanted : HN_NEW(&t->arena, group);
  if (n->group) n->group->before += n->before;
  return n->group;
}

/* A node that several steps execute belongs to the first; their times go there. */
static bool add_after(node_times *t, const hone_profile *p) {
  for (size_t i = 0; i < p->layer_count; i++) {
    const char *const *names;
    size_t n = names_of(&p->layers[i], &names);
    node_time *first = n ? at(t, names[0]) : NULL;
    group *g = first ? group_of(t, first, NULL) : NULL;
    if (!g) return false;
    g->after += hn_typical_ms(&p->layers[i]);
    for (size_t k = 1; k < n; k++) {
      node_time *node = at(t, names[k]);
      if (!node || !group_of(t, node, g)) return false;
    }
  }
  return true;
}

static bool add_predictions(node_times *t, const hone_findings *findings) {
  for (size_t i = 0; i < findings->count; i++) {
    const hone_finding *f = &findings->items[i];
    for (size_t k = 0; k < f->node_count && f->remedy == HONE_REMEDY_OPTIMIZER; k++) {
      node_time *node = at(t, f->nodes[k]);
      group *g = node ? group_of(t, node, NULL) : NULL;
      if (!g) return false;
      g->predicted_pct += f->node_saved_pct[k];
    }
  }
  return true;
}

static void free_times(node_times *t) {
  hn_map_free(&t->by_name);
  hn_arena_free(&t->arena);
}

static double reformats(const hone_profile *p) {
  double ms = 0;
  for (size_t i = 0; i < p->layer_count; i++)
    if (hn_is_reformat(p->facts, &p->layers[i]) || hn_is_transpose(&p->layers[i]))
      ms += hn_typical_ms(&p->layers[i]);
  return ms;
}

static double quantity(const hone_profile *p, hone_quantity which) {
  switch (which) {
  case HONE_QUANTITY_GAPS: return p->closure.typical_gaps_ms;
  case HONE_QUANTITY_REFORMATS: return reformats(p);
  case HONE_QUANTITY_PRE: return p->stages.pre_ms;
  case HONE_QUANTITY_POST: return p->stages.post_ms;
  case HONE_QUANTITY_H2D: return p->stages.h2d_ms;
  case HONE_QUANTITY_D2H: return p->stages.d2h_ms;
  case HONE_QUANTITY_COPIES: return p->stages.h2d_ms + p->stages.d2h_ms;
  case HONE_QUANTITY_SYNC: return p->closure.sync_ms;
  default: return hn_typical_wall_ms(p);
  }
}

/* What a step saved is divided among the findings that promised some of it, as they promised it: a fused step
 * does not tell which of its nodes became faster. */
static double saved_on_nodes(const node_times *t, const hone_finding *f) {
  double ms = 0;
  for (size_t i = 0; i < f->node_count; i++) {
    const node_time *n = hn_map_get(&t->by_name, f->nodes[i]);
    const group *g = n ? n->group : NULL;
    if (g && g->predicted_pct > 0) ms += (g->before - g->after) * f->node_saved_pct[i] / g->predicted_pct;
  }
  return ms;
}

hone_status hone_findings_measure(hone_findings *findings, const hone_profile *before,
                                  const hone_profile *after, hone_error *error) {
  if (!findings || !before || !after)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_findings_measure: findings, before and after may not be NULL");
  node_times times = {0};
  hone_status status = HONE_OK;
  double wall = hn_typical_wall_ms(before);
  if (!add_before(&times, before) || !add_after(&times, after) || !add_predictions(&times, findings)) {
    status = hn_fail_memory(error, times.arena.used, "comparing two profiles");
    goto done;
  }
  for (size_t i = 0; i < findings->count && wall > 0; i++) {
    hone_finding *f = (hone_finding *)&findings->items[i];
    if (f->remedy != HONE_REMEDY_OPTIMIZER) continue; /* nobody did what it says */
    double saved_ms = f->quantity == HONE_QUANTITY_NODES
                          ? saved_on_nodes(&times, f)
                          : quantity(before, f->quantity) - quantity(after, f->quantity);
    double share = saved_ms / wall;
    f->measured = true;
    f->measured_saved_pct = 100 * share;
    f->measured_gain_pct = share < 1 ? 100 * (1 / (1 - share) - 1) : 0;
  }
done:
  free_times(&times);
  return status;
}

double hone_findings_predict(const hone_findings *findings, hone_remedy remedy) {
  if (!findings) return 0;
  const uint64_t lost = hn_mem_lost();
  node_times times = {0};
  double saved_pct = 0;
  for (size_t i = 0; i < findings->count; i++) {
    const hone_finding *f = &findings->items[i];
    if (f->remedy != remedy) continue;
    if (!f->node_count) saved_pct += f->predicted_saved_pct;
    for (size_t k = 0; k < f->node_count; k++) {
      node_time *n = at(&times, f->nodes[k]);
      if (!n || f->node_saved_pct[k] <= n->saved_pct) continue;
      saved_pct += f->node_saved_pct[k] - n->saved_pct;
      n->saved_pct = f->node_saved_pct[k];
    }
  }
  free_times(&times);
  if (hn_mem_lost() != lost) return NAN;
  double saved = saved_pct < 95 ? saved_pct / 100 : 0.95;
  return 100 * (1 / (1 - saved) - 1);
}
