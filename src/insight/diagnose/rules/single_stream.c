/* One queue: copies, computation and stages around them follow each other although they could overlap. */
#include "insight/diagnose/rule.h"

static void run(hn_diagnosis *d) {
  const hone_stages *s = &d->p->stages;
  const hone_throughput *t = &d->p->throughput;
  if (!hn_on_accelerator(d) || !hn_has_timeline(d) || hn_streams(d) != 1 || hn_is_window(d)) return;
  double idle = s->total_ms > 0 ? 100 * (s->total_ms - s->infer_ms) / s->total_ms : 0;
  if (idle < d->t->stream_share || t->serial_fps <= 0) return;
  double speedup = t->overlapped_fps / t->serial_fps;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "One stream: the device computes in %.0f %% of the time only",
                    "单流：设备只有 %.0f %% 的时间在计算", 100 - idle);
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->subject = HN_WORDS(d, "whole run", "整个运行");
  f->quantity = HONE_QUANTITY_WALL;
  f->remedy = HONE_REMEDY_SETTING;
  f->cause = HN_WORDS(
      d,
      "Everything goes through one stream, so each inference waits for the copies and the stages of the "
      "one before. With two or more, one inference computes while another one is copied. Latency of a "
      "single inference stays; throughput grows.",
      "所有工作都走同一个流，每次推理都要等待上一次的拷贝和前后处理。用两个或更多的流，一个在计算时另一个在拷"
      "贝。"
      "单次延迟不变，吞吐上升。");
  hn_finding_evidence(d, HN_T("streams", "流数"), 1, "", HN_SOURCE_RECORD);
  hn_finding_evidence(d, HN_T("not computing", "未在计算"), idle, "%",
                      HN_T("T_total less T_infer", "T_total 减去 T_infer"));
  hn_finding_evidence(d, HN_T("serial", "串行"), t->serial_fps, "samples/s",
                      HN_T("batch / T_total", "batch / T_total"));
  hn_finding_evidence(d, HN_T("overlapped", "重叠"), t->overlapped_fps, "samples/s",
                      HN_T("batch / slowest stage", "batch / 最慢阶段"));
  hn_finding_do(d, HN_DO_STREAMS, NULL, 2);
  hn_finding_do(d, HN_DO_TIMELINE, NULL, 0);
  hn_finding_gain(d, 1, speedup, HONE_BASIS_MEASURED,
                  HN_WORDS(d, "stages overlap, the slowest one alone counts (throughput)",
                           "各阶段重叠，只计最慢者（吞吐）"),
                  0.5);
  hn_finding_range(d, 1, speedup);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_single_stream = {"single_stream", run};
