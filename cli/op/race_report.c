/* See race_report.h. */
#include "cli/op/race_report.h"

#include "cli/reports/stamp.h"
#include "cli/terminal/term.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ what is to be said */

/* Medians that differ by less are taken as equal. */
#define SAME 0.03

/* The fastest of a role, without one. */
static const op_version *fastest(const op_race *r, op_role role, const op_version *but) {
  const op_version *best = NULL;
  for (uint32_t i = 0; i < r->n; i++) {
    const op_version *v = &r->version[i];
    if (v->role == role && v != but && !*v->why && v->n && (!best || v->stats.p50 < best->stats.p50))
      best = v;
  }
  return best;
}

static double times(const op_version *v, const op_version *other) {
  return other && v->stats.p50 > 0 ? other->stats.p50 / v->stats.p50 : (double)NAN;
}

/* Seconds that the roofs allow, and which it is. */
static double allowed(const op_race *r, const op_version *v, const op_roofs *roofs, bool *memory) {
  const double bytes = v->bytes > 0 ? v->bytes : r->sample.cost.bytes;
  const double rate = bytes <= roofs->l2_bytes   ? roofs->bytes[0]
                      : bytes <= roofs->l3_bytes ? roofs->bytes[1]
                                                 : roofs->bytes[2];
  double written = 0; /* of several steps only the last one's: what is between them is not known here */
  for (uint32_t i = 0; i < r->sample.n_out && roofs->allocates && bytes > roofs->l3_bytes; i++)
    if (r->sample.out[i].dtype) written += (double)hone_desc_bytes(&r->sample.out[i]);
  const double move = rate > 0 ? (bytes + written) / rate : 0,
               compute = roofs->flops > 0 ? r->sample.cost.flops / roofs->flops : 0;
  *memory = move >= compute;
  return move > compute ? move : compute;
}

static void note(const op_race *r, const op_line *l, bool memory, char *buf, size_t size) {
  const op_version *v = l->version, *without = fastest(r, OP_WITHOUT, NULL),
                   *apart = fastest(r, OP_APART, NULL);
  const op_version *old = without && (!apart || without->stats.p50 < apart->stats.p50) ? without : apart;
  buf[0] = 0;
  if (v->role != OP_TACTIC) return;
  const double gain = times(v, old);
  if (gain < 1 - SAME)
    snprintf(buf, size, "not worth it: slower than what it replaces");
  else if (gain < 1 + SAME)
    snprintf(buf, size, "not worth it: as fast as what it replaces");
  else if (l->against_others < 1 - SAME)
    snprintf(buf, size, "not worth it here: another tactic is faster");
  else if (l->roof >= 0.5)
    snprintf(buf, size, "bound by %s", memory ? "bandwidth" : "arithmetic");
  else if (isfinite(l->roof))
    snprintf(buf, size, "%s would allow more", memory ? "bandwidth" : "arithmetic");
}

static void make_line(const op_race *r, uint32_t i, const op_roofs *roofs, op_line *l) {
  const op_version *v = &r->version[i];
  bool memory;
  *l = (op_line){.version = v, .against_nodes = NAN, .against_others = NAN, .roof = NAN};
  if (*v->why || !v->n) {
    snprintf(l->note, sizeof l->note, "not measured: %s", *v->why ? v->why : "no run ended");
    return;
  }
  const double least = allowed(r, v, roofs, &memory);
  if (least > 0 && v->stats.p50 > 0) l->roof = least * 1e6 / v->stats.p50;
  l->against_nodes = v->role == OP_APART ? (double)NAN : times(v, fastest(r, OP_APART, NULL));
  if (v->role == OP_TACTIC) l->against_others = times(v, fastest(r, OP_TACTIC, v));
  note(r, l, memory, l->note, sizeof l->note);
}

/* ------------------------------------------------------------------ texts */

typedef struct cells {
  char mean[24], p95[24], bytes[24], nodes[24], others[24], roof[24];
} cells;

static void number(char *buf, size_t size, const char *format, double v) {
  char text[64];
  if (isfinite(v) && strcmp(format, "x") == 0)
    snprintf(text, sizeof text, "%.2fx", v);
  else if (isfinite(v) && strcmp(format, "%") == 0)
    snprintf(text, sizeof text, "%.0f %%", 100 * v);
  else if (isfinite(v))
    snprintf(text, sizeof text, "%.*f", v < 100 ? 2 : 0, v);
  else
    snprintf(text, sizeof text, "-");
  snprintf(buf, size, "%.20s", text);
}

static void cells_of(const op_line *l, cells *c) {
  const op_version *v = l->version;
  const bool known = v->n && !*v->why;
  number(c->mean, sizeof c->mean, "", known ? v->stats.mean : (double)NAN);
  number(c->p95, sizeof c->p95, "", known ? v->stats.p95 : (double)NAN);
  (void)cli_bytes(v->bytes, c->bytes);
  if (!known) snprintf(c->bytes, sizeof c->bytes, "-");
  number(c->nodes, sizeof c->nodes, "x", l->against_nodes);
  number(c->others, sizeof c->others, "x", l->against_others);
  number(c->roof, sizeof c->roof, "%", l->roof);
}

void op_lines_print(const op_race *r, const op_roofs *roofs) {
  cli_print("%s, %s\n", r->subject->name, r->shape);
  cli_print("  %9s %9s %10s %9s %9s %7s  version\n", "mean us", "P95 us", "bytes", "unfused", "others",
            "roof");
  for (uint32_t i = 0; i < r->n; i++) {
    op_line l;
    cells c;
    make_line(r, i, roofs, &l);
    cells_of(&l, &c);
    cli_print("  %9s %9s %10s %9s %9s %7s  %s\n", c.mean, c.p95, c.bytes, c.nodes, c.others, c.roof,
              l.version->name);
    if (*l.note) cli_print("      %s\n", l.note);
  }
}

/* A cell may hold names of a model. */
static void cell(FILE *to, const char *text) {
  char clean[400];
  size_t n = 0;
  for (; *text && n + 2 < sizeof clean; text++) {
    if (*text == '|') clean[n++] = '\\';
    clean[n++] = *text == '\n' ? ' ' : *text;
  }
  clean[n] = 0;
  cli_print_to(to, " %s |", clean);
}

void op_lines_markdown(FILE *to, const op_race *r, const op_roofs *roofs) {
  cli_put(to, "| version | shape | mean us | P95 us | bytes accessed | speed-up against unfused nodes | "
              "against other "
              "tactics | % of roof | note |\n|---|---|---|---|---|---|---|---|---|\n");
  for (uint32_t i = 0; i < r->n; i++) {
    op_line l;
    cells c;
    make_line(r, i, roofs, &l);
    cells_of(&l, &c);
    const char *const row[] = {l.version->name, r->shape, c.mean, c.p95, c.bytes,
                               c.nodes,         c.others, c.roof, l.note};
    cli_put(to, "|");
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) cell(to, row[k]);
    cli_put(to, "\n");
  }
}

json_t *op_lines_json(const op_race *r, const op_roofs *roofs) {
  static const char *const roles[] = {"tactic", "unfused nodes", "without the operator"};
  json_t *list = json_array();
  for (uint32_t i = 0; i < r->n; i++) {
    op_line l;
    make_line(r, i, roofs, &l);
    const op_version *v = l.version;
    const bool known = v->n && !*v->why;
    json_array_append_new(list, json_pack("{s:o, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                                          "version", cli_text(v->name), "role", roles[v->role], "runs",
                                          (int)v->n, "mean_us", cli_real(known ? v->stats.mean : (double)NAN),
                                          "median_us", cli_real(known ? v->stats.p50 : (double)NAN), "p95_us",
                                          cli_real(known ? v->stats.p95 : (double)NAN), "bytes",
                                          cli_real(known ? v->bytes : (double)NAN), "speedup_against_unfused",
                                          cli_real(l.against_nodes), "speedup_against_other_tactics",
                                          cli_real(l.against_others), "pct_of_roof", cli_real(100 * l.roof),
                                          "note", *l.note ? cli_text(l.note) : json_null()));
  }
  return json_pack("{s:o, s:o, s:o, s:o, s:o}", "operator", cli_text(r->subject->name), "plugin",
                   cli_text(r->subject->plugin), "shape", cli_text(r->shape), "flops",
                   cli_real(r->sample.cost.flops), "versions", list);
}
