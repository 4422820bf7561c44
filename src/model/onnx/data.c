#include "model/onnx/data.h"

#include "base/error.h"
#include "base/narrow.h"
#include "model/ir/bytes.h"
#include "model/onnx/onnx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "raw_data is little endian and used as it lies in the file");

static const char *const type_names[] = {
    "UNDEFINED",      "FLOAT",      "UINT8",          "INT8",       "UINT16",    "INT16",
    "INT32",          "INT64",      "STRING",         "BOOL",       "FLOAT16",   "DOUBLE",
    "UINT32",         "UINT64",     "COMPLEX64",      "COMPLEX128", "BFLOAT16",  "FLOAT8E4M3FN",
    "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "UINT4",      "INT4",      "FLOAT4E2M1",
    "FLOAT8E8M0",     "UINT2",      "INT2",           "FLOAT6E2M3", "FLOAT6E3M2"};

const char *hn_onnx_type_name(int64_t type) {
  return type >= 0 && type < (int64_t)(sizeof type_names / sizeof *type_names) ? type_names[type] : "unknown";
}

/* One TensorProto, before its bytes are looked at. */
typedef struct proto {
  const char *name;
  int64_t type, location;
  int32_t rank;
  int64_t dim[HONE_MAX_RANK];
  bool has_raw;
  hn_pb_field raw;
  size_t typed[32]; /* elements by field number */
  const char *file, *offset, *length;
} proto;

static const char *shown(const proto *p) { return p->name && *p->name ? p->name : "(no name)"; }

static hone_status read_entry(hn_onnx_data *d, hn_pb *m, const hn_pb_field *field, proto *p) {
  hn_pb entry;
  hn_pb_field f;
  if (!hn_pb_open(&entry, m, field)) return m->source->status;
  const char *key = "", *value = "";
  while (hn_pb_next(&entry, &f)) {
    const char *s = hn_pb_name(&entry, &f, d->arena);
    if (!s) break;
    *(f.number == HN_ONNX_ENTRY_KEY ? &key : &value) = s;
  }
  const char **slot = strcmp(key, "location") == 0 ? &p->file
                      : strcmp(key, "offset") == 0 ? &p->offset
                      : strcmp(key, "length") == 0 ? &p->length
                                                   : NULL;
  if (slot) *slot = value;
  return m->source->status;
}

static hone_status read_dims(hn_pb *m, const hn_pb_field *f, proto *p) {
  size_t n = hn_pb_count(m, f);
  if (n == SIZE_MAX) return m->source->status;
  if (n > (size_t)(HONE_MAX_RANK - p->rank))
    return hn_pb_fail(m, HONE_ERROR_UNSUPPORTED, "a tensor has more than %d dimensions", HONE_MAX_RANK);
  hn_pb_ints(f, p->dim + p->rank);
  p->rank += (int32_t)n;
  return HONE_OK;
}

static hone_status read_fields(hn_onnx_data *d, hn_pb *m, proto *p) {
  hone_status status = HONE_OK;
  hn_pb_field f;
  while (status == HONE_OK && hn_pb_next(m, &f)) {
    switch (f.number) {
    case HN_ONNX_TENSOR_DIMS: status = read_dims(m, &f, p); break;
    case HN_ONNX_TENSOR_DATA_TYPE: p->type = (int64_t)f.value; break;
    case HN_ONNX_TENSOR_DATA_LOCATION: p->location = (int64_t)f.value; break;
    case HN_ONNX_TENSOR_NAME: p->name = hn_pb_name(m, &f, d->arena); break;
    case HN_ONNX_TENSOR_RAW_DATA:
      p->has_raw = true;
      p->raw = f;
      break;
    case HN_ONNX_TENSOR_FLOAT_DATA:
    case HN_ONNX_TENSOR_INT32_DATA:
    case HN_ONNX_TENSOR_INT64_DATA:
    case HN_ONNX_TENSOR_DOUBLE_DATA:
    case HN_ONNX_TENSOR_UINT64_DATA: {
      size_t n = hn_pb_count(m, &f);
      if (n != SIZE_MAX) p->typed[f.number] += n;
      break;
    }
    case HN_ONNX_TENSOR_STRING_DATA: p->typed[f.number]++; break;
    case HN_ONNX_TENSOR_EXTERNAL_DATA: status = read_entry(d, m, &f, p); break;
    case HN_ONNX_TENSOR_SEGMENT:
      status = hn_pb_fail(m, HONE_ERROR_UNSUPPORTED,
                          "a tensor is stored in segments (or this is no tensor but a sequence)");
      break;
    default: break;
    }
    if (m->source->status != HONE_OK) return m->source->status;
  }
  return m->source->status;
}

/* The field in which elements of a type are stored one by one. */
static uint32_t typed_field(hone_dtype dtype) {
  switch (dtype) {
  case HONE_DTYPE_F32: return HN_ONNX_TENSOR_FLOAT_DATA;
  case HONE_DTYPE_F64: return HN_ONNX_TENSOR_DOUBLE_DATA;
  case HONE_DTYPE_I64: return HN_ONNX_TENSOR_INT64_DATA;
  case HONE_DTYPE_U32:
  case HONE_DTYPE_U64: return HN_ONNX_TENSOR_UINT64_DATA;
  case HONE_DTYPE_STRING: return HN_ONNX_TENSOR_STRING_DATA;
  default: return HN_ONNX_TENSOR_INT32_DATA;
  }
}

static hone_status check_desc(hn_pb *m, const proto *p, hone_tensor_desc *desc) {
  if (p->type == 0) return hn_pb_fail(m, HONE_ERROR_INPUT, "tensor '%.80s' has no data type", shown(p));
  if (p->type < 0 || p->type >= HONE_DTYPE_COUNT || p->type == HONE_DTYPE_C64 || p->type == HONE_DTYPE_C128) {
    hone_status status = hn_pb_fail(m, HONE_ERROR_UNSUPPORTED,
                                    "tensor '%.80s' has data type %lld (%s), which hone does not read",
                                    shown(p), (long long)p->type, hn_onnx_type_name(p->type));
    return status;
  }
  for (int32_t i = 0; i < p->rank; i++)
    if (p->dim[i] < 0)
      return hn_pb_fail(m, HONE_ERROR_INPUT, "tensor '%.80s' has the negative dimension %lld", shown(p),
                        (long long)p->dim[i]);
  *desc = hone_desc((hone_dtype)p->type, p->rank, p->dim);
  if (hone_desc_bytes(desc) < 0)
    return hn_pb_fail(m, HONE_ERROR_INPUT, "tensor '%.80s' has more elements than memory can address",
                      shown(p));
  return HONE_OK;
}

/* "has 12 bytes of raw_data, but f32[2x2] needs 16". */
static hone_status wrong_size(hn_pb *m, const proto *p, const hone_tensor_desc *desc, unsigned long long got,
                              const char *what, unsigned long long need) {
  char text[128];
  hn_pb_fail(m, HONE_ERROR_INPUT, "tensor '%.80s' is %s, which needs %llu %s, but it has %llu", shown(p),
             hone_desc_format(desc, text, sizeof text), need, what, got);
  return m->source->status;
}

static bool is_bool_bytes(const uint8_t *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (p[i] > 1) return false;
  return true;
}

/* Bytes that a tensor has in a file: some types are packed there. */
static uint64_t file_bytes(const hone_tensor_desc *desc) {
  return hn_narrow_bits(desc->dtype) ? (uint64_t)hn_narrow_packed_bytes(desc->dtype, hone_desc_count(desc))
                                     : (uint64_t)hone_desc_bytes(desc);
}

static hone_status unpack(hn_onnx_data *d, hn_pb *m, const uint8_t *p, hone_tensor *out) {
  const int64_t n = hone_desc_count(&out->desc);
  out->data = hn_arena_raw(d->arena, (size_t)n, HN_MEM_ALIGN);
  if (!out->data) return hn_pb_no_memory(m);
  hn_narrow_unpack(out->desc.dtype, p, n, out->data);
  return HONE_OK;
}

/* Takes `bytes` at p: in place where alignment and the bytes' meaning allow it, else as a copy. */
static hone_status take_bytes(hn_onnx_data *d, hn_pb *m, const uint8_t *p, size_t bytes, hone_tensor *out) {
  hone_dtype dtype = out->desc.dtype;
  if (hn_narrow_bits(dtype) && hn_narrow_bits(dtype) < 8) return unpack(d, m, p, out);
  bool odd_bools = dtype == HONE_DTYPE_BOOL && !is_bool_bytes(p, bytes);
  bool fits = (uintptr_t)p % hone_dtype_size(dtype) == 0 || (d->loose && bytes >= HN_BYTES_LARGE);
  if (!d->copy && !odd_bools && fits) {
    out->data = (void *)p;
    return HONE_OK;
  }
  uint8_t *copy = hn_arena_raw(d->arena, bytes, HN_MEM_ALIGN);
  if (!copy) return hn_pb_no_memory(m);
  if (bytes) memcpy(copy, p, bytes);
  for (size_t i = 0; odd_bools && i < bytes; i++) copy[i] = copy[i] != 0;
  out->data = copy;
  return HONE_OK;
}

/* Stores integers that were decoded from int32_data or uint64_data as their element type; they must fit. */
static hone_status store_int(hn_pb *m, const proto *p, hone_dtype dtype, int64_t v, void *at) {
  bool fits = true;
  switch (dtype) {
  case HONE_DTYPE_I8: fits = v == (*(int8_t *)at = (int8_t)v); break;
  case HONE_DTYPE_U8: fits = v == (*(uint8_t *)at = (uint8_t)v); break;
  case HONE_DTYPE_I16: fits = v == (*(int16_t *)at = (int16_t)v); break;
  case HONE_DTYPE_U16:
  case HONE_DTYPE_F16:
  case HONE_DTYPE_BF16: fits = v == (*(uint16_t *)at = (uint16_t)v); break;
  case HONE_DTYPE_I32: fits = v == (*(int32_t *)at = (int32_t)v); break;
  case HONE_DTYPE_U32: fits = v == (*(uint32_t *)at = (uint32_t)v); break;
  case HONE_DTYPE_BOOL: *(uint8_t *)at = v != 0; break;
  default:
    if (hn_narrow_bits(dtype)) /* a code, or some that are packed */
      fits = v == (*(uint8_t *)at = (uint8_t)v);
    else
      memcpy(at, &v, sizeof v);
  }
  if (fits) return HONE_OK;
  return hn_pb_fail(m, HONE_ERROR_INPUT, "tensor '%.80s' holds the number %lld, which is no %s", shown(p),
                    (long long)v, hone_dtype_name(dtype));
}

static hone_status take_field(hn_onnx_data *d, hn_pb *m, const proto *p, const hn_pb_field *f,
                              hone_tensor *out, uint8_t **at) {
  hone_dtype dtype = out->desc.dtype;
  size_t size = hone_dtype_size(dtype);
  hone_status status = HONE_OK;
  if (dtype == HONE_DTYPE_STRING) {
    hone_string s = {(const char *)f->ptr, f->len};
    if (d->copy && !(s.ptr = hn_arena_memdup(d->arena, f->ptr, f->len))) return hn_pb_no_memory(m);
    memcpy(*at, &s, sizeof s);
    *at += sizeof s;
  } else if (f->desc->form != HN_PB_INTS) {
    hn_pb_fixed(f, *at);
    *at += hn_pb_count(m, f) * size;
  } else if (f->wire != HN_PB_LENGTH) {
    status = store_int(m, p, dtype, (int64_t)f->value, *at);
    *at += size;
  } else {
    for (const uint8_t *q = f->ptr, *end = q + f->len; q < end && status == HONE_OK; *at += size)
      status = store_int(m, p, dtype, (int64_t)hn_pb_varint(&q), *at);
  }
  return status;
}

/* Numbers in the field of a tensor: 4 and 2-bit ones are packed into bytes there, too, 6-bit ones are not. */
static uint64_t typed_count(const hone_tensor_desc *desc) {
  const int bits = hn_narrow_bits(desc->dtype);
  return bits == 2 || bits == 4 ? file_bytes(desc) : (uint64_t)hone_desc_count(desc);
}

static hone_status take_typed(hn_onnx_data *d, hn_pb *m, const proto *p, uint32_t field, hone_tensor *out) {
  const int64_t bytes = (int64_t)typed_count(&out->desc) * (int64_t)hone_dtype_size(out->desc.dtype);
  uint8_t *at = hn_arena_aligned(d->arena, (size_t)bytes, HN_MEM_ALIGN);
  if (!at) return hn_pb_no_memory(m);
  out->data = at;
  hone_status status = HONE_OK;
  hn_pb_rewind(m);
  for (hn_pb_field f; status == HONE_OK && hn_pb_next(m, &f);)
    if (f.number == field) status = take_field(d, m, p, &f, out, &at);
  const int bits = hn_narrow_bits(out->desc.dtype);
  if (status == HONE_OK && (bits == 2 || bits == 4)) return unpack(d, m, out->data, out);
  for (int64_t i = 0; bits == 6 && i < bytes; i++) ((uint8_t *)out->data)[i] &= 0x3f;
  return status;
}

/* ------------------------------------------------------------------ external data */

hone_status hn_onnx_external(hn_onnx_data *d, const hn_pb *m, const char *tensor, const char *location,
                             hn_file *out) {
  uintptr_t known = (uintptr_t)hn_map_get(&d->by_location, location);
  if (known) {
    *out = d->files->ptr[known - 1];
    return HONE_OK;
  }
  hn_pb_source *s = m->source;
  hone_status status = HONE_OK;
  if (!d->folder) {
    status = hn_fail(s->error, HONE_ERROR_UNSUPPORTED,
                     "the bytes lie in another file, but there is no folder to look in");
  } else if ((status = hn_file_map(location, d->folder, HN_FILE_WEIGHTS, out, s->error)) == HONE_OK) {
    if (hn_vec_push(d->files, *out) &&
        hn_map_set(&d->by_location, location, (void *)(uintptr_t)d->files->len))
      return HONE_OK;
    if (d->files->len == 0 || d->files->ptr[d->files->len - 1].data != out->data) hn_file_unmap(out);
    status = hn_fail_memory(s->error, sizeof *out, "a mapping");
  }
  s->status = status;
  hn_error_where(s->error, "%s: tensor '%.80s', external data '%.80s'", s->name, tensor, location);
  return status;
}

/* A decimal number without sign; false when it is none or too large. */
static bool decimal(const char *text, uint64_t *value) {
  char *end;
  if (text[0] < '0' || text[0] > '9') return false;
  errno = 0;
  *value = strtoull(text, &end, 10);
  return errno == 0 && !*end;
}

static hone_status take_external(hn_onnx_data *d, hn_pb *m, const proto *p, hone_tensor *out) {
  uint64_t bytes = file_bytes(&out->desc), offset = 0, length = bytes;
  hn_file file;
  if (out->desc.dtype == HONE_DTYPE_STRING)
    return hn_pb_fail(m, HONE_ERROR_INPUT, "tensor '%.80s' has strings in external data", shown(p));
  if (!p->file || !*p->file)
    return hn_pb_fail(m, HONE_ERROR_INPUT, "tensor '%.80s' has external data without a location", shown(p));
  if (d->absent && strcmp(p->file, HN_ONNX_ABSENT) == 0) {
    if ((uint64_t)hone_desc_bytes(&out->desc) > d->absent_bytes)
      return hn_pb_fail(m, HONE_ERROR_INPUT, "tensor '%.80s' is larger than any that was left out", shown(p));
    out->data = (void *)(uintptr_t)d->absent;
    return HONE_OK;
  }
  if ((p->offset && !decimal(p->offset, &offset)) || (p->length && !decimal(p->length, &length)))
    return hn_pb_fail(m, HONE_ERROR_INPUT,
                      "tensor '%.80s': offset or length of its external data is no number", shown(p));
  if (length != bytes) return wrong_size(m, p, &out->desc, length, "bytes", bytes);
  hone_status status = hn_onnx_external(d, m, shown(p), p->file, &file);
  if (status != HONE_OK) return status;
  if (offset > file.size || bytes > file.size - offset)
    return hn_pb_fail(
        m, HONE_ERROR_INPUT,
        "tensor '%.80s': external data at byte %llu, %llu long, is past the end of '%.80s' (%zu bytes)",
        shown(p), (unsigned long long)offset, (unsigned long long)bytes, p->file, file.size);
  return take_bytes(d, m, file.data + offset, (size_t)bytes, out);
}

/* ------------------------------------------------------------------ one tensor */

hone_status hn_onnx_tensor(hn_onnx_data *d, hn_pb *m, hone_tensor *out, const char **name) {
  proto p = {0};
  hone_tensor_desc desc;
  hone_status status = read_fields(d, m, &p);
  if (status == HONE_OK) status = check_desc(m, &p, &desc);
  if (status != HONE_OK) return status;
  *out = (hone_tensor){.desc = desc};
  if (name) *name = p.name ? p.name : "";

  uint32_t field = typed_field(desc.dtype);
  uint64_t count = typed_count(&desc), bytes = file_bytes(&desc);
  bool typed = false;
  for (uint32_t i = 0; i < 32; i++) {
    typed |= p.typed[i] > 0;
    if (p.typed[i] && i != field)
      return hn_pb_fail(m, HONE_ERROR_INPUT, "tensor '%.80s' is %s, but has elements in %s", shown(&p),
                        hone_dtype_name(desc.dtype), m->desc->field[i]->name);
  }
  if (p.location != 0 && p.location != 1)
    return hn_pb_fail(m, HONE_ERROR_UNSUPPORTED, "tensor '%.80s' has the unknown data location %lld",
                      shown(&p), (long long)p.location);
  if (p.has_raw + typed + (p.location == 1) > 1)
    return hn_pb_fail(m, HONE_ERROR_INPUT, "tensor '%.80s' has its bytes in two places", shown(&p));
  if (p.location == 1) return take_external(d, m, &p, out);
  if (p.has_raw) {
    if (desc.dtype == HONE_DTYPE_STRING)
      return hn_pb_fail(m, HONE_ERROR_INPUT, "tensor '%.80s' has strings in raw_data", shown(&p));
    if (p.raw.len != bytes) return wrong_size(m, &p, &desc, p.raw.len, "bytes", bytes);
    return take_bytes(d, m, p.raw.ptr, p.raw.len, out);
  }
  if (p.typed[field] != count) return wrong_size(m, &p, &desc, p.typed[field], "elements", count);
  return take_typed(d, m, &p, field, out);
}
