#define HN_LATE_TABLES
#include "base/late/late.h"

#include "base/error.h"
#include "base/fault.h"
#include "base/late/jpeg.h"
#include "base/late/png.h"
#include "base/late/sqlite.h"
#include "base/late/zlib.h"
#include "base/os.h"
#ifdef HN_LATE_PCRE2
#include "base/late/pcre2.h"
#endif
#ifdef HN_LATE_MICROHTTPD
#include "base/late/microhttpd.h"
#endif

#include <pthread.h>
#include <stdatomic.h>

typedef struct late {
  const char *file, *title, *purpose;
  const hn_dl_symbol *symbols;
  size_t n;
  void *table;
} late;

#define LATE(file, title, purpose, symbols, table)                                                           \
  { file, title, purpose, symbols, sizeof(symbols) / sizeof *(symbols), table }

#ifdef HN_LATE_SQLITE
hn_late_sqlite hn_sqlite;
#define HN_DL_TABLE hn_late_sqlite
static const hn_dl_symbol sqlite_symbols[] = {HN_SQLITE_SYMBOLS(HN_DL_SYMBOL)};
#undef HN_DL_TABLE
#endif
#ifdef HN_LATE_PNG
hn_late_png hn_png;
#define HN_DL_TABLE hn_late_png
static const hn_dl_symbol png_symbols[] = {HN_PNG_SYMBOLS(HN_DL_SYMBOL)};
#undef HN_DL_TABLE
#endif
#ifdef HN_LATE_JPEG
hn_late_jpeg hn_jpeg;
#define HN_DL_TABLE hn_late_jpeg
static const hn_dl_symbol jpeg_symbols[] = {HN_JPEG_SYMBOLS(HN_DL_SYMBOL)};
#undef HN_DL_TABLE
#endif
#ifdef HN_LATE_ZLIB
hn_late_zlib hn_zlib;
#define HN_DL_TABLE hn_late_zlib
static const hn_dl_symbol zlib_symbols[] = {HN_ZLIB_SYMBOLS(HN_DL_SYMBOL)};
#undef HN_DL_TABLE
#endif
#ifdef HN_LATE_PCRE2
hn_late_pcre2 hn_pcre2;
#define HN_DL_TABLE hn_late_pcre2
static const hn_dl_symbol pcre2_symbols[] = {HN_PCRE2_SYMBOLS(HN_DL_SYMBOL)};
#undef HN_DL_TABLE
#endif
#ifdef HN_LATE_MICROHTTPD
hn_late_microhttpd hn_microhttpd;
#define HN_DL_TABLE hn_late_microhttpd
static const hn_dl_symbol microhttpd_symbols[] = {HN_MICROHTTPD_SYMBOLS(HN_DL_SYMBOL)};
#undef HN_DL_TABLE
#endif

/* No file: the program is linked with it, or was built without it. */
static const late libraries[HN_LATE_LIBRARY_COUNT] = {
#ifdef HN_LATE_SQLITE
    [HN_LATE_LIBRARY_SQLITE] = LATE(HN_LATE_SQLITE, "SQLite", "the history and profiles of Nsight Systems",
                                    sqlite_symbols, &hn_sqlite),
#endif
#ifdef HN_LATE_PNG
    [HN_LATE_LIBRARY_PNG] = LATE(HN_LATE_PNG, "libpng", "reading PNG files", png_symbols, &hn_png),
#endif
#ifdef HN_LATE_JPEG
    [HN_LATE_LIBRARY_JPEG] = LATE(HN_LATE_JPEG, "libjpeg", "reading JPEG files", jpeg_symbols, &hn_jpeg),
#endif
#ifdef HN_LATE_ZLIB
    [HN_LATE_LIBRARY_ZLIB] =
        LATE(HN_LATE_ZLIB, "zlib", "packed arrays, data sets and profiles", zlib_symbols, &hn_zlib),
#endif
#ifdef HN_LATE_PCRE2
    [HN_LATE_LIBRARY_PCRE2] =
        LATE(HN_LATE_PCRE2, "PCRE2", "operators with regular expressions", pcre2_symbols, &hn_pcre2),
#endif
#ifdef HN_LATE_MICROHTTPD
    [HN_LATE_LIBRARY_MICROHTTPD] =
        LATE(HN_LATE_MICROHTTPD, "libmicrohttpd", "hone serve", microhttpd_symbols, &hn_microhttpd),
#endif
};

static hone_status load(const late *l, hone_error *error) {
  hone_error why = {0};
  void *library = hn_library_open(HN_FAULT("late_library") ? "libnothing.so.0" : l->file, &why);
  const char *lacks = library ? hn_dl_fill(library, l->symbols, l->n, l->table) : NULL;
  if (library && !lacks) return HONE_OK;
  if (library)
    hn_fail(error, HONE_ERROR_MISSING, "%s is too old: %s has no %s", l->title, l->file, lacks);
  else
    hn_fail(error, HONE_ERROR_MISSING, "%s is not on this machine: %.150s", l->title, why.what);
  hn_error_hint(error, "install it for %s; all else works without it", l->purpose);
  hn_library_close(library);
  return HONE_ERROR_MISSING;
}

hone_status hn_late_need(hn_late_library which, hone_error *error) {
  static atomic_bool there[HN_LATE_LIBRARY_COUNT];
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  const late *l = &libraries[which];
  if (!l->file || atomic_load_explicit(&there[which], memory_order_acquire)) return HONE_OK;
  pthread_mutex_lock(&lock);
  const hone_status status = atomic_load(&there[which]) ? HONE_OK : load(l, error);
  atomic_store_explicit(&there[which], status == HONE_OK, memory_order_release);
  pthread_mutex_unlock(&lock);
  return status;
}
