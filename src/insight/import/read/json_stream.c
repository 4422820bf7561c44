#include "insight/import/read/json_stream.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/vec.h"
#include "insight/import/read/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MOST = 128, CHUNK = 1 << 16, AHEAD = 4096, KEY_AHEAD = 512 };
#define ELEMENT_MOST ((size_t)64 << 20)

/* Memory of one element; emptied, not freed, for the next. */
typedef struct chunk {
  struct chunk *next;
  size_t size;
  _Alignas(16) char bytes[];
} chunk;

typedef struct pool {
  chunk *first, *current;
  size_t at;   /* in the current chunk */
  size_t used; /* of all, for the bound */
} pool;

typedef struct reader {
  hn_source *src;
  hone_error *error;
  hone_status status;
  pool pool;
  HN_VEC(char) text; /* the text that is being read */
} reader;

/* What surrounds a value: it decides which characters may follow. */
typedef enum place { TOP, IN_ARRAY, IN_OBJECT, AS_KEY } place;

static void pool_reset(pool *p) {
  p->current = p->first;
  p->at = p->used = 0;
}

static void pool_free(pool *p) {
  for (chunk *c = p->first, *next; c; c = next) {
    next = c->next;
    hn_free(c);
  }
  *p = (pool){0};
}

static void fail(reader *r, uint64_t offset, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void fail(reader *r, uint64_t offset, const char *format, ...) {
  if (r->status) return;
  char what[256];
  va_list ap;
  va_start(ap, format);
  vsnprintf(what, sizeof what, format, ap);
  va_end(ap);
  r->status = hn_source_fail(r->src, r->error, offset, "%s", what);
}

static void *pool_take(reader *r, size_t size) {
  pool *p = &r->pool;
  size = hn_round_up(size, 16);
  if (p->used + size > ELEMENT_MOST) {
    fail(r, hn_source_offset(r->src), "one element of the JSON is larger than %zu MiB", ELEMENT_MOST >> 20);
    return NULL;
  }
  p->used += size;
  while (p->current && p->at + size > p->current->size && p->current->next) {
    p->current = p->current->next;
    p->at = 0;
  }
  if (!p->current || p->at + size > p->current->size) {
    size_t room = size > CHUNK ? size : CHUNK;
    chunk *c = hn_malloc(sizeof *c + room);
    if (!c) {
      if (!r->status) r->status = hn_fail_memory(r->error, room, "an element of JSON");
      return NULL;
    }
    *c = (chunk){.size = room};
    if (p->current)
      p->current->next = c;
    else
      p->first = c;
    p->current = c;
    p->at = 0;
  }
  void *memory = p->current->bytes + p->at;
  p->at += size;
  return memory;
}

static bool is_blank(int c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

static int peek(reader *r) {
  int c;
  while (is_blank(c = hn_source_peek(r->src))) r->src->at++;
  if (c == HN_SOURCE_EOF && r->src->status && !r->status) r->status = r->src->status;
  return c;
}

static uint64_t offset(const reader *r) { return hn_source_offset(r->src); }

static const char *shown(int c, char buf[24]) {
  if (c == HN_SOURCE_EOF) return "the end of the file";
  snprintf(buf, 24, c >= 0x20 && c < 0x7f ? "'%c'" : "byte 0x%02x", c);
  return buf;
}

static void unexpected(reader *r, int c, const char *wanted) {
  char buf[24];
  if (r->status) return;
  if (c == HN_SOURCE_EOF) {
    fail(r, offset(r), "the JSON ends too early");
    hn_error_expected(r->error, "%s", wanted);
    hn_error_hint(r->error, "was the file cut off while it was written or copied?");
    return;
  }
  fail(r, offset(r), "unexpected %s in the JSON", shown(c, buf));
  hn_error_expected(r->error, "%s", wanted);
}

/* ---- texts ---- */

/* Is the quotation mark at `at` (of `n` bytes that can be seen) the end of a text? Yes when what follows may
 * follow a text there. A mark inside of a name that nobody escaped is followed by something else. */
static bool ends_text(const uint8_t *at, size_t n, place where) {
  size_t i = 1;
  while (i < n && is_blank(at[i])) i++;
  if (i >= n) return true;
  switch (where) {
  case AS_KEY: return at[i] == ':';
  case TOP: return false;
  case IN_ARRAY: return at[i] == ',' || at[i] == ']';
  case IN_OBJECT:
    if (at[i] == '}') return true;
    if (at[i] != ',') return false;
  }
  /* A comma between members is followed by the next key and a colon. */
  for (i++; i < n && (is_blank(at[i]) || at[i] == ','); i++) continue;
  if (i >= n || at[i] == '}') return true;
  if (at[i] != '"') return false;
  size_t most = i + KEY_AHEAD < n ? i + KEY_AHEAD : n;
  for (i++; i < most && at[i] != '"'; i++) i += at[i] == '\\';
  if (i >= most) return true;
  for (i++; i < n && is_blank(at[i]); i++) continue;
  return i >= n || at[i] == ':';
}

static bool put(reader *r, const void *bytes, size_t n) {
  if (r->text.len + n + 1 > ELEMENT_MOST) {
    fail(r, offset(r), "one text of the JSON is larger than %zu MiB", ELEMENT_MOST >> 20);
    return false;
  }
  if (!hn_vec_reserve(&r->text, r->text.len + n + 1)) {
    if (!r->status) r->status = hn_fail_memory(r->error, n, "a text of JSON");
    return false;
  }
  memcpy(r->text.ptr + r->text.len, bytes, n);
  r->text.len += n;
  return true;
}

static bool hex4(const uint8_t *at, uint32_t *value) {
  *value = 0;
  for (int i = 0; i < 4; i++) {
    const int digit = hn_text_hex((char)at[i]);
    if (digit < 0) return false;
    *value = *value << 4 | (uint32_t)digit;
  }
  return true;
}

static bool put_code(reader *r, uint32_t c) {
  if (!c || (c >= 0xd800 && c < 0xe000)) c = 0xfffd; /* texts are C strings of valid UTF-8 */
  char utf8[4];
  size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (size_t i = n - 1; i > 0; i--, c >>= 6) utf8[i] = (char)(0x80 | (c & 0x3f));
  utf8[0] = (char)(lead[n] | c);
  return put(r, utf8, n);
}

/* At a backslash. What is no escape stays as it stands: names with Windows paths exist. */
static bool escape(reader *r) {
  hn_source *s = r->src;
  size_t n = hn_source_ahead(s, 12);
  if (n < 2) {
    s->at = s->end;
    unexpected(r, HN_SOURCE_EOF, "the end of a text");
    return false;
  }
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  const char *known = s->at[1] ? strchr(from, s->at[1]) : NULL;
  uint32_t code, low;
  if (known) {
    s->at += 2;
    return put(r, &to[known - from], 1);
  }
  if (s->at[1] == 'u' && n >= 6 && hex4(s->at + 2, &code)) {
    bool pair = code >= 0xd800 && code < 0xdc00 && n >= 12 && s->at[6] == '\\' && s->at[7] == 'u' &&
                hex4(s->at + 8, &low) && low >= 0xdc00 && low < 0xe000;
    s->at += pair ? 12 : 6;
    return put_code(r, pair ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : code);
  }
  s->at++;
  return put(r, "\\", 1);
}

/* At the opening mark: the text, in the pool. */
static const char *read_text(reader *r, place where) {
  hn_source *s = r->src;
  uint64_t start = offset(r);
  s->at++;
  r->text.len = 0;
  for (;;) {
    if (hn_source_peek(s) == HN_SOURCE_EOF) {
      if (s->status)
        r->status = s->status;
      else {
        fail(r, start, "a text of the JSON does not end");
        hn_error_hint(r->error, "was the file cut off while it was written or copied?");
      }
      return NULL;
    }
    const uint8_t *p = s->at;
    while (p < s->end && *p != '"' && *p != '\\' && *p) p++;
    size_t n = (size_t)(p - s->at);
    if (n && !put(r, s->at, n)) return NULL;
    s->at = p;
    if (p >= s->end) continue;
    if (*p == '\\') {
      if (!escape(r)) return NULL;
      continue;
    }
    if (!*p) {
      s->at++;
      if (!put_code(r, 0xfffd)) return NULL;
      continue;
    }
    size_t seen = hn_source_ahead(s, AHEAD);
    if (!seen)
      continue; /* what follows could not be read or unpacked: the window is empty, the top says why */
    if (ends_text(s->at, seen < AHEAD ? seen : AHEAD, where)) break;
    if (!put(r, "\"", 1)) return NULL;
    s->at++;
  }
  s->at++;
  char *copy = pool_take(r, r->text.len + 1);
  if (!copy) return NULL;
  if (r->text.len) memcpy(copy, r->text.ptr, r->text.len);
  copy[r->text.len] = 0;
  return copy;
}

/* ---- values ---- */

static bool is_word(int c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' ||
         c == '.';
}

/* A number, true, false, null, NaN, -inf... */
static void read_word(reader *r, hn_jvalue *v) {
  char word[128];
  size_t n = 0;
  int c;
  while (is_word(c = hn_source_peek(r->src))) {
    if (n + 1 >= sizeof word) {
      fail(r, v->offset, "a number or word of more than %zu characters", sizeof word - 1);
      return;
    }
    word[n++] = (char)c;
    r->src->at++;
  }
  word[n] = 0;
  const char *end;
  if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0) {
    v->kind = HN_JBOOL;
    v->number = word[0] == 't';
  } else if (strcmp(word, "null") == 0 || strcmp(word, "None") == 0) {
    v->kind = HN_JNULL;
  } else if (n && hn_text_number(word, &v->number, &end) && !*end) {
    v->kind = HN_JNUMBER;
    char *copy = pool_take(r, n + 1);
    if (copy) v->text = memcpy(copy, word, n + 1);
  } else if (n) {
    fail(r, v->offset, "'%.40s' is no value of JSON", word);
  } else
    unexpected(r, c, "a value");
}

static bool skip_commas(reader *r, int *c) {
  bool any = false;
  while ((*c = peek(r)) == ',') {
    r->src->at++;
    any = true;
  }
  return any;
}

static hn_jvalue *read_value(reader *r, place where, unsigned depth);

static void read_children(reader *r, hn_jvalue *v, unsigned depth) {
  bool object = v->kind == HN_JOBJECT;
  int close = object ? '}' : ']', c;
  if (depth >= DEPTH_MOST) {
    fail(r, v->offset, "the JSON is nested more than %d deep", DEPTH_MOST);
    return;
  }
  r->src->at++;
  hn_jvalue **tail = &v->first;
  for (bool separated = true;; separated = false) {
    separated = skip_commas(r, &c) || separated;
    if (c == close) break;
    if (!separated || (object && c != '"')) {
      unexpected(r, c, !separated ? (object ? "',' or '}'" : "',' or ']'") : "a key in quotation marks");
      return;
    }
    const char *key = object ? read_text(r, AS_KEY) : NULL;
    if (object) {
      if (!key) return;
      if ((c = peek(r)) != ':') {
        unexpected(r, c, "':' after a key");
        return;
      }
      r->src->at++;
    }
    hn_jvalue *child = read_value(r, object ? IN_OBJECT : IN_ARRAY, depth + 1);
    if (!child) return;
    child->key = key;
    *tail = child;
    tail = &child->next;
    v->count++;
  }
  r->src->at++;
}

static hn_jvalue *read_value(reader *r, place where, unsigned depth) {
  int c = peek(r);
  hn_jvalue *v = r->status ? NULL : pool_take(r, sizeof *v);
  if (!v) return NULL;
  *v = (hn_jvalue){.offset = offset(r)};
  if (c == '"') {
    v->kind = HN_JTEXT;
    v->text = read_text(r, where);
  } else if (c == '{' || c == '[') {
    v->kind = c == '{' ? HN_JOBJECT : HN_JARRAY;
    read_children(r, v, depth);
  } else
    read_word(r, v);
  return r->status ? NULL : v;
}

/* ---- the document ---- */

static void stream_array(reader *r, const hn_jreader *to, const char *member) {
  int c;
  r->src->at++;
  if (member && to->array) r->status = to->array(to->user, member, r->error);
  for (bool separated = true; !r->status; separated = false) {
    separated = skip_commas(r, &c) || separated;
    if (r->status || c == ']') break;
    if (!separated) {
      unexpected(r, c, "',' or ']'");
      return;
    }
    pool_reset(&r->pool);
    const hn_jvalue *v = read_value(r, IN_ARRAY, 1);
    if (v) r->status = to->visit(to->user, member, true, v, r->error);
  }
  if (!r->status) r->src->at++;
}

static void stream_object(reader *r, const hn_jreader *to) {
  int c;
  r->src->at++;
  for (bool separated = true; !r->status; separated = false) {
    separated = skip_commas(r, &c) || separated;
    if (r->status || c == '}') break;
    if (!separated || c != '"') {
      unexpected(r, c, separated ? "a key in quotation marks" : "',' or '}'");
      return;
    }
    pool_reset(&r->pool);
    const char *key = read_text(r, AS_KEY);
    if (!key) return;
    char member[64]; /* outlives the elements of an array; longer keys mean nothing to anybody */
    snprintf(member, sizeof member, "%s", key);
    if ((c = peek(r)) != ':') {
      unexpected(r, c, "':' after a key");
      return;
    }
    r->src->at++;
    if (peek(r) == '[') {
      stream_array(r, to, member);
      continue;
    }
    hn_jvalue *v = read_value(r, IN_OBJECT, 1);
    if (v) r->status = to->visit(to->user, member, false, v, r->error);
  }
  if (!r->status) r->src->at++;
}

hone_status hn_jread(hn_source *source, const hn_jreader *to, hone_error *error) {
  reader r = {.src = source, .error = error};
  int c = peek(&r);
  if (c == '[')
    stream_array(&r, to, NULL);
  else if (c == '{')
    stream_object(&r, to);
  else
    unexpected(&r, c, "'[' or '{'");
  while (!r.status && (c = peek(&r)) == ',') source->at++;
  if (!r.status && c != HN_SOURCE_EOF) unexpected(&r, c, "the end of the file");
  if (!r.status && source->status) r.status = source->status;
  pool_free(&r.pool);
  hn_vec_free(&r.text);
  return r.status;
}

/* ---- using a tree ---- */

const hn_jvalue *hn_jget(const hn_jvalue *o, const char *key) {
  if (!o || o->kind != HN_JOBJECT) return NULL;
  for (const hn_jvalue *v = o->first; v; v = v->next)
    if (strcmp(v->key, key) == 0) return v;
  return NULL;
}

const hn_jvalue *hn_jget_any(const hn_jvalue *o, const char *const *keys) {
  for (; *keys; keys++) {
    const hn_jvalue *v = hn_jget(o, *keys);
    if (v) return v;
  }
  return NULL;
}

const char *hn_jtext(const hn_jvalue *o, const char *key) {
  const hn_jvalue *v = hn_jget(o, key);
  return v && v->kind == HN_JTEXT ? v->text : NULL;
}

double hn_jnumber(const hn_jvalue *o, const char *key, double absent) {
  const hn_jvalue *v = hn_jget(o, key);
  double value;
  if (v && v->kind == HN_JNUMBER) return v->number;
  return v && v->kind == HN_JTEXT && hn_text_count(v->text, &value) ? value : absent;
}

int64_t hn_jinteger(const hn_jvalue *o, const char *key, int64_t absent) {
  const double limit = 9007199254740992.0, v = hn_jnumber(o, key, limit);
  return v > -limit && v < limit ? (int64_t)v : absent;
}

bool hn_jtime(const hn_jvalue *o, const char *key, int digits, int64_t *ns) {
  const hn_jvalue *v = hn_jget(o, key);
  return v && (v->kind == HN_JNUMBER || v->kind == HN_JTEXT) && hn_text_ns(v->text, digits, ns);
}
