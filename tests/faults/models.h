/* The networks of tests/faults/models.txt, and inputs for them. */
#ifndef HN_TESTS_FAULTS_MODELS_H
#define HN_TESTS_FAULTS_MODELS_H

#include <hone/data.h>
#include <hone/session.h>

extern const char *const fault_models[]; /* names; NULL ends them */
/* Only while nothing fails: aborts. */
hone_model *fault_model(const char *name);

/* Inputs of a plan, the same every time. */
typedef struct fault_feed {
  uint32_t n;
  hone_data data[8];
  const hone_tensor *list[8];
} fault_feed;
hone_status fault_feed_make(const hone_plan *plan, fault_feed *out, hone_error *error);
void fault_feed_free(fault_feed *feed);

#endif
