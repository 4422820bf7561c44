/* See part.h. */
#include "cli/commands/op/part.h"

#include "cli/commands/op/from.h"

#include <stdlib.h>

hone_status op_source_open(hone_model *model, op_source *out, hone_error *error) {
  const hone_optimize_options o = {.level = 2};
  hone_error ignored = {0};
  *out = (op_source){0};
  const hone_status status = hone_model_bind(model, NULL, 0, 1, &out->bound, NULL, error);
  if (status == HONE_OK && hone_model_optimize(out->bound, &o, &out->optimized, NULL, &ignored) != HONE_OK)
    out->optimized = NULL;
  return status;
}

void op_source_close(op_source *s) {
  if (s->optimized) hone_model_release(s->optimized);
  if (s->bound) hone_model_release(s->bound);
  *s = (op_source){0};
}

hone_status op_part_read(const op_source *s, const char *const *nodes, uint32_t n, const char *name,
                         const char *op, op_from *out, hone_error *error) {
  hone_subgraph part = {0}, rewritten = {0};
  hone_error ignored = {0};
  *out = (op_from){0};
  hone_status status = hone_model_subgraph(s->bound, nodes, n, &part, error);
  /* The same nodes behind the passes; empty where they are no part of their own any more. */
  if (status == HONE_OK && s->optimized)
    (void)hone_model_subgraph(s->optimized, nodes, n, &rewritten, &ignored);
  if (status == HONE_OK)
    status = op_from_part(&part, rewritten.n_nodes ? &rewritten : NULL, name, op, out, error);
  hone_subgraph_free(&part);
  hone_subgraph_free(&rewritten);
  return status;
}

void op_from_drop(op_from *from) {
  op_text *const all[] = {&from->json, &from->reference, &from->cpu, &from->cuda, &from->nodes};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]->ptr);
  *from = (op_from){0};
}
