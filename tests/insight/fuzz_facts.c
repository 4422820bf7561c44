/* Fuzzes everything that reads facts: JSON -> facts -> profile -> findings -> every report. An even first
 * byte means raw text; an odd one means that the rest is a list of edits to a valid record, so that deep
 * states are reached at once. */
#include <hone/insight.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static hone_status swallow(void *user, const char *data, size_t length, hone_error *error) {
  (void)error;
  size_t *total = user;
  for (size_t i = 0; i < length; i++) *total += (unsigned char)data[i];
  return HONE_OK;
}

static void use(const hone_facts *facts) {
  hone_error error = {0};
  hone_profile *profile = NULL, *filtered = NULL;
  hone_findings *findings = NULL;
  size_t total = 0;
  if (hone_profile_create(facts, NULL, &profile, &error) != HONE_OK) return;
  if (hone_diagnose(profile, NULL, &findings, &error) != HONE_OK) abort();
  if (hone_findings_measure(findings, profile, profile, &error) != HONE_OK) abort();
  hone_findings_predict(findings, HONE_REMEDY_OPTIMIZER);
  hone_report_input input = {.baseline = profile, .optimized = profile, .findings = findings, .width = 70};
  for (int format = 0; format <= HONE_REPORT_FINDINGS_JSON; format++)
    if (hone_report_write(&input, (hone_report_format)format, swallow, &total, &error) != HONE_OK) abort();
  if (hone_profile_create(facts, &(hone_profile_options){.filter = "Conv"}, &filtered, &error) != HONE_OK)
    abort();
  hone_profile_destroy(filtered);
  hone_findings_destroy(findings);
  hone_profile_destroy(profile);
}

static void read_and_use(const char *text, size_t size) {
  hone_error error = {0};
  hone_facts *facts = NULL, *again = NULL;
  char *written = NULL;
  size_t length;
  if (hone_facts_from_json(text, size, &facts, &error) != HONE_OK) return;
  /* What was accepted can be written and read again. */
  if (hone_facts_to_json(facts, &written, &length, &error) != HONE_OK) abort();
  if (hone_facts_from_json(written, length, &again, &error) != HONE_OK) abort();
  use(again);
  free(written);
  hone_facts_destroy(again);
  hone_facts_destroy(facts);
}

static const char base[] =
    "{\"schema\":\"hone "
    "facts\",\"version\":1,\"meta\":{\"model\":\"m\",\"threads\":1,\"cores\":2,\"opt_level\":0,\"batch\":1},"
    "\"memory\":{\"weight_bytes\":1000},\"roofs\":[{\"name\":\"f32\",\"threads\":1,\"gflops\":1},{\"name\":"
    "\"DRAM\",\"threads\":1,"
    "\"gbs\":2},{\"name\":\"L2\",\"threads\":2,\"gbs\":9,\"capacity_bytes\":64}],\"nodes\":[{\"name\":\"a\","
    "\"op_type\":\"Conv\",\"fate\":"
    "\"executed\",\"step\":0},{\"name\":\"b\",\"op_type\":\"Relu\",\"fate\":\"fused\",\"step\":1}],\"steps\":"
    "[{\"name\":\"a\",\"op_type\":"
    "\"Conv\",\"flops\":1000000,\"bytes\":5000,\"channels_in\":3,\"channels_out\":7,\"nodes\":[0],\"anchor_"
    "node\":0,\"alternatives\":[{"
    "\"tactic\":\"t\",\"reason\":\"r\"}]},{\"name\":\"b\",\"op_type\":\"Relu\",\"flops\":10,\"bytes\":9000,"
    "\"nodes\":[1],\"is_reference\":true,"
    "\"shape_out\":\"1x?\"}],\"near_misses\":[{\"pass\":\"p\",\"reason\":\"q\",\"nodes\":[0,1],\"bytes_"
    "saved\":8,\"enable_level\":2}],"
    "\"lanes\":[{\"lane\":0,\"name\":\"main\"}],\"spans\":[{\"id\":1,\"kind\":\"pre\",\"start_ns\":0,\"end_"
    "ns\":90000,\"iteration\":0},"
    "{\"id\":2,\"kind\":\"run\",\"start_ns\":100000,\"end_ns\":900000,\"iteration\":0},{\"id\":3,\"parent\":"
    "2,\"kind\":\"kernel\",\"start_ns\":"
    "120000,\"end_ns\":500000,\"iteration\":0,\"step\":0},{\"id\":4,\"parent\":2,\"kind\":\"kernel\","
    "\"lane\":1,\"start_ns\":400000,\"end_ns\":"
    "700000,\"iteration\":0,\"step\":1},{\"id\":5,\"kind\":\"copy_h2d\",\"start_ns\":700000,\"end_ns\":"
    "800000,\"iteration\":0,\"name\":\"c\"}],"
    "\"walls\":[{\"iteration\":0,\"wall_ns\":950000}],\"memory_samples\":[{\"time_ns\":1,\"planned_bytes\":5}"
    "],\"counters\":[{\"name\":"
    "\"temperature_c_min\",\"value\":3}]}";

/* Edits of four bytes: where (two), what to do, with what. */
static void edited(const uint8_t *data, size_t size) {
  char text[sizeof base + 4096];
  size_t n = sizeof base - 1;
  memcpy(text, base, n);
  for (; size >= 4 && n > 8 && n + 8 < sizeof text; data += 4, size -= 4) {
    size_t at = (data[0] | (size_t)data[1] << 8) % n;
    char c = (char)data[3];
    switch (data[2] % 4) {
    case 0: text[at] = c; break;
    case 1:
      memmove(text + at + 1, text + at, n++ - at);
      text[at] = c;
      break;
    case 2: memmove(text + at, text + at + 1, --n - at); break;
    default: /* replace the next digit: stays valid JSON */
      while (at < n && (text[at] < '0' || text[at] > '9')) at++;
      if (at < n) text[at] = (char)('0' + data[3] % 10);
    }
  }
  read_and_use(text, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size && data[0] % 2)
    edited(data + 1, size - 1);
  else if (size)
    read_and_use((const char *)data + 1, size - 1);
  return 0;
}
