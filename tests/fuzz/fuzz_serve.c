/* Bodies of requests to hone serve. What is taken has all elements that its shape says, and texts that lie in
 * it; prompts have tokens of the model, and room for their answers. */
#include "api/serve/generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile char sink; /* what every byte is read for */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_prompt(const hone_server_request *r) {
  const hn_limits limits = {64, 100};
  hn_sequence q;
  if (hn_sequence_read(&limits, r, &q, NULL) == HONE_OK) {
    if (!q.prompt || !q.most || q.prompt + q.most > limits.context || q.n_ends > HN_MOST_ENDS) abort();
    for (uint32_t i = 0; i < q.prompt; i++)
      if (q.ids[i] < 0 || q.ids[i] >= limits.vocabulary) abort();
    q.ids[q.prompt + q.most - 1] = 0;
    for (uint32_t i = 0; i < q.n_ends; i++)
      if (q.end[i] < 0 || q.end[i] >= limits.vocabulary) abort();
    if (!(q.how.temperature >= 0) || !(q.how.top_p >= 0 && q.how.top_p <= 1)) abort();
  }
  hn_sequence_free(&q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static hn_served_port in[] = {
      {.name = "x", .dtype = HONE_DTYPE_F32, .rank = 2, .least = {1, 3}, .most = {8, 3}},
      {.name = "i", .dtype = HONE_DTYPE_I64, .rank = 1, .least = {0}, .most = {INT64_MAX}},
      {.name = "s", .dtype = HONE_DTYPE_STRING, .rank = 1, .least = {0}, .most = {INT64_MAX}},
      {.name = "b", .dtype = HONE_DTYPE_BOOL, .rank = 0}};
  static hn_served_port out[] = {{.name = "y", .dtype = HONE_DTYPE_F32, .rank = 2}};
  /* The first bytes choose the model's inputs and how long the JSON is. */
  if (size < 3) return 0;
  const hn_served m = {.n_in = 1u + data[0] % 4, .n_out = 1, .in = in, .out = out};
  char json[16];
  snprintf(json, sizeof json, "%u", data[1] | (unsigned)data[2] << 8);
  const hone_server_request r = {
      .json_size = data[0] & 128 ? json : NULL, .body = (const char *)data + 3, .size = size - 3};
  hn_ask ask;
  read_prompt(&r);
  if (hn_ask_read(&m, &r, &ask, NULL) == HONE_OK)
    for (uint32_t i = 0; i < m.n_in; i++) {
      const hone_tensor *t = &ask.in[i];
      const int64_t n = hone_desc_bytes(&t->desc), count = hone_desc_count(&t->desc);
      for (int64_t k = 0; k < n; k++) sink ^= ((const char *)t->data)[k];
      for (int64_t k = 0; t->desc.dtype == HONE_DTYPE_STRING && k < count; k++)
        for (size_t c = 0; c < ((const hone_string *)t->data)[k].len; c++)
          sink ^= ((const hone_string *)t->data)[k].ptr[c];
    }
  hn_ask_free(&m, &ask);
  return 0;
}
