/* SequenceProto and OptionalProto -> hone_items. */
#include "base/error.h"
#include "model/ir/items.h"
#include "model/onnx/load.h"
#include "model/onnx/onnx.h"

/* The field in which a message of the outer type holds values of the inner one. */
static uint32_t field_of(bool optional, hone_dtype inner) {
  if (optional)
    return hone_dtype_is_tensor(inner) ? HN_ONNX_OPTIONAL_TENSOR_VALUE : HN_ONNX_OPTIONAL_SEQUENCE_VALUE;
  return HN_ONNX_SEQUENCE_TENSOR_VALUES;
}

static bool holds_other(bool optional, uint32_t number) {
  return number > (uint32_t)(optional ? HN_ONNX_OPTIONAL_ELEM_TYPE : HN_ONNX_SEQUENCE_ELEM_TYPE);
}

static hone_status load_items(hn_onnx_data *d, hn_pb *m, hone_dtype dtype, hone_tensor *out);

static hone_status load_inner(hn_onnx_data *d, hn_pb *m, hone_dtype inner, hone_tensor *out) {
  if (!hone_dtype_is_tensor(inner)) return load_items(d, m, inner, out);
  hone_status status = hn_onnx_tensor(d, m, out, NULL);
  if (status != HONE_OK || out->desc.dtype == inner) return status;
  return hn_pb_fail(m, HONE_ERROR_INPUT, "the file holds %s, expected %s", hone_dtype_name(out->desc.dtype),
                    hone_dtype_name(inner));
}

static hone_status count_items(hn_pb *m, bool optional, hone_dtype inner, size_t *count) {
  const uint32_t field = field_of(optional, inner);
  for (hn_pb_field f; hn_pb_next(m, &f);) {
    if (f.number == field)
      ++*count;
    else if (holds_other(optional, f.number))
      return hn_pb_fail(m, HONE_ERROR_INPUT, "the file holds %s, expected %s", f.desc->name,
                        hone_dtype_name(inner));
  }
  if (m->source->status == HONE_OK && optional && *count > 1)
    return hn_pb_fail(m, HONE_ERROR_INPUT, "an optional holds %zu values", *count);
  return m->source->status;
}

static hone_status load_items(hn_onnx_data *d, hn_pb *m, hone_dtype dtype, hone_tensor *out) {
  const bool optional = dtype & HONE_OPTIONAL;
  const hone_dtype inner = (hone_dtype)(dtype & ~(unsigned)(optional ? HONE_OPTIONAL : HONE_SEQUENCE));
  size_t count = 0;
  hone_status status = count_items(m, optional, inner, &count);
  if (status != HONE_OK) return status;
  hone_items *items = HN_NEW(d->arena, hone_items);
  hone_tensor *value = HN_NEW_ARRAY(d->arena, hone_tensor, count + 1);
  const hone_tensor **list = HN_NEW_ARRAY(d->arena, const hone_tensor *, count + 1);
  if (!items || !value || !list) return hn_pb_no_memory(m);
  hn_pb part;
  size_t i = 0;
  hn_pb_rewind(m);
  for (hn_pb_field f; status == HONE_OK && hn_pb_next(m, &f);) {
    if (f.number != field_of(optional, inner)) continue;
    if (!hn_pb_open(&part, m, &f)) break;
    status = load_inner(d, &part, inner, &value[i]);
    list[i] = &value[i];
    i++;
  }
  if (status == HONE_OK) status = m->source->status;
  *items = (hone_items){count, list};
  *out = (hone_tensor){hone_desc(dtype, 0, NULL), items};
  return status;
}

hone_status hn_onnx_load_value_memory(const void *data, size_t size, const char *file, hone_dtype dtype,
                                      hn_arena *arena, hone_tensor *out, hone_error *error) {
  if (hone_dtype_is_tensor(dtype))
    return hn_onnx_load_tensor_memory(data, size, file, arena, out, NULL, error);
  if (hn_dtype_has_map(dtype))
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s: files of maps are not read (the input is %s)", file,
                   hone_dtype_name(dtype));
  hn_pb_source source = {
      .name = file, .data = size ? data : (const uint8_t *)"", .size = size, .error = error};
  hn_onnx_files files = {0};
  hn_onnx_data to = {.arena = arena, .copy = true, .files = &files};
  hn_pb m;
  hn_pb_begin(&m, &source, dtype & HONE_OPTIONAL ? HN_ONNX_OPTIONAL : HN_ONNX_SEQUENCE);
  return load_items(&to, &m, dtype, out);
}

hone_status hn_onnx_load_value(const char *path, hone_dtype dtype, hn_arena *arena, hone_tensor *out,
                               hone_error *error) {
  hn_file file;
  hone_status status = hn_file_map(path, NULL, HN_FILE_MODEL, &file, error);
  if (status != HONE_OK) return status;
  status = hn_onnx_load_value_memory(file.data, file.size, path, dtype, arena, out, error);
  hn_file_unmap(&file);
  return status;
}
