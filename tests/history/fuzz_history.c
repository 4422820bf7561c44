/* Reports and histories as strangers write them. The first byte chooses: the rest is a report's text, the
 * bytes of a file, or changes (place, value) to a history that is whole. */
#include <hone/hone.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[256];
static uint8_t whole[1 << 18], changed[1 << 18];
static size_t whole_size;

static void forget(void) { unlink(path); }

/* A history with runs of several sizes. */
static void begin(void) {
  hone_history *h = NULL;
  hone_error e;
  char json[3000];
  snprintf(path, sizeof path, "%s/hone-fuzz-%ld.db", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
           (long)getpid());
  unlink(path);
  if (hone_history_open(path, true, &h, &e) != HONE_OK) abort();
  for (int i = 0; i < 20; i++) {
    int n = snprintf(json, sizeof json,
                     "{\"model\": \"m%d\", \"commit\": \"c\", \"avg_latency_ms\": %d, \"x\": \"%0*d\"}",
                     i % 3, i + 1, 1 + i * 100, 0);
    if (hone_history_add(h, json, (size_t)n, "t", NULL, &e) != HONE_OK) abort();
  }
  hone_history_close(h);
  FILE *f = fopen(path, "rb");
  if (!f) abort();
  whole_size = fread(whole, 1, sizeof whole, f);
  fclose(f);
  atexit(forget);
}

static hone_status swallow(void *user, const char *data, size_t n, hone_error *error) {
  (void)user;
  (void)data;
  (void)n;
  (void)error;
  return HONE_OK;
}

static void read_all(const uint8_t *bytes, size_t n) {
  hone_history *h = NULL;
  hone_records r = {0};
  hone_error e = {0};
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(bytes, 1, n, f) != n) abort();
  fclose(f);
  if (hone_history_open(path, false, &h, &e) != HONE_OK) {
    if (!e.what[0]) abort();
    return;
  }
  if (hone_history_find(h, &(hone_history_query){.reports = true}, &r, &e) == HONE_OK)
    hone_history_html(&r, swallow, NULL, &e);
  hone_records_free(&r);
  hone_history_close(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!path[0]) begin();
  if (!size) return 0;
  hone_records r = {0};
  hone_error e = {0};
  if (data[0] % 4 == 0) {
    if (hone_record_parse((const char *)data + 1, size - 1, &r, &e) == HONE_OK && r.count != 1) abort();
    hone_records_free(&r);
  } else if (data[0] % 4 == 1) {
    read_all(data + 1, size - 1);
  } else {
    memcpy(changed, whole, whole_size);
    size_t n = whole_size;
    for (size_t i = 1; i + 3 < size; i += 4) {
      size_t at = ((size_t)data[i] << 16 | (size_t)data[i + 1] << 8 | data[i + 2]) % whole_size;
      changed[at] = data[i + 3];
    }
    if (data[0] % 4 == 3 && size > 2) n = ((size_t)data[1] << 8 | data[2]) % whole_size;
    read_all(changed, n);
  }
  return 0;
}
