#include "cli/reports/tuning.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char *const states[] = {"measured", "known", "alone", "skipped"};

static bool has_times(const hone_tune_step *s) {
  return s->state == HONE_TUNE_MEASURED || s->state == HONE_TUNE_KNOWN;
}

/* Fastest and slowest of the tactics with all threads. */
static void extremes(const hone_tune_step *s, uint32_t *fastest, uint32_t *slowest) {
  *fastest = *slowest = s->untuned;
  for (uint32_t i = 0; i < s->n_candidates; i++) {
    if (s->candidate[i].threads || s->candidate[i].differs) continue;
    if (s->candidate[i].median_s < s->candidate[*fastest].median_s) *fastest = i;
    if (s->candidate[i].median_s > s->candidate[*slowest].median_s) *slowest = i;
  }
}

static bool has_wrong(const hone_tune_step *s) {
  for (uint32_t i = 0; i < s->n_candidates; i++)
    if (s->candidate[i].differs) return true;
  return false;
}

static bool contested(const hone_tune_step *s, bool *agree) {
  uint32_t fastest, slowest;
  if (!has_times(s)) return false;
  extremes(s, &fastest, &slowest);
  *agree = s->candidate[s->untuned].median_s <= CLI_APART * s->candidate[fastest].median_s;
  return s->candidate[slowest].median_s > CLI_APART * s->candidate[fastest].median_s;
}

void cli_tuning_agreement(cli_tuning *t) {
  t->contested = t->agree = 0;
  for (uint32_t i = 0; i < t->report.n_steps; i++) {
    bool agree;
    if (!contested(&t->report.step[i], &agree)) continue;
    t->contested += t->report.step[i].count;
    if (agree) t->agree += t->report.step[i].count;
  }
}

/* Sum over the steps that have times: as chosen untuned, and as chosen now. */
static void sums(const cli_tuning *t, double *untuned, double *tuned) {
  *untuned = *tuned = 0;
  for (uint32_t i = 0; i < t->report.n_steps; i++) {
    const hone_tune_step *s = &t->report.step[i];
    if (!has_times(s)) continue;
    *untuned += s->count * s->candidate[s->untuned].median_s;
    *tuned += s->count * s->candidate[s->chosen].median_s;
  }
}

/* ------------------------------------------------------------------ json */

static json_t *candidate_json(const hone_tune_candidate *c, bool times) {
  return json_pack("{s:s, s:i, s:o, s:o, s:o, s:b}", "tactic", c->tactic, "threads", (int)c->threads,
                   "median_ms", times ? cli_real(c->median_s * 1e3) : json_null(), "spread_ms",
                   times ? cli_real(c->spread_s * 1e3) : json_null(), "predicted_ms",
                   cli_real(c->predicted_s * 1e3), "differs", c->differs);
}

static json_t *step_json(const hone_tune_step *s) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < s->n_candidates; i++)
    json_array_append_new(list, candidate_json(&s->candidate[i], has_times(s)));
  bool agree = false, matters = contested(s, &agree);
  return json_pack("{s:s, s:s, s:s, s:i, s:i, s:s, s:i, s:i, s:o, s:o}", "name", s->name, "what", s->what,
                   "shape", s->shape, "step", (int)s->step, "count", (int)s->count, "state", states[s->state],
                   "untuned", (int)s->untuned, "chosen", (int)s->chosen, "agrees",
                   matters ? json_boolean(agree) : json_null(), "candidates", list);
}

json_t *cli_tuning_json(const cli_tuning *t) {
  const hone_tune_report *r = &t->report;
  json_t *steps = json_array();
  for (uint32_t i = 0; i < r->n_steps; i++) json_array_append_new(steps, step_json(&r->step[i]));
  const hone_machine *m = hone_engine_machine(t->before.engine);
  json_t *whole = t->compared ? json_pack("{s:o, s:o, s:o, s:b}", "before_ms", cli_real(t->before_ms),
                                          "after_ms", cli_real(t->after_ms), "gain",
                                          cli_real(t->before_ms / t->after_ms), "slower", t->slower)
                              : json_null();
  return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:o, s:o, s:o, s:{s:i, s:i}, s:o}", "model",
                   t->path, "threads", (int)m->threads, "measured", (int)r->measured, "known", (int)r->known,
                   "alone", (int)r->alone, "skipped", (int)r->skipped, "more", (int)t->more, "interrupted",
                   (int)r->stopped, "seconds", cli_real(r->seconds), "file",
                   t->file[0] ? cli_text(t->file) : json_null(), "whole", whole, "cost_model", "contested",
                   (int)t->contested, "agree", (int)t->agree, "steps", steps);
}

/* ------------------------------------------------------------------ text */

static const char *time_text(double seconds, char buf[24]) {
  if (seconds < 1e-3)
    snprintf(buf, 24, "%.1f us", seconds * 1e6);
  else
    snprintf(buf, 24, "%.3f ms", seconds * 1e3);
  return buf;
}

static void step_text(const hone_tune_step *s) {
  char count[16] = "", a[24], b[24], c[24];
  if (s->count > 1) snprintf(count, sizeof count, "  x%u", s->count);
  cli_print("%s  %s  %s%s\n", s->name, s->what, s->shape, count);
  if (!has_times(s)) {
    cli_print("    not measured\n");
    return;
  }
  for (uint32_t i = 0; i < s->n_candidates; i++) {
    const hone_tune_candidate *k = &s->candidate[i];
    char name[80], gain[40] = "";
    snprintf(name, sizeof name, "%s%s", k->tactic, k->threads == 1 ? ", one thread" : "");
    if (i == s->chosen && i != s->untuned)
      snprintf(gain, sizeof gain, "  %.2fx", s->candidate[s->untuned].median_s / k->median_s);
    cli_print("  %c %-32s %12s +-%-10s predicted %-10s%s%s\n", i == s->chosen ? '*' : ' ', name,
              time_text(k->median_s, a), time_text(k->spread_s, b), time_text(k->predicted_s, c), gain,
              k->differs                          ? "  never chosen: its answer differs from the others'"
              : i == s->untuned && i != s->chosen ? "  untuned"
                                                  : "");
  }
}

int cli_tuning_text(const cli_tuning *t, bool check) {
  const hone_tune_report *r = &t->report;
  uint32_t changed = 0;
  for (uint32_t i = 0; i < r->n_steps; i++) {
    const hone_tune_step *s = &r->step[i];
    bool agree = true;
    if (has_times(s) && s->chosen != s->untuned) changed += s->count;
    if (s->n_candidates < 2 || (check && !has_wrong(s) && (!contested(s, &agree) || agree))) continue;
    step_text(s);
  }
  double untuned, tuned;
  sums(t, &untuned, &tuned);
  if (r->n_steps > r->alone) cli_print("\n");
  cli_print("%u step%s measured in %.1f s, %u known, %u with one tactic only\n", r->measured + t->more,
            cli_s(r->measured + t->more), r->seconds, r->known, r->alone);
  if (r->skipped)
    cli_print("%u step%s not measured: run hone tune again to go on\n", r->skipped, cli_s(r->skipped));
  if (check || t->contested)
    cli_print("cost model   right on %u of %u steps that have two tactics more than 10 %% apart\n", t->agree,
              t->contested);
  if (untuned > 0)
    cli_print("steps        %.3f -> %.3f ms where there is a choice, %u of them chosen otherwise\n",
              untuned * 1e3, tuned * 1e3, changed);
  if (t->compared)
    cli_print("whole model  %.3f -> %.3f ms, %.2fx (interleaved)\n", t->before_ms, t->after_ms,
              t->before_ms / t->after_ms);
  else if (!check)
    cli_print("whole model  %s\n", t->differs ? "not measured" : "the tuned plan is the untuned one");
  if (t->slower && r->measured + t->more)
    cli_print(
        "choices      not kept: slower as a whole; what was kept before stays. Use --again when nothing else "
        "runs here\n");
  else if (t->slower)
    cli_print(
        "choices      slower as a whole, and measured earlier: measure them again with --again when nothing "
        "else runs here, or use --no-cache\n");
  if (t->file[0]) cli_print("choices      in %s\n", t->file);
  return cli_flush();
}
