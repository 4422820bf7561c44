#include "runtime/plugins/trust.h"

#include "base/error.h"
#include "base/os.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Groups with a user's own number have that user alone, by the habit of most systems. */
static bool own_group(gid_t group) { return group == getegid() && getegid() == (gid_t)geteuid(); }

static hone_status trust_one(const char *path, hone_error *error) {
  struct stat st;
  if (stat(path, &st) != 0) return hn_fail(error, HONE_ERROR_MISSING, "%.280s cannot be looked at", path);
  if (st.st_uid != 0 && st.st_uid != geteuid()) {
    hn_fail(error, HONE_ERROR_USAGE, "%.280s belongs to another user (%u)", path, (unsigned)st.st_uid);
    hn_error_expected(error, "a plugin that is yours or root's");
    hn_error_hint(error, "copy it to a folder of yours: hone op install FILE");
    return HONE_ERROR_USAGE;
  }
  const bool others = (st.st_mode & S_IWOTH) || ((st.st_mode & S_IWGRP) && !own_group(st.st_gid));
  if (!others || (S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX))) return HONE_OK;
  hn_fail(error, HONE_ERROR_USAGE, "others can write %.280s", path);
  hn_error_expected(error, "that nobody else can replace a plugin");
  hn_error_hint(error, "chmod go-w %.260s", path);
  return HONE_ERROR_USAGE;
}

hone_status hn_plugin_trust(const char *path, hone_error *error) {
  char part[4096];
  const size_t n = strlen(path);
  if (path[0] != '/' || n >= sizeof part)
    return hn_fail(error, HONE_ERROR_USAGE, "%.280s is no absolute path of a plugin", path);
  memcpy(part, path, n + 1);
  for (;;) {
    const hone_status status = trust_one(*part ? part : "/", error);
    char *slash = strrchr(part, '/');
    if (status != HONE_OK || !*part) return status;
    *slash = 0;
  }
}

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64 };
#else
enum { MACHINE = EM_NONE };
#endif

static const char *machine_name(unsigned machine, char buf[24]) {
  static const struct {
    unsigned machine;
    const char *name;
  } names[] = {{EM_386, "x86 (32 bits)"}, {EM_X86_64, "x86-64"}, {EM_ARM, "ARM (32 bits)"},
               {EM_AARCH64, "AArch64"},   {EM_RISCV, "RISC-V"},  {EM_PPC64, "POWER"},
               {EM_S390, "S/390"},        {EM_MIPS, "MIPS"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].machine == machine) return names[i].name;
  snprintf(buf, 24, "machine %u", machine);
  return buf;
}

hone_status hn_plugin_is_library(const char *path, hone_error *error) {
  Elf64_Ehdr h = {0};
  char buf[24];
  const size_t n = hn_file_begin(path, &h, sizeof h);
  if (n < EI_NIDENT + 4 || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0) {
    hn_fail(error, HONE_ERROR_INPUT, "this is no shared library");
    hn_error_expected(error, "an ELF file, as a compiler makes it with -shared");
    return HONE_ERROR_INPUT;
  }
  /* Type and machine lie at the same place in both classes. */
  if (h.e_ident[EI_DATA] != ELFDATA2LSB || (MACHINE != EM_NONE && h.e_machine != MACHINE) ||
      h.e_ident[EI_CLASS] != ELFCLASS64) {
    hn_fail(error, HONE_ERROR_INPUT, "this library is for another processor: %s",
            h.e_ident[EI_DATA] == ELFDATA2LSB ? machine_name(h.e_machine, buf)
                                              : "one with the other order of bytes");
    char mine[24];
    hn_error_expected(error, "%s", machine_name(MACHINE, mine));
    hn_error_hint(error, "build it again on this machine: hone op build");
    return HONE_ERROR_INPUT;
  }
  if (h.e_type == ET_DYN) return HONE_OK;
  hn_fail(error, HONE_ERROR_INPUT, "this is a program or an object file, no shared library");
  hn_error_hint(error, "link it with -shared");
  return HONE_ERROR_INPUT;
}
