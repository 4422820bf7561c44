/* The trend page: one drawing and one table a model, static (no script runs), so that any mail programme or
 * CI artifact viewer can show it. */
#include "insight/history/record.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

/* Text for HTML, inside of elements and of quoted attributes. */
static void put_text(hn_str *o, const char *text) {
  for (const char *p = text ? text : "-"; *p; p++) {
    unsigned char c = (unsigned char)*p;
    if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'' || c < 0x20 || c == 0x7f)
      hn_str_printf(o, "&#%d;", c < 0x20 || c == 0x7f ? 0xfffd : c);
    else
      hn_str_putc(o, *p);
  }
}

static void put_number(hn_str *o, double v, int digits) {
  if (isfinite(v))
    hn_str_printf(o, "%.*f", digits, v);
  else
    hn_str_puts(o, "-");
}

static bool same_model(const hone_record *a, const hone_record *b) {
  return strcmp(a->model ? a->model : "", b->model ? b->model : "") == 0;
}

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>hone "
    "history</title>\n<style>"
    ":root{color-scheme:light dark;--line:#2563b0;--worse:#b3261e;--better:#1b6e3c;--rule:#8886}"
    "body{font:15px/1.45 system-ui,sans-serif;margin:0 auto;max-width:1100px;padding:16px}"
    "@media(prefers-color-scheme:dark){:root{--line:#7db3f0;--worse:#ff8a80;--better:#7ddba0}}"
    "svg{width:100%;min-width:620px;height:auto;display:block}h2{overflow-wrap:anywhere}"
    ".t{overflow-x:auto}table{border-collapse:collapse;width:100%}td,th{padding:4px 10px;text-align:right;"
    "border-bottom:1px solid var(--rule);white-space:nowrap}td.l,th.l{text-align:left}"
    ".worse{color:var(--worse);font-weight:600}.better{color:var(--better)}"
    "text{font:12px "
    "system-ui,sans-serif;fill:currentColor}.g{stroke:var(--rule)}.c{fill:none;stroke:var(--line);stroke-"
    "width:2}"
    "circle{fill:var(--line)}.p{fill:none;stroke:var(--line);stroke-width:1;stroke-dasharray:3 4;opacity:.7}"
    "@media(max-width:700px){text{font-size:17px}}" /* the drawing is scaled down; its words stay readable */
    "</style></head><body>\n<h1>Latency over the history</h1>\n";

enum { W = 1000, H = 260, LEFT = 84, RIGHT = 20, TOP = 14, BOTTOM = 34 };

typedef struct scale {
  double low, high;
  size_t n;
} scale;

static double at_x(const scale *s, size_t i) {
  return s->n < 2 ? (LEFT + W - RIGHT) / 2.0 : LEFT + (double)i * (W - LEFT - RIGHT) / (double)(s->n - 1);
}
static double at_y(const scale *s, double v) {
  return TOP + (s->high - v) / (s->high - s->low) * (H - TOP - BOTTOM);
}

/* A line through the finite values, broken where there is none. */
static void curve(hn_str *o, const hone_record *const *run, const scale *s, const char *class, bool p95) {
  hn_str_printf(o, "<path class=\"%s\" d=\"", class);
  bool drawing = false;
  for (size_t i = 0; i < s->n; i++) {
    double v = p95 ? run[i]->p95_latency_ms : run[i]->median_latency_ms;
    if (isfinite(v)) hn_str_printf(o, "%c%.1f %.1f", drawing ? 'L' : 'M', at_x(s, i), at_y(s, v));
    drawing = isfinite(v);
  }
  hn_str_puts(o, "\"/>");
}

static void drawing(hn_str *o, const hone_record *const *run, size_t n) {
  scale s = {INFINITY, -INFINITY, n};
  for (size_t i = 0; i < n; i++) {
    s.low = fmin(s.low, run[i]->median_latency_ms), s.high = fmax(s.high, run[i]->median_latency_ms);
    if (isfinite(run[i]->p95_latency_ms)) s.high = fmax(s.high, run[i]->p95_latency_ms);
  }
  if (!(s.high >= s.low)) return;
  double margin = fmax((s.high - s.low) * 0.08, s.high * 0.01); /* noise is not to look like mountains */
  s.low = fmax(0, s.low - margin), s.high += margin;
  hn_str_printf(o,
                "<div class=\"t\" tabindex=\"0\"><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"median "
                "latency of %zu runs\">",
                W, H, n);
  for (int k = 0; k <= 4; k++) {
    double v = s.low + (s.high - s.low) * k / 4, y = at_y(&s, v);
    hn_str_printf(
        o, "<path class=\"g\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.*f</text>",
        LEFT, y, W - RIGHT, LEFT - 8, y + 4,
        s.high < 0.1  ? 5
        : s.high < 10 ? 3
                      : 1,
        v);
  }
  curve(o, run, &s, "p", true);
  curve(o, run, &s, "c", false);
  for (size_t i = 0; i < n; i++) {
    if (!isfinite(run[i]->median_latency_ms)) continue;
    hn_str_printf(o, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>run %lld, ", at_x(&s, i),
                  at_y(&s, run[i]->median_latency_ms), (long long)run[i]->id);
    put_text(o, run[i]->commit);
    hn_str_printf(o, ", %.4g ms</title></circle>", run[i]->median_latency_ms);
  }
  size_t step = n / 10 + 1; /* labels that do not touch */
  for (size_t i = 0; i < n; i += step) {
    char commit[9] = "";
    strncpy(commit, run[i]->commit ? run[i]->commit : "", 8);
    hn_str_printf(o, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">", at_x(&s, i), H - 12,
                  at_x(&s, i) > W - RIGHT - 40 ? "end" : "middle");
    put_text(o, commit[0] ? commit : "-");
    hn_str_puts(o, "</text>");
  }
  hn_str_puts(
      o, "</svg></div>\n<p>Solid: median latency in milliseconds. Dashed: 95th percentile. Left to right: "
         "runs in the order in "
         "which they were saved.</p>\n");
}

static void row(hn_str *o, const hone_record *r, const hone_record *before) {
  double change = before ? 100 * (r->median_latency_ms / before->median_latency_ms - 1) : NAN;
  hn_str_printf(o, "<tr><td>%lld</td><td class=\"l\">", (long long)r->id);
  put_text(o, r->profiling_date);
  hn_str_puts(o, "</td><td class=\"l\"><code>");
  char commit[13] = "";
  strncpy(commit, r->commit ? r->commit : "-", 12);
  put_text(o, commit);
  hn_str_puts(o, "</code></td><td class=\"l\">");
  put_text(o, r->tag ? r->tag : "");
  const double v[] = {r->median_latency_ms, r->p95_latency_ms, r->throughput_fps, r->memory_peak_mb, r->cv};
  static const int digits[] = {3, 3, 1, 1, 3};
  for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
    hn_str_puts(o, "</td><td>");
    put_number(o, v[i], i < 2 && v[i] < 0.1 ? 5 : digits[i]);
  }
  /* Runs of other machines or options are no measure of change. */
  bool comparable = before && before->machine && r->machine && strcmp(before->machine, r->machine) == 0 &&
                    strcmp(before->flags ? before->flags : "", r->flags ? r->flags : "") == 0 &&
                    isfinite(change);
  hn_str_printf(o, "</td><td class=\"%s\">",
                !comparable   ? ""
                : change > 5  ? "worse"
                : change < -5 ? "better"
                              : "");
  if (comparable) hn_str_printf(o, "%+.1f %%", change);
  hn_str_puts(o, "</td><td class=\"l\">");
  put_text(o, r->machine);
  hn_str_puts(o, "</td><td class=\"l\">");
  put_text(o, r->flags ? r->flags : "");
  hn_str_puts(o, "</td></tr>\n");
}

static void section(hn_str *o, const hone_record *const *run, size_t n) {
  hn_str_puts(o, "<h2>");
  put_text(o, run[0]->model);
  hn_str_puts(o, "</h2>\n");
  drawing(o, run, n);
  hn_str_puts(o, "<div class=\"t\" tabindex=\"0\" role=\"region\" "
                 "aria-label=\"runs\"><table><thead><tr><th>run</th><th class=\"l\">date</th><th "
                 "class=\"l\">commit</th><th class=\"l\">"
                 "tag</th><th>median ms</th><th>p95 ms</th><th>a second</th><th>peak "
                 "MiB</th><th>CV</th><th>change</th><th "
                 "class=\"l\">machine</th><th class=\"l\">options</th></tr></thead><tbody>\n");
  for (size_t i = 0; i < n; i++) row(o, run[i], i ? run[i - 1] : NULL);
  hn_str_puts(o, "</tbody></table></div>\n");
}

hone_status hone_history_html(const hone_records *records, hone_sink sink, void *user, hone_error *error) {
  if (!records || !sink)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_history_html: records and sink may not be NULL");
  hn_str o = {0};
  size_t n = records->count;
  const hone_record **run = hn_calloc(n + 1, sizeof *run);
  bool *done = hn_calloc(n + 1, sizeof *done);
  hn_str_puts(&o, head);
  if (!n) hn_str_puts(&o, "<p>No runs.</p>\n");
  for (size_t i = 0; run && done && i < n; i++) {
    size_t count = 0;
    if (done[i]) continue;
    for (size_t k = i; k < n; k++)
      if (same_model(&records->items[i], &records->items[k])) {
        done[k] = true;
        run[count++] = &records->items[k];
      }
    section(&o, run, count);
  }
  hn_str_puts(&o, "</body></html>\n");
  hone_status status =
      run && done && !o.failed ? sink(user, o.ptr, o.len, error) : hn_fail_memory(error, o.len, "the page");
  hn_free(run);
  hn_free(done);
  hn_str_free(&o);
  return status;
}
