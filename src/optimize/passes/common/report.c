#include "optimize/passes/common/report.h"

#include <jansson.h>

void hn_pass_report_free(hn_pass_report *r) {
  hn_vec_free(&r->records);
  hn_vec_free(&r->totals);
  hn_arena_free(&r->arena);
  *r = (hn_pass_report){0};
}

bool hn_pass_report_text(const hn_pass_report *r, hn_str *out) {
  for (int hit = 1; hit >= 0; hit--)
    for (size_t i = 0; i < r->records.len; i++) {
      const hn_pass_record *k = &r->records.ptr[i];
      if (k->hit == (hit == 1))
        hn_str_printf(out, "%s %s: %s [%s]\n", hit ? "hit " : "near", k->pass, k->reason, k->nodes);
    }
  hn_str_printf(out, "nodes %u -> %u in %u rounds\n", r->nodes_before, r->nodes_after, r->rounds);
  return !out->failed;
}

bool hn_pass_report_json(const hn_pass_report *r, hn_str *out) {
  json_t *records = json_array(), *totals = json_array();
  for (size_t i = 0; i < r->records.len; i++) {
    const hn_pass_record *k = &r->records.ptr[i];
    json_t *origin = json_array();
    for (uint32_t j = 0; j < k->n_origin; j++) json_array_append_new(origin, json_integer(k->origin[j]));
    json_array_append_new(
        records, json_pack("{s:s, s:i, s:s, s:o?, s:o?, s:o, s:i, s:i}", "pass", k->pass, "level", k->level,
                           "kind", k->hit ? "hit" : "near_miss", "nodes", json_string_nocheck(k->nodes),
                           "reason", json_string_nocheck(k->reason), "source_nodes", origin, "nodes_before",
                           (int)k->nodes_before, "nodes_after", (int)k->nodes_after));
  }
  for (size_t i = 0; i < r->totals.len; i++) {
    const hn_pass_total *t = &r->totals.ptr[i];
    json_array_append_new(totals, json_pack("{s:s, s:i, s:I, s:f}", "pass", t->pass, "level", t->level,
                                            "hits", (json_int_t)t->hits, "ms", t->seconds * 1e3));
  }
  json_t *root =
      json_pack("{s:i, s:i, s:i, s:b, s:i, s:o, s:o}", "nodes_before", (int)r->nodes_before, "nodes_after",
                (int)r->nodes_after, "rounds", (int)r->rounds, "fixed_point", r->fixed_point, "verified",
                (int)r->verified, "passes", totals, "records", records);
  char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
  if (text) hn_str_puts(out, text);
  bool ok = text && !out->failed;
  free(text);
  json_decref(root);
  return ok;
}
