/* Pages that need nothing else. */
#include "cli/reports/page.h"
#include "cli/terminal/term.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char style[] =
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

void cli_page_text(FILE *f, const char *text) {
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

void cli_page_begin(FILE *f, const char *title) {
  cli_put(f, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>");
  cli_page_text(f, title);
  cli_put(f, "</title>\n");
  cli_put(f, style);
  cli_put(f, "<h1>");
  cli_page_text(f, title);
  cli_put(f, "</h1>\n");
}

void cli_page_end(FILE *f) { cli_put(f, "</body></html>\n"); }

void cli_page_cell(FILE *f, const char *text) {
  cli_put(f, "<td>");
  cli_page_text(f, text);
  cli_put(f, "</td>");
}

void cli_page_number(FILE *f, const char *format, double v) {
  char buf[32];
  snprintf(buf, sizeof buf, format, v);
  cli_print_to(f, "%s", isfinite(v) ? buf : v > 0 ? "exact" : "-");
}

void cli_page_figure(FILE *f, const char *format, double v) {
  cli_put(f, "<td>");
  cli_page_number(f, format, v);
  cli_put(f, "</td>");
}

void cli_page_table(FILE *f, const char *headings) {
  cli_put(f, "<section><table><thead><tr>");
  while (*headings) {
    const size_t n = strcspn(headings, "|");
    cli_print_to(f, "<th>%.*s</th>", (int)n, headings);
    headings += n + (headings[n] == '|');
  }
  cli_put(f, "</tr></thead><tbody>\n");
}

void cli_page_table_end(FILE *f) { cli_put(f, "</tbody></table></section>\n"); }

double cli_page_tick(double v, int ticks) {
  const double power = pow(10, floor(log10(v / ticks))), share = v / ticks / power;
  return power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
}

void cli_page_level(FILE *to, double left, double right, double y, double value) {
  cli_print_to(to,
               "<line x1=\"%g\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%g\" y=\"%.1f\" "
               "text-anchor=\"end\">%g</text>\n",
               left, right, y, y, left - 6, y + 4, value);
}
