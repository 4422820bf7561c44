/* One importer (HONE_FORMAT, set by tests.cmake for each line of importers.def): bytes -> facts, and what is
 * taken goes on to a profile, findings and a report. The library's other formats must not take it away: the
 * format is given. Databases are read from a file. */
#include <hone/hone.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static hone_status swallow(void *user, const char *data, size_t length, hone_error *error) {
  (void)error;
  *(size_t *)user += length ? (unsigned char)data[length - 1] : 0;
  return HONE_OK;
}

static hone_status import_file(const uint8_t *data, size_t size, const hone_import_options *options,
                               hone_facts **facts, hone_error *error) {
  /* Not memfd_create: SQLite follows links and would open what /proc/self/fd says the file is called. */
  char path[256];
  const char *paths[] = {path};
  const char *folder = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/hone_fuzz_%d",
           !access("/dev/shm", W_OK) ? "/dev/shm"
           : folder && *folder       ? folder
                                     : "/tmp",
           (int)getpid());
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(data, 1, size, file) != size || fclose(file)) abort();
  hone_status status = hone_import_files(paths, 1, options, facts, error);
  unlink(path);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const hone_import_options options = {.format = HONE_FORMAT, .max_bytes = 4 << 20};
  hone_facts *facts = NULL, *again = NULL;
  hone_error error = {0};
  hone_status status = hone_import_memory("fuzz", data, size, &options, &facts, &error);
  if (status == HONE_ERROR_UNSUPPORTED && !facts) status = import_file(data, size, &options, &facts, &error);
  if (status != HONE_OK) {
    if (facts || !error.what[0]) abort(); /* an error says what is wrong and leaves nothing behind */
    return 0;
  }
  char *text = NULL;
  size_t length, total = 0;
  if (hone_facts_to_json(facts, &text, &length, &error) != HONE_OK) abort();
  if (hone_facts_from_json(text, length, &again, &error) != HONE_OK) abort();
  hone_profile *profile = NULL;
  hone_findings *findings = NULL;
  if (hone_profile_create(facts, NULL, &profile, &error) == HONE_OK) {
    if (hone_diagnose(profile, NULL, &findings, &error) != HONE_OK) abort();
    hone_report_input input = {.baseline = profile, .findings = findings};
    if (hone_report_write(&input, HONE_REPORT_JSON, swallow, &total, &error) != HONE_OK) abort();
    if (hone_report_write(&input, HONE_REPORT_TEXT, swallow, &total, &error) != HONE_OK) abort();
  }
  hone_findings_destroy(findings);
  hone_profile_destroy(profile);
  hone_facts_destroy(again);
  hone_facts_destroy(facts);
  free(text);
  return 0;
}
