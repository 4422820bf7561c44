/* hone_data_load: looks at the first bytes, reads, converts and checks against what the input wants. */
#include "runtime/data/data.h"

#include "model/ir/graph.h"
#include "model/onnx/onnx.h"

#include <string.h>
#include <strings.h>

/* Most bytes that an array for this input may have, headers and wider dtypes included. */
static uint64_t size_limit(const hone_tensor_desc *want) {
  int64_t count = hn_dtype_points(want->dtype) ? -1 : hone_desc_count(want);
  uint64_t limit = (uint64_t)1 << 32;
  return count >= 0 && (uint64_t)count < limit / 8 ? (uint64_t)count * 8 + 70000 : limit;
}

static hone_status check_shape(const hone_tensor_desc *have, const hone_tensor_desc *want,
                               hone_error *error) {
  bool same = want->rank < 0 || want->rank == have->rank;
  for (int32_t k = 0; same && k < want->rank; k++) same = want->dim[k] < 0 || want->dim[k] == have->dim[k];
  if (same) return HONE_OK;
  char a[128], b[128];
  hn_fail(error, HONE_ERROR_INPUT, "array has another shape than the input");
  hn_error_expected(error, "%s", hone_desc_format(want, a, sizeof a));
  hn_error_got(error, "%s", hone_desc_format(have, b, sizeof b));
  hn_error_hint(error, "--shape NAME=1x3x224x224 sets the shape of an input");
  return HONE_ERROR_INPUT;
}

hone_status hn_data_parse(const char *path, hn_bytes file, const char *member, const hone_tensor_desc *want,
                          const hone_preprocess *preprocess, hn_arena *arena, hone_tensor *out,
                          hone_picture_map *map, hone_error *error) {
  const uint8_t *p = file.data;
  const char *dot = strrchr(path, '.');
  bool is_png = file.size >= 8 && memcmp(p, "\x89PNG\r\n\x1a\n", 8) == 0;
  bool is_jpeg = file.size >= 3 && memcmp(p, "\xff\xd8\xff", 3) == 0;
  hone_status status;
  if (is_png || is_jpeg) {
    hn_picture picture = {0};
    status =
        is_png ? hn_png_decode(file, arena, &picture, error) : hn_jpeg_decode(file, arena, &picture, error);
    return status == HONE_OK ? hn_picture_tensor(&picture, want, preprocess, arena, out, map, error) : status;
  }
  hone_tensor raw = {0};
  if (file.size >= 6 && memcmp(p, "\x93NUMPY", 6) == 0) {
    status = hn_npy_parse(file, arena, &raw, error);
  } else if (file.size >= 4 && (memcmp(p, "PK\3\4", 4) == 0 || memcmp(p, "PK\5\6", 4) == 0)) {
    hn_bytes npy = {0};
    status = hn_npz_entry(file, member, size_limit(want), arena, &npy, error);
    if (status == HONE_OK) status = hn_npy_parse(npy, arena, &raw, error);
  } else if (dot && strcasecmp(dot, ".pb") == 0) {
    status = hn_onnx_load_value_memory(p, file.size, path, want->dtype, arena, &raw, error);
  } else {
    hn_fail(error, HONE_ERROR_INPUT, "not an array or picture that hone reads");
    hn_error_expected(error, ".npy, .npz, .pb, .jpg or .png");
    return HONE_ERROR_INPUT;
  }
  if (status == HONE_OK) status = check_shape(&raw.desc, want, error);
  if (status == HONE_OK)
    status = hn_tensor_convert(&raw, want->dtype ? want->dtype : raw.desc.dtype, arena, out, error);
  return status;
}

hone_status hone_data_load(const char *path, const char *member, const hone_tensor_desc *want,
                           const hone_preprocess *preprocess, hone_data *out, hone_error *error) {
  if (!path || !want || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_data_load: path, want and out may not be NULL");
  return hn_data_read(path, member, want, preprocess, out, NULL, error);
}

hone_status hn_data_read(const char *path, const char *member, const hone_tensor_desc *want,
                         const hone_preprocess *preprocess, hone_data *out, hone_picture_map *map,
                         hone_error *error) {
  const uint64_t lost = hn_mem_lost();
  *out = (hone_data){0};
  hn_file file = {0};
  const bool number = hn_is_number(path);
  hone_status status = number ? HONE_OK : hn_file_map(path, NULL, HN_FILE_DATA, &file, error);
  if (status != HONE_OK) return status;
  hn_arena *arena = hn_calloc(1, sizeof *arena);
  if (!arena) {
    status = hn_fail_memory(error, sizeof *arena, "an input");
    goto done;
  }
  out->impl = arena;
  status = number ? hn_number_tensor(path, want, arena, &out->tensor, error)
                  : hn_data_parse(path, (hn_bytes){file.data, file.size}, member, want, preprocess, arena,
                                  &out->tensor, map, error);
  if (status != HONE_OK && error && !strstr(error->where, path)) hn_error_where(error, "%s", path);
  /* A stored .npz entry is parsed into the arena by hn_npy_parse, so nothing points into the mapping any
   * more. */
done:
  status = hn_settle(status, lost, error);
  hn_file_unmap(&file);
  if (status != HONE_OK) hone_data_free(out);
  return status;
}
