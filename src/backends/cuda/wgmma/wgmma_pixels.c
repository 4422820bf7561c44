#include "backends/cuda/wgmma/wgmma_pixels.h"

#include <stdio.h>
#include <string.h>

static void write_product(hn_str *t, const char *name, const char *sum, const char *kind, const char *tail,
                          char way, int64_t n, bool adds) {
  hn_str_printf(t,
                "HN_FN void %s(%s *d, const u32 *a, u64 b) {\n  asm volatile(\"{\\n.reg .pred p;\\n"
                "setp.ne.b32 p, %d, 0;\\nwgmma.mma_async.sync.aligned.m64n%lldk%s {",
                name, sum, adds, (long long)n, kind);
  for (int64_t i = 0; i < n / 2; i++) hn_str_printf(t, "%s%%%lld", i ? "," : "", (long long)i);
  hn_str_printf(t, "}, {%%%lld,%%%lld,%%%lld,%%%lld}, %%%lld, p%s;\\n}\\n\" : ", (long long)(n / 2),
                (long long)(n / 2 + 1), (long long)(n / 2 + 2), (long long)(n / 2 + 3),
                (long long)(n / 2 + 4), tail);
  for (int64_t i = 0; i < n / 2; i++)
    hn_str_printf(t, "%s\"%s%c\"(d[%lld])", i ? ", " : "", adds ? "+" : "=", way, (long long)i);
  hn_str_puts(t, " : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"l\"(b));\n}\n");
}

void hn_wgmma_write_product(hn_str *t, const char *name, const char *type, int64_t n, bool adds) {
  const bool tf32 = !strcmp(type, "tf32"); /* K is 8 then, and B has no other way to lie */
  char kind[32];
  snprintf(kind, sizeof kind, "%d.f32.%s.%s", tf32 ? 8 : 16, type, type);
  write_product(t, name, "float", kind, tf32 ? ", 1, 1" : ", 1, 1, 0", 'f', n, adds);
}

static const char *kind_of_codes(bool is_signed) { return is_signed ? "32.s32.s8.s8" : "32.s32.s8.u8"; }

void hn_wgmma_write_codes_product(hn_str *t, const char *name, bool is_signed, int64_t n, bool adds) {
  write_product(t, name, "i32", kind_of_codes(is_signed), "", 'r', n, adds);
}

static void write_shared(hn_str *t, const char *name, const char *sum, const char *kind, const char *tail,
                         char way, int64_t n) {
  hn_str_printf(t,
                "HN_FN void %s(%s *d, u64 a, u64 b, u32 adds) {\n  asm volatile(\"{\\n.reg .pred p;\\n"
                "setp.ne.b32 p, %%%lld, 0;\\nwgmma.mma_async.sync.aligned.m64n%lldk%s {",
                name, sum, (long long)(n / 2 + 2), (long long)n, kind);
  for (int64_t i = 0; i < n / 2; i++) hn_str_printf(t, "%s%%%lld", i ? "," : "", (long long)i);
  hn_str_printf(t, "}, %%%lld, %%%lld, p%s;\\n}\\n\" : ", (long long)(n / 2), (long long)(n / 2 + 1), tail);
  for (int64_t i = 0; i < n / 2; i++)
    hn_str_printf(t, "%s\"+%c\"(d[%lld])", i ? ", " : "", way, (long long)i);
  hn_str_puts(t, " : \"l\"(a), \"l\"(b), \"r\"(adds));\n}\n");
}

void hn_wgmma_write_shared(hn_str *t, const char *name, const char *type, int64_t n) {
  char kind[32];
  snprintf(kind, sizeof kind, "16.f32.%s.%s", type, type);
  write_shared(t, name, "float", kind, ", 1, 1, 0, 0", 'f', n);
}

void hn_wgmma_write_codes(hn_str *t, const char *name, bool is_signed, int64_t n) {
  write_shared(t, name, "i32", kind_of_codes(is_signed), "", 'r', n);
}
