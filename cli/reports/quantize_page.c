/* hone quantize --html: what was done to each layer, and what it cost, as a page that needs nothing else. */
#include "cli/reports/quantize_page.h"

#include "cli/options/files.h"
#include "cli/reports/coverage.h"
#include "cli/reports/page.h"
#include "cli/terminal/term.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static hone_status write_page(const cli_args *args, void (*page)(FILE *, const cli_args *, const void *),
                              const void *report, hone_error *error) {
  cli_file file;
  if (!args->html) return HONE_OK;
  hone_status status = cli_file_open(&file, args->html, error);
  if (status != HONE_OK) return status;
  page(file.stream, args, report);
  status = cli_file_commit(&file, error);
  if (status != HONE_OK) cli_file_abort(&file);
  return status;
}

static void models(FILE *f, const cli_args *args, bool written) {
  cli_put(f, "<p>");
  cli_page_text(f, args->rest.item[0]);
  if (written) {
    cli_put(f, " as ");
    cli_page_text(f, args->output);
  }
  cli_put(f, "</p>\n");
}

static void warnings(FILE *f, const char *const *warning, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    cli_put(f, "<p class=\"bad\">");
    cli_page_text(f, warning[i]);
    cli_put(f, "</p>\n");
  }
}

static void samples(FILE *f, const hone_quantize_coverage *c, uint32_t n) {
  char line[300];
  if (!n) return;
  cli_put(f, "<p>Calibration samples: ");
  cli_page_text(f, cli_coverage_line(c, n, line, sizeof line));
  cli_put(f, "</p>\n");
}

/* ---- 8 or 16 bits */

static void quantised_row(FILE *f, const hone_quantize_layer *l) {
  cli_put(f, "<tr>");
  cli_page_cell(f, l->name);
  cli_page_cell(f, l->op_type);
  if (l->quantized && *l->input) {
    cli_page_figure(f, "%.4g", l->low);
    cli_page_figure(f, "%.4g", l->high);
    cli_page_figure(f, "%.3f", 100 * l->clipped);
    cli_page_figure(f, "%.4g", l->scale);
    cli_page_figure(f, "%.0f", l->zero_point);
    cli_page_figure(f, "%.0f", l->channels ? (double)l->channels : -INFINITY);
  } else {
    for (int i = 0; i < 6; i++) cli_page_cell(f, "-");
  }
  cli_page_cell(f, l->quantized ? "narrow" : l->reason);
  cli_put(f, "</tr>\n");
}

static void quantised(FILE *f, const cli_args *args, const void *report) {
  const hone_quantize_report *r = report;
  const bool int8 = r->to == HONE_QUANTIZE_INT8;
  cli_page_begin(f, "Quantised model");
  models(f, args, true);
  cli_print_to(f, "<p>%u operator%s in %s, %u in float", r->quantized, cli_s(r->quantized),
               hone_quantize_type_name(r->to), r->n_layers - r->quantized);
  if (int8)
    cli_print_to(f, "; method %s, for %s", hone_calibration_name(r->method),
                 hone_quantize_target_name(r->target));
  cli_put(f, "</p>\n");
  if (int8) samples(f, &r->coverage, r->samples);
  warnings(f, r->warning, r->n_warnings);
  if (r->n_outputs) {
    cli_page_table(f, "output|samples|SQNR dB|mean error|largest|same top 1, %");
    for (uint32_t i = 0; i < r->n_outputs; i++) {
      const hone_quantize_output *o = &r->output[i];
      cli_put(f, "<tr>");
      cli_page_cell(f, o->name);
      cli_page_figure(f, "%.0f", r->checks);
      cli_page_figure(f, "%.1f", o->sqnr_db);
      cli_page_figure(f, "%.3g", o->mean_error);
      cli_page_figure(f, "%.3g", o->max_error);
      cli_page_figure(f, "%.2f", o->rows ? 100 * (double)o->same_top1 / (double)o->rows : -INFINITY);
      cli_put(f, "</tr>\n");
    }
    cli_page_table_end(f);
  }
  cli_page_table(f, "layer|operator|from|to|clipped %|scale|zero|weights' scales|type, or why float");
  for (uint32_t i = 0; i < r->n_layers; i++) quantised_row(f, &r->layer[i]);
  cli_page_table_end(f);
  cli_page_end(f);
}

hone_status cli_quantize_page(const cli_args *args, const hone_quantize_report *report, hone_error *error) {
  return write_page(args, quantised, report, error);
}

/* ---- mixed precision */

static void score_row(FILE *f, const char *what, const hone_mixed_report *r, const hone_mixed_score *s) {
  if (!s->samples) return;
  cli_put(f, "<tr>");
  cli_page_cell(f, what);
  cli_page_figure(f, "%.0f", (double)s->samples);
  cli_page_figure(f, "%.6f", s->before);
  cli_page_figure(f, "%.6f", s->after);
  cli_page_figure(f, "%.4g", s->drop);
  cli_page_figure(f, "%.4g", r->max_drop);
  cli_put(f, "</tr>\n");
}

static void mixed_row(FILE *f, const hone_mixed_layer *l) {
  const bool back = l->reason == HONE_MIXED_ERROR || l->reason == HONE_MIXED_HELD_OUT;
  cli_print_to(f, "<tr%s>", back ? " class=\"bad\"" : "");
  cli_page_cell(f, l->name);
  cli_page_cell(f, l->op_type);
  cli_page_cell(f, hone_mixed_type_name(l->type));
  for (int t = 0; t < HONE_MIXED_TYPES; t++) cli_page_figure(f, "%.4f", l->ms[t]);
  for (int t = HONE_MIXED_F16; t < HONE_MIXED_TYPES; t++)
    cli_page_figure(f, "%.1f", -10 * log10(l->noise[t]));
  cli_page_cell(f, l->why);
  cli_put(f, "</tr>\n");
}

typedef struct mixture {
  const hone_mixed_report *report;
  const char *why; /* nothing was written */
} mixture;

static void mixed(FILE *f, const cli_args *args, const void *said) {
  const mixture *m = said;
  const hone_mixed_report *r = m->report;
  const bool met = r->verdict == HONE_MIXED_MET;
  cli_page_begin(f, "Mixed precision");
  models(f, args, met);
  if (met)
    cli_print_to(f, "<p>%u of %u layer%s narrow</p>\n", r->narrow, r->n_layers,
                 r->n_layers == 1 ? " is" : "s are");
  else
    cli_print_to(f, "<p class=\"bad\">Nothing written: %s</p>\n", m->why);
  if (r->timed)
    cli_print_to(f,
                 "<p>Time: %+.1f %% in %u pair%s of runs in turn (95 %%: %+.1f to %+.1f %%); medians %.4g ms "
                 "before, %.4g ms after</p>\n",
                 100 * r->change, r->pairs, cli_s(r->pairs), 100 * r->low, 100 * r->high, r->before_ms,
                 r->after_ms);
  samples(f, &r->coverage, r->calibrated);
  warnings(f, r->warning, r->n_warnings);
  cli_page_table(f, "half|samples|before|after|drop|allowed");
  score_row(f, "chooses", r, &r->chosen);
  score_row(f, "held out", r, &r->held_out);
  cli_page_table_end(f);
  cli_print_to(f,
               "<p class=\"key\">%s on the samples that choose and on those held out; %u model%s in %.1f s, "
               "%u step%s back to wider types, %u of them for the samples held out</p>\n",
               hone_mixed_metric_name(r->metric), r->models, cli_s(r->models), r->seconds, r->returned,
               cli_s(r->returned), r->held_back);
  cli_page_table(f, "layer|operator|type|f32 ms|f16 ms|bf16 ms|int8 ms|f16 dB|bf16 dB|int8 dB|reason");
  for (uint32_t i = 0; i < r->n_layers; i++) mixed_row(f, &r->layer[i]);
  cli_page_table_end(f);
  cli_put(f,
          "<p class=\"key\">dB: signal to noise of the outputs where the layer alone is so narrow. Red: it "
          "went back to a wider type for the budget.</p>\n");
  cli_page_end(f);
}

hone_status cli_mixed_page(const cli_args *args, const hone_mixed_report *report, const char *why,
                           hone_error *error) {
  return write_page(args, mixed, &(mixture){report, why}, error);
}
