#include "insight/report/report.h"

#include "insight/json.h"

#include <string.h>

void hn_members_stats(hn_str *o, const char *key, const hone_sample_stats *s) {
  hn_json_open(o, key, '{');
  hn_json_num(o, "mean", s->mean);
  hn_json_num(o, "median", s->p50);
  hn_json_num(o, "p50", s->p50);
  hn_json_num(o, "p95", s->p95);
  hn_json_num(o, "min", s->min);
  hn_json_num(o, "max", s->max);
  hn_json_num(o, "stddev", s->stddev);
  hn_json_num(o, "cv", s->cv);
  hn_json_uint(o, "count", s->count);
  hn_json_close(o, '}');
}

void hn_members_closure(hn_str *o, const hone_profile *p) {
  const hone_closure *c = &p->closure;
  hn_json_open(o, "closure", '{');
  hn_json_bool(o, "outer_clock", c->has_outer_clock);
  hn_json_num(o, "wall_ms", c->wall_ms);
  hn_json_num(o, "layers_ms", c->layers_ms);
  hn_json_num(o, "reformats_ms", c->reformats_ms);
  hn_json_num(o, "copies_ms", c->copies_ms);
  hn_json_num(o, "sync_ms", c->sync_ms);
  hn_json_num(o, "host_ms", c->host_ms);
  hn_json_num(o, "pre_ms", c->pre_ms);
  hn_json_num(o, "post_ms", c->post_ms);
  hn_json_num(o, "gaps_ms", c->gaps_ms);
  hn_json_num(o, "residual_ms", c->residual_ms);
  hn_json_num(o, "residual_pct", c->residual_pct);
  hn_json_num(o, "longest_gap_ms", c->longest_gap_ms);
  hn_json_text(o, "longest_gap_before", c->longest_gap_before);
  hn_json_num(o, "imbalance_ms", c->imbalance_ms);
  hn_json_text(o, "doubt", p->doubt);
  hn_json_close(o, '}');
  hn_json_line(o);
}

static void write_step(hn_str *o, const hone_profile *p, const hone_layer *l) {
  size_t n;
  const hone_step_fact *steps = hone_facts_steps(p->facts, &n);
  if (l->step < 0) return;
  const hone_step_fact *s = &steps[l->step];
  if (s->epilogue) hn_json_text(o, "epilogue", s->epilogue);
  if (s->dtype) hn_json_text(o, "dtype", s->dtype);
  if (s->shape_in) hn_json_text(o, "shape_in", s->shape_in);
  if (s->shape_out) hn_json_text(o, "shape_out", s->shape_out);
  if (s->layout) hn_json_text(o, "layout", s->layout);
}

void hn_members_layers(hn_str *o, const hone_profile *p) {
  hn_json_open(o, "layers", '[');
  for (size_t i = 0; i < p->layer_count; i++) {
    const hone_layer *l = &p->layers[i];
    hn_json_line(o);
    hn_json_open(o, NULL, '{');
    hn_json_text(o, "name", l->name);
    hn_json_text(o, "type", l->type);
    hn_json_text(o, "kind", hone_span_kind_name(l->kind));
    hn_json_text(o, "tactic", l->tactic);
    hn_json_num(o, "time_ms", l->time_ms);
    hn_json_num(o, "pct", l->pct);
    hn_json_num(o, "calls", l->calls);
    hn_json_num(o, "p50_ms", l->stats.p50);
    hn_json_num(o, "p95_ms", l->stats.p95);
    hn_json_num(o, "min_ms", l->stats.min);
    hn_json_num(o, "cv", l->stats.cv);
    hn_json_num(o, "flops", l->flops);
    hn_json_num(o, "bytes", l->bytes);
    hn_json_num(o, "intensity", l->intensity);
    hn_json_num(o, "gflops", l->gflops);
    hn_json_num(o, "gbs", l->gbs);
    hn_json_num(o, "compute_pct", l->compute_pct);
    hn_json_num(o, "memory_pct", l->memory_pct);
    hn_json_num(o, "roof_pct", l->roof_pct);
    hn_json_text(o, "memory_level", l->memory_level);
    hn_json_text(o, "bound", hone_limit_name(l->bound));
    hn_json_text(o, "bound_by_ridge", hone_limit_name(l->ridge));
    hn_json_num(o, "bound_confidence", l->bound_confidence);
    write_step(o, p, l);
    hn_json_open(o, "onnx_nodes", '[');
    for (size_t k = 0; k < l->onnx_node_count; k++) hn_json_text(o, NULL, l->onnx_nodes[k]);
    hn_json_close(o, ']');
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_line(o);
}

static void write_types(hn_str *o, const hone_profile *p) {
  hn_json_open(o, "types", '[');
  for (size_t i = 0; i < p->type_count; i++) {
    const hone_type_share *t = &p->types[i];
    hn_json_open(o, NULL, '{');
    hn_json_text(o, "type", t->type);
    hn_json_num(o, "time_ms", t->time_ms);
    hn_json_num(o, "pct", t->pct);
    hn_json_uint(o, "layers", t->layers);
    hn_json_num(o, "flops", t->flops);
    hn_json_num(o, "bytes", t->bytes);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_line(o);
}

static void write_stages(hn_str *o, const hone_profile *p) {
  const hone_stages *s = &p->stages;
  hn_json_open(o, "stages", '{');
  hn_json_num(o, "pre_ms", s->pre_ms);
  hn_json_num(o, "h2d_ms", s->h2d_ms);
  hn_json_num(o, "infer_ms", s->infer_ms);
  hn_json_num(o, "d2h_ms", s->d2h_ms);
  hn_json_num(o, "post_ms", s->post_ms);
  hn_json_num(o, "idle_ms", s->idle_ms);
  hn_json_num(o, "total_ms", s->total_ms);
  hn_json_close(o, '}');
  hn_json_line(o);
  hn_json_open(o, "throughput", '{');
  hn_json_num(o, "measured_fps", p->throughput.measured_fps);
  hn_json_num(o, "serial_fps", p->throughput.serial_fps);
  hn_json_num(o, "overlapped_fps", p->throughput.overlapped_fps);
  hn_json_text(o, "slowest_stage", p->throughput.slowest_stage);
  hn_json_close(o, '}');
  hn_json_line(o);
}

void hn_members_derived(hn_str *o, const hone_profile *p) {
  hn_json_num(o, "wall_ms", p->closure.wall_ms);
  hn_members_stats(o, "latency_ms", &p->wall);
  hn_json_open(o, "samples_ms", '[');
  for (size_t i = 0; i < p->wall.count; i++) hn_json_num(o, NULL, p->walls_ms[i]);
  hn_json_close(o, ']');
  hn_json_line(o);
  hn_members_closure(o, p);
  write_stages(o, p);
  hn_json_num(o, "flops", p->flops);
  hn_json_num(o, "bytes", p->bytes);
  hn_json_num(o, "gflops", p->gflops);
  hn_json_num(o, "gbs", p->gbs);
  hn_json_num(o, "ridge_flop_per_byte", p->ridge);
  write_types(o, p);
  hn_members_layers(o, p);
}

static void write_finding(hn_str *o, const hone_finding *f) {
  hn_json_line(o);
  hn_json_open(o, NULL, '{');
  hn_json_text(o, "id", f->id);
  hn_json_text(o, "title", f->title);
  hn_json_text(o, "severity", hone_severity_name(f->severity));
  hn_json_bool(o, "structural", f->structural);
  hn_json_text(o, "subject", f->subject);
  hn_json_open(o, "evidence", '[');
  for (size_t i = 0; i < f->evidence_count; i++) {
    hn_json_open(o, NULL, '{');
    hn_json_text(o, "name", f->evidence[i].name);
    hn_json_num(o, "value", f->evidence[i].value);
    hn_json_text(o, "unit", f->evidence[i].unit);
    hn_json_text(o, "source", f->evidence[i].source);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_text(o, "cause", f->cause);
  hn_json_open(o, "commands", '[');
  for (size_t i = 0; i < f->command_count; i++) hn_json_text(o, NULL, f->commands[i]);
  hn_json_close(o, ']');
  hn_json_open(o, "nodes", '[');
  for (size_t i = 0; i < f->node_count; i++) hn_json_text(o, NULL, f->nodes[i]);
  hn_json_close(o, ']');
  hn_json_text(o, "quantity", hone_quantity_name(f->quantity));
  hn_json_text(o, "remedy", hone_remedy_name(f->remedy));
  hn_json_num(o, "p", f->p);
  hn_json_num(o, "s", f->s);
  hn_json_text(o, "s_basis", f->s_basis);
  hn_json_num(o, "predicted_gain_pct", f->predicted_gain_pct);
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

void hn_members_findings(hn_str *o, const hone_findings *findings) {
  hn_json_open(o, "findings", '[');
  for (size_t i = 0; findings && i < findings->count; i++) write_finding(o, &findings->items[i]);
  hn_json_close(o, ']');
  hn_json_line(o);
}
