/* Plants 20 bottlenecks and asks what hone names first. Model, site and size are random; the seed is chosen
 * when the program runs and printed. What a CPU can be made to do is done for real: networks that have the
 * habit, an application and a machine that have it (live.h, networks.h). The other ten are edited into real
 * records. Ten networks are left alone: there nothing may be blamed first.
 * usage: advice_planted [--seed N] [--only WORDS] [--all] [--patience SECONDS]; --all prints every finding.
 * Exit 1 when fewer than 18 are named first or a healthy network is blamed, 5 when others kept the machine
 * too busy to tell. */
#include "advice/lab.h"
#include "advice/live.h"
#include "advice/networks.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ENOUGH = 18, HEALTHY = 10, TRIES = 4 };

static double patience = 60; /* seconds to wait for a quiet machine, in all */

/* ---- the illnesses */

static void on_device(lab *l) {
  l->meta.backend = "cuda";
  l->meta.isa = "sm_90";
  l->meta.streams = 2;
  l->meta.precision = "fp16";
  l->no_roofs = true;
  for (size_t i = 0; i < l->step_count; i++) l->steps[i].dtype = "fp16";
}

static double part_of_wall(lab *l, double low, double high) {
  return lab_wall_ms(l) * lab_real(l, low, high);
}

static void reformats(lab *l) {
  for (size_t n = lab_pick(l, 4, 12); n > 0; n--) {
    int32_t step = lab_new_step(l, (hone_step_fact){.name = "transpose",
                                                    .op_type = "Reformat",
                                                    .tactic = "reformat",
                                                    .dtype = "f32",
                                                    .is_reformat = true,
                                                    .bytes = 100000});
    lab_insert(l, LAB_INSIDE, (int32_t)lab_pick(l, 1, l->step_count / 2), part_of_wall(l, 0.03, 0.08),
               HONE_SPAN_REFORMAT, (hone_span){.step = step});
  }
}
static void pageable(lab *l) {
  on_device(l);
  lab_insert(l, LAB_BEFORE_RUN, -1, part_of_wall(l, 0.2, 1), HONE_SPAN_COPY_H2D,
             (hone_span){.step = -1,
                         .bytes = 600000,
                         .source_memory = HONE_MEMORY_PAGEABLE,
                         .target_memory = HONE_MEMORY_DEVICE});
}
static void h2d_heavy(lab *l) {
  on_device(l);
  lab_insert(l, LAB_BEFORE_RUN, -1, part_of_wall(l, 0.4, 1.5), HONE_SPAN_COPY_H2D,
             (hone_span){.step = -1,
                         .bytes = 6000000,
                         .source_memory = HONE_MEMORY_PINNED,
                         .target_memory = HONE_MEMORY_DEVICE});
}
static void small_copies(lab *l) {
  on_device(l);
  size_t n = lab_pick(l, 8, 40);
  double ms = part_of_wall(l, 0.15, 0.5) / (double)n;
  for (size_t i = 0; i < n; i++)
    lab_insert(
        l, LAB_BEFORE_RUN, -1, ms, HONE_SPAN_COPY_H2D,
        (hone_span){.step = -1, .bytes = 256 + lab_pick(l, 0, 16000), .source_memory = HONE_MEMORY_PINNED});
}
static void waiting(lab *l) {
  on_device(l);
  lab_insert(l, LAB_INSIDE, (int32_t)lab_pick(l, 1, l->step_count - 1), part_of_wall(l, 0.2, 0.8),
             HONE_SPAN_SYNC, (hone_span){.step = -1, .name = "cudaStreamSynchronize"});
}
static void one_stream(lab *l) {
  on_device(l);
  l->meta.streams = 1;
  lab_insert(l, LAB_BEFORE_RUN, -1, part_of_wall(l, 0.1, 0.14), HONE_SPAN_COPY_H2D,
             (hone_span){.step = -1, .bytes = 600000});
  lab_insert(l, LAB_AFTER_RUN, -1, part_of_wall(l, 0.1, 0.14), HONE_SPAN_COPY_D2H,
             (hone_span){.step = -1, .bytes = 600000});
}
static bool is_conv(const hone_step_fact *s) {
  return strcmp(s->op_type, "Conv") == 0 && s->channels_in >= 16;
}
static void misaligned(lab *l) {
  /* A third of them: by the others it shows what they could do. */
  size_t left = 0;
  for (size_t i = 0; i < l->step_count; i++) left += is_conv(&l->steps[i]);
  left = left / 3 > 6 ? 6 : left / 3;
  for (int tries = 0; tries < 300 && left; tries++) {
    size_t i = lab_pick(l, 0, l->step_count);
    if (!is_conv(&l->steps[i]) || l->steps[i].channels_in % 8 || lab_step_ms(l, i) < 0.01 * lab_wall_ms(l))
      continue;
    l->steps[i].channels_in += 1 + (int32_t)lab_pick(l, 0, 7);
    lab_stretch(l, (int32_t)i, lab_real(l, 3, 5), 1);
    left--;
  }
}
static void useless_int8(lab *l) {
  l->meta.precision = "int8";
  l->meta.batch = 4;
  for (size_t i = 0; i < l->step_count; i++)
    if (strcmp(l->steps[i].op_type, "Conv") == 0 || strcmp(l->steps[i].op_type, "Gemm") == 0)
      l->steps[i].dtype = "int8";
  for (size_t n = lab_pick(l, 6, 14); n > 0; n--) {
    bool to = n % 2;
    hone_step_fact s = {.name = "qdq",
                        .op_type = to ? "QuantizeLinear" : "DequantizeLinear",
                        .tactic = "convert",
                        .dtype = "f32",
                        .bytes = 200000};
    lab_insert(l, LAB_INSIDE, (int32_t)lab_pick(l, 1, l->step_count / 2), part_of_wall(l, 0.02, 0.06),
               HONE_SPAN_KERNEL, (hone_span){.step = lab_new_step(l, s)});
  }
}
static void fallback(lab *l) {
  on_device(l);
  size_t at = lab_any_step(l, 0.02);
  l->steps[at].on_host = true;
  lab_stretch(l, (int32_t)at, lab_real(l, 4, 15), 1);
  static const hone_step_fact copies[] = {{.name = "copy_out", .op_type = "Copy", .tactic = "copy"},
                                          {.name = "copy_in", .op_type = "Copy", .tactic = "copy"}};
  int32_t out = lab_new_step(l, copies[0]), in = lab_new_step(l, copies[1]);
  double ms = part_of_wall(l, 0.02, 0.1);
  lab_insert(l, LAB_INSIDE, (int32_t)at, ms, HONE_SPAN_COPY_H2D, (hone_span){.step = in, .bytes = 100000});
  if (at > 0)
    lab_insert(l, LAB_INSIDE, (int32_t)at - 1, ms, HONE_SPAN_COPY_D2H,
               (hone_span){.step = out, .bytes = 100000});
}
static void throttled(lab *l) {
  on_device(l);
  double most = lab_real(l, 1500, 2000);
  lab_counter(l, "sm_clock", most * lab_real(l, 0.4, 0.8));
  lab_counter(l, "sm_clock_most", most);
  lab_counter(l, "temperature", lab_real(l, 86, 95));
  lab_counter(l, "throttle_reasons", 0x40);
}
/* ---- what is done for real */

static void one_thread(lab *c, live *how) {
  (void)c;
  how->threads = 1;
}
static void neighbours(lab *c, live *how) {
  how->neighbours = (size_t)sysconf(_SC_NPROCESSORS_ONLN) + lab_pick(c, 0, 2);
  how->seconds = 1;
}
static void sleeping(lab *c, live *how) { how->sleep = lab_real(c, 0.25, 1); }
static void stages(lab *c, live *how) { *(lab_pick(c, 0, 2) ? &how->pre : &how->post) = lab_real(c, 0.5, 2); }
static void outlier(lab *c, live *how) {
  if (lab_pick(c, 0, 2))
    how->hesitates = lab_real(c, 0.3, 1);
  else
    how->slow = lab_real(c, 6, 12);
}
/* Networks as hone runs them: all processors, or one where there is but one; f32 or bf16. */
static void well(lab *c, live *how) {
  how->precision = lab_pick(c, 0, 3) ? "f32" : "bf16";
  how->threads = lab_pick(c, 0, 3) ? 0 : 1;
}

typedef struct plant {
  const char *what;
  const char *rules; /* that may name it, separated by blanks; "": none may */
  network_maker *network;
  void (*arrange)(lab *chance, live *how); /* NULL: as it is */
  void (*edit)(lab *l);                    /* NULL: live */
} plant;

static const plant plants[] = {
    {"sleep between operators", "scheduling_gaps", network_any, sleeping, NULL},
    {"slow pre or post stage", "slow_pre slow_post", network_any, stages, NULL},
    {"one thread of several", "single_thread", network_any, one_thread, NULL},
    {"unfusable pattern", "unfused_pattern", network_unfusable, NULL, NULL},
    {"tiny operators", "launch_bound", network_tiny, NULL, NULL},
    {"layout ping-pong", "layout_conversions", network_ping_pong, NULL, NULL},
    {"a busy neighbour", "busy_neighbour", network_any, neighbours, NULL},
    {"memory-bound chain", "memory_bound", network_memory, NULL, NULL},
    {"outlier operator", "outlier_operator", network_of_zoo, outlier, NULL},
    {"shapes anew in every run", "dynamic_shapes", network_replanned, NULL, NULL},
    {"pageable copies", "pageable_copies", network_of_zoo, NULL, pageable},
    {"H2D-heavy", "h2d_bound", network_of_zoo, NULL, h2d_heavy},
    {"many small copies", "many_small_copies", network_of_zoo, NULL, small_copies},
    {"sync-heavy", "sync_heavy", network_of_zoo, NULL, waiting},
    {"a single stream", "single_stream", network_of_zoo, NULL, one_stream},
    {"misaligned channels", "misaligned_channels", network_of_zoo, NULL, misaligned},
    {"useless INT8", "quantisation_without_gain", network_of_zoo, NULL, useless_int8},
    {"host fallback", "host_fallback", network_of_zoo, NULL, fallback},
    {"throttling", "throttled", network_of_zoo, NULL, throttled},
    {"reformats", "layout_conversions", network_of_zoo, NULL, reformats},
};

/* ---- the judgement */

static hone_findings *diagnose(const lab *l, hone_profile **p, hone_facts **facts) {
  hone_error error = {0};
  hone_findings *findings = NULL;
  *p = NULL;
  *facts = lab_facts(l, &error);
  if (!*facts || hone_profile_create(*facts, NULL, p, &error) != HONE_OK ||
      hone_diagnose(*p, NULL, &findings, &error) != HONE_OK)
    printf("%s: %s\n", error.where, error.what);
  return findings;
}

/* Whether a finding is of one of the rules. */
static bool is_of(const char *id, const char *rules) {
  const size_t n = strcspn(id, ":");
  for (size_t len; *rules; rules += len + strspn(rules + len, " ")) {
    len = strcspn(rules, " ");
    if (len == n && strncmp(id, rules, n) == 0) return true;
  }
  return false;
}

/* What comes first: "rule (gain)". True when it is what was planted, or for "" when nothing is blamed. */
static bool judge(const hone_findings *f, const char *rules, char *first, size_t size) {
  snprintf(first, size, "nothing");
  if (!f) return false;
  if (f->count) snprintf(first, size, "%s (%+.0f %%)", f->items[0].id, f->items[0].predicted_gain_pct);
  if (!*rules)
    return !f->count || f->items[0].category >= HONE_CATEGORY_TRADE ||
           f->items[0].severity == HONE_SEVERITY_LOW;
  return f->count && f->items[0].category != HONE_CATEGORY_NOTE && is_of(f->items[0].id, rules);
}

/* A neighbour whom nobody planted is the truth, too, and so is that everything scatters, where nothing is
 * named; but it is not what this is about. */
static bool is_disturbed(const hone_findings *f) {
  if (!f || !f->count) return false;
  bool scatters = false;
  for (size_t i = 0; i < f->count; i++)
    scatters = scatters || strcmp(f->items[i].id, "outlier_operator") == 0;
  return is_of(f->items[0].id, "busy_neighbour") || (scatters && f->items[0].category >= HONE_CATEGORY_TRADE);
}

/* On one processor of the machine, or on all of them again. */
static void confine(bool one) {
  static cpu_set_t all;
  static bool known;
  cpu_set_t set;
  if (!known) known = sched_getaffinity(0, sizeof all, &all) == 0;
  CPU_ZERO(&set);
  for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&set); i++)
    if (CPU_ISSET(i, &all)) CPU_SET(i, &set);
  sched_setaffinity(0, sizeof set, one ? &set : &all);
}

static bool try_once(const plant *p, uint64_t seed, bool print_all, bool *disturbed) {
  lab chance = {.random = seed}, l;
  char label[80], first[120];
  live how = {0};
  hone_model *model = p->network(&chance, label, sizeof label);
  if (p->arrange) p->arrange(&chance, &how);
  const bool alone = !*p->rules && how.threads == 1;
  if (alone) confine(true);
  patience -= live_wait(patience);
  hone_facts *facts = live_profile(&how, &chance, model), *edited;
  if (alone) confine(false);
  lab_open(&l, facts, chance.random);
  if (p->edit) p->edit(&l);
  hone_profile *profiled;
  hone_findings *findings = diagnose(&l, &profiled, &edited);
  bool good = judge(findings, p->rules, first, sizeof first);
  *disturbed = !good && !how.neighbours && is_disturbed(findings);
  if (!*disturbed) {
    const char *kind = !*p->rules ? "" : p->edit ? " (edited)" : " (live)";
    char what[60];
    snprintf(what, sizeof what, "%s%s", p->what, kind);
    printf("%-4s %-34s %-26s %s\n", good ? "ok" : "BAD", what, label, first);
  }
  for (size_t i = 0; findings && (print_all || (!good && !*disturbed)) && i < findings->count; i++)
    printf("       %zu. %s (%+.1f %%, confidence %.2f): %s\n", i + 1, findings->items[i].id,
           findings->items[i].predicted_gain_pct, findings->items[i].confidence, findings->items[i].title);
  if (print_all && profiled)
    for (size_t i = 0; i < profiled->layer_count && i < 16; i++) {
      const hone_layer *x = &profiled->layers[profiled->by_time[i]];
      printf("       %5.1f %% %8.3f ms cv %.2f roof %3.0f %% %-8s %s %s [%s]\n", x->pct, x->time_ms,
             x->stats.cv, x->roof_pct, hone_limit_name(x->bound), x->name, x->type,
             x->tactic ? x->tactic : "");
    }
  size_t misses;
  const hone_near_miss *miss = hone_facts_near_misses(edited, &misses);
  for (size_t i = 0; print_all && i < misses; i++)
    printf("       near miss: %s, %zu nodes: %s\n", miss[i].pass, miss[i].node_count, miss[i].reason);
  hone_findings_destroy(findings);
  hone_profile_destroy(profiled);
  hone_facts_destroy(edited);
  lab_free(&l);
  fflush(stdout);
  return good;
}

typedef enum verdict { NAMED, MISSED, UNDECIDED } verdict;

/* Again with another network while somebody disturbs, a few times. */
static verdict try_undisturbed(const plant *p, uint64_t seed, bool print_all) {
  bool disturbed = true, good = false;
  for (uint64_t i = 0; i < TRIES && disturbed; i++)
    good = try_once(p, seed + 1000003u * i, print_all, &disturbed);
  if (disturbed) printf("?    %-34s the machine is never quiet\n", p->what);
  return disturbed ? UNDECIDED : good ? NAMED : MISSED;
}

int main(int argc, char **argv) {
  uint64_t seed = (uint64_t)time(NULL) * 2654435761u % 1000000007u;
  const char *only = NULL;
  bool all = false;
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
      seed = strtoull(argv[++i], NULL, 10);
    else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
      only = argv[++i];
    else if (strcmp(argv[i], "--patience") == 0 && i + 1 < argc)
      patience = strtod(argv[++i], NULL);
    else if (strcmp(argv[i], "--all") == 0)
      all = true;
    else {
      printf("usage: advice_planted [--seed N] [--only WORDS] [--all] [--patience SECONDS]\n");
      return 2;
    }
  printf("seed %llu (--seed %llu repeats it)\n", (unsigned long long)seed, (unsigned long long)seed);
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
    printf("SKIP: one processor only\n");
    return 0;
  }
  const plant healthy = {"healthy", "", network_any, well, NULL};
  const size_t n = sizeof plants / sizeof *plants;
  size_t of_plants[UNDECIDED + 1] = {0}, of_healthy[UNDECIDED + 1] = {0};
  for (size_t i = 0; i < n; i++)
    if (!only || strstr(plants[i].what, only))
      of_plants[try_undisturbed(&plants[i], seed + 7919u * i, all)]++;
  for (size_t i = 0; i < HEALTHY; i++)
    if (!only || strstr(healthy.what, only))
      of_healthy[try_undisturbed(&healthy, seed + 7919u * (n + i), all)]++;
  printf("planted: %zu named first, %zu not, %zu undecided; healthy: %zu left alone, %zu blamed, %zu "
         "undecided\n",
         of_plants[NAMED], of_plants[MISSED], of_plants[UNDECIDED], of_healthy[NAMED], of_healthy[MISSED],
         of_healthy[UNDECIDED]);
  if (of_plants[MISSED] > n - ENOUGH || of_healthy[MISSED]) return 1;
  return of_plants[MISSED] + of_plants[UNDECIDED] > n - ENOUGH || of_healthy[UNDECIDED] ? 5 : 0;
}
