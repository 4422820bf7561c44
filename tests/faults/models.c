/* See models.h. */
#include "faults/models.h"

#include "base/os.h"
#include "base/str.h"
#include "model/ir/text.h"
#include "model/operators.h"

#include <hone/data.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const fault_models[] = {"convolutions", "transformer", "recurrent", "control",
                                    "quantised",    "qlinear",     NULL};

static void stop(const char *name, const hone_error *e) {
  char line[900];
  hone_error_format(e, line, sizeof line);
  fprintf(stderr, "%s: %s\n", name, line);
  abort();
}

hone_model *fault_model(const char *name) {
  hone_error e = {0};
  hn_file file;
  if (hn_file_map("tests/faults/models.txt", NULL, HN_FILE_TEXT, &file, &e) != HONE_OK) stop(name, &e);
  char head[80], *all = strndup((const char *)file.data, file.size);
  hn_file_unmap(&file);
  snprintf(head, sizeof head, "\n== %s\n", name);
  char *from = all ? strstr(all, head) : NULL;
  if (!from) stop("no such network in tests/faults/models.txt", &e);
  from += strlen(head);
  char *to = strstr(from, "\n== ");
  hn_model *m = NULL;
  hone_status status = hn_model_parse(name, from, to ? (size_t)(to + 1 - from) : strlen(from), &m, &e);
  if (status == HONE_OK) status = hn_model_ready(m, &e);
  if (status != HONE_OK) stop(name, &e);
  free(all);
  return m;
}

hone_status fault_feed_make(const hone_plan *plan, fault_feed *out, hone_error *error) {
  *out = (fault_feed){.n = hone_plan_inputs(plan)};
  for (uint32_t i = 0; i < out->n; i++) {
    hone_status status = hone_data_random(hone_plan_input_name(plan, i), hone_plan_input_desc(plan, i), 5, 7,
                                          &out->data[i], error);
    if (status != HONE_OK) {
      fault_feed_free(out);
      return status;
    }
    out->list[i] = &out->data[i].tensor;
  }
  return HONE_OK;
}

void fault_feed_free(fault_feed *feed) {
  for (uint32_t i = 0; i < feed->n; i++) hone_data_free(&feed->data[i]);
  feed->n = 0;
}
