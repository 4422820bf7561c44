/* StringNormalizer: strings without stop words, in lower, upper or their own case. Case is that of Unicode's
 * simple mappings, whatever the attribute `locale` says; bytes that are no UTF-8 stay as they are. */
#include "model/ops/common/convert.h"

#include <locale.h>
#include <wctype.h>

/* One code point from s[n]; its length, 0 when it is malformed. */
static size_t decode(const char *s, size_t n, uint32_t *out) {
  const unsigned char *p = (const unsigned char *)s;
  size_t length = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
  if (length == 0 || length > n) return 0;
  uint32_t c = length == 1 ? p[0] : p[0] & (0x7fu >> length);
  for (size_t i = 1; i < length; i++) {
    if ((p[i] & 0xc0) != 0x80) return 0;
    c = c << 6 | (p[i] & 0x3f);
  }
  if ((length == 3 && c < 0x800) || (length == 4 && (c < 0x10000 || c > 0x10ffff)) ||
      (c >= 0xd800 && c < 0xe000))
    return 0;
  *out = c;
  return length;
}

static size_t encode(uint32_t c, char *to) {
  if (c < 0x80) return to[0] = (char)c, 1;
  size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (size_t i = length - 1; i > 0; i--, c >>= 6) to[i] = (char)(0x80 | (c & 0x3f));
  to[0] = (char)(((0xf00u >> length) & 0xffu) | c);
  return length;
}

typedef enum letter_case { AS_IS, LOWER, UPPER } letter_case;

/* s in another case, from scratch_keep. A code point may need one byte more than before, never more than 4.
 */
static hone_status recase(hone_call *call, hone_string s, letter_case to, locale_t locale, hone_string *out,
                          hone_error *error) {
  *out = s;
  if (to == AS_IS || s.len == 0) return HONE_OK;
  char *p = s.len < SIZE_MAX / 4 ? call->scratch_keep(call, 4 * s.len) : NULL;
  if (!p) return hn_fail_memory(error, 4 * (unsigned long long)s.len, "a string");
  *out = (hone_string){p, 0};
  for (size_t i = 0; i < s.len;) {
    uint32_t c;
    size_t n = decode(s.ptr + i, s.len - i, &c);
    if (n == 0)
      p[out->len++] = s.ptr[i++];
    else {
      bool ascii = c < 0x80;
      if (ascii && to == LOWER && c >= 'A' && c <= 'Z')
        c += 'a' - 'A';
      else if (ascii && to == UPPER && c >= 'a' && c <= 'z')
        c -= 'a' - 'A';
      else if (!ascii && locale)
        c = (uint32_t)(to == LOWER ? towlower_l((wint_t)c, locale) : towupper_l((wint_t)c, locale));
      out->len += encode(c, p + out->len);
      i += n;
    }
  }
  return HONE_OK;
}

static hone_status case_of(const hone_node *node, letter_case *out, hone_error *error) {
  const char *name = hone_node_string(node, "case_change_action", "NONE");
  if (strcmp(name, "NONE") && strcmp(name, "LOWER") && strcmp(name, "UPPER"))
    return hn_op_bad(node, error, "case_change_action is '%s'", name);
  *out = strcmp(name, "LOWER") == 0 ? LOWER : strcmp(name, "UPPER") == 0 ? UPPER : AS_IS;
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  letter_case change;
  int64_t dim[2] = {1, HONE_DIM_UNKNOWN};
  bool flat = x->rank == 1;
  if (x->rank >= 0 && !flat && !(x->rank == 2 && (x->dim[0] == 1 || x->dim[0] < 0)))
    return hn_op_bad(io->node, error, "the input is neither [C] nor [1, C]");
  hn_infer_set(io, 0, HONE_DTYPE_STRING, x->rank, flat ? dim + 1 : dim);
  return case_of(io->node, &change, error);
}

static bool equal(hone_string a, hone_string b) {
  return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static hone_status normalize(hone_call *call, letter_case change, locale_t locale, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const hone_string *from = x->data;
  size_t n_stop;
  const hone_string *given = hone_node_strings(call->node, "stopwords", &n_stop);
  letter_case compare = hone_node_int(call->node, "is_case_sensitive", 0) ? AS_IS : LOWER;
  int64_t n = hn_count(x), kept = 0;
  hone_string *stop = call->scratch(call, (n_stop + 1) * sizeof *stop);
  hone_string *out = call->scratch(call, ((size_t)n + 1) * sizeof *out);
  if (!stop || !out) return hn_fail_memory(error, n_stop + (size_t)n, "strings");
  hone_status status = HONE_OK;
  for (size_t i = 0; i < n_stop && !status; i++)
    status = recase(call, given[i], compare, locale, &stop[i], error);
  for (int64_t i = 0; i < n && !status; i++) {
    hone_string as;
    bool drop = false;
    if (i % 256 == 0) status = hn_call_check(call, error);
    if (!status && n_stop) status = recase(call, from[i], compare, locale, &as, error);
    for (size_t k = 0; k < n_stop && !drop && !status; k++) drop = equal(as, stop[k]);
    if (!drop && !status) status = recase(call, from[i], change, locale, &out[kept++], error);
  }
  if (status) return status;
  if (kept == 0) out[kept++] = (hone_string){"", 0}; /* the result is never empty */
  hone_tensor_desc d =
      hone_desc(HONE_DTYPE_STRING, x->desc.rank, x->desc.rank == 1 ? &kept : (const int64_t[]){1, kept});
  status = call->alloc_output(call, 0, &d, error);
  if (!status) hn_copy_elements(call->output[0]->data, out, kept, HONE_DTYPE_STRING);
  return status;
}

static hone_status reference(hone_call *call, hone_error *error) {
  letter_case change;
  hone_status status = case_of(call->node, &change, error);
  if (status) return status;
  locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8",
                              NULL); /* NULL where the system lacks it: ASCII alone changes case */
  status = normalize(call, change, locale, error);
  if (locale) freelocale(locale);
  return status;
}

static const hone_attr_desc attrs[] = {{.name = "case_change_action", .type = HONE_ATTR_STRING},
                                       {.name = "is_case_sensitive", .type = HONE_ATTR_INT},
                                       {.name = "locale", .type = HONE_ATTR_STRING},
                                       {.name = "stopwords", .type = HONE_ATTR_STRINGS},
                                       {0}};

HN_OP(string_normalizer) = {HN_OP_HEAD,
                            .op_type = "StringNormalizer",
                            .since = 10,
                            .flags = HONE_OP_DATA_DEPENDENT,
                            HN_INPUTS(1, 1),
                            HN_OUTPUTS(1, 1),
                            .types = HN_TYPES_STRING,
                            .attrs = attrs,
                            .infer = infer,
                            .reference = reference};
