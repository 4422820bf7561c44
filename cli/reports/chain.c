#include "cli/reports/chain.h"
#include "cli/options/shapes.h"
#include "cli/terminal/term.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES_SHOWN = 1000 };

hone_status cli_chain_sums_open(cli_chain_sums *s, const hone_chain *c, hone_error *error) {
  *s = (cli_chain_sums){.n = hone_chain_stages(c)};
  s->time = calloc(s->n + 1, sizeof *s->time);
  if (s->time) return HONE_OK;
  *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory"};
  return HONE_ERROR_MEMORY;
}

void cli_chain_sums_free(cli_chain_sums *s) {
  free(s->time);
  *s = (cli_chain_sums){0};
}

void cli_chain_sums_add(cli_chain_sums *s, const hone_chain *c) {
  hone_chain_time t;
  hone_chain_total a;
  if (!hone_chain_total_of(c, &a)) return;
  s->runs++;
  s->total.wall_s += a.wall_s;
  s->total.read_s += a.read_s;
  s->total.stages_s += a.stages_s;
  s->total.plan_s += a.plan_s;
  s->total.idle_s += a.idle_s;
  s->total.residual_s += a.residual_s;
  for (uint32_t i = 0; i < s->n && hone_chain_time_of(c, i, &t); i++) {
    s->time[i].seconds += t.seconds;
    s->time[i].plan_seconds += t.plan_seconds;
    s->time[i].runs += t.runs;
    s->time[i].items += t.items;
  }
}

/* Milliseconds of a run, in the mean. */
static double mean_ms(const cli_chain_sums *s, double seconds) {
  return s->runs ? seconds * 1e3 / s->runs : 0;
}

/* ---------------------------------------------------------------- results */

static json_t *box_json(const hone_chain_box *b) {
  json_t *corners = json_array();
  for (int k = 0; k < 4; k++)
    json_array_append_new(corners, json_pack("[o,o]", cli_real((double)b->x[k]), cli_real((double)b->y[k])));
  return json_pack("{s:o, s:o, s:I}", "corners", corners, "score", cli_real((double)b->score), "item",
                   (json_int_t)b->item);
}

static json_t *answer_json(const hone_chain_answer *a) {
  json_t *o = json_pack("{s:o, s:o, s:I}", "text", a->text ? json_string(a->text) : json_null(), "score",
                        cli_real((double)a->score), "item", (json_int_t)a->item);
  if (a->class_id >= 0) json_object_set_new(o, "class", json_integer(a->class_id));
  return o;
}

static json_t *batch_json(const hone_chain_batch *b) {
  json_t *o = cli_desc_json(&b->tensor.desc), *items = json_array(), *values = json_array();
  const int64_t n = hone_desc_count(&b->tensor.desc);
  for (uint32_t i = 0; i < b->n; i++) json_array_append_new(items, json_integer(b->item[i]));
  for (int64_t i = 0; b->tensor.desc.dtype == HONE_DTYPE_F32 && n <= VALUES_SHOWN && i < n; i++)
    json_array_append_new(values, cli_real((double)((const float *)b->tensor.data)[i]));
  json_object_set_new(o, "items", items);
  if (json_array_size(values))
    json_object_set_new(o, "values", values);
  else
    json_decref(values);
  return o;
}

static json_t *value_json(const hone_chain_value *v) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < v->n; i++) switch (v->kind) {
    case HONE_CHAIN_BOXES: json_array_append_new(list, box_json(&v->box[i])); break;
    case HONE_CHAIN_ANSWERS: json_array_append_new(list, answer_json(&v->answer[i])); break;
    case HONE_CHAIN_TENSORS: json_array_append_new(list, batch_json(&v->batch[i])); break;
    case HONE_CHAIN_PICTURES: json_array_append_new(list, cli_desc_json(&v->picture[i].desc)); break;
    }
  return list;
}

json_t *cli_chain_outputs_json(const hone_chain *c) {
  json_t *o = json_object();
  hone_chain_value v;
  for (uint32_t i = 0; hone_chain_output(c, i, &v); i++)
    json_object_set_new(o, hone_chain_output_name(c, i), value_json(&v));
  return o;
}

static void corners_text(const hone_chain_box *b, char *buf, size_t size) {
  snprintf(buf, size, "%.0f,%.0f %.0f,%.0f %.0f,%.0f %.0f,%.0f", (double)b->x[0], (double)b->y[0],
           (double)b->x[1], (double)b->y[1], (double)b->x[2], (double)b->y[2], (double)b->x[3],
           (double)b->y[3]);
}

/* The boxes that the answers are about, one each; false: there are none. */
static bool boxes_of(const hone_chain *c, const hone_chain_value *answers, hone_chain_value *boxes) {
  for (uint32_t i = 0; hone_chain_output(c, i, boxes); i++)
    if (boxes->kind == HONE_CHAIN_BOXES && boxes->n == answers->items) return true;
  return false;
}

static void print_answers(const hone_chain *c, const hone_chain_value *v) {
  hone_chain_value boxes;
  const bool placed = boxes_of(c, v, &boxes);
  for (uint32_t i = 0; i < v->n; i++) {
    const hone_chain_answer *a = &v->answer[i];
    char corners[96] = "", number[32];
    if (placed) corners_text(&boxes.box[a->item], corners, sizeof corners);
    snprintf(number, sizeof number, "class %lld", (long long)a->class_id);
    cli_print("  %5.3f  ", (double)a->score);
    if (placed) cli_print("%-34s  ", corners);
    if (!placed && v->items > 1) cli_print("%4u  ", a->item);
    cli_print("%s\n", a->text ? a->text : number);
  }
}

static void print_value(const hone_chain *c, uint32_t at, const hone_chain_value *v) {
  char text[128];
  const char *name = hone_chain_output_name(c, at);
  cli_print("  %s: %u %s\n", name, v->n, hone_chain_kind_name(v->kind));
  for (uint32_t i = 0; i < v->n; i++) {
    if (v->kind == HONE_CHAIN_BOXES) {
      corners_text(&v->box[i], text, sizeof text);
      cli_print("  %5.3f  %s\n", (double)v->box[i].score, text);
    } else
      cli_print("  %s\n", hone_desc_format(v->kind == HONE_CHAIN_TENSORS ? &v->batch[i].tensor.desc
                                                                         : &v->picture[i].desc,
                                           text, sizeof text));
  }
}

void cli_chain_outputs_print(const hone_chain *c) {
  hone_chain_value v, w;
  for (uint32_t i = 0; hone_chain_output(c, i, &v); i++) {
    bool told = false; /* boxes beside their answers */
    for (uint32_t k = 0; v.kind == HONE_CHAIN_BOXES && hone_chain_output(c, k, &w); k++)
      told |= w.kind == HONE_CHAIN_ANSWERS && w.items == v.n;
    if (v.kind == HONE_CHAIN_ANSWERS)
      print_answers(c, &v);
    else if (!told)
      print_value(c, i, &v);
  }
}

/* ---------------------------------------------------------------- time */

json_t *cli_chain_time_json(const cli_chain_sums *s, const hone_chain *c) {
  json_t *stages = json_array();
  hone_chain_stage stage;
  for (uint32_t i = 0; hone_chain_stage_at(c, i, &stage); i++)
    json_array_append_new(stages,
                          json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "name", stage.name, "kind", stage.kind,
                                    "ms", cli_real(mean_ms(s, s->time[i].seconds)), "plan_ms",
                                    cli_real(mean_ms(s, s->time[i].plan_seconds)), "runs",
                                    cli_real(s->runs ? (double)s->time[i].runs / s->runs : 0), "items",
                                    cli_real(s->runs ? (double)s->time[i].items / s->runs : 0)));
  return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "runs", (int)s->runs, "wall_ms",
                   cli_real(mean_ms(s, s->total.wall_s)), "read_ms", cli_real(mean_ms(s, s->total.read_s)),
                   "stages_ms", cli_real(mean_ms(s, s->total.stages_s)), "plan_ms",
                   cli_real(mean_ms(s, s->total.plan_s)), "idle_ms", cli_real(mean_ms(s, s->total.idle_s)),
                   "residual_ms", cli_real(mean_ms(s, s->total.residual_s)), "stages", stages);
}

static void print_share(const cli_chain_sums *s, const char *name, const char *kind, double seconds) {
  cli_print("%-14s %-8s %7s %7s %10.3f %7.1f %%\n", name, kind, "", "", mean_ms(s, seconds),
            s->total.wall_s > 0 ? 100 * seconds / s->total.wall_s : 0);
}

void cli_chain_time_print(const cli_chain_sums *s, const hone_chain *c) {
  hone_chain_stage stage;
  if (!s->runs) return;
  cli_print("\n%-14s %-8s %7s %7s %10s %9s\n", "stage", "kind", "runs", "items", "ms", "share");
  print_share(s, "read", "", s->total.read_s);
  for (uint32_t i = 0; hone_chain_stage_at(c, i, &stage); i++)
    cli_print("%-14s %-8s %7.1f %7.1f %10.3f %7.1f %%\n", stage.name, stage.kind,
              (double)s->time[i].runs / s->runs, (double)s->time[i].items / s->runs,
              mean_ms(s, s->time[i].seconds),
              s->total.wall_s > 0 ? 100 * s->time[i].seconds / s->total.wall_s : 0);
  print_share(s, "planning", "", s->total.plan_s);
  print_share(s, "idle", "", s->total.idle_s);
  print_share(s, "residual", "", s->total.residual_s);
  print_share(s, "wall", "", s->total.wall_s);
}

/* ---------------------------------------------------------------- memory */

json_t *cli_chain_memory_json(const hone_chain *c) {
  json_t *models = json_array(), *links = json_array();
  hone_chain_memory m;
  hone_chain_link l;
  hone_chain_stage stage;
  hone_chain_memory_total t = {0};
  hone_chain_memory_sum(c, &t);
  for (uint32_t i = 0; hone_chain_memory_of(c, i, &m) && hone_chain_stage_at(c, m.stage, &stage); i++)
    json_array_append_new(models, json_pack("{s:s, s:i, s:I, s:I, s:I}", "stage", stage.name, "plans",
                                            (int)m.plans, "constants", (json_int_t)m.constants, "arena",
                                            (json_int_t)m.arena, "apart", (json_int_t)m.apart));
  for (uint32_t i = 0; hone_chain_link_of(c, i, &l); i++)
    json_array_append_new(links, json_pack("{s:s, s:s, s:s, s:I, s:b, s:b, s:b, s:b}", "from", l.from, "to",
                                           l.to, "input", l.input, "bytes", (json_int_t)l.bytes, "bound",
                                           l.bound, "channels_last", l.channels_last, "reformat_out",
                                           l.reformat_out, "reformat_in", l.reformat_in));
  return json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:I}", "models", models, "links", links, "constants",
                   (json_int_t)t.constants, "apart", (json_int_t)t.apart, "shared", (json_int_t)t.shared,
                   "values_apart", (json_int_t)t.links_apart, "values", (json_int_t)t.links);
}

static void print_saved(const char *what, uint64_t apart, uint64_t shared) {
  char a[24], b[24], d[24];
  cli_print("%-34s %11s apart, %11s shared: %s saved\n", what, cli_bytes((double)apart, a),
            cli_bytes((double)shared, b), cli_bytes(apart > shared ? (double)(apart - shared) : 0, d));
}

void cli_chain_memory_print(const hone_chain *c) {
  hone_chain_memory m;
  hone_chain_link l;
  hone_chain_stage stage;
  hone_chain_memory_total t = {0};
  char a[24], b[24], d[24];
  hone_chain_memory_sum(c, &t);
  cli_print("\n%-14s %6s %12s %20s %20s\n", "model", "plans", "constants", "largest activations",
            "of all its plans");
  for (uint32_t i = 0; hone_chain_memory_of(c, i, &m) && hone_chain_stage_at(c, m.stage, &stage); i++)
    cli_print("%-14s %6u %12s %20s %20s\n", stage.name, m.plans, cli_bytes((double)m.constants, a),
              cli_bytes((double)m.arena, b), cli_bytes((double)m.apart, d));
  print_saved("activations and workspaces", t.apart, t.shared);
  print_saved("values between stages", t.links_apart, t.links);
  for (uint32_t i = 0; hone_chain_link_of(c, i, &l); i++)
    cli_print("%s -> %s of %s: %s, %s%s%s%s\n", l.from, l.input, l.to, cli_bytes((double)l.bytes, a),
              l.bound ? "no copy" : "one copy", l.channels_last ? ", stays channels-last" : "",
              l.reformat_out ? ", reordered by the maker" : "",
              l.reformat_in ? ", reordered by the reader" : "");
}
