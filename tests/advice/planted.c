/* Plants 20 bottlenecks and asks what hone names first. Model, site and size are random; the seed is chosen
 * when the test runs (HONE_ADVICE_SEED repeats one) and printed. What this machine can be made to do is done
 * for real (live); the rest is edited into real records of it. Ten profiles are left alone: on these nothing
 * may be blamed first. usage: planted HONE [FOLDER]; exit 1 when fewer than 18 are named first or a healthy
 * one is blamed. */
#include "advice/lab.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ENOUGH = 18, HEALTHY = 10 };

typedef struct bench {
  const char *hone, *folder;
  uint64_t seed;
} bench;

/* Profiles a random network; NULL after a message. what: options of hone profile. */
static hone_facts *profile(const bench *b, lab *chance, const char *what, bool tiny, char *label,
                           size_t size) {
  static const char *const networks[] = {"mobilenetv2", "resnet50", "mobilenetv2", "res3_block"};
  char command[1200], path[400];
  const char *name = tiny ? "mobilenetv2" : networks[lab_pick(chance, 0, 4)];
  bool part = strncmp(name, "res3", 4) == 0;
  double width = tiny ? 0.1 : lab_real(chance, 0.5, 1.0);
  size_t side = tiny ? 32 : (part ? 0 : 32 * lab_pick(chance, 4, 8));
  char shape[80] = "";
  if (!part) snprintf(shape, sizeof shape, "--width %.2f --round 8 --size %zu", width, side);
  snprintf(label, size, "%s %.2f %zu", name, part ? 1 : width, side);
  snprintf(path, sizeof path, "%s/facts.json", b->folder);
  snprintf(command, sizeof command,
           "'%s' zoo %s %s -o '%s/m.onnx' >/dev/null 2>&1 && '%s' profile '%s/m.onnx' -n 24 %s -o '%s' "
           ">/dev/null 2>&1",
           b->hone, name, shape, b->folder, b->hone, b->folder, what, path);
  if (system(command) != 0) {
    printf("failed: %s\n", command);
    return NULL;
  }
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  char *text = NULL;
  size_t length = 0;
  for (size_t n = 1; n;) {
    text = realloc(text, length + 1000001);
    if (!text) abort();
    n = fread(text + length, 1, 1000000, f);
    length += n;
  }
  fclose(f);
  hone_facts *facts = NULL;
  hone_error error = {0};
  if (hone_facts_from_json(text, length, &facts, &error) != HONE_OK)
    printf("%s: %s\n", error.where, error.what);
  free(text);
  return facts;
}

/* ---- the illnesses */

static const hone_span plain = {.step = -1};

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

static void sleeping(lab *l) {
  size_t at = lab_pick(l, 0, l->step_count - 1);
  lab_insert(l, LAB_INSIDE, (int32_t)at, part_of_wall(l, 0.25, 1), HONE_SPAN_KIND_COUNT, plain);
}
static void slow_stage(lab *l) {
  lab_insert(l, LAB_AFTER_RUN, -1, part_of_wall(l, 0.5, 2), HONE_SPAN_POST, plain);
}
static void slow_input(lab *l) {
  lab_insert(l, LAB_BEFORE_RUN, -1, part_of_wall(l, 0.5, 2), HONE_SPAN_PRE, plain);
}
static void ping_pong(lab *l) {
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
/* Bytes that `ms` move at a share of the bandwidth of the innermost level that holds them. */
static double bytes_at_roof(const lab *l, double ms, double share) {
  size_t n;
  const hone_roof *r = hone_facts_roofs(l->source, &n);
  double best = 0, dram = 1e7 * ms;
  for (size_t i = 0; i < n; i++) {
    double bytes = ms * 1e6 * r[i].gbs * share;
    if (r[i].gbs > 0 && !r[i].capacity_bytes) dram = bytes;
    if (r[i].capacity_bytes && bytes <= (double)r[i].capacity_bytes && bytes > best) best = bytes;
  }
  return best > 0 ? best : dram;
}
static void memory_chain(lab *l) {
  static const char *const types[] = {"LayerNormalization", "Softmax", "Concat"};
  double ms = part_of_wall(l, 0.5, 1.2);
  for (int i = 0; i < 3; i++) {
    hone_step_fact s = {.name = types[i], .op_type = types[i], .tactic = "rows", .dtype = "f32"};
    s.bytes = (uint64_t)bytes_at_roof(l, ms / 3, lab_real(l, 0.75, 0.95));
    int32_t step = lab_new_step(l, s);
    lab_insert(l, LAB_INSIDE, (int32_t)lab_pick(l, 1, l->step_count - 3), ms / 3, HONE_SPAN_KERNEL,
               (hone_span){.step = step});
  }
}
static void outlier(lab *l) { lab_stretch(l, (int32_t)lab_any_step(l, 0.02), lab_real(l, 5, 12), 4); }
static void replanned(lab *l) {
  size_t first = lab_any_step(l, 0.03);
  for (size_t i = first; i < l->step_count && i < first + 4; i++) {
    if (l->steps[i].is_reformat) continue;
    l->steps[i].is_reference = true;
    l->steps[i].shape_out = "1x?x8";
    lab_stretch(l, (int32_t)i, lab_real(l, 4, 10), 1);
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
static void nothing(lab *l) { (void)l; }

typedef struct plant {
  const char *what, *rule;
  const char *options; /* of hone profile */
  void (*edit)(lab *l);
  bool tiny, neighbour;
} plant;

static const plant plants[] = {
    {"one thread of several (live)", "single_thread", "-t 1", nothing, .tiny = false},
    {"operators that nobody fuses (live)", "unfused_pattern", "--level 0", nothing, .tiny = false},
    {"tiny operators (live)", "launch_bound", "", nothing, .tiny = true},
    {"a busy neighbour (live)", "busy_neighbour", "-n 400", nothing, .neighbour = true},
    {"sleep between operators", "scheduling_gaps", "", sleeping, .tiny = false},
    {"slow post-processing", "slow_post", "", slow_stage, .tiny = false},
    {"slow pre-processing", "slow_pre", "", slow_input, .tiny = false},
    {"layout ping-pong", "layout_conversions", "", ping_pong, .tiny = false},
    {"memory-bound chain", "memory_bound", "", memory_chain, .tiny = false},
    {"outlier operator", "outlier_operator", "", outlier, .tiny = false},
    {"shapes known only while it runs", "dynamic_shapes", "", replanned, .tiny = false},
    {"pageable copies", "pageable_copies", "", pageable, .tiny = false},
    {"H2D-heavy", "h2d_bound", "", h2d_heavy, .tiny = false},
    {"many small copies", "many_small_copies", "", small_copies, .tiny = false},
    {"sync-heavy", "sync_heavy", "", waiting, .tiny = false},
    {"a single stream", "single_stream", "", one_stream, .tiny = false},
    {"misaligned channels", "misaligned_channels", "", misaligned, .tiny = false},
    {"useless INT8", "quantisation_without_gain", "", useless_int8, .tiny = false},
    {"host fallback", "host_fallback", "", fallback, .tiny = false},
    {"throttling", "throttled", "", throttled, .tiny = false},
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

static pid_t burn(long processors) {
  pid_t group = 0;
  for (long i = 0; i < processors; i++) {
    pid_t child = fork();
    if (child == 0) {
      setpgid(0, group);
      for (volatile unsigned n = 0;; n++) {
      }
    }
    if (child > 0) {
      setpgid(child, group);
      if (!group) group = child;
    }
  }
  return group;
}

static void stop(pid_t group) {
  if (group <= 0) return;
  kill(-group, SIGKILL);
  while (waitpid(-group, NULL, 0) > 0) {
  }
}

/* What comes first: "rule (gain)". True when it is the one that was planted, or for "" when nothing is
 * blamed. */
static bool judge(const hone_findings *f, const char *rule, char *first, size_t size) {
  snprintf(first, size, "nothing");
  if (!f) return false;
  if (f->count) snprintf(first, size, "%s (%+.0f %%)", f->items[0].id, f->items[0].predicted_gain_pct);
  if (!*rule)
    return !f->count || f->items[0].category >= HONE_CATEGORY_TRADE ||
           f->items[0].severity == HONE_SEVERITY_LOW;
  size_t n = strlen(rule);
  return f->count && strncmp(f->items[0].id, rule, n) == 0 &&
         (f->items[0].id[n] == 0 || f->items[0].id[n] == ':');
}

static bool one(const bench *b, const plant *p, uint64_t seed, bool *skipped) {
  lab chance = {.random = seed}, l;
  char label[80], first[120];
  pid_t neighbours = p->neighbour ? burn(sysconf(_SC_NPROCESSORS_ONLN)) : 0;
  hone_facts *facts = profile(b, &chance, p->options, p->tiny, label, sizeof label), *edited;
  stop(neighbours);
  if (!facts) return false;
  lab_open(&l, facts, chance.random);
  p->edit(&l);
  hone_profile *profiled;
  hone_findings *findings = diagnose(&l, &profiled, &edited);
  bool good = judge(findings, p->rule, first, sizeof first);
  /* A neighbour whom nobody planted is the truth, too, but not what this is about. */
  *skipped = !good && !p->neighbour && strncmp(first, "busy_neighbour", 14) == 0;
  if (!*skipped) printf("%-4s %-36s %-24s %s\n", good ? "ok" : "BAD", p->what, label, first);
  hone_findings_destroy(findings);
  hone_profile_destroy(profiled);
  hone_facts_destroy(edited);
  lab_free(&l);
  fflush(stdout);
  return good;
}

/* Again with another network while somebody disturbs, a few times. */
static bool undisturbed(const bench *b, const plant *p, uint64_t seed) {
  bool skipped = true, good = false;
  for (int i = 0; i < 5 && skipped; i++) good = one(b, p, seed + 1000003u * (uint64_t)i, &skipped);
  if (skipped) printf("BAD  %-36s the machine is never quiet\n", p->what);
  return good;
}

int main(int argc, char **argv) {
  const char *given = getenv("HONE_ADVICE_SEED");
  bench b = {.hone = argc > 1 ? argv[1] : "hone", .folder = argc > 2 ? argv[2] : "."};
  b.seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * 2654435761u % 1000000007u;
  printf("seed %llu (HONE_ADVICE_SEED repeats it)\n", (unsigned long long)b.seed);
  const plant healthy = {"healthy", "", "", nothing, .tiny = false};
  const size_t n = sizeof plants / sizeof *plants;
  size_t named = 0, blamed = 0;
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
    printf("SKIP: one processor only\n");
    return 0;
  }
  for (size_t i = 0; i < n; i++) named += undisturbed(&b, &plants[i], b.seed + 7919u * i);
  for (size_t i = 0; i < HEALTHY; i++) blamed += !undisturbed(&b, &healthy, b.seed + 7919u * (n + i));
  printf("planted: %zu of %zu named first; healthy: %zu of %d blamed for something else\n", named, n, blamed,
         HEALTHY);
  return named >= ENOUGH && !blamed ? 0 : 1;
}
