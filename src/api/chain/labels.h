/* Names of classes: a file with one a line. */
#ifndef HN_API_CHAIN_LABELS_H
#define HN_API_CHAIN_LABELS_H

#include "api/chain/chain.h"

typedef struct hn_chain_labels {
  const char **text; /* [n], and room for one more */
  uint32_t n;
} hn_chain_labels;

/* Kept as long as the chain. */
hone_status hn_chain_labels_read(hone_chain *chain, const hn_stage *stage, const char *path,
                                 hn_chain_labels *out, hone_error *error);
const char *hn_chain_label(const hn_chain_labels *labels, int64_t class_id); /* NULL: there is none */

/* A link that makes answers of tensors, with the file's settings, defaults, members, ready and run. */
#define HN_LINK_OF_ANSWERS(link)                                                                             \
  const hn_link hn_link_##link = {.name = #link,                                                             \
                                  .makes = HONE_CHAIN_ANSWERS,                                               \
                                  .n_reads = 1,                                                              \
                                  .reads = {{"from", HONE_CHAIN_TENSORS}},                                   \
                                  .members = members,                                                        \
                                  .size = sizeof(settings),                                                  \
                                  .defaults = &defaults,                                                     \
                                  .ready = ready,                                                            \
                                  .run = run}

#endif
