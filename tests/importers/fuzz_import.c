/* Fuzzes one importer (FUZZ_FORMAT, one target each): bytes -> facts -> profile -> findings. Whatever is
 * accepted must be consistent facts that can be written, read again and reported. */
#include <hone/hone.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static hone_status swallow(void *user, const char *data, size_t length, hone_error *error) {
  (void)data;
  (void)error;
  *(size_t *)user += length;
  return HONE_OK;
}

static void use(const hone_facts *facts) {
  hone_profile *profile = NULL;
  hone_findings *findings = NULL;
  size_t total = 0;
  if (hone_profile_create(facts, NULL, &profile, NULL) != HONE_OK) return;
  if (hone_diagnose(profile, NULL, &findings, NULL) != HONE_OK) abort();
  hone_report_input input = {.baseline = profile, .findings = findings, .width = 80};
  static const hone_report_format formats[] = {HONE_REPORT_TEXT, HONE_REPORT_PROFILE_JSON, HONE_REPORT_TRACE,
                                               HONE_REPORT_CSV};
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (hone_report_write(&input, formats[i], swallow, &total, NULL) != HONE_OK) abort();
  hone_findings_destroy(findings);
  hone_profile_destroy(profile);
}

/* Databases must lie in files. */
static hone_status import_file(const uint8_t *data, size_t size, const hone_import_options *options,
                               hone_facts **facts) {
  char path[64];
  snprintf(path, sizeof path, "%s/hone_fuzz_%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm",
           (int)getpid());
  FILE *file = fopen(path, "wb");
  if (!file) return HONE_ERROR_INPUT;
  bool written = fwrite(data, 1, size, file) == size;
  const char *paths[1] = {path};
  hone_status status = HONE_ERROR_INPUT;
  if (fclose(file) == 0 && written) status = hone_import_files(paths, 1, options, facts, NULL);
  unlink(path);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const hone_import_options options = {.format = FUZZ_FORMAT, .max_bytes = 16 << 20};
  hone_facts *facts = NULL, *again = NULL;
  char *text = NULL;
  size_t length;
  hone_status status = strcmp(FUZZ_FORMAT, "nsys") == 0
                           ? import_file(data, size, &options, &facts)
                           : hone_import_memory("fuzz", data, size, &options, &facts, NULL);
  if (status != HONE_OK) return 0;
  if (hone_facts_to_json(facts, &text, &length, NULL) != HONE_OK) abort();
  if (hone_facts_from_json(text, length, &again, NULL) != HONE_OK) abort();
  use(again);
  free(text);
  hone_facts_destroy(again);
  hone_facts_destroy(facts);
  return 0;
}
