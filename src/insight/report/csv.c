/* The layer table as comma-separated values (RFC 4180), in order of execution. */
#include "insight/report/report.h"

#include "base/error.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Escaped for whoever shows the file in a terminal; text that a spreadsheet would run as a formula gets an
 * apostrophe in front. */
static void field(hn_str *o, const char *name) {
  hn_str clean = {0};
  if (name) hn_text_escape(&clean, name, strlen(name));
  const char *text = clean.ptr ? clean.ptr : "";
  const bool formula = *text && strchr("=+-@", *text);
  if (!formula && !strpbrk(text, ",\"")) {
    hn_str_puts(o, text);
  } else {
    hn_str_puts(o, formula ? "\"'" : "\"");
    for (; *text; text++) {
      if (*text == '"') hn_str_putc(o, '"');
      hn_str_putc(o, *text);
    }
    hn_str_putc(o, '"');
  }
  if (clean.failed) o->failed = true;
  hn_str_free(&clean);
}

static void nodes(hn_str *o, const hone_layer *l) {
  hn_str joined = {0};
  for (size_t i = 0; i < l->onnx_node_count; i++) {
    if (i) hn_str_putc(&joined, ' ');
    hn_str_puts(&joined, l->onnx_nodes[i]);
  }
  if (joined.failed) o->failed = true;
  field(o, joined.ptr);
  hn_str_free(&joined);
}

/* With a comma in front and a decimal point whatever the locale says. */
static void number(hn_str *o, double value, int decimals) {
  char text[400];
  if (!isfinite(value)) { /* not known */
    hn_str_putc(o, ',');
    return;
  }
  snprintf(text, sizeof text, "%.*f", decimals, value);
  char *comma = strchr(text, ',');
  if (comma) *comma = '.';
  hn_str_putc(o, ',');
  hn_str_puts(o, text);
}

hone_status hn_report_csv(const hone_report_input *in, hn_str *o, hone_error *error) {
  const hone_profile *p = hn_report_current(in);
  hn_arena arena = {0};
  size_t counters;
  const char *const *counter = hn_counter_names(p, &arena, &counters);
  if (!counter) {
    hn_arena_free(&arena);
    return hn_fail_memory(error, 0, "the counters of the layers");
  }
  hn_str_puts(
      o, "name,type,kind,tactic,time_ms,pct,calls,p50_ms,p95_ms,min_ms,cv,flops,bytes,intensity,gflops,gbs,"
         "roof_pct,memory_level,bound,onnx_nodes,compute_pct,memory_pct,bound_confidence,bound_source,"
         "executed_flops,executed_gflops");
  for (size_t k = 0; k < counters; k++) { /* a column each, by its name in the facts */
    hn_str_putc(o, ',');
    field(o, counter[k]);
  }
  hn_str_puts(o, "\r\n");
  for (size_t i = 0; i < p->layer_count; i++) {
    const hone_layer *l = &p->layers[i];
    field(o, l->name);
    hn_str_putc(o, ',');
    field(o, l->type);
    hn_str_printf(o, ",%s,", hone_span_kind_name(l->kind));
    field(o, l->tactic);
    number(o, l->time_ms, 6);
    number(o, l->pct, 3);
    number(o, l->calls, 3);
    number(o, l->stats.p50, 6);
    number(o, l->stats.p95, 6);
    number(o, l->stats.min, 6);
    number(o, l->stats.cv, 4);
    number(o, l->flops, 0);
    number(o, l->bytes, 0);
    number(o, l->intensity, 4);
    number(o, l->gflops, 3);
    number(o, l->gbs, 3);
    number(o, l->roof_pct, 2);
    hn_str_printf(o, ",%s,%s,", l->memory_level ? l->memory_level : "", hone_limit_name(l->bound));
    nodes(o, l);
    number(o, l->compute_pct, 2);
    number(o, l->memory_pct, 2);
    number(o, l->bound_confidence, 2);
    hn_str_printf(o, ",%s", hn_bound_source(l) ? hn_bound_source(l) : "");
    number(o, l->executed_flops, 0);
    number(o, l->executed_gflops, 3);
    for (size_t k = 0; k < counters; k++) number(o, hn_counter_of(l, counter[k]), 4);
    hn_str_puts(o, "\r\n");
  }
  hn_arena_free(&arena);
  return HONE_OK;
}
