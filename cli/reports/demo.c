#include "cli/reports/demo.h"
#include "cli/options/options.h"
#include "cli/options/roofs.h"

#include <hone/hone.h>
#include <stdio.h>
#include <string.h>

hone_status cli_demo_machine_find(const cli_args *args, cli_demo_machine *m, hone_error *error) {
  const char *device = cli_device_name(args);
  *m = (cli_demo_machine){.accelerator = strcmp(device, "cpu") != 0};
  m->of = (hone_demo_machine){.device = device,
                              .narrow = m->accelerator ? "fp16" : "bf16",
                              .runs = args->runs > 0 ? (uint32_t)args->runs : 20,
                              .size = args->size};
  hone_status status = hone_device_about(device, NULL, error);
  if (status != HONE_OK) return status;
  if (!m->accelerator) {
    hone_roofs r;
    status = cli_roofs((uint32_t)args->threads, false, 0, &r, error);
    if (status != HONE_OK) return status;
    snprintf(m->name, sizeof m->name, "%s", r.cpu);
    m->of.threads = r.threads;
    m->f32_gflops = r.f32_gflops;
    m->narrow_gflops = r.bf16_gflops > 0 ? r.bf16_gflops : r.f32_gflops;
    m->int8_gops = r.int8_gops;
    m->gbs = r.dram_gbs;
    return HONE_OK;
  }
  hone_device_roofs r;
  status = cli_device_roofs(device, false, 0, &r, error);
  for (uint32_t i = 0; status == HONE_OK && i < r.count; i++) {
    if (strcmp(r.roof[i].name, "f32") == 0) m->f32_gflops = r.roof[i].gflops;
    if (strcmp(r.roof[i].name, "f16") == 0) m->narrow_gflops = r.roof[i].gflops;
    if (strcmp(r.roof[i].name, "int8") == 0) m->int8_gops = r.roof[i].gflops;
    if (strcmp(r.roof[i].name, "DRAM") == 0) m->gbs = r.roof[i].gbs;
  }
  snprintf(m->name, sizeof m->name, "%s", r.device);
  return status;
}
