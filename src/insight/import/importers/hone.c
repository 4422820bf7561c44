/* hone's own record: facts v1, also as `hone profile --json` prints it (derived members are made anew). */
#include "insight/import/import.h"

#include "base/error.h"

#include <string.h>

enum { DOCUMENT_MOST = 1 << 30, SNIFFED = 65536 };

/* What else hone writes as JSON: made of a record, but without it. */
static const struct {
  const char *mark, *what;
} others[] = {{"\"hone report\"", "a report of hone: tables of two plans, not the record of either"},
              {"\"hone findings\"", "findings of hone, not the record that they are of"},
              {"\"hone trace\"", "a trace that hone wrote for viewers: it lacks what the steps are"},
              {"\"precision_auto\"", "what hone bench prints: times of whole runs, not of layers"}};

static const char *other_document(const hn_sniff *s) {
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (hn_sniff_has(s, others[i].mark)) return others[i].what;
  return NULL;
}

static int sniff(const hn_sniff *s) {
  if (hn_sniff_first(s) != '{') return 0;
  if (hn_sniff_has(s, "\"schema\"") && hn_sniff_has(s, "\"hone facts\"")) return 100;
  return other_document(s) ? 1 : 0; /* who knows it better may have it */
}

static hone_status refuse_other(hn_source *source, hone_error *error) {
  const size_t n = hn_source_ahead(source, SNIFFED);
  const hn_sniff s = {"", source->at, n < SNIFFED ? n : SNIFFED};
  if (source->status || !n || sniff(&s) != 1) return source->status;
  const hone_status status = hn_fail(error, HONE_ERROR_INPUT, "%s", other_document(&s));
  hn_error_where(error, "%s", source->path);
  hn_error_expected(error, "a record (facts v1)");
  hn_error_hint(error, "hone profile MODEL -o FILE writes one");
  return status;
}

static hone_status read(hn_import *in, hn_source *source, hone_error *error) {
  if (in->complete) {
    hone_status status = hn_fail(error, HONE_ERROR_USAGE, "a record of hone is a whole run already");
    hn_error_where(error, "%s", source->path);
    hn_error_hint(error, "give one file at a time");
    return status;
  }
  hn_str text = {0};
  hone_status status = refuse_other(source, error);
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
    .format = {"hone", "facts v1: hone profile MODEL -o FILE, or --json"}, .sniff = sniff, .read = read};
