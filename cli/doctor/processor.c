/* Processor, cores, limits and memory. */
#include "cli/doctor/doctor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cli_check_processor(const cli_patient *p, cli_check *out) {
  char name[200];
  if (cli_read_key(p, "/proc/cpuinfo", "model name", name, sizeof name))
    cli_found(p, out, "%s", "%s", name);
  else
    cli_found(p, out, "its name is not told", "系统没有给出名称");
  out->health = CLI_GOOD;
}

void cli_check_instructions(const cli_patient *p, cli_check *out) {
  static const struct {
    uint32_t bit;
    const char *name;
  } sets[] = {{HONE_ISA_AVX2, "AVX2"},
              {HONE_ISA_AVXVNNI, "AVX-VNNI"},
              {HONE_ISA_AVX512, "AVX-512"},
              {HONE_ISA_AVX512VNNI, "AVX-512 VNNI"},
              {HONE_ISA_AVX512BF16, "AVX-512 BF16"},
              {HONE_ISA_AMX, "AMX"}};
  char names[120] = "";
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
    if (p->machine.isa & sets[i].bit)
      snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? ", " : "", sets[i].name);
  cli_found(p, out, "%s", "%s", *names ? names : "scalar");
  const char *held = getenv("HONE_CPU");
  if (held && *held) {
    cli_lacks(p, out, "HONE_CPU holds hone to these: faster kernels may be left out",
              "HONE_CPU 限制了指令集：更快的内核可能用不上");
    cli_todo(p, out, "unset HONE_CPU", "unset HONE_CPU");
  } else if (!(p->machine.isa & HONE_ISA_AVX2)) {
    cli_lacks(p, out, "kernels run one number at a time: several times slower", "内核一次只算一个数：慢数倍");
    cli_todo(p, out, "a processor with AVX2, FMA and F16C; in a virtual machine, the host's processor type",
             "使用带 AVX2、FMA、F16C 的处理器；虚拟机中请采用宿主机的处理器类型");
  } else if (!(p->machine.isa & (HONE_ISA_AVX512VNNI | HONE_ISA_AVXVNNI))) {
    out->health = CLI_NOTE;
  }
}

/* How many cores the processors are, by who shares one; 0: not told. */
static size_t cores(const cli_patient *p, uint32_t processors) {
  char path[100], line[100];
  size_t n = 0;
  for (uint32_t i = 0; i < processors; i++) {
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", i);
    if (!cli_read_line(p, path, line, sizeof line)) return 0;
    n += strtoul(line, NULL, 10) == i; /* the first of a core stands for it */
  }
  return n;
}

static uint32_t online(const cli_patient *p) {
  char line[100];
  uint32_t n = 0;
  if (!cli_read_line(p, "/sys/devices/system/cpu/online", line, sizeof line)) return 0;
  for (char *at = line; *at; at += *at == ',') { /* "0-3,8" */
    const unsigned long first = strtoul(at, &at, 10);
    const unsigned long last = *at == '-' ? strtoul(at + 1, &at, 10) : first;
    if (last < first || last > 100000 || (*at && *at != ',')) return 0;
    n += (uint32_t)(last - first + 1);
  }
  return n;
}

void cli_check_processors(const cli_patient *p, cli_check *out) {
  const uint32_t all = online(p), own = p->seen.processors;
  const size_t n = cores(p, all);
  if (n)
    cli_found(p, out, "%u of %u processors may be used; they are %zu cores",
              "可用 %u 个，共 %u 个逻辑处理器、%zu 个核心", own, all, n);
  else if (all)
    cli_found(p, out, "%u of %u processors may be used", "可用 %u 个，共 %u 个处理器", own, all);
  else
    cli_found(p, out, "%u processors may be used", "可用 %u 个处理器", own);
  if (all <= own) return;
  cli_lacks(p, out,
            "the others stay idle: affinity (taskset, numactl, a job's or container's cpuset) forbids them",
            "其余处理器闲置：被亲和性设置（taskset、numactl、作业或容器的 cpuset）禁止");
  cli_todo(p, out, "start hone without that limit, if it is not meant",
           "若非有意，请去掉该限制后再启动 hone");
}

/* A limit of the process's control group, or of one above it: the smallest quotient of the first and second
 * number. */
static double group_limit(const cli_patient *p, const char *file) {
  char line[512], path[400], text[100];
  double least = INFINITY;
  if (!cli_read_line(p, "/proc/self/cgroup", line, sizeof line) || strncmp(line, "0::/", 4) != 0)
    return least;
  for (char *own = line + 3;; *strrchr(own, '/') = 0) {
    snprintf(path, sizeof path, "/sys/fs/cgroup%.300s/%s", strcmp(own, "/") == 0 ? "" : own, file);
    if (cli_read_line(p, path, text, sizeof text) && *text >= '0' && *text <= '9') {
      char *end;
      const double limit = strtod(text, &end), period = strtod(end, NULL);
      least = fmin(least, period > 0 ? limit / period : limit);
    }
    if (!strrchr(own, '/')) return least;
  }
}

static bool is_container(const cli_patient *p) {
  char line[200];
  return cli_read_line(p, "/run/systemd/container", line, sizeof line) ||
         cli_read_line(p, "/.dockerenv", line, sizeof line) ||
         cli_read_line(p, "/run/.containerenv", line, sizeof line);
}

void cli_check_container(const cli_patient *p, cli_check *out) {
  const double quota = group_limit(p, "cpu.max"), bytes = group_limit(p, "memory.max");
  char processors[40] = "", memory[40] = "";
  if (isfinite(quota)) snprintf(processors, sizeof processors, "%.3g", quota);
  if (isfinite(bytes)) snprintf(memory, sizeof memory, "%.3g GB", bytes * 1e-9);
  if (!*processors && !*memory)
    cli_found(p, out, is_container(p) ? "a container without limits of processor time and memory" : "none",
              is_container(p) ? "容器，处理器时间和内存均无限额" : "无");
  else
    cli_found(p, out, "processors: %s; memory: %s", "处理器：%s；内存：%s", *processors ? processors : "-",
              *memory ? memory : "-");
  if (quota >= p->seen.processors) return;
  cli_lacks(p, out,
            "more threads than the quota allows are stopped for a part of every period: long pauses and "
            "uneven times",
            "线程数超过配额时每个周期都会被暂停：停顿长，耗时不稳");
  cli_todo(p, out, "give -t %.0f, or raise the quota (docker --cpus)",
           "使用 -t %.0f，或提高配额（docker --cpus）", fmax(1, floor(quota)));
}

void cli_check_memory(const cli_patient *p, cli_check *out) {
  char total[60] = "", free[60] = "";
  if (!cli_read_key(p, "/proc/meminfo", "MemTotal", total, sizeof total) ||
      !cli_read_key(p, "/proc/meminfo", "MemAvailable", free, sizeof free)) {
    cli_found(p, out, "not told", "系统没有给出");
    out->health = CLI_NOTE;
    return;
  }
  const double gb = 1024e-9, available = strtod(free, NULL) * gb;
  cli_found(p, out, "%.1f of %.1f GB free", "空闲 %.1f GB，共 %.1f GB", available, strtod(total, NULL) * gb);
  if (available >= 1) return;
  cli_lacks(p, out, "large models do not fit: exit code 6, or the system swaps",
            "大模型放不下：退出码 6，或系统开始换页");
  cli_todo(p, out, "close what takes it; --prefer memory, -b 1", "关闭占用内存的程序；--prefer memory、-b 1");
}
