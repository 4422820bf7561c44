/* hone pipeline --html: how the controller found its numbers of workers, as a page that needs nothing else.
 */
#include "cli/options/files.h"
#include "cli/reports/page.h"
#include "cli/reports/pipeline.h"
#include "cli/terminal/term.h"

#include <math.h>

enum { WIDTH = 760, HEIGHT = 220, LEFT = 60, RIGHT = 20, TOP = 16, BOTTOM = 40, TICKS = 4 };

typedef struct axes {
  double begin, end, most, tick; /* seconds; of the values */
} axes;

static double at_x(const axes *a, double v) {
  return LEFT + (WIDTH - LEFT - RIGHT) * (v - a->begin) / (a->end - a->begin);
}
static double at_y(const axes *a, double v) {
  return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * v / a->most;
}

static double workers_of(const hone_pipeline_moment *m, int which) { return m->workers[which]; }
static double fill_of(const hone_pipeline_moment *m, int which) { return m->fill[which]; }
static double rate_of(const hone_pipeline_moment *m, int which) {
  (void)which;
  return m->rate;
}

typedef struct curve {
  const char *colour, *name;
  double (*of)(const hone_pipeline_moment *m, int which);
  int which;
  bool stairs; /* holds until the next moment */
} curve;

static axes axes_of(const hone_pipeline_moment *m, uint32_t n, const curve *c, size_t curves) {
  axes a = {.begin = 0, .end = fmax(m[n - 1].seconds, 1e-3), .most = 1e-3};
  for (uint32_t i = 0; i < n; i++)
    for (size_t k = 0; k < curves; k++) a.most = fmax(a.most, c[k].of(&m[i], c[k].which));
  a.tick = cli_page_tick(a.most, TICKS);
  a.most = a.tick * ceil(a.most / a.tick - 1e-9);
  return a;
}

static void draw(FILE *f, const char *what, const hone_pipeline_moment *m, uint32_t n, const curve *c,
                 size_t curves) {
  const axes a = axes_of(m, n, c, curves);
  const double step = cli_page_tick(a.end, TICKS);
  cli_print_to(f, "<section><svg width=\"%d\" height=\"%d\" role=\"img\">\n", WIDTH, HEIGHT);
  for (double v = 0; v <= a.most * 1.001; v += a.tick) cli_page_level(f, LEFT, WIDTH - RIGHT, at_y(&a, v), v);
  for (double v = 0; v <= a.end * 1.001; v += step)
    cli_print_to(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", at_x(&a, v),
                 HEIGHT - BOTTOM + 16, v);
  cli_print_to(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">seconds</text>\n", (LEFT + WIDTH) / 2,
               HEIGHT - 6);
  for (size_t k = 0; k < curves; k++) {
    cli_print_to(f, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", c[k].colour);
    for (uint32_t i = 0; i < n; i++) {
      const double y = at_y(&a, c[k].of(&m[i], c[k].which));
      if (c[k].stairs && i) cli_print_to(f, "%.1f,%.1f ", at_x(&a, m[i - 1].seconds), y);
      cli_print_to(f, "%.1f,%.1f ", at_x(&a, m[i].seconds), y);
    }
    cli_put(f, "\"/>\n");
  }
  cli_put(f, "</svg><p class=\"key\">");
  for (size_t k = 0; k < curves; k++)
    cli_print_to(f, "%s<span style=\"color:%s\">%s</span>", k ? ", " : "", c[k].colour, c[k].name);
  cli_put(f, ": ");
  cli_put(f, what);
  cli_put(f, "</p></section>\n");
}

static void table(FILE *f, const hone_pipeline_state *s) {
  cli_page_table(f, "stage|workers|ms an item|busy %|most waiting|room");
  for (int i = 0; i < HONE_STAGES; i++) {
    const hone_stage_state *g = &s->stage[i];
    const double all = g->workers_mean * s->seconds;
    cli_put(f, "<tr>");
    cli_page_cell(f, hone_stage_name((hone_stage)i));
    cli_page_figure(f, "%.2f", g->workers_mean);
    cli_page_figure(f, "%.3f", g->item_seconds * 1e3);
    cli_page_figure(f, "%.1f", all > 0 ? fmin(100 * g->busy_seconds / all, 100) : 0);
    cli_page_figure(f, "%.0f", g->most_waiting);
    cli_page_figure(f, "%.0f", g->queue);
    cli_put(f, "</tr>\n");
  }
  cli_page_table_end(f);
}

static void split(FILE *f, const hone_pipeline_split *t) {
  const double ms[] = {t->pre, t->h2d, t->infer, t->d2h, t->post, t->idle, t->total, t->residual};
  cli_page_table(f, "pre|h2d|infer|d2h|post|idle|an item, ms|residual");
  cli_put(f, "<tr>");
  for (size_t i = 0; i < sizeof ms / sizeof *ms; i++) cli_page_figure(f, "%.3f", ms[i] * 1e3);
  cli_put(f, "</tr>\n");
  cli_page_table_end(f);
}

hone_status cli_pipeline_page(const char *path, const char *title, const hone_pipeline_state *s,
                              const hone_pipeline_moment *m, uint32_t n, hone_error *error) {
  static const curve workers[] = {{"var(--own)", "pre", workers_of, HONE_STAGE_PRE, true},
                                  {"var(--bad)", "post", workers_of, HONE_STAGE_POST, true}},
                     fills[] = {{"var(--own)", "before infer", fill_of, HONE_STAGE_INFER, false},
                                {"var(--bad)", "before post", fill_of, HONE_STAGE_POST, false}},
                     rates[] = {{"var(--own)", "items a second", rate_of, 0, false}};
  cli_file file;
  hone_status status = cli_file_open(&file, path, error);
  if (status != HONE_OK) return status;
  cli_page_begin(file.stream, "Pipeline");
  cli_put(file.stream, "<p>");
  cli_page_text(file.stream, title);
  cli_put(file.stream, "</p>\n");
  cli_print_to(file.stream, "<p>%llu item%s in %.3f s: %.1f a second; ceiling %.1f, by %s</p>\n",
               (unsigned long long)s->told, cli_s(s->told), s->seconds, s->rate, s->ceiling,
               hone_stage_name(s->limit));
  if (n) {
    draw(file.stream, "workers", m, n, workers, 2);
    draw(file.stream, "how full the queue is, 0 to 1", m, n, fills, 2);
    draw(file.stream, "told", m, n, rates, 1);
  }
  table(file.stream, s);
  split(file.stream, &s->split);
  cli_page_end(file.stream);
  status = cli_file_commit(&file, error);
  if (status != HONE_OK) cli_file_abort(&file);
  return status;
}
