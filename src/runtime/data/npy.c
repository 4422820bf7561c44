/* NumPy's .npy: a magic, a Python dictionary as text, then the elements. */
#include "runtime/data/data.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

static const struct {
  char code[3];
  hone_dtype dtype;
} codes[] = {
    {"f2", HONE_DTYPE_F16}, {"f4", HONE_DTYPE_F32}, {"f8", HONE_DTYPE_F64}, {"i1", HONE_DTYPE_I8},
    {"i2", HONE_DTYPE_I16}, {"i4", HONE_DTYPE_I32}, {"i8", HONE_DTYPE_I64}, {"u1", HONE_DTYPE_U8},
    {"u2", HONE_DTYPE_U16}, {"u4", HONE_DTYPE_U32}, {"u8", HONE_DTYPE_U64}, {"b1", HONE_DTYPE_BOOL},
};
enum { CODES = sizeof codes / sizeof *codes };

/* What the header says. */
typedef struct header {
  hone_dtype dtype;
  char kind;   /* of strings: 'U' (UTF-32) or 'S' (bytes); else 0 */
  size_t item; /* bytes of one element in the file */
  bool swap;   /* big-endian */
  bool fortran;
  hone_tensor_desc desc;
} header;

/* Value text of a key of the dictionary: points behind the colon, or NULL. */
static const char *find_key(const char *text, const char *key) {
  const char *p = strstr(text, key);
  if (!p) return NULL;
  p += strlen(key);
  p += strspn(p, " ");
  if (*p != ':') return NULL;
  return p + 1 + strspn(p + 1, " ");
}

static hone_status parse_descr(const char *p, header *h, hone_error *error) {
  char text[32] = "";
  if (*p == '\'' || *p == '"') {
    size_t n = strcspn(p + 1, "'\"");
    if (n < sizeof text) memcpy(text, p + 1, n);
  }
  char order = text[0];
  if (order && strchr("<>|=", order)) {
    h->swap = order == '>';
    for (int i = 0; i < CODES; i++)
      if (strcmp(text + 1, codes[i].code) == 0) {
        h->dtype = codes[i].dtype;
        h->item = hone_dtype_size(h->dtype);
        return HONE_OK;
      }
    unsigned long n = 0;
    char end;
    if ((text[1] == 'U' || text[1] == 'S') && sscanf(text + 2, "%8lu%c", &n, &end) == 1 && n < 1u << 20) {
      h->dtype = HONE_DTYPE_STRING;
      h->kind = text[1];
      h->item = n * (text[1] == 'U' ? 4 : 1);
      return HONE_OK;
    }
  }
  hn_fail(error, HONE_ERROR_UNSUPPORTED, "array of an element type that hone does not read");
  hn_error_got(error, "descr %.40s", p);
  hn_error_hint(error, "save plain numbers, bools or fixed-length strings");
  return HONE_ERROR_UNSUPPORTED;
}

static hone_status parse_shape(const char *p, header *h, hone_error *error) {
  int64_t dims[HONE_MAX_RANK];
  int32_t rank = 0;
  if (*p != '(') goto bad;
  for (p++;;) {
    p += strspn(p, " ");
    if (*p == ')') break;
    if (*p < '0' || *p > '9') goto bad;
    uint64_t v = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
      v = v * 10 + (uint64_t)(*p - '0');
      if (v > (uint64_t)1 << 48) goto bad;
    }
    if (rank == HONE_MAX_RANK)
      return hn_fail(error, HONE_ERROR_UNSUPPORTED, "array has more than %d dimensions", HONE_MAX_RANK);
    dims[rank++] = (int64_t)v;
    p += strspn(p, "L ");
    if (*p == ',')
      p++;
    else if (*p != ')')
      goto bad;
  }
  h->desc = hone_desc(h->dtype, rank, dims);
  if (hone_desc_bytes(&h->desc) < 0) goto bad;
  return HONE_OK;
bad:
  hn_fail(error, HONE_ERROR_INPUT, "bad shape in .npy header");
  hn_error_got(error, "%.60s", p);
  return HONE_ERROR_INPUT;
}

/* Reads the header; *body is what follows it. */
static hone_status parse_header(hn_bytes npy, header *h, hn_bytes *body, hone_error *error) {
  *h = (header){0};
  if (npy.size < 12 || memcmp(npy.data, "\x93NUMPY", 6) != 0)
    return hn_fail(error, HONE_ERROR_INPUT, "not a .npy file: its first bytes are not \\x93NUMPY");
  unsigned major = npy.data[6];
  size_t at = major == 1 ? 10 : 12;
  size_t len = (size_t)npy.data[8] | (size_t)npy.data[9] << 8;
  if (major >= 2) len |= (size_t)npy.data[10] << 16 | (size_t)npy.data[11] << 24;
  if (major < 1 || major > 3)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, ".npy version %u is not known", major);
  if (len > 65536 || len > npy.size - at)
    return hn_fail(error, HONE_ERROR_INPUT, ".npy header is cut off or too long");
  char text[65537];
  memcpy(text, npy.data + at, len);
  text[len] = 0;
  const char *descr = find_key(text, "'descr'"), *order = find_key(text, "'fortran_order'"),
             *shape = find_key(text, "'shape'");
  if (!descr || !order || !shape)
    return hn_fail(error, HONE_ERROR_INPUT, ".npy header lacks descr, fortran_order or shape");
  h->fortran = strncmp(order, "True", 4) == 0;
  hone_status status = parse_descr(descr, h, error);
  if (status == HONE_OK) status = parse_shape(shape, h, error);
  *body = (hn_bytes){npy.data + at + len, npy.size - at - len};
  return status;
}

/* Position in a column-major file of the row-major element i. */
static int64_t fortran_index(const hone_tensor_desc *d, int64_t i) {
  int64_t at = 0, step[HONE_MAX_RANK], s = 1;
  for (int32_t k = 0; k < d->rank; k++) step[k] = s, s *= d->dim[k];
  for (int32_t k = d->rank - 1; k >= 0; k--) {
    at += i % d->dim[k] * step[k];
    i /= d->dim[k];
  }
  return at;
}

/* One code point as UTF-8; 0 bytes when it is none. */
static size_t utf8(uint32_t c, char *out) {
  if (c < 0x80) return out[0] = (char)c, 1;
  if (c < 0x800) return out[0] = (char)(0xc0 | c >> 6), out[1] = (char)(0x80 | (c & 0x3f)), 2;
  if (c < 0x10000)
    return out[0] = (char)(0xe0 | c >> 12), out[1] = (char)(0x80 | (c >> 6 & 0x3f)),
           out[2] = (char)(0x80 | (c & 0x3f)), 3;
  if (c < 0x110000)
    return out[0] = (char)(0xf0 | c >> 18), out[1] = (char)(0x80 | (c >> 12 & 0x3f)),
           out[2] = (char)(0x80 | (c >> 6 & 0x3f)), out[3] = (char)(0x80 | (c & 0x3f)), 4;
  return 0;
}

static bool read_string(const header *h, const uint8_t *p, hn_arena *arena, hone_string *out) {
  char *s = hn_arena_alloc(arena, h->item + 1);
  if (!s) return false;
  size_t n = 0;
  if (h->kind == 'S') {
    n = h->item;
    memcpy(s, p, n);
    while (n && !s[n - 1]) n--;
  } else {
    for (size_t i = 0; i < h->item; i += 4) {
      uint32_t c = h->swap
                       ? (uint32_t)p[i] << 24 | (uint32_t)p[i + 1] << 16 | (uint32_t)p[i + 2] << 8 | p[i + 3]
                       : (uint32_t)p[i + 3] << 24 | (uint32_t)p[i + 2] << 16 | (uint32_t)p[i + 1] << 8 | p[i];
      if (!c) break;
      n += utf8(c, s + n);
    }
  }
  *out = (hone_string){s, n};
  return true;
}

hone_status hn_npy_head(hn_bytes npy, hone_tensor_desc *desc, size_t *body, bool *plain, hone_error *error) {
  header h;
  hn_bytes rest;
  hone_status status = parse_header(npy, &h, &rest, error);
  if (status != HONE_OK) return status;
  *desc = h.desc;
  *body = (size_t)(rest.data - npy.data);
  *plain = !h.kind && !h.fortran && !h.swap && h.dtype != HONE_DTYPE_BOOL;
  return HONE_OK;
}

hone_status hn_npy_parse(hn_bytes npy, hn_arena *arena, hone_tensor *out, hone_error *error) {
  header h;
  hn_bytes body;
  hone_status status = parse_header(npy, &h, &body, error);
  if (status != HONE_OK) return status;
  int64_t count = hone_desc_count(&h.desc);
  if ((uint64_t)count > body.size / (h.item ? h.item : 1) || (uint64_t)count * h.item > body.size) {
    hn_fail(error, HONE_ERROR_INPUT, ".npy file is cut off");
    hn_error_expected(error, "%lld elements of %zu bytes", (long long)count, h.item);
    hn_error_got(error, "%zu bytes", body.size);
    return HONE_ERROR_INPUT;
  }
  size_t bytes = (size_t)hone_desc_bytes(&h.desc);
  /* All bytes of numbers are written below; a string that fails leaves others unread. */
  uint8_t *data =
      h.kind ? hn_arena_aligned(arena, bytes, HN_MEM_ALIGN) : hn_arena_raw(arena, bytes, HN_MEM_ALIGN);
  if (!data) return hn_fail_memory(error, bytes, "an array");
  *out = (hone_tensor){h.desc, data};
  if (!h.kind && !h.fortran && !h.swap) {
    if (h.dtype == HONE_DTYPE_BOOL) {
      for (size_t i = 0; i < bytes; i++) data[i] = body.data[i] != 0;
    } else {
      memcpy(data, body.data, bytes);
    }
    return HONE_OK;
  }
  for (int64_t i = 0; i < count; i++) {
    const uint8_t *p = body.data + (size_t)(h.fortran ? fortran_index(&h.desc, i) : i) * h.item;
    if (h.kind) {
      if (!read_string(&h, p, arena, (hone_string *)data + i))
        return hn_fail_memory(error, h.item, "a string");
    } else {
      for (size_t b = 0; b < h.item; b++) data[(size_t)i * h.item + b] = p[h.swap ? h.item - 1 - b : b];
    }
  }
  return HONE_OK;
}

/* Elements of a string tensor as NumPy's fixed-width UTF-32; bytes that are no UTF-8 become U+FFFD. */
static size_t decode_utf8(const hone_string *s, uint32_t *out) {
  size_t n = 0;
  for (size_t i = 0; i < s->len;) {
    uint8_t b = (uint8_t)s->ptr[i];
    size_t len = b < 0x80 ? 1 : b >= 0xf0 && b < 0xf5 ? 4 : b >= 0xe0 ? 3 : b >= 0xc2 ? 2 : 0;
    uint32_t c = len == 1 ? b : len ? b & (0x7fu >> len) : 0xfffd;
    if (!len || b >= 0xf5 || i + len > s->len) c = 0xfffd, len = 1;
    for (size_t k = 1; k < len; k++) {
      uint8_t t = (uint8_t)s->ptr[i + k];
      if ((t & 0xc0) != 0x80) {
        c = 0xfffd, len = 1;
        break;
      }
      c = c << 6 | (t & 0x3f);
    }
    if (out) out[n] = c;
    n++;
    i += len;
  }
  return n;
}

static hone_status strings_body(const hone_tensor *t, int64_t count, hn_str *s, char descr[24],
                                hone_error *error) {
  const hone_string *v = t->data;
  size_t widest = 1;
  for (int64_t i = 0; i < count; i++) {
    size_t n = decode_utf8(&v[i], NULL);
    if (n > widest) widest = n;
  }
  snprintf(descr, 24, "<U%zu", widest);
  uint32_t *line = hn_calloc(widest, sizeof *line);
  if (!line) return hn_fail_memory(error, widest * sizeof *line, "strings");
  for (int64_t i = 0; i < count; i++) {
    memset(line, 0, widest * sizeof *line);
    decode_utf8(&v[i], line);
    hn_str_append(s, (const char *)line, widest * sizeof *line);
  }
  hn_free(line);
  return HONE_OK;
}

hone_status hone_data_save_npy(const hone_tensor *tensor, const char *path, hone_error *error) {
  if (!tensor || !path)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_data_save_npy: tensor and path may not be NULL");
  hone_status status = HONE_OK;
  hn_arena arena = {0};
  hn_str file = {0}, body = {0};
  hone_tensor t = *tensor;
  int64_t count = hone_desc_count(&t.desc);
  char descr[24] = "", shape[HONE_MAX_RANK * 22 + 4] = "(";
  if (count < 0 || (count && !t.data)) {
    status = hn_fail(error, HONE_ERROR_USAGE, "tensor has unknown dimensions or no data");
    goto done;
  }
  if (t.desc.dtype == HONE_DTYPE_BF16) { /* NumPy has no bfloat16; f32 holds every value */
    status = hn_tensor_convert(tensor, HONE_DTYPE_F32, &arena, &t, error);
    if (status != HONE_OK) goto done;
  }
  if (t.desc.dtype == HONE_DTYPE_STRING) {
    status = strings_body(&t, count, &body, descr, error);
    if (status != HONE_OK) goto done;
  } else {
    for (int i = 0; i < CODES; i++)
      if (codes[i].dtype == t.desc.dtype)
        snprintf(descr, sizeof descr, "%c%.2s", codes[i].code[1] == '1' ? '|' : '<', codes[i].code);
    if (!descr[0]) {
      status = hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s cannot be written as .npy",
                       hone_dtype_name(t.desc.dtype));
      goto done;
    }
  }
  for (int32_t k = 0; k < t.desc.rank; k++) {
    size_t n = strlen(shape);
    snprintf(shape + n, sizeof shape - n, "%lld,%s", (long long)t.desc.dim[k],
             k + 1 < t.desc.rank ? " " : "");
  }
  strcat(shape, ")");
  char text[512];
  int len =
      snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
  int padded = (len + 1 + 10 + 63) / 64 * 64 - 10; /* magic and header end on a 64-byte boundary */
  hn_str_append(&file, "\x93NUMPY\1\0", 8);
  hn_str_putc(&file, (char)(padded & 0xff));
  hn_str_putc(&file, (char)(padded >> 8));
  hn_str_puts(&file, text);
  for (int i = len; i < padded - 1; i++) hn_str_putc(&file, ' ');
  hn_str_putc(&file, '\n');
  if (t.desc.dtype == HONE_DTYPE_STRING)
    hn_str_append(&file, body.ptr ? body.ptr : "", body.len);
  else
    hn_str_append(&file, count ? t.data : "", (size_t)hone_desc_bytes(&t.desc));
  if (file.failed || body.failed)
    status = hn_fail(error, HONE_ERROR_MEMORY, "out of memory while writing an array");
  if (status == HONE_OK) status = hn_file_write(path, file.ptr, file.len, error);
done:
  hn_str_free(&file);
  hn_str_free(&body);
  hn_arena_free(&arena);
  return status;
}
