/* The record itself is short of something: its figures are to be read with care. */
#include "insight/diagnose/rule.h"

#include <string.h>

static void note(hn_diagnosis *d, const char *what, const char *title, const char *cause, double value,
                 hn_text name, hn_action action) {
  hone_finding *f = hn_finding_begin(d, what);
  f->title = title;
  f->category = HONE_CATEGORY_NOTE;
  f->subject = HN_WORDS(d, "the record", "记录");
  f->quantity = HONE_QUANTITY_WALL;
  f->remedy = HONE_REMEDY_USER;
  f->cause = cause;
  hn_finding_evidence(d, name, value, "", HN_SOURCE_RECORD);
  hn_finding_evidence(d, HN_T("complete iterations", "完整的迭代"), (double)d->p->iterations, "",
                      HN_SOURCE_RECORD);
  hn_finding_do(d, action, NULL, 0);
  hn_finding_end(d);
}

/* What the importer missed that all other findings would be about: layers, or the accelerator's kernels. */
static const char *missing_work(const hn_diagnosis *d) {
  size_t n;
  const hone_note *list = hone_facts_unmeasured(d->facts, &n);
  for (size_t i = 0; i < n; i++)
    if (list[i].what && (strcmp(list[i].what, "layers") == 0 || strcmp(list[i].what, "kernels") == 0))
      return list[i].what;
  return NULL;
}

static void run(hn_diagnosis *d) {
  const char *missing = missing_work(d);
  if (missing && d->p->closure.wall_ms > 0) {
    const bool kernels = strcmp(missing, "kernels") == 0;
    note(d, "work",
         kernels ? HN_WORDS(d, "The record holds none of the accelerator's work", "记录中没有加速器的工作")
                 : HN_WORDS(d, "Only whole runs were timed, not their layers",
                            "只记录了整次运行的时间，没有各层的时间"),
         kernels
             ? HN_WORDS(d,
                        "What its kernels do, and for how long, is not in it, so nothing of that is judged. "
                        "Record them too.",
                        "其中没有内核的内容与时间，因此不作评判。请一并录制内核。")
             : HN_WORDS(d,
                        "Where a run spends its time is not in it, so nothing of that is judged. Record the "
                        "layers too.",
                        "其中没有一次运行的时间分布，因此不作评判。请一并录制各层。"),
         (double)d->p->layer_count, HN_T("rows with a time", "有时间的行数"), HN_DO_RECORD);
  }
  const hone_facts_meta *m = hone_facts_get_meta(d->facts);
  if (m->dropped_spans > 0)
    note(d, "dropped",
         HN_SAY(d, "%.0f events of this record were dropped", "该记录丢失了 %.0f 个事件", m->dropped_spans),
         HN_WORDS(d,
                  "The tool ran out of room and threw events away. Sums over this record are too small; a "
                  "shorter recording has them all.",
                  "工具的缓冲区已满，丢弃了事件。该记录的总和偏小；缩短录制即可完整。"),
         m->dropped_spans, HN_T("dropped events", "丢失的事件"), HN_DO_SHORTER);
  if (m->interrupted > 0)
    note(d, "interrupted", HN_WORDS(d, "The recording was ended early", "录制被提前结束"),
         HN_WORDS(d, "Only the iterations that finished count; there are fewer than asked for.",
                  "只计入已完成的迭代，少于要求的次数。"),
         m->runs, HN_T("runs asked for", "要求的次数"), HN_DO_MEASURE);
  if (hn_is_window(d) && !missing) {
    const hone_stages *s = &d->p->stages;
    double idle = 100 * (s->total_ms - s->infer_ms) / s->total_ms;
    note(d, "window",
         HN_SAY(d, "%.0f %% of the recorded time is no computation: it holds more than inference",
                "记录的时间中有 %.0f %% 不是计算：其中不只有推理", idle),
         HN_WORDS(d,
                  "One stretch of a program was recorded, with set-up and pauses, and nothing in it says "
                  "where an inference begins and ends. Idle time, waiting and overlap are not judged; record "
                  "inference alone, or mark it (NVTX, record_function).",
                  "录制的是程序的一段，包含准备与停顿，其中没有标明一次推理的起止。因此不评判空闲、等待与重叠"
                  "；请只录制推理，或加上标记（NVTX、record_function）。"),
         idle, HN_T("not computing, %", "未在计算，%"), HN_DO_MARK);
  }
  if (d->p->doubt)
    note(d, "doubt", HN_SAY(d, "The record contradicts itself: %s", "记录自相矛盾：%s", d->p->doubt),
         HN_WORDS(d,
                  "Its parts do not add up to its whole, so no figure of it should be trusted without a look "
                  "at the timeline.",
                  "各部分之和与整体不符；在查看时间线之前，不应相信其中的任何数字。"),
         d->p->closure.residual_pct, HN_T("residual, % of the wall", "残差，占墙钟 %"), HN_DO_TIMELINE);
}

const struct hn_rule hn_rule_incomplete_record = {"incomplete_record", run};
