/* Error by layer as a page that needs nothing else: bars over depth, then a row of figures for each layer. */
#include "cli/reports/layers_page.h"

#include "cli/options/files.h"
#include "cli/reports/page.h"
#include "cli/terminal/term.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEIGHT = 180, STEP = 14, MOST_WIDTH = 4000, MARGIN = 34 };
#define MOST_DB 60.0 /* the axis ends here; bars of more are as high */

/* ---- bars */

static double height_of(double db) { return isnan(db) ? 0 : fmin(fmax(db, 0), MOST_DB) / MOST_DB * HEIGHT; }

static void bar(FILE *f, const char *class, double x, double width, double db) {
  const double h = height_of(db);
  cli_print_to(f, "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>", class, x,
               8 + HEIGHT - h, width, h);
}

static void bars(FILE *f, const hone_layers_report *r) {
  const double step = r->n_layers * STEP > MOST_WIDTH ? (double)MOST_WIDTH / r->n_layers : STEP;
  const double width = MARGIN + step * r->n_layers + 8;
  cli_print_to(f, "<section><svg width=\"%.0f\" height=\"%d\" role=\"img\" aria-label=\"dB over depth\">\n",
               width, HEIGHT + 30);
  for (int db = 0; db <= (int)MOST_DB; db += 20) {
    const double y = 8 + HEIGHT - height_of(db);
    cli_print_to(f,
                 "<line x1=\"%d\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"2\" y=\"%.1f\">%d</text>\n",
                 MARGIN, width, y, y, y + 4, db);
  }
  for (uint32_t i = 0; i < r->n_layers; i++) {
    const hone_layer_error *l = &r->layer[i];
    const double x = MARGIN + step * i + 1;
    cli_print_to(f, "<g class=\"%s\"><title>%u: ", l->reason != HONE_LAYER_HEALTHY ? "bad" : "", i + 1);
    cli_page_text(f, l->name);
    cli_put(f, ", own ");
    cli_page_number(f, "%.1f dB", l->own_snr_db);
    cli_put(f, ", sum ");
    cli_page_number(f, "%.1f dB", l->snr_db);
    if (*l->why) cli_put(f, ": ");
    cli_page_text(f, l->why);
    cli_put(f, "</title>");
    bar(f, "own", x, step * 0.45, l->own_snr_db);
    bar(f, "sum", x + step * 0.45, step * 0.4, l->snr_db);
    cli_put(f, "</g>\n");
  }
  cli_print_to(
      f,
      "<text x=\"%d\" y=\"%d\">layer 1</text><text x=\"%.0f\" y=\"%d\" text-anchor=\"end\">%u</text>"
      "</svg>\n<p class=\"key\">Signal to noise in dB over depth, up to %.0f; higher is better. Left bar: "
      "what the layer adds by itself (red: named); right bar: as it came out, with the errors of all "
      "layers before.</p></section>\n",
      MARGIN, HEIGHT + 24, width - 4, HEIGHT + 24, r->n_layers, MOST_DB);
}

/* ---- table */

static void cell(FILE *f, const char *format, bool known, double v) {
  cli_page_figure(f, format, known ? v : -INFINITY);
}

static void row(FILE *f, const hone_layer_error *l) {
  cli_print_to(f, "<tr%s><td>", l->reason != HONE_LAYER_HEALTHY ? " class=\"bad\"" : "");
  cli_page_text(f, l->name);
  cli_put(f, "</td><td>");
  cli_page_text(f, l->op_type);
  cli_put(f, "</td>");
  cell(f, "%.1f", true, l->own_snr_db);
  cell(f, "%.1f", true, l->channel_snr_db);
  cell(f, "%.1f", true, l->snr_db);
  cell(f, "%.5f", true, l->cosine);
  cell(f, "%.3g", true, l->max_error);
  cell(f, "%.2f", l->codes, 100 * l->saturated);
  cell(f, "%.0f", l->codes, l->codes_used);
  cell(f, "%.0f", l->codes, 100 * l->range_used);
  cell(f, l->one_scale ? "%.3g*" : "%.3g", l->channels, l->imbalance);
  cell(f, "%.4f", true, 100 * l->beyond_6_sigma);
  cell(f, "%.3g", true, l->peak);
  cli_put(f, "<td>");
  if (l->reason != HONE_LAYER_HEALTHY) {
    cli_page_text(f, hone_layer_reason_name(l->reason));
    cli_put(f, ": ");
    cli_page_text(f, l->why);
  }
  cli_put(f, "</td></tr>\n");
}

static void named(FILE *f, const char *what, const hone_layers_report *r, int32_t i) {
  const hone_layer_error *l = &r->layer[i];
  cli_print_to(f, "<p class=\"bad\"><b>%s: ", what);
  cli_page_text(f, l->name);
  cli_put(f, "</b> (");
  cli_page_text(f, l->op_type);
  cli_print_to(f, ", layer %d of %u), %s: ", i + 1, r->n_layers, hone_layer_reason_name(l->reason));
  cli_page_text(f, l->why);
  cli_put(f, "</p>\n");
}

static void page(FILE *f, const cli_args *args, const hone_layers_report *r) {
  cli_page_begin(f, "Error by layer");
  cli_put(f, "<p>");
  cli_page_text(f, args->rest.item[0]);
  cli_put(f, " against ");
  cli_page_text(f, args->rest.item[1]);
  cli_print_to(f, ", %u layer%s on %u sample%s</p>\n", r->n_layers, cli_s(r->n_layers), r->samples,
               r->samples == 1 ? "" : "s");
  if (r->first < 0) cli_put(f, "<p>no layer is bad</p>\n");
  if (r->first >= 0) named(f, "First bad", r, r->first);
  if (r->worst >= 0 && r->worst != r->first) named(f, "Worst", r, r->worst);
  bars(f, r);
  cli_page_table(f, "layer|operator|own dB|channel dB|sum dB|cosine|max error|clip %|codes|range %|imbal.|"
                    "6 sig %|peak|what");
  for (uint32_t i = 0; i < r->n_layers; i++) row(f, &r->layer[i]);
  cli_page_table_end(f);
  cli_page_end(f);
}

hone_status cli_layers_page(const cli_args *args, const hone_layers_report *r, hone_error *error) {
  cli_file file;
  hone_status status = cli_file_open(&file, args->html, error);
  if (status != HONE_OK) return status;
  page(file.stream, args, r);
  status = cli_file_commit(&file, error);
  if (status != HONE_OK) cli_file_abort(&file);
  return status;
}
