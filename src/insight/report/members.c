#include "insight/report/report.h"

#include "insight/json.h"

#include <math.h>
#include <string.h>

static void put_stats(hn_str *o, const char *key, const hone_sample_stats *s) {
  static const hn_json_member list[] = {
      HN_JSON(hone_sample_stats, mean),   HN_JSON_AS(hone_sample_stats, "median", p50, HN_JSON_ALWAYS),
      HN_JSON(hone_sample_stats, p50),    HN_JSON(hone_sample_stats, p95),
      HN_JSON(hone_sample_stats, min),    HN_JSON(hone_sample_stats, max),
      HN_JSON(hone_sample_stats, stddev), HN_JSON(hone_sample_stats, cv),
      HN_JSON(hone_sample_stats, count),  {0}};
  hn_json_open(o, key, '{');
  hn_json_members(o, list, s);
  hn_json_close(o, '}');
}

static void put_closure(hn_str *o, const hone_profile *p) {
  static const hn_json_member list[] = {
      HN_JSON_AS(hone_closure, "outer_clock", has_outer_clock, HN_JSON_ALWAYS),
      HN_JSON(hone_closure, wall_ms),
      HN_JSON(hone_closure, layers_ms),
      HN_JSON(hone_closure, reformats_ms),
      HN_JSON(hone_closure, copies_ms),
      HN_JSON(hone_closure, sync_ms),
      HN_JSON(hone_closure, host_ms),
      HN_JSON(hone_closure, pre_ms),
      HN_JSON(hone_closure, post_ms),
      HN_JSON(hone_closure, gaps_ms),
      HN_JSON(hone_closure, residual_ms),
      HN_JSON(hone_closure, residual_pct),
      HN_JSON(hone_closure, longest_gap_ms),
      HN_JSON(hone_closure, longest_gap_before),
      HN_JSON(hone_closure, imbalance_ms),
      {0}};
  hn_json_open(o, "closure", '{');
  hn_json_members(o, list, &p->closure);
  hn_json_text(o, "doubt", p->doubt);
  if (p->note) hn_json_text(o, "note", p->note);
  hn_json_close(o, '}');
  hn_json_line(o);
}

static void write_step(hn_str *o, const hone_profile *p, const hone_layer *l) {
  static const hn_json_member list[] = {HN_JSON_SET(hone_step_fact, epilogue),
                                        HN_JSON_SET(hone_step_fact, dtype),
                                        HN_JSON_SET(hone_step_fact, arithmetic),
                                        HN_JSON_SET(hone_step_fact, shape_in),
                                        HN_JSON_SET(hone_step_fact, shape_out),
                                        HN_JSON_SET(hone_step_fact, codes_in),
                                        HN_JSON_SET(hone_step_fact, codes_out),
                                        HN_JSON_SET(hone_step_fact, layout),
                                        {0}};
  size_t n;
  const hone_step_fact *steps = hone_facts_steps(p->facts, &n);
  if (l->step >= 0) hn_json_members(o, list, &steps[l->step]);
}

static void write_counters(hn_str *o, const hone_layer *l) {
  hn_json_open(o, "counters", '{');
  for (size_t i = 0; i < l->counter_count; i++) {
    bool again = false; /* of several the first counts */
    for (size_t k = 0; k < i; k++) again = again || strcmp(l->counters[k].name, l->counters[i].name) == 0;
    if (!again) hn_json_num(o, l->counters[i].name, l->counters[i].value);
  }
  hn_json_close(o, '}');
}

void hn_members_layers(hn_str *o, const hone_profile *p) {
  static const hn_json_member list[] = {HN_JSON(hone_layer, tactic),
                                        HN_JSON(hone_layer, time_ms),
                                        HN_JSON(hone_layer, pct),
                                        HN_JSON(hone_layer, calls),
                                        HN_JSON_AS(hone_layer, "p50_ms", stats.p50, HN_JSON_ALWAYS),
                                        HN_JSON_AS(hone_layer, "p95_ms", stats.p95, HN_JSON_ALWAYS),
                                        HN_JSON_AS(hone_layer, "min_ms", stats.min, HN_JSON_ALWAYS),
                                        HN_JSON_AS(hone_layer, "cv", stats.cv, HN_JSON_ALWAYS),
                                        HN_JSON(hone_layer, flops),
                                        HN_JSON(hone_layer, executed_flops),
                                        HN_JSON(hone_layer, bytes),
                                        HN_JSON(hone_layer, intensity),
                                        HN_JSON(hone_layer, gflops),
                                        HN_JSON(hone_layer, executed_gflops),
                                        HN_JSON(hone_layer, gbs),
                                        HN_JSON(hone_layer, compute_pct),
                                        HN_JSON(hone_layer, memory_pct),
                                        HN_JSON(hone_layer, roof_pct),
                                        HN_JSON(hone_layer, memory_level),
                                        {0}};
  hn_json_open(o, "layers", '[');
  for (size_t i = 0; i < p->layer_count; i++) {
    const hone_layer *l = &p->layers[i];
    hn_json_line(o);
    hn_json_open(o, NULL, '{');
    hn_json_text(o, "name", l->name);
    hn_json_text(o, "type", l->type);
    hn_json_text(o, "kind", hone_span_kind_name(l->kind));
    hn_json_members(o, list, l);
    hn_json_text(o, "bound", hone_limit_name(l->bound));
    hn_json_text(o, "bound_by_ridge", hone_limit_name(l->ridge));
    hn_json_num(o, "bound_confidence", l->bound_confidence);
    hn_json_text(o, "bound_source", hn_bound_source(l));
    write_counters(o, l);
    write_step(o, p, l);
    hn_json_texts(o, "onnx_nodes", l->onnx_nodes, l->onnx_node_count);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_line(o);
}

static void write_types(hn_str *o, const hone_profile *p) {
  static const hn_json_member list[] = {HN_JSON(hone_type_share, type),
                                        HN_JSON(hone_type_share, time_ms),
                                        HN_JSON(hone_type_share, pct),
                                        HN_JSON(hone_type_share, layers),
                                        HN_JSON(hone_type_share, flops),
                                        HN_JSON(hone_type_share, bytes),
                                        {0}};
  hn_json_objects(o, "types", list, p->types, p->type_count, sizeof *p->types);
}

static void write_stages(hn_str *o, const hone_profile *p) {
  static const hn_json_member stage[] = {HN_JSON(hone_stages, pre_ms),   HN_JSON(hone_stages, h2d_ms),
                                         HN_JSON(hone_stages, infer_ms), HN_JSON(hone_stages, d2h_ms),
                                         HN_JSON(hone_stages, post_ms),  HN_JSON(hone_stages, idle_ms),
                                         HN_JSON(hone_stages, total_ms), {0}},
                              speed[] = {HN_JSON(hone_throughput, measured_fps),
                                         HN_JSON(hone_throughput, serial_fps),
                                         HN_JSON(hone_throughput, overlapped_fps),
                                         HN_JSON(hone_throughput, slowest_stage),
                                         {0}};
  hn_json_object(o, "stages", stage, &p->stages);
  hn_json_object(o, "throughput", speed, &p->throughput);
}

void hn_members_derived(hn_str *o, const hone_profile *p) {
  hn_json_num(o, "wall_ms", p->closure.wall_ms);
  put_stats(o, "latency_ms", &p->wall);
  hn_json_open(o, "samples_ms", '[');
  for (size_t i = 0; i < p->wall.count; i++) hn_json_num(o, NULL, p->walls_ms[i]);
  hn_json_close(o, ']');
  hn_json_line(o);
  put_closure(o, p);
  write_stages(o, p);
  hn_json_num(o, "flops", p->flops);
  hn_json_num(o, "bytes", p->bytes);
  hn_json_num(o, "macs", p->macs > 0 ? p->macs : NAN);
  hn_json_num(o, "integer_macs_pct", p->macs > 0 ? 100 * p->integer_macs / p->macs : NAN);
  hn_json_num(o, "gflops", p->gflops);
  hn_json_num(o, "gbs", p->gbs);
  hn_json_num(o, "ridge_flop_per_byte", p->ridge);
  write_types(o, p);
  hn_members_layers(o, p);
}

static void write_parts(hn_str *o, const hone_finding *f) {
  hn_json_open(o, "parts", '[');
  for (size_t i = 0; i < f->part_count; i++) {
    const hone_part *part = &f->parts[i];
    hn_json_open(o, NULL, '{');
    hn_json_text(o, "name", part->name);
    hn_json_text(o, "label", part->label);
    hn_json_num(o, "ms", part->ms);
    hn_json_num(o, "saved_ms", part->saved_ms);
    hn_json_text(o, "why", part->why);
    hn_json_text(o, "advice", part->advice);
    hn_json_texts(o, "layers", part->layers, part->layer_count);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
}

static void write_finding(hn_str *o, const hone_finding *f) {
  hn_json_line(o);
  hn_json_open(o, NULL, '{');
  hn_json_text(o, "id", f->id);
  hn_json_text(o, "title", f->title);
  hn_json_text(o, "severity", hone_severity_name(f->severity));
  hn_json_text(o, "category", hone_category_name(f->category));
  hn_json_bool(o, "structural", f->category == HONE_CATEGORY_STRUCTURAL);
  hn_json_text(o, "subject", f->subject);
  hn_json_open(o, "evidence", '[');
  for (size_t i = 0; i < f->evidence_count; i++) {
    hn_json_open(o, NULL, '{');
    hn_json_text(o, "name", f->evidence[i].name);
    hn_json_text(o, "label", f->evidence[i].label);
    hn_json_num(o, "value", f->evidence[i].value);
    hn_json_text(o, "unit", f->evidence[i].unit);
    hn_json_text(o, "source", f->evidence[i].source);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_text(o, "cause", f->cause);
  write_parts(o, f);
  hn_json_texts(o, "commands", f->commands, f->command_count);
  hn_json_open(o, "purposes", '[');
  for (size_t i = 0; i < f->command_count; i++) hn_json_text(o, NULL, hone_purpose_name(f->purposes[i]));
  hn_json_close(o, ']');
  hn_json_texts(o, "nodes", f->nodes, f->node_count);
  hn_json_texts(o, "beside", f->beside, f->beside_count);
  hn_json_texts(o, "merged", f->merged, f->merged_count);
  hn_json_text(o, "quantity", hone_quantity_name(f->quantity));
  hn_json_text(o, "remedy", hone_remedy_name(f->remedy));
  hn_json_num(o, "p", f->p);
  hn_json_num(o, "s", f->s);
  hn_json_num(o, "s_low", f->s_low);
  hn_json_num(o, "s_high", f->s_high);
  hn_json_text(o, "basis", hone_basis_name(f->basis));
  hn_json_text(o, "s_basis", f->s_basis);
  hn_json_num(o, "predicted_gain_pct", f->predicted_gain_pct);
  hn_json_num(o, "gain_low_pct", f->gain_low_pct);
  hn_json_num(o, "gain_high_pct", f->gain_high_pct);
  hn_json_num(o, "predicted_saved_pct", f->predicted_saved_pct);
  hn_json_num(o, "confidence", f->confidence);
  if (f->measured) {
    hn_json_num(o, "measured_gain_pct", f->measured_gain_pct);
    hn_json_num(o, "measured_saved_pct", f->measured_saved_pct);
  } else {
    hn_json_null(o, "measured_gain_pct");
    hn_json_null(o, "measured_saved_pct");
  }
  hn_json_close(o, '}');
}

void hn_members_findings_as(hn_str *o, const char *key, const hone_findings *findings) {
  if (!findings) {
    hn_json_null(o, key);
    return;
  }
  hn_json_open(o, key, '[');
  for (size_t i = 0; i < findings->count; i++) write_finding(o, &findings->items[i]);
  hn_json_close(o, ']');
  hn_json_line(o);
}

void hn_members_findings(hn_str *o, hone_language language, const hone_findings *findings) {
  static const hone_findings none = {0};
  hn_json_text(o, "language", hone_language_name(language));
  hn_members_findings_as(o, "findings", findings ? findings : &none);
}
