/* Folders that hone writes into, and programs beside it. */
#include "cli/doctor/doctor.h"
#include "cli/options/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* What both folders have in common: `folder` NULL says that the environment names none. */
static bool look_at(const cli_patient *p, cli_check *out, const char *folder) {
  char where[4096];
  struct statvfs disk;
  if (!folder) {
    cli_found(p, out, "none: HOME is not set", "没有：未设置 HOME");
    cli_todo(p, out, "set HOME, XDG_CACHE_HOME and XDG_DATA_HOME",
             "设置 HOME、XDG_CACHE_HOME 和 XDG_DATA_HOME");
    return false;
  }
  if (!cli_can_hold(folder, where, sizeof where)) {
    cli_found(p, out, "%s cannot be written (%s)", "无法写入 %s（%s）", folder, where);
    cli_todo(p, out, "make it writable, or name another folder: XDG_CACHE_HOME, XDG_DATA_HOME",
             "使其可写，或指定其他目录：XDG_CACHE_HOME、XDG_DATA_HOME");
    return false;
  }
  if (statvfs(where, &disk) == 0 && (double)disk.f_bavail * (double)disk.f_frsize < 16e6) {
    cli_found(p, out, "%s: the disk is full", "%s：磁盘已满", folder);
    cli_todo(p, out, "make room, or name another folder: XDG_CACHE_HOME, XDG_DATA_HOME",
             "腾出空间，或指定其他目录：XDG_CACHE_HOME、XDG_DATA_HOME");
    return false;
  }
  cli_found(p, out, "%s", "%s", folder);
  return true;
}

void cli_check_cache(const cli_patient *p, cli_check *out) {
  const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  char folder[4096];
  const bool own = xdg && *xdg, named = own || (home && *home);
  snprintf(folder, sizeof folder, "%s%s", own ? xdg : named ? home : "", own ? "/hone" : "/.cache/hone");
  if (!look_at(p, out, named ? folder : NULL))
    cli_lacks(p, out, "peaks, tuned kernels and GPU kernels are found anew by every run: seconds each time",
              "峰值、调优结果和 GPU 内核每次都要重新得到：每次数秒");
}

void cli_check_history(const cli_patient *p, cli_check *out) {
  char file[4096];
  const bool named = hone_history_default_path(file, sizeof file);
  char *slash = named ? strrchr(file, '/') : NULL;
  if (slash) *slash = 0;
  if (!look_at(p, out, !named ? NULL : slash ? file : "."))
    cli_lacks(p, out, "hone bench --save, hone history and hone gate --baseline TAG keep nothing",
              "hone bench --save、hone history 和 hone gate --baseline 标签无法保存");
}

void cli_check_plugins(const cli_patient *p, cli_check *out) {
  hone_plugin_info info, bad = {0};
  uint32_t loaded = 0, refused = 0;
  for (uint32_t i = 0; hone_plugin_at(i, &info); i++) {
    loaded += info.state == HONE_PLUGIN_LOADED;
    if (info.state != HONE_PLUGIN_REFUSED) continue;
    refused++;
    bad = info;
  }
  cli_found(p, out, loaded == 1 ? "%u plugin is used, %u refused" : "%u plugins are used, %u refused",
            "使用 %u 个插件，拒绝 %u 个", loaded, refused);
  if (!refused) return;
  cli_found(p, out,
            loaded == 1 ? "%u plugin is used, %u refused: %s: %.120s"
                        : "%u plugins are used, %u refused: %s: %.120s",
            "使用 %u 个插件，拒绝 %u 个：%s：%.120s", loaded, refused, bad.name, bad.error->what);
  cli_lacks(p, out, "their operators are unknown, or run without their own kernels",
            "其算子未知，或没有专用内核");
  cli_todo(p, out, "hone op list says why; hone op build and hone op install make them anew",
           "hone op list 说明原因；hone op build 和 hone op install 可重新生成");
}

/* The first line that a command prints; false when it fails. */
static bool first_line(const char *command, char *buf, size_t size) {
  FILE *f = popen(command, "re");
  *buf = 0;
  const bool read = f && fgets(buf, (int)size, f);
  if (read) buf[strcspn(buf, "\n")] = 0;
  const int status = f ? pclose(f) : -1;
  return read && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void cli_check_compiler(const cli_patient *p, cli_check *out) {
  char line[200];
  if (first_line("${CC:-cc} --version 2>/dev/null", line, sizeof line)) {
    cli_found(p, out, "%s", "%s", line);
    return;
  }
  cli_found(p, out, "none", "没有");
  cli_lacks(p, out, "hone op build cannot make custom operators", "hone op build 无法生成自定义算子");
  cli_todo(p, out, "apt-get install gcc libc6-dev, or name one with CC",
           "apt-get install gcc libc6-dev，或用 CC 指定");
}

void cli_check_python(const cli_patient *p, cli_check *out) {
  char line[200], version[200];
  if (!first_line("timeout 20 python3 --version 2>/dev/null", version, sizeof version)) {
    cli_found(p, out, "there is no python3", "没有 python3");
    out->health = CLI_NOTE;
    return;
  }
  if (first_line("timeout 20 python3 -c 'import hone; print(hone.__version__, hone.__file__)' 2>/dev/null",
                 line, sizeof line)) {
    cli_found(p, out, "%s: hone %s", "%s：hone %s", version, line);
    return;
  }
  cli_found(p, out, "%s has no package hone", "%s 没有 hone 包", version);
  out->health = CLI_NOTE;
  cli_todo(p, out, "only for use from Python: pip install . in hone's source folder",
           "仅在从 Python 使用时需要：在 hone 源码目录中 pip install .");
}
