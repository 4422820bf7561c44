/* Recording runs as facts and making a profile of them. */
#include "cli/cli.h"

#include <math.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

static void add_roofs(hone_facts *facts, uint32_t threads) {
  hone_roofs r;
  hone_error error = {0};
  if (hone_roofs_measure(threads, false, &r, &error) != HONE_OK) {
    hone_facts_add_unmeasured(facts, "machine roofs", error.what);
    return;
  }
  const struct {
    const char *name;
    double gflops, gbs;
    uint64_t capacity;
  } rows[] = {{"f32", r.f32_gflops, 0, 0}, {"bf16", r.bf16_gflops, 0, 0}, {"int8", r.int8_gops, 0, 0},
              {"L1", 0, r.l1_gbs, r.l1_bytes}, {"L2", 0, r.l2_gbs, r.l2_bytes}, {"L3", 0, r.l3_gbs, r.l3_bytes}, {"DRAM", 0, r.dram_gbs, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].gflops > 0 || rows[i].gbs > 0)
      hone_facts_add_roof(facts, &(hone_roof){rows[i].name, (int32_t)r.threads, rows[i].gflops, rows[i].gbs, rows[i].capacity});
}

/* Keeps what the runtime wrote and fills in what only the command knows. */
static void add_meta(hone_facts *facts, const cli_session *s, const cli_args *args, const char *path, int level, uint32_t warmups,
                     uint32_t runs, const char *cpu) {
  hone_facts_meta m = *hone_facts_get_meta(facts);
  char date[32], os[200], flags[120];
  time_t now = time(NULL);
  struct tm t;
  struct utsname u;
  gmtime_r(&now, &t);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &t);
  uname(&u);
  snprintf(os, sizeof os, "%.64s %.64s", u.sysname, u.release);
  snprintf(flags, sizeof flags, "--level %d --threads %u", level, cli_threads(s, args));
  const hone_tensor_desc *d = hone_plan_inputs(s->plan) ? hone_plan_input_desc(s->plan, 0) : NULL;
  const hone_machine *machine = hone_engine_machine(s->engine);
  m.tool = "hone";
  m.tool_version = hone_version();
  m.model = path;
  if (!m.device) m.device = cpu;
  m.backend = cli_device_name(args);
  if (machine && !m.isa)
    m.isa = machine->isa & HONE_ISA_AVX512BF16 ? "avx512bf16" : machine->isa & HONE_ISA_AVX512VNNI ? "avx512vnni"
            : machine->isa & HONE_ISA_AVX512 ? "avx512" : machine->isa & HONE_ISA_AVX2 ? "avx2" : "scalar";
  m.os = os;
  if (!m.compiler) m.compiler = __VERSION__;
  if (!m.precision) m.precision = "f32";
  m.date = date;
  m.flags = flags;
  m.batch = d && d->rank > 0 ? (double)d->dim[0] : 1;
  m.threads = cli_threads(s, args);
  m.opt_level = level;
  m.seed = args->seed ? (double)args->seed : 1;
  m.warmups = warmups;
  m.runs = runs;
  m.load_ms = s->load_ms;
  if (m.streams == 0) m.streams = 1;
  hone_facts_set_meta(facts, &m);
}

hone_status cli_profile_make(cli_session *s, const cli_args *args, const char *path, int level, uint32_t warmups, uint32_t runs,
                             double seconds, const char *what, cli_profile *out, hone_error *error) {
  *out = (cli_profile){.facts = hone_facts_create()};
  hone_status status = HONE_OK;
  hone_roofs roofs = {0};
  if (!out->facts) {
    *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory for facts"};
    return HONE_ERROR_MEMORY;
  }
  double start = cli_now_ms(), slowest = 0;
  for (uint32_t i = 0; i < warmups && status == HONE_OK; i++) {
    double t = cli_now_ms();
    status = cli_session_run(s, args, error);
    t = cli_now_ms() - t;
    if (i && t > slowest) slowest = t;
    cli_progress(what, i + 1, warmups + runs);
  }
  /* As many runs as fit into the time, but enough for a spread. */
  if (status == HONE_OK && slowest > 0 && seconds > 0) {
    double fit = (seconds * 1e3 - (cli_now_ms() - start)) / slowest;
    if (fit < runs) runs = fit < 5 ? 5 : (uint32_t)fit;
  }
  if (status == HONE_OK) status = hone_context_record(s->context, out->facts, runs, error);
  for (uint32_t i = 0; i < runs && status == HONE_OK; i++) {
    status = cli_session_run(s, args, error);
    cli_progress(what, warmups + i + 1, warmups + runs);
  }
  cli_progress_end();
  if (status == HONE_OK) status = hone_context_record_end(s->context, error);
  if (status == HONE_OK) {
    uint32_t threads = cli_threads(s, args);
    add_roofs(out->facts, threads);
    hone_roofs_measure(threads, false, &roofs, &(hone_error){0});
    add_meta(out->facts, s, args, path, level, warmups, runs, roofs.cpu[0] ? roofs.cpu : NULL);
    hone_profile_options o = {.filter = args->filter};
    status = hone_profile_create(out->facts, &o, &out->profile, error);
  }
  if (status != HONE_OK) cli_profile_free(out);
  return status;
}

void cli_profile_free(cli_profile *p) {
  hone_profile_destroy(p->profile);
  hone_facts_destroy(p->facts);
  *p = (cli_profile){0};
}
