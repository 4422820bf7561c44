/* Devices or processes exchange tensors, and nothing is computed meanwhile. */
#include "insight/diagnose/rule.h"

typedef struct exchange {
  double comm_ms, work_ms, wall_ms; /* exposed: exclusive of what runs at the same time */
  size_t layers;
  const hone_layer *slowest;
} exchange;

static exchange look(const hn_diagnosis *d) {
  exchange e = {0};
  double counted_ms = 0; /* of the communication, what a window's typical wall holds */
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    const double ms = hn_typical_ms(l);
    if (hn_is_work(l)) e.work_ms += ms;
    if (!hn_is_communication(l)) continue;
    e.comm_ms += ms;
    e.layers++;
    if (l->kind == HONE_SPAN_KERNEL || l->kind == HONE_SPAN_REFORMAT) counted_ms += ms;
    if (!e.slowest || ms > hn_typical_ms(e.slowest)) e.slowest = l;
  }
  e.wall_ms = d->typical_wall_ms + (hn_is_window(d) ? e.comm_ms - counted_ms : 0);
  return e;
}

static void describe(hn_diagnosis *d, hone_finding *f, const exchange *e) {
  f->subject = e->slowest->name;
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_USER;
  hn_finding_evidence(d, HN_T("communication", "通信"), e->comm_ms, "ms", HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("computation", "计算"), e->work_ms, "ms", HN_SOURCE_SPANS);
  hn_finding_evidence_at(d, HN_T("longest exchange", "最长的交换"), hn_typical_ms(e->slowest), "ms",
                         e->slowest->name);
  hn_finding_do(d, HN_DO_EXCHANGE, NULL, 0);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (hn_is_communication(&d->p->layers[i]))
      hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
}

/* Without computation beside it there is nothing to hide it behind: only said, not promised. */
static void communication_alone(hn_diagnosis *d, const exchange *e) {
  hone_finding *f = hn_finding_begin(d, "alone");
  f->title = HN_WORDS(d, "The record holds communication between devices, and no computation",
                      "记录中只有设备之间的通信，没有计算");
  f->category = HONE_CATEGORY_NOTE;
  f->cause = HN_WORDS(
      d,
      "Whether computation hides these exchanges cannot be told from it: record the computation too. How "
      "long they take by themselves is decided by the links between the devices (topology), by the size of "
      "the messages (few large buckets, not many small ones), and by the slowest rank.",
      "无法据此判断计算是否掩盖了这些交换：请同时录制计算。它们自身的时长取决于设备之间的链路（拓扑）、"
      "消息大小（少量大桶，而非许多小块），以及最慢的进程。");
  describe(d, f, e);
  hn_finding_end(d);
}

static void run(hn_diagnosis *d) {
  const exchange e = look(d);
  if (!e.layers || e.comm_ms <= 0) return;
  if (e.work_ms <= 0) {
    communication_alone(d, &e);
    return;
  }
  const double share = e.wall_ms > 0 ? 100 * e.comm_ms / e.wall_ms : 0;
  if (share < d->t->comm_share) return;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "Communication between devices takes %.0f %% of the time",
                    "设备之间的通信占时间的 %.0f %%", share);
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->cause = HN_WORDS(
      d,
      "Nothing is computed while these exchanges run. Begun as soon as their data is ready, on a queue of "
      "their own, they run beside the computation; many small ones joined into buckets cost their start "
      "once, and the links between the devices (topology) set how fast they are.",
      "这些交换进行时没有任何计算。若数据一就绪就在单独的队列上开始，它们可以与计算并行；"
      "把许多小交换合并成桶，启动开销只付一次；设备之间的链路（拓扑）决定其速度。");
  describe(d, f, &e);
  /* Computation can hide as much as it lasts. */
  const double left = e.comm_ms > e.work_ms ? e.comm_ms - e.work_ms : 0;
  hn_finding_gain(
      d, share / 100, left > e.comm_ms / 20 ? e.comm_ms / left : 20, HONE_BASIS_MEASURED,
      HN_WORDS(
          d, "computation of this profile runs at the same time; results that are needed at once cannot wait",
          "与本记录中的计算同时进行；立刻需要的结果无法等待"),
      0.4);
  hn_finding_range(d, 1, d->current.s);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_communication = {"communication", run};
