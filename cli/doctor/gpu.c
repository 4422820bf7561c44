/* The GPU, its driver and the libraries that hone finds while it runs. */
#include "cli/doctor/doctor.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

/* Whether a display controller or accelerator of NVIDIA's sits in the machine. */
static bool has_chip(const cli_patient *p) {
  static const char devices[] = "/sys/bus/pci/devices";
  char folder[300];
  bool chip = false;
  snprintf(folder, sizeof folder, "%.200s%s", p->root, devices);
  DIR *d = opendir(folder);
  for (const struct dirent *e; d && !chip && (e = readdir(d));) {
    if (e->d_name[0] == '.') continue;
    char path[400], vendor[20] = "", class[20] = "";
    snprintf(path, sizeof path, "%s/%s/vendor", devices, e->d_name);
    cli_read_line(p, path, vendor, sizeof vendor);
    snprintf(path, sizeof path, "%s/%s/class", devices, e->d_name);
    cli_read_line(p, path, class, sizeof class);
    chip = strcmp(vendor, "0x10de") == 0 && strncmp(class, "0x03", 4) == 0;
  }
  if (d) closedir(d);
  return chip;
}

void cli_check_gpu(const cli_patient *p, cli_check *out) {
  hone_device_info i;
  hone_error error = {0};
  if (hone_device_about("cuda", &i, &error) == HONE_OK) {
    cli_found(p, out, "%s, sm_%u, %.1f of %.1f GB free; %s, %s",
              "%s，sm_%u，空闲 %.1f GB，共 %.1f GB；%s，%s", i.name, i.machine.arch,
              (double)i.memory_free * 1e-9, (double)i.memory_bytes * 1e-9, i.driver, i.compiler);
    return;
  }
  if (!has_chip(p)) {
    cli_found(p, out, "none (%.200s)", "没有（%.200s）", error.what);
    out->health = CLI_NOTE;
    return;
  }
  cli_found(p, out, "one is in this machine, and cannot be used: %.200s", "机器中有 GPU，但无法使用：%.200s",
            error.what);
  cli_lacks(p, out, "--device cuda ends with exit code 4: everything runs on the processor",
            "--device cuda 以退出码 4 结束：只能在处理器上运行");
  cli_todo(p, out, "NVIDIA's driver and NVRTC of CUDA 12 or newer (docs/guide/cuda.md); docker: --gpus all",
           "安装 NVIDIA 驱动和 CUDA 12 以上的 NVRTC（docs/guide/cuda.md）；docker：--gpus all");
}

void cli_check_gpu_libraries(const cli_patient *p, cli_check *out) {
  hone_device_info i;
  hone_error error = {0};
  if (hone_device_about("cuda", &i, &error) != HONE_OK) {
    cli_found(p, out, "not needed without a GPU", "没有 GPU 时不需要");
    out->health = CLI_NOTE;
    return;
  }
  cli_found(p, out, "%s", "%s", i.libraries[0] ? i.libraries : "-");
  if (strstr(i.libraries, "cuDNN") && strstr(i.libraries, "cuBLASLt")) return;
  cli_lacks(p, out,
            "convolutions and matrix products have hone's own kernels only, which are slower at some shapes",
            "卷积和矩阵乘法只有 hone 自己的内核，某些形状较慢");
  cli_todo(p, out, "NVIDIA's packages of cuDNN and cuBLAS; docs/guide/cuda.md says where they are looked for",
           "安装 NVIDIA 的 cuDNN 和 cuBLAS；查找位置见 docs/guide/cuda.md");
}
