/* The registry of importers. */
#include "insight/import/import.h"

#include "base/error.h"

#include <stdio.h>

#define IMPORTER(name) extern const struct hn_importer hn_importer_##name;
#include "insight/import/importers.def"
#undef IMPORTER

static const void *const builtin[] = {
#define IMPORTER(name) &hn_importer_##name,
#include "insight/import/importers.def"
#undef IMPORTER
};

static const char *importer_key(const void *unit) { return ((const struct hn_importer *)unit)->format.name; }

static void importer_label(const void *unit, char *buf, size_t size) {
  snprintf(buf, size, "%s", importer_key(unit));
}

static hone_status importer_check(const void *unit, hone_error *error) {
  const struct hn_importer *i = unit;
  const char *name = i->format.name;
  if (name && *name && i->format.about && i->sniff && !i->read == !!i->open) return HONE_OK;
  hn_fail(error, HONE_ERROR_USAGE, "importer %.80s is not whole", name ? name : "?");
  hn_error_expected(error, "a name, what it is about, sniff, and either read or open");
  return HONE_ERROR_USAGE;
}

static const hn_kind kind = {
    .noun = "importer", .key = importer_key, .label = importer_label, .check = importer_check};
hn_registry hn_importers = HN_REGISTRY(&kind, builtin);

const hone_import_format *hone_import_format_at(size_t i) {
  const hn_listing *all = hn_registry_take(&hn_importers);
  const struct hn_importer *importer = i < all->n ? all->unit[i] : NULL;
  hn_listing_drop(all);
  return importer ? &importer->format : NULL;
}
