/* The device clocks below what it can: power or temperature holds it back. */
#include "insight/diagnose/rule.h"

#include <math.h>

/* Bits of NVML's clocks-event reasons that mean a limit, not a choice. */
enum { POWER_CAP = 0x4, SLOWDOWN = 0x8, THERMAL = 0x20 | 0x40, POWER_BRAKE = 0x80 };

/* Counters of one clock: as it is or was at its lowest, and as it may be or was at its highest. */
static const struct {
  const char *low, *high;
} clocks[] = {{"sm_clock", "sm_clock_most"}, {"clock_mhz_min", "clock_mhz_max"}};

static bool find_clock(const hn_diagnosis *d, double *low, double *high) {
  for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++)
    if (hn_counter(d, clocks[i].low, -1, low) && hn_counter(d, clocks[i].high, -1, high) && *low > 0 &&
        *high > *low)
      return true;
  return false;
}

static void run(hn_diagnosis *d) {
  double low, high, reasons = 0, hot = 0, watts = 0, limit = 0, events = 0;
  if (!find_clock(d, &low, &high) || 100 * low / high > d->t->clock_share) return;
  hn_counter(d, "throttle_reasons", -1, &reasons);
  if (!hn_counter(d, "temperature_c_max", -1, &hot)) hn_counter(d, "temperature", -1, &hot);
  hn_counter(d, "throttles", -1, &events);
  hn_counter(d, "power", -1, &watts);
  hn_counter(d, "power_limit", -1, &limit);
  const unsigned bits = (unsigned)reasons;
  const bool thermal = (bits & (THERMAL | SLOWDOWN)) || hot >= d->t->hot_c || events > 0,
             power = (bits & (POWER_CAP | POWER_BRAKE)) || (limit > 0 && watts >= 0.97 * limit);
  /* A low clock alone may be a choice (idle, application clocks). */
  if (!thermal && !power) return;
  double affected = 0; /* arithmetic follows the clock, memory does not */
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (hn_is_work(&d->p->layers[i]) && d->p->layers[i].bound != HONE_LIMIT_MEMORY)
      affected += hn_typical_ms(&d->p->layers[i]);
  if (!d->p->layer_count)
    affected = d->typical_wall_ms; /* whole runs alone were recorded (bench --duration) */
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = thermal ? HN_SAY(d, "Too hot: the clock is at %.0f of %.0f MHz",
                              "过热：时钟为 %.0f MHz，上限 %.0f MHz", low, high)
                     : HN_SAY(d, "Limited by power: the clock is at %.0f of %.0f MHz",
                              "受功耗限制：时钟为 %.0f MHz，上限 %.0f MHz", low, high);
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->subject = HN_WORDS(d, "clock of the device", "设备时钟");
  f->quantity = HONE_QUANTITY_WALL;
  f->remedy = HONE_REMEDY_USER;
  f->cause =
      thermal
          ? HN_WORDS(d,
                     "The device lowers its clock because of its temperature. Better cooling, or less work a "
                     "second: narrower numbers, a smaller batch.",
                     "设备因温度而降频。改善散热，或减少每秒的工作量：更窄的数值、更小的 batch。")
          : HN_WORDS(d,
                     "The device lowers its clock to stay within its power limit. FP16 or INT8, a smaller "
                     "batch and 2:4 sparsity need less power for the same answers.",
                     "设备为保持在功耗上限内而降频。FP16 或 INT8 量化、更小的 batch、2:4 "
                     "稀疏性能以更少的功耗得到同样的结果。");
  hn_finding_evidence(d, HN_T("clock", "时钟"), low, "MHz", HN_T("sensors of the device", "设备传感器"));
  hn_finding_evidence(d, HN_T("highest clock", "最高时钟"), high, "MHz",
                      HN_T("sensors of the device", "设备传感器"));
  if (hot > 0)
    hn_finding_evidence(d, HN_T("temperature", "温度"), hot, "C",
                        HN_T("sensors of the device", "设备传感器"));
  if (watts > 0)
    hn_finding_evidence(d, HN_T("power", "功耗"), watts, "W", HN_T("sensors of the device", "设备传感器"));
  if (limit > 0)
    hn_finding_evidence(d, HN_T("power limit", "功耗上限"), limit, "W",
                        HN_T("sensors of the device", "设备传感器"));
  if (events > 0)
    hn_finding_evidence(d, HN_T("throttling events", "降频事件"), events, "",
                        HN_T("the processor's own count, during the runs", "运行期间处理器自身的计数"));
  hn_finding_do(d, HN_DO_CLOCKS, NULL, 0);
  const double batch = hone_facts_get_meta(d->facts)->batch;
  hn_finding_do(d, hn_on_accelerator(d) ? HN_DO_FP16 : HN_DO_BF16, NULL, 0);
  if (batch > 1) hn_finding_do(d, HN_DO_BATCH, NULL, floor(batch / 2));
  hn_finding_gain(d, hn_share(d, affected) / 100, high / low, HONE_BASIS_MEASURED,
                  HN_WORDS(d, "arithmetic at the highest clock; work that waits for memory stays as it is",
                           "以最高时钟计算；等待内存的工作不变"),
                  0.5);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_throttled = {"throttled", run};
