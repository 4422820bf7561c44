/* Names of classes, and the five most likely ones of an output. */
#ifndef HONE_CLI_LABELS_H
#define HONE_CLI_LABELS_H

#include <hone/hone.h>
#include <jansson.h>

typedef struct cli_labels {
  char **name;
  size_t n;
} cli_labels;

hone_status cli_labels_read(const char *path, cli_labels *out, hone_error *error); /* one label a line */
void cli_labels_free(cli_labels *labels);
/* [[{class, label, probability} x 5] a batch row]; NULL when the tensor holds no class scores. */
json_t *cli_labels_top5(const cli_labels *labels, const hone_tensor *scores);
void cli_labels_print(const json_t *rows);

#endif
