/* hone bench --curve --html: latency against throughput as a page that needs nothing else. */
#include "cli/options/files.h"
#include "cli/reports/load.h"
#include "cli/reports/page.h"
#include "cli/terminal/term.h"

#include <math.h>

/* Room of the drawing, and of its axes. */
enum { WIDTH = 760, HEIGHT = 360, LEFT = 70, BOTTOM = 46, TOP = 16, RIGHT = 110, TICKS = 5 };

typedef struct axes {
  double x, y;           /* of a tick */
  double most_x, most_y; /* at the ends */
} axes;

static double at_x(const axes *a, double v) { return LEFT + (WIDTH - LEFT - RIGHT) * v / a->most_x; }
static double at_y(const axes *a, double v) {
  return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * v / a->most_y;
}

static axes axes_of(const hone_load_result *p, uint32_t n) {
  double x = 1e-9, y = 1e-9;
  for (uint32_t i = 0; i < n; i++) {
    x = fmax(x, p[i].rate);
    y = fmax(y, p[i].p99_ms);
  }
  axes a = {.x = cli_page_tick(x, TICKS), .y = cli_page_tick(y, TICKS)};
  a.most_x = a.x * ceil(x / a.x);
  a.most_y = a.y * ceil(y / a.y);
  return a;
}

static void draw_axes(FILE *f, const axes *a) {
  const double bottom = at_y(a, 0), end = at_x(a, a->most_x);
  for (double v = 0; v <= a->most_y * 1.001; v += a->y) cli_page_level(f, LEFT, end, at_y(a, v), v);
  for (double v = 0; v <= a->most_x * 1.001; v += a->x)
    cli_print_to(f,
                 "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%.1f\"/><text x=\"%.1f\" y=\"%.1f\" "
                 "text-anchor=\"middle\">%g</text>\n",
                 at_x(a, v), at_x(a, v), TOP, bottom, at_x(a, v), bottom + 16, v);
  cli_print_to(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">samples a second</text>\n",
               (LEFT + end) / 2, HEIGHT - 8);
  cli_print_to(f, "<text x=\"12\" y=\"%d\">ms</text>\n", TOP + 4);
}

static double p50(const hone_load_result *r) { return r->p50_ms; }
static double p99(const hone_load_result *r) { return r->p99_ms; }

static void draw_line(FILE *f, const axes *a, const hone_load_result *p, uint32_t n,
                      double (*of)(const hone_load_result *), const char *colour, const char *name) {
  cli_print_to(f, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", colour);
  for (uint32_t i = 0; i < n; i++) cli_print_to(f, "%.1f,%.1f ", at_x(a, p[i].rate), at_y(a, of(&p[i])));
  cli_print_to(f, "\"/>\n");
  for (uint32_t i = 0; i < n; i++)
    cli_print_to(f,
                 "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"><title>%u in flight: %.1f a second, "
                 "%s %.3f ms</title>"
                 "</circle><text x=\"%.1f\" y=\"%.1f\">%u</text>\n",
                 at_x(a, p[i].rate), at_y(a, of(&p[i])), colour, p[i].in_flight, p[i].rate, name, of(&p[i]),
                 at_x(a, p[i].rate) + 6, at_y(a, of(&p[i])) - 6, p[i].in_flight);
}

static void draw(FILE *f, const hone_load_result *p, uint32_t n) {
  const axes a = axes_of(p, n);
  cli_print_to(f, "<section><svg width=\"%d\" height=\"%d\" role=\"img\">\n", WIDTH, HEIGHT);
  draw_axes(f, &a);
  draw_line(f, &a, p, n, p50, "var(--own)", "median");
  draw_line(f, &a, p, n, p99, "var(--bad)", "99th percentile");
  cli_put(f, "</svg><p class=\"key\"><span style=\"color:var(--own)\">median</span> and <span "
             "style=\"color:var(--bad)\">99th "
             "percentile</span> of the latency; numbers: runs in flight</p></section>\n");
}

static void table(FILE *f, const hone_load_result *p, uint32_t n) {
  cli_page_table(f, "in flight|samples/s|p50 ms|p90 ms|p99 ms|max ms|busy %");
  for (uint32_t i = 0; i < n; i++) {
    const double row[] = {p[i].rate, p[i].p50_ms, p[i].p90_ms, p[i].p99_ms, p[i].max_ms};
    cli_put(f, "<tr>");
    cli_page_figure(f, "%.0f", p[i].in_flight);
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) cli_page_figure(f, k ? "%.3f" : "%.1f", row[k]);
    cli_page_figure(f, "%.0f", 100 * p[i].busy);
    cli_put(f, "</tr>\n");
  }
  cli_page_table_end(f);
}

hone_status cli_curve_page(const char *path, const char *title, const hone_load_result *p, uint32_t n,
                           hone_error *error) {
  cli_file file;
  hone_status status = cli_file_open(&file, path, error);
  if (status != HONE_OK) return status;
  cli_page_begin(file.stream, "Latency and throughput");
  cli_put(file.stream, "<p>");
  cli_page_text(file.stream, title);
  cli_put(file.stream, "</p>\n");
  if (n) draw(file.stream, p, n);
  table(file.stream, p, n);
  cli_page_end(file.stream);
  status = cli_file_commit(&file, error);
  if (status != HONE_OK) cli_file_abort(&file);
  return status;
}
