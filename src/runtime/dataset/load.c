/* One sample of a data set as an input. */
#include "runtime/dataset/set.h"

#include <string.h>

static hone_status unpack(const hn_packed *p, uint64_t index, hn_arena *arena, hn_picture *out,
                          hone_error *error) {
  const uint64_t pixels = (uint64_t)(p->width * p->height);
  const uint8_t *from = p->data + p->first + index * p->pitch;
  const hone_status status = hn_picture_size((uint64_t)p->width, (uint64_t)p->height, arena, out, error);
  for (uint64_t i = 0; status == HONE_OK && i < pixels; i++)
    for (uint64_t c = 0; c < 3; c++) out->rgb[3 * i + c] = from[p->planes == 3 ? c * pixels + i : i];
  return status;
}

hone_status hone_dataset_load(const hone_dataset *set, uint64_t i, const hone_tensor_desc *want,
                              const hone_preprocess *preprocess, hone_data *out, hone_picture_map *map,
                              hone_error *error) {
  if (!set || !want || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_dataset_load: set, want and out may not be NULL");
  *out = (hone_data){0};
  if (map) *map = (hone_picture_map){0};
  if (i >= set->samples.len) return hn_fail(error, HONE_ERROR_USAGE, "hone_dataset_load: no such sample");
  const hn_set_sample *s = &set->samples.ptr[i];
  if (!set->packed.data) return hn_data_read(s->path, "x", want, preprocess, out, map, error);
  const uint64_t lost = hn_mem_lost();
  hn_arena *arena = out->impl = hn_calloc(1, sizeof *arena);
  hn_picture picture = {0};
  hone_status status = arena ? unpack(&set->packed, s->index, arena, &picture, error)
                             : hn_fail_memory(error, sizeof *arena, "an input");
  if (status == HONE_OK)
    status = hn_picture_tensor(&picture, want, preprocess, arena, &out->tensor, map, error);
  if (status != HONE_OK) hn_error_where(error, "%s: picture %llu", s->path, (unsigned long long)s->index);
  status = hn_settle(status, lost, error);
  if (status != HONE_OK) hone_data_free(out);
  return status;
}
