/* Error by layer as a page that needs nothing else: bars over depth, then a row of figures for each layer. */
#include "cli/reports/layers_page.h"

#include "cli/options/files.h"
#include "cli/terminal/term.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEIGHT = 180, STEP = 14, MOST_WIDTH = 4000, MARGIN = 34 };
#define MOST_DB 60.0 /* the axis ends here; bars of more are as high */

static const char head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Error by layer</title>\n"
    "<style>\n"
    ":root{--bg:#f7f7f5;--card:#fff;--ink:#1b1d22;--ink2:#5c626c;--line:#e5e5e1;--own:#3f78dd;--sum:#a3a9b4;"
    "--bad:#c43d4b;color-scheme:light dark}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#0f1115;--card:#171a20;--ink:#e8eaee;--ink2:#a2a8b3;"
    "--line:#282c35;--own:#6b9bf2;--sum:#5f6774;--bad:#f07884}}\n"
    "body{margin:0 auto;max-width:1180px;padding:20px 24px;background:var(--bg);color:var(--ink);"
    "font:15px/1.5 system-ui,sans-serif}\n"
    "section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px;"
    "margin:14px 0;overflow-x:auto}\n"
    "table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}"
    "th,td{padding:3px 9px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}"
    "th:first-child,td:first-child,th:nth-child(2),td:nth-child(2),th:last-child,td:last-child{text-align:"
    "left}\n"
    ".bad{color:var(--bad)}rect.own{fill:var(--own)}rect.sum{fill:var(--sum)}g.bad rect.own{fill:var(--bad)}"
    "svg text{fill:var(--ink2);font-size:11px}svg line{stroke:var(--line)}p{margin:6px 0}"
    ".key{color:var(--ink2)}\n</style></head><body>\n";

static void put_text(FILE *f, const char *text) {
  char *safe = malloc(6 * strlen(text) + 1), *to = safe;
  for (; safe && *text; text++) {
    const char *as = *text == '<'   ? "&lt;"
                     : *text == '>' ? "&gt;"
                     : *text == '&' ? "&amp;"
                     : *text == '"' ? "&quot;"
                                    : NULL;
    if (as)
      to = stpcpy(to, as);
    else
      *to++ = *text;
  }
  if (safe) {
    *to = '\0';
    cli_print_to(f, "%s", safe);
  }
  free(safe);
}

static void put_number(FILE *f, const char *format, double v) {
  char buf[32];
  snprintf(buf, sizeof buf, format, v);
  cli_print_to(f, "%s", isfinite(v) ? buf : v > 0 ? "exact" : "-");
}

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
    put_text(f, l->name);
    cli_put(f, ", own ");
    put_number(f, "%.1f dB", l->own_snr_db);
    cli_put(f, ", sum ");
    put_number(f, "%.1f dB", l->snr_db);
    if (*l->why) cli_put(f, ": ");
    put_text(f, l->why);
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
  cli_put(f, "<td>");
  if (known)
    put_number(f, format, v);
  else
    cli_put(f, "-");
  cli_put(f, "</td>");
}

static void row(FILE *f, const hone_layer_error *l) {
  cli_print_to(f, "<tr%s><td>", l->reason != HONE_LAYER_HEALTHY ? " class=\"bad\"" : "");
  put_text(f, l->name);
  cli_put(f, "</td><td>");
  put_text(f, l->op_type);
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
    put_text(f, hone_layer_reason_name(l->reason));
    cli_put(f, ": ");
    put_text(f, l->why);
  }
  cli_put(f, "</td></tr>\n");
}

static void named(FILE *f, const char *what, const hone_layers_report *r, int32_t i) {
  const hone_layer_error *l = &r->layer[i];
  cli_print_to(f, "<p class=\"bad\"><b>%s: ", what);
  put_text(f, l->name);
  cli_put(f, "</b> (");
  put_text(f, l->op_type);
  cli_print_to(f, ", layer %d of %u), %s: ", i + 1, r->n_layers, hone_layer_reason_name(l->reason));
  put_text(f, l->why);
  cli_put(f, "</p>\n");
}

static void page(FILE *f, const cli_args *args, const hone_layers_report *r) {
  cli_put(f, head);
  cli_put(f, "<h1>Error by layer</h1>\n<p>");
  put_text(f, args->rest.item[0]);
  cli_put(f, " against ");
  put_text(f, args->rest.item[1]);
  cli_print_to(f, ", %u layers on %u sample%s</p>\n", r->n_layers, r->samples, r->samples == 1 ? "" : "s");
  if (r->first < 0) cli_put(f, "<p>no layer is bad</p>\n");
  if (r->first >= 0) named(f, "First bad", r, r->first);
  if (r->worst >= 0 && r->worst != r->first) named(f, "Worst", r, r->worst);
  bars(f, r);
  cli_put(f, "<section><table><thead><tr><th>layer</th><th>operator</th><th>own dB</th><th>channel dB</th>"
             "<th>sum dB</th><th>cosine</th><th>max error</th><th>clip %</th><th>codes</th><th>range %</th>"
             "<th>imbal.</th><th>6 sig %</th><th>peak</th><th>what</th></tr></thead><tbody>\n");
  for (uint32_t i = 0; i < r->n_layers; i++) row(f, &r->layer[i]);
  cli_put(f, "</tbody></table></section>\n</body></html>\n");
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
