/* hone's own record: facts v1, also as `hone profile --json` prints it (derived members are made anew). */
#include "insight/import/import.h"

#include "base/error.h"

#include <string.h>

enum { DOCUMENT_MOST = 1 << 30 };

static int sniff(const hn_sniff *s) {
  return hn_sniff_first(s) == '{' && hn_sniff_has(s, "\"schema\"") && hn_sniff_has(s, "\"hone facts\"") ? 100
                                                                                                        : 0;
}

static hone_status read(hn_import *in, hn_source *source, hone_error *error) {
  if (in->complete) {
    hone_status status = hn_fail(error, HONE_ERROR_USAGE, "a record of hone is a whole run already");
    hn_error_where(error, "%s", source->path);
    hn_error_hint(error, "give one file at a time");
    return status;
  }
  hn_str text = {0};
  hone_status status = HONE_OK;
  size_t n;
  while (!status && (n = hn_source_ahead(source, 1)) > 0) {
    hn_str_append(&text, (const char *)source->at, n);
    source->at += n;
    if (text.failed || text.len > DOCUMENT_MOST)
      status = hn_fail_memory(error, text.len, "a record of facts");
  }
  if (!status) status = source->status;
  hone_facts *facts = NULL;
  if (!status) {
    status = hone_facts_from_json(text.ptr ? text.ptr : "", text.len, &facts, error);
    if (status) hn_error_where(error, "%s", source->path);
  }
  hn_str_free(&text);
  if (status) return status;
  hone_facts_destroy(in->facts);
  in->facts = facts;
  in->complete = true;
  if (in->options->model) {
    hone_facts_meta meta = *hone_facts_get_meta(facts);
    meta.model = in->options->model;
    hone_facts_set_meta(facts, &meta);
  }
  return HONE_OK;
}

const struct hn_importer hn_importer_hone = {
    .format = {"hone", "facts v1: hone profile --json"}, .sniff = sniff, .read = read};
