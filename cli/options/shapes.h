/* Models, and what fixes their shapes. */
#ifndef HONE_CLI_SHAPES_H
#define HONE_CLI_SHAPES_H

#include "cli/options/options.h"

#include <hone/hone.h>
#include <jansson.h>

/* Loads a file, or builds "zoo:NAME". */
hone_status cli_load(const cli_args *args, const char *path, hone_model **out, hone_error *error);
/* --shape values as bindings of this model; free(*out). */
hone_status cli_bindings(const cli_args *args, const hone_model *model, hone_binding **out, uint32_t *n,
                         hone_error *error);
json_t *cli_desc_json(const hone_tensor_desc *desc); /* {"dtype","shape"} members */
/* Whether --batch can do anything. */
bool cli_open_batch(const hone_model *model);
/* Notes on standard error the shapes that hone chose. */
void cli_note_bound(const hone_bound_shape *bound, uint32_t n);
/* The name of an input for a hint's --shape, quoted for a shell; NAME where it is too long. */
const char *cli_shape_word(const char *name, char *buf, size_t size);

#endif
