/* facts v1 as JSON: whatever is accepted must survive a round trip. */
#include <hone/facts.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  hone_facts *f = NULL, *again = NULL;
  char *text = NULL;
  size_t length;
  if (hone_facts_from_json((const char *)data, size, &f, NULL) != HONE_OK) return 0;
  if (hone_facts_to_json(f, &text, &length, NULL) != HONE_OK || hone_facts_from_json(text, length, &again, NULL) != HONE_OK) __builtin_trap();
  free(text);
  hone_facts_destroy(f);
  hone_facts_destroy(again);
  return 0;
}
