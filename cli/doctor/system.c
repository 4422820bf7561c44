/* What the system does beside, and what it lets be seen. */
#include "cli/doctor/doctor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cli_check_neighbours(const cli_patient *p, cli_check *out) {
  hone_quiet q;
  hone_error error = {0};
  if (hone_quiet_wait(1, NULL, &q, &error) != HONE_OK || !q.known || !isfinite(q.others)) {
    cli_found(p, out, "the system does not tell what they do", "系统没有给出其他进程的情况");
    out->health = CLI_NOTE;
    return;
  }
  cli_found(p, out, "they take %.0f %% of the processors now", "目前占用处理器的 %.0f %%", 100 * q.others);
  if (q.quiet) return;
  cli_lacks(p, out, "times are longer and vary; measured peaks are not kept",
            "耗时变长且不稳；测得的峰值不保存");
  cli_todo(p, out, "measure when they are done: --quiet-wait 60 waits for it",
           "等它们结束再测：--quiet-wait 60 会等待");
}

void cli_check_governor(const cli_patient *p, cli_check *out) {
  char name[60], driver[60] = "";
  if (!cli_read_line(p, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", name, sizeof name)) {
    cli_found(p, out, "not told (virtual machines mostly hide it)", "系统没有给出（虚拟机大多隐藏）");
    out->health = CLI_NOTE;
    return;
  }
  cli_read_line(p, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", driver, sizeof driver);
  cli_found(p, out, "%s%s%s", "%s%s%s", name, *driver ? ", " : "", driver);
  if (strcmp(name, "performance") == 0) return;
  cli_lacks(p, out, "clocks rise only under load: the first runs are slower, and times vary",
            "频率只在有负载时升高：最初几次较慢，耗时不稳");
  cli_todo(p, out, "sudo cpupower frequency-set -g performance",
           "sudo cpupower frequency-set -g performance");
}

void cli_check_huge_pages(const cli_patient *p, cli_check *out) {
  char line[100];
  if (!cli_read_line(p, "/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line)) {
    cli_found(p, out, "not told: this kernel may have none", "系统没有给出：该内核可能不支持");
    out->health = CLI_NOTE;
    return;
  }
  const bool never = strstr(line, "[never]");
  cli_found(p, out, "%s", "%s", never ? "never" : strstr(line, "[always]") ? "always" : "madvise");
  if (!never) return;
  cli_lacks(p, out, "large weights and activations lie in pages of 4 KB: more address misses",
            "大的权重和激活放在 4 KB 页中：地址转换未命中更多");
  cli_todo(p, out, "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
           "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
}

void cli_check_counters(const cli_patient *p, cli_check *out) {
  hone_counting *counting = NULL;
  hone_error error = {0};
  if (hone_counting_start(&counting, &error) == HONE_OK) {
    hone_counting_stop(counting);
    cli_found(p, out, "may be read", "可以读取");
    return;
  }
  char level[20] = "";
  cli_read_line(p, "/proc/sys/kernel/perf_event_paranoid", level, sizeof level);
  cli_found(p, out, "%s", "%s", error.what);
  cli_lacks(p, out, "--counters says nothing: no cycles, instructions and cache misses of layers",
            "--counters 没有结果：看不到各层的周期、指令和缓存未命中");
  if (*level && strtol(level, NULL, 10) > 2)
    cli_todo(p, out, "sudo sysctl kernel.perf_event_paranoid=2", "sudo sysctl kernel.perf_event_paranoid=2");
  else
    cli_todo(p, out,
             "a real machine, or a virtual one that passes the counters on; docker: --cap-add PERFMON",
             "使用物理机，或透传计数器的虚拟机；docker：--cap-add PERFMON");
}
