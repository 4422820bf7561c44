#include <hone/dlpack.h>

#include "base/error.h"

#include <string.h>

static const struct {
  hone_dtype dtype;
  uint8_t code, bits;
} types[] = {
    {HONE_DTYPE_F32, 2, 32}, {HONE_DTYPE_F16, 2, 16},   {HONE_DTYPE_F64, 2, 64}, {HONE_DTYPE_BF16, 4, 16},
    {HONE_DTYPE_U8, 1, 8},   {HONE_DTYPE_U16, 1, 16},   {HONE_DTYPE_U32, 1, 32}, {HONE_DTYPE_U64, 1, 64},
    {HONE_DTYPE_I8, 0, 8},   {HONE_DTYPE_I16, 0, 16},   {HONE_DTYPE_I32, 0, 32}, {HONE_DTYPE_I64, 0, 64},
    {HONE_DTYPE_C64, 5, 64}, {HONE_DTYPE_C128, 5, 128}, {HONE_DTYPE_BOOL, 6, 8},
};
enum { TYPES = sizeof types / sizeof *types };

hone_status hone_dlpack_import(const hone_dl_tensor *from, hone_tensor *out, hone_error *error) {
  if (!from || !out) return hn_fail(error, HONE_ERROR_USAGE, "hone_dlpack_import: missing argument");
  *out = (hone_tensor){0};
  size_t k = 0;
  while (k < TYPES && (types[k].code != from->code || types[k].bits != from->bits)) k++;
  if (k == TYPES || from->lanes != 1)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED,
                   "DLPack's type of code %u with %u bits and %u lanes is none of hone's",
                   (unsigned)from->code, (unsigned)from->bits, (unsigned)from->lanes);
  if (from->ndim < 0 || from->ndim > HONE_MAX_RANK || (from->ndim && !from->shape))
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "at most %d dimensions, got %d", HONE_MAX_RANK,
                   (int)from->ndim);
  const bool host = from->device_type == HONE_DL_CPU || from->device_type == HONE_DL_CUDA_HOST;
  if (!host && from->device_type != HONE_DL_CUDA && from->device_type != HONE_DL_CUDA_MANAGED)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "device type %d of DLPack: neither the host nor CUDA",
                   (int)from->device_type);
  for (int32_t i = 0; i < from->ndim; i++)
    if (from->shape[i] < 0)
      return hn_fail(error, HONE_ERROR_USAGE, "dimension %d of a DLPack tensor is negative", (int)i);
  out->desc = hone_desc(types[k].dtype, from->ndim, from->shape);
  out->desc.device = host ? 0 : from->device_id + 1;
  for (int32_t i = 0; from->strides && i < from->ndim; i++) {
    if (from->shape[i] > 1 && from->strides[i] != out->desc.stride[i]) out->desc.layout = HONE_LAYOUT_STRIDED;
  }
  if (out->desc.layout == HONE_LAYOUT_STRIDED)
    memcpy(out->desc.stride, from->strides, (size_t)from->ndim * sizeof *from->strides);
  out->data = from->data ? (char *)from->data + from->byte_offset : NULL;
  return HONE_OK;
}

hone_status hone_dlpack_export(const hone_tensor *from, bool pinned, hone_dl_tensor *out, int64_t *dim,
                               hone_error *error) {
  if (!from || !out || !dim) return hn_fail(error, HONE_ERROR_USAGE, "hone_dlpack_export: missing argument");
  const hone_tensor_desc *d = &from->desc;
  size_t k = 0;
  while (k < TYPES && types[k].dtype != d->dtype) k++;
  if (k == TYPES || !hone_desc_known(d))
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "DLPack has no tensors of %s%s", hone_dtype_name(d->dtype),
                   k == TYPES ? "" : " of unknown shape");
  *out = (hone_dl_tensor){.data = from->data,
                          .device_type = d->device ? HONE_DL_CUDA
                                         : pinned  ? HONE_DL_CUDA_HOST
                                                   : HONE_DL_CPU,
                          .device_id = d->device ? d->device - 1 : 0,
                          .ndim = d->rank,
                          .code = types[k].code,
                          .bits = types[k].bits,
                          .lanes = 1,
                          .shape = dim,
                          .strides = dim + HONE_MAX_RANK};
  for (int32_t i = 0; i < d->rank; i++) out->shape[i] = d->dim[i], out->strides[i] = d->stride[i];
  return HONE_OK;
}
