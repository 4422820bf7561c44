/* Findings for a terminal, in the language that they were made in. */
#include "insight/report/report.h"

#include <string.h>

/* "name value unit, name value unit (where they were measured)": what has one source stands together. */
static void evidence(hn_str *o, const hn_look *look, bool zh, const hone_finding *f) {
  hn_str list = {0};
  for (size_t i = 0; i < f->evidence_count; i++) {
    const hone_evidence *e = &f->evidence[i], *next = i + 1 < f->evidence_count ? e + 1 : NULL;
    hn_show(&list, "%s %.4g%s%s", e->label, e->value, e->unit && *e->unit ? " " : "", e->unit ? e->unit : "");
    const char *source = e->source ? e->source : "";
    bool last = !next || strcmp(source, next->source ? next->source : "") != 0;
    if (last && *source) hn_show(&list, zh ? "（%s）" : " (%s)", source);
    if (next) hn_str_puts(&list, !last ? (zh ? "，" : ", ") : look->unicode ? " · " : "; ");
  }
  hn_paragraph(o, look, 5, HN_DIM, list.ptr);
  if (list.failed) o->failed = true;
  hn_str_free(&list);
}

/* Its time by causes: a line of figures, then why and what to do. */
static void parts(hn_str *o, const hn_look *look, bool zh, const hone_finding *f) {
  enum { NAMED = 3 };
  for (size_t i = 0; i < f->part_count; i++) {
    const hone_part *p = &f->parts[i];
    hn_str line = {0}, words = {0};
    hn_show(&line, zh ? "%s：%.3f 毫秒" : "%s: %.3f ms", p->label, p->ms);
    if (p->saved_ms >= 0.0005)
      hn_show(&line, zh ? "，其中 %.3f 毫秒可以省去" : ", %.3f of it could go", p->saved_ms);
    hn_show(&line, zh ? "，%zu 层：" : ", %zu layer%s: ", p->layer_count, p->layer_count == 1 ? "" : "s");
    for (size_t k = 0; k < p->layer_count && k < NAMED; k++)
      hn_show(&line, "%s%s", !k ? "" : zh ? "、" : ", ", p->layers[k]);
    if (p->layer_count > NAMED) hn_show(&line, zh ? " 等" : " ...");
    hn_show(&words, zh ? "%s%s" : "%s %s", p->why, p->advice);
    hn_paragraph(o, look, 5, HN_BOLD, line.ptr);
    hn_paragraph(o, look, 7, HN_PLAIN, words.ptr);
    if (line.failed || words.failed) o->failed = true;
    hn_str_free(&line);
    hn_str_free(&words);
  }
}

/* A remedy stands by itself; what changes nothing, or is no command, says so before it. */
static void one_command(hn_str *o, const hn_look *look, bool zh, const hone_finding *f, size_t i) {
  static const char *const heads[][2] = {
      [HONE_PURPOSE_CODE] = {"in your program:", "在你的程序里："},
      [HONE_PURPOSE_LOOK] = {"to see more:", "进一步查看："},
      [HONE_PURPOSE_PROBE] = {"to see more, in your program:", "在你的程序里进一步查看："}};
  static const char *const marks[] = {[HONE_PURPOSE_REMEDY] = "$",
                                      [HONE_PURPOSE_CODE] = "-",
                                      [HONE_PURPOSE_LOOK] = "$",
                                      [HONE_PURPOSE_PROBE] = "-"};
  const hone_purpose purpose = f->purposes[i];
  hn_str_puts(o, "     ");
  if (purpose != HONE_PURPOSE_REMEDY && (!i || f->purposes[i - 1] != purpose)) {
    hn_paint(o, look, HN_DIM, "%s", heads[purpose][zh]);
    hn_str_puts(o, "\n     ");
  }
  hn_paint(o, look, HN_CYAN, "%s %s\n", marks[purpose], f->commands[i]);
}

static void one_finding(hn_str *o, const hn_look *look, bool zh, size_t number, const hone_finding *f) {
  static const hn_color colors[] = {HN_RED, HN_YELLOW, HN_CYAN};
  static const char *const severities[] = {"高", "中", "低"};
  const bool note = f->category == HONE_CATEGORY_NOTE;
  hn_show(o, "\n  %zu. ", number);
  if (note)
    hn_paint(o, look, HN_DIM, "%s", zh ? "[说明] " : "[note] ");
  else
    hn_paint(o, look, colors[f->severity], "[%s%s] ",
             f->category != HONE_CATEGORY_TRADE ? ""
             : zh                               ? "取舍，"
                                                : "trade, ",
             zh ? severities[f->severity] : hone_severity_name(f->severity));
  hn_paint(o, look, HN_BOLD, "%s\n", f->title);
  hn_paragraph(o, look, 5, HN_PLAIN, f->cause);
  if (f->subject && *f->subject) {
    hn_str subject = {0};
    hn_show(&subject, zh ? "对象：%s" : "concerns %s", f->subject);
    hn_paragraph(o, look, 5, HN_PLAIN, subject.ptr);
    if (subject.failed) o->failed = true;
    hn_str_free(&subject);
  }
  evidence(o, look, zh, f);
  parts(o, look, zh, f);
  if (!note) {
    hn_str_puts(o, "     ");
    hn_paint(o, look, HN_GREEN, zh ? "预计 +%.1f %%" : "predicted +%.1f %%", f->predicted_gain_pct);
    hn_show(o,
            zh ? "（%.1f 到 %.1f %%），端到端（P %.2f，S %.2f，置信度 %.0f %%）"
               : " (%.1f to %.1f %%) end to end (P %.2f, S %.2f, confidence %.0f %%)",
            f->gain_low_pct, f->gain_high_pct, f->p, f->s, 100 * f->confidence);
    if (f->measured)
      hn_paint(o, look, HN_BOLD, zh ? "，实测 %+.1f %%" : ", measured %+.1f %%", f->measured_gain_pct);
    hn_str_putc(o, '\n');
    hn_str basis = {0};
    static const char *const bases[] = {"实测", "屋顶线", "表", "模型"};
    hn_show(&basis, zh ? "S 的依据（%s）：%s" : "S by %s: %s",
            zh ? bases[f->basis] : hone_basis_name(f->basis), f->s_basis);
    hn_paragraph(o, look, 5, HN_DIM, basis.ptr);
    hn_str_free(&basis);
  }
  hn_str merged = {0};
  for (size_t i = 0; i < f->merged_count; i++)
    hn_show(&merged, "%s%s", i ? (zh ? "，" : ", ") : zh ? "同一原因：" : "the same cause: ", f->merged[i]);
  if (merged.len) hn_paragraph(o, look, 5, HN_DIM, merged.ptr);
  if (merged.failed) o->failed = true;
  hn_str_free(&merged);
  for (size_t i = 0; i < f->command_count; i++) one_command(o, look, zh, f, i);
}

/* What all of them together say; NULL: they say it themselves. */
static const char *verdict_of(const hone_findings *list, bool zh, bool timed, size_t wrong, size_t trades,
                              bool partial) {
  if (!list->count && !timed)
    return zh ? "没有时间数据，无从判断。" : "Without times there is nothing to judge.";
  if (wrong) return NULL;
  if (trades && partial)
    return zh ? "记录并不完整。从中看到的最好的下一步要有所取舍："
              : "The record does not tell everything. The best next step that shows gives something up:";
  if (trades)
    return zh ? "没有需要修复的问题。下一步最值得做的要有所取舍："
              : "Nothing is wrong with it. The best next step gives something up for speed:";
  if (partial)
    return zh ? "从这份记录中看不出值得修的问题，但记录并不完整。"
              : "Nothing worth doing shows in this record, which does not tell everything.";
  return list->count ? (zh ? "没有值得做的事。下面只是说明。"
                           : "Nothing worth doing was found. What follows are notes.")
         : zh        ? "没有值得做的事。"
                     : "Nothing worth doing was found.";
}

void hn_report_findings_text(hn_str *o, const hn_look *look, const hone_findings *list, bool timed,
                             double before_ms, double after_ms) {
  const bool zh = list->language == HONE_LANGUAGE_ZH;
  size_t wrong = 0, trades = 0;
  bool partial = false;
  for (size_t i = 0; i < list->count; i++) {
    wrong += list->items[i].category < HONE_CATEGORY_TRADE;
    trades += list->items[i].category == HONE_CATEGORY_TRADE;
    partial = partial || strncmp(list->items[i].id, "incomplete_record", 17) == 0;
  }
  hn_heading(o, look, "%s", zh ? "发现" : "Findings");
  const char *verdict = verdict_of(list, zh, timed, wrong, trades, partial);
  if (verdict) hn_show(o, "  %s\n", verdict);
  bool done = false;
  for (size_t i = 0; i < list->count; i++) done = done || list->items[i].measured;
  if (list->count && before_ms > 0) {
    hn_str line = {0};
    hn_show(&line,
            zh ? "以下针对改写前的模型（%.3f 毫秒；改写后 %.3f 毫秒）。%s"
               : "About the model before the rewrite (%.3f ms; %.3f after it).%s",
            before_ms, after_ms,
            !done ? ""
            : zh  ? "带有“实测”的已经完成。"
                  : " What has a measured gain is done already.");
    hn_paragraph(o, look, 2, HN_DIM, line.ptr);
    if (line.failed) o->failed = true;
    hn_str_free(&line);
  }
  for (size_t i = 0; i < list->count; i++) one_finding(o, look, zh, i + 1, &list->items[i]);
}

/* Said of the model before the rewrite, and not done by it. */
static bool was_said(const hone_findings *said, const hone_finding *f) {
  for (size_t i = 0; said && i < said->count; i++)
    if (!said->items[i].measured && strcmp(said->items[i].id, f->id) == 0) return true;
  return false;
}

void hn_report_left_text(hn_str *o, const hn_look *look, const hone_findings *left,
                         const hone_findings *said) {
  const bool zh = left->language == HONE_LANGUAGE_ZH;
  hn_str known = {0};
  size_t number = 0;
  hn_heading(o, look, "%s", zh ? "还剩什么（改写之后的计划）" : "What is left (the plan after the rewrite)");
  for (size_t i = 0; i < left->count; i++)
    if (was_said(said, &left->items[i]))
      hn_show(&known, "%s%s", known.len ? (zh ? "，" : ", ") : "", left->items[i].id);
    else
      number++;
  if (known.len) {
    hn_str line = {0};
    hn_show(&line, zh ? "上面说过，依然成立：%s。" : "Said above, and still so: %s.", known.ptr);
    hn_paragraph(o, look, 2, HN_PLAIN, line.ptr);
    if (line.failed) o->failed = true;
    hn_str_free(&line);
  } else if (!number)
    hn_show(o, "  %s\n", zh ? "没有值得做的事。" : "Nothing worth doing was found.");
  if (known.failed) o->failed = true;
  hn_str_free(&known);
  number = 0;
  for (size_t i = 0; i < left->count; i++)
    if (!was_said(said, &left->items[i])) one_finding(o, look, zh, ++number, &left->items[i]);
}
