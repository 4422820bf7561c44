/* hone device: what this machine can do at most, measured. */
#include "cli/terminal/interrupts.h"
#include "cli/options/options.h"
#include "cli/options/roofs.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static json_t *level(const char *name, double value, const char *unit) {
  return json_pack("{s:s, s:o, s:s}", "name", name, "value", value > 0 ? cli_real(value) : json_null(),
                   "unit", unit);
}

/* What of an accelerator is here, or in one line what is missing. */
static void print_accelerator(const char *device) {
  hone_device_info i;
  hone_error error = {0};
  char why[1200];
  if (hone_device_about(device, &i, &error) != HONE_OK) {
    hone_error_format(&error, why, sizeof why);
    cli_print("%s: %s\n", device, why);
    return;
  }
  cli_print("%s: %s, sm_%u, %u multiprocessor%s, %.1f of %.1f GB free\n", device, i.name, i.machine.arch,
            i.machine.processors, cli_s(i.machine.processors), (double)i.memory_free * 1e-9,
            (double)i.memory_bytes * 1e-9);
  cli_print("%s | %s%s%s\n", i.driver, i.compiler, i.libraries[0] ? " | " : "", i.libraries);
  cli_print("by its clocks: f32 %.0f, tf32 %.0f, f16 %.0f TFLOP/s, memory %.2f TB/s; a block has %zu KB of "
            "shared memory, "
            "L2 %.0f MB\n",
            i.machine.peak_flops * 1e-12, i.machine.tf32_flops * 1e-12, i.machine.half_flops * 1e-12,
            i.machine.dram_bytes * 1e-12, i.machine.shared_bytes >> 10, (double)i.machine.l2 / (1 << 20));
}

static json_t *json_accelerator(const char *device) {
  hone_device_info i;
  hone_error error = {0};
  char why[1200];
  if (hone_device_about(device, &i, &error) != HONE_OK) {
    hone_error_format(&error, why, sizeof why);
    return json_pack("{s:s, s:s}", "device", device, "missing", why);
  }
  return json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "device", device,
                   "name", i.name, "driver", i.driver, "compiler", i.compiler, "libraries", i.libraries,
                   "arch", (int)i.machine.arch, "multiprocessors", (int)i.machine.processors, "memory_bytes",
                   cli_real((double)i.memory_bytes), "memory_free", cli_real((double)i.memory_free),
                   "clock_f32_flops", cli_real(i.machine.peak_flops), "clock_tf32_flops",
                   cli_real(i.machine.tf32_flops), "clock_f16_flops", cli_real(i.machine.half_flops),
                   "clock_memory_bytes_per_s", cli_real(i.machine.dram_bytes));
}

/* Its operations are none on floats. */
static bool is_integer(const char *roof) { return strcmp(roof, "int8") == 0; }

/* --device cuda: what it is, its measured roofs, and its sensors. */
static int accelerator(const cli_args *args) {
  hone_error error = {0}, unread = {0};
  hone_device_roofs r;
  hone_sensors now;
  const char *device = cli_device_name(args);
  if (cli_device_roofs(device, args->again, args->max_seconds, &r, &error) != HONE_OK)
    return cli_report(&error);
  const bool read = hone_device_sensors(device, &now, &unread) == HONE_OK;
  if (args->json) {
    json_t *j = json_accelerator(device), *roofs = json_array(), *sensors = json_object();
    for (uint32_t i = 0; i < r.count; i++)
      json_array_append_new(roofs, level(r.roof[i].name, r.roof[i].gbs > 0 ? r.roof[i].gbs : r.roof[i].gflops,
                                         r.roof[i].gbs > 0            ? "GB/s"
                                         : is_integer(r.roof[i].name) ? "GOP/s"
                                                                      : "GFLOP/s"));
    for (uint32_t i = 0; read && i < now.count; i++)
      json_object_set_new(sensors, now.sensor[i].name, cli_real(now.sensor[i].value));
    json_object_set_new(j, "roofs", roofs);
    json_object_set_new(j, "sensors", sensors);
    return cli_print_json(j);
  }
  print_accelerator(device);
  cli_print("\n");
  for (uint32_t i = 0; i < r.count; i++) {
    const hone_device_roof *x = &r.roof[i];
    if (x->gbs > 0)
      cli_print("%-5s copy             %8.0f GB/s     (runs differ by %.0f %%)\n", x->name, x->gbs,
                100 * x->spread);
    else if (x->gflops > 0)
      cli_print("%-5s matrix product   %8.1f %-7s  (%s; runs differ by %.0f %%)\n", x->name, x->gflops / 1e3,
                is_integer(x->name) ? "TOP/s" : "TFLOP/s", x->by, 100 * x->spread);
    else
      cli_print("%-5s                  not measured: no tactic of this device, or time was up\n", x->name);
  }
  cli_print("\n");
  for (uint32_t i = 0; read && i < now.count; i++)
    cli_print("%-18s    %8.0f %s\n", now.sensor[i].name, now.sensor[i].value, now.sensor[i].unit);
  if (!read) cli_print("clocks, temperature and power: not available: %s\n", unread.what);
  return cli_flush();
}

static bool go_on(void *arg) {
  (void)arg;
  return !cli_interrupted();
}

/* What this machine's kernels take over their cost models. */
static hone_status kernels(const cli_args *args, hone_kernel_speeds *out, hone_error *error) {
  hone_engine *engine = NULL;
  const hone_engine_options options = {.threads = (uint32_t)args->threads};
  const hone_kernels_options measure = {
      .again = args->again, .max_seconds = args->max_seconds, .progress = go_on};
  hone_status status = hone_engine_create(&options, &engine, error);
  if (status == HONE_OK) status = hone_kernels_measure(engine, &measure, out, error);
  hone_engine_destroy(engine);
  return status;
}

static const char *factor(double value, char text[16]) {
  snprintf(text, 16, value > 0 ? "%.2f" : "-", value);
  return text;
}

static void print_kernels(const hone_kernel_speeds *k) {
  char own[16], last[16], memory[16];
  cli_print("what kernels take here over what hone's cost models say, by where a step's tensors fit%s:\n\n",
            k->quiet ? "" : " (others were busy: not kept)");
  cli_print("%-24s %12s %12s %12s\n", "kernel", "own caches", "last cache", "memory");
  for (uint32_t i = 0; i < k->count; i++)
    cli_print("%-24s %12s %12s %12s\n", k->kernel[i].tactic,
              factor(k->kernel[i].factor[HONE_KERNEL_OWN_CACHES], own),
              factor(k->kernel[i].factor[HONE_KERNEL_LAST_CACHE], last),
              factor(k->kernel[i].factor[HONE_KERNEL_MEMORY], memory));
  cli_print("\n");
}

static json_t *json_factor(double value) { return value > 0 ? cli_real(value) : json_null(); }

static json_t *json_kernels(const hone_kernel_speeds *k) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < k->count; i++)
    json_array_append_new(list,
                          json_pack("{s:s, s:o, s:o, s:o}", "tactic", k->kernel[i].tactic, "own_caches",
                                    json_factor(k->kernel[i].factor[HONE_KERNEL_OWN_CACHES]), "last_cache",
                                    json_factor(k->kernel[i].factor[HONE_KERNEL_LAST_CACHE]), "memory",
                                    json_factor(k->kernel[i].factor[HONE_KERNEL_MEMORY])));
  return list;
}

static int run(const cli_args *args) {
  hone_error error = {0};
  hone_roofs r;
  hone_kernel_speeds k;
  if (strcmp(cli_device_name(args), "cpu") != 0) return accelerator(args);
  if (cli_roofs((uint32_t)args->threads, args->again, args->max_seconds, &r, &error) != HONE_OK)
    return cli_report(&error);
  if (kernels(args, &k, &error) != HONE_OK) return cli_report(&error);
  cli_note_busy(&r);
  if (args->json) {
    json_t *roofs = json_array();
    json_array_append_new(roofs, level("f32", r.f32_gflops, "GFLOP/s"));
    json_array_append_new(roofs, level("bf16", r.bf16_gflops, "GFLOP/s"));
    json_array_append_new(roofs, level("int8", r.int8_gops, "GOP/s"));
    json_array_append_new(roofs, level("int8 vectors", r.int8_vector_gops, "GOP/s"));
    json_array_append_new(roofs, level("L1", r.l1_gbs, "GB/s"));
    json_array_append_new(roofs, level("L2", r.l2_gbs, "GB/s"));
    json_array_append_new(roofs, level("L3", r.l3_gbs, "GB/s"));
    json_array_append_new(roofs, level("DRAM", r.dram_gbs, "GB/s"));
    return cli_print_json(
        json_pack("{s:s, s:s, s:i, s:o, s:o, s:o, s:b, s:i, s:o, s:o, s:o, s:[o]}", "device", "cpu", "name",
                  r.cpu, "threads", (int)r.threads, "roofs", roofs, "ridge_flop_per_byte",
                  r.dram_gbs > 0 ? cli_real(r.f32_gflops / r.dram_gbs) : json_null(), "others_share",
                  cli_real(r.others), "quiet", r.quiet, "windows", (int)r.windows, "spread",
                  cli_real(r.spread), "delay_share", cli_real(r.delay), "kernels", json_kernels(&k),
                  "accelerators", json_accelerator("cuda")));
  }
  cli_print("%s, %u thread%s\n\n", r.cpu, r.threads, cli_s(r.threads));
  cli_print("f32 multiply-add   %8.0f GFLOP/s\n", r.f32_gflops);
  if (r.bf16_gflops > 0)
    cli_print("bf16 dot product   %8.0f GFLOP/s\n", r.bf16_gflops);
  else
    cli_print("bf16 dot product   not measured: this processor has no such instructions\n");
  if (r.int8_gops > 0)
    cli_print("int8 dot product   %8.0f GOP/s\n", r.int8_gops);
  else
    cli_print("int8 dot product   not measured: this processor has no such instructions\n");
  if (r.int8_vector_gops > 0) cli_print("int8 without tiles %8.0f GOP/s\n", r.int8_vector_gops);
  cli_print("L1 read            %8.0f GB/s\nL2 read            %8.0f GB/s\n", r.l1_gbs, r.l2_gbs);
  cli_print("L3 read            %8.0f GB/s\nDRAM read          %8.1f GB/s\n", r.l3_gbs, r.dram_gbs);
  if (r.dram_gbs > 0)
    cli_print("\nridge point        %8.1f FLOP/byte: below it f32 work that lives in DRAM is memory-bound\n",
              r.f32_gflops / r.dram_gbs);
  cli_print(
      "\nbest of %u window%s; they differ by up to %.0f %%. In the quietest, others took %.0f %% of the "
      "processors "
      "and threads waited %.0f %% of the time for one\n\n",
      r.windows, cli_s(r.windows), 100 * r.spread, 100 * r.others, 100 * r.delay);
  print_kernels(&k);
  print_accelerator("cuda");
  return cli_flush();
}

static const cli_option options[] = {
    {'t', "threads", CLI_THREADS, CLI_FIELD(threads), "N", "threads (all processors)"},
    {0, "device", CLI_TEXT, CLI_FIELD(device), "cpu|cuda", "cpu, cuda or cuda:N (cpu)"},
    {0, "again", CLI_FLAG, CLI_FIELD(again), NULL, "measure even when a cached measurement exists"},
    {0, "max-seconds", CLI_NUMBER, CLI_FIELD(max_seconds), "S",
     "what is not measured after this long is left out"},
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_device = {
    "device",
    "",
    "measure the machine's peaks: FLOP/s and bandwidths",
    "Takes about two seconds; the result is cached by processor, thread count and version, unless other "
    "processes took more than a tenth of the processors meanwhile. For a GPU: matrix products and a copy "
    "through hone's own plans, and what its sensors say now.",
    options,
    0,
    0,
    run};
