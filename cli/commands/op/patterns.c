/* The patterns of a definition: text, inputs, and the attributes that they give to the operator. */
#include "cli/commands/op/place.h"
#include "cli/commands/op/reader.h"

#include <hone/plugins.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT = 8000 };

typedef struct words {
  char text[MOST_TEXT];
  size_t n;
} words;

static void put(words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(words *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (w->n < sizeof w->text) w->n += (size_t)vsnprintf(w->text + w->n, sizeof w->text - w->n, format, args);
  va_end(args);
}

static void put_number(const json_t *v, words *out) {
  if (json_is_integer(v))
    put(out, "%lld", (long long)json_integer_value(v));
  else
    put(out, "%.17g", json_real_value(v));
}

/* One attribute as a term of the pattern language. */
static void put_setting(op_reader *r, const char *name, const json_t *v, const char *at, words *out) {
  const json_t *one;
  size_t i;
  put(out, out->n ? "\n%s = " : "%s = ", name);
  if (json_is_array(v)) {
    put(out, "[");
    json_array_foreach((json_t *)v, i, one) {
      put(out, "%s", i ? ", " : "");
      put_number(one, out);
    }
    put(out, "]");
  } else if (json_is_string(v)) {
    const char *term = json_string_value(v);
    put(out, op_is_name(term + (*term == '%')) && *term == '%' ? "value(%s)" : "%s", term);
  } else
    put_number(v, out);
  if (json_is_string(v) && strpbrk(json_string_value(v), "\n\r"))
    op_wrong(r, at, "a term on one line", "the term has several lines");
}

static hone_attr_type type_of(const op_definition *d, const char *name) {
  for (uint32_t i = 0; i < d->n_attrs; i++)
    if (strcmp(d->attr[i].name, name) == 0) return d->attr[i].type;
  return HONE_ATTR_NONE;
}

/* A value that stands there as it is; terms are known when nodes match. */
static bool suits(const json_t *v, hone_attr_type type) {
  const json_t *one;
  size_t i;
  bool all = true;
  if (json_is_string(v)) return true;
  if (type == HONE_ATTR_INTS || type == HONE_ATTR_FLOATS) {
    const bool ints = type == HONE_ATTR_INTS;
    json_array_foreach((json_t *)v, i, one) all = all && (ints ? json_is_integer(one) : json_is_number(one));
    return all && json_is_array(v);
  }
  return type == HONE_ATTR_INT ? json_is_integer(v) : type == HONE_ATTR_FLOAT && json_is_number(v);
}

static const char *read_settings(op_reader *r, const json_t *o, const char *path) {
  const json_t *all = json_object_get(o, "attrs"), *v;
  const char *name;
  char at[OP_PATH];
  words text = {.n = 0};
  snprintf(at, sizeof at, "%.150s.attrs", path);
  if (all && !json_is_object(all)) op_wrong(r, at, "an object: {\"beta\": \"%b\"}", "\"attrs\" is none");
  json_object_foreach((json_t *)all, name, v) {
    snprintf(at, sizeof at, "%.150s.attrs.%.40s", path, name);
    const hone_attr_type type = type_of(r->d, name);
    if (!type) op_wrong(r, at, "an attribute of the operator", "'%.60s' is none", name);
    if (!suits(v, type))
      op_wrong(r, at, "a value of its type, or a term such as \"%b\" or \"attr(%y, strides)\"",
               "this is no value of attribute '%.60s'", name);
    if (r->status != HONE_OK) return NULL;
    put_setting(r, name, v, at, &text);
  }
  if (text.n >= sizeof text.text) op_wrong(r, at, "fewer words", "the attributes are too long");
  return text.n ? op_keep(r, "%s", text.text) : NULL;
}

/* ---- where a mistake is */

static size_t offset_of(const char *text, int line, int column) {
  const char *p = text;
  for (; line > 1 && strchr(p, '\n'); line--) p = strchr(p, '\n') + 1;
  return (size_t)(p - text) + (column > 0 ? (size_t)column - 1 : 0);
}

/* In the text: one string, or a list of lines. */
static bool place_in_text(const op_reader *r, const json_t *text, const char *path, size_t offset, int *line,
                          int *column) {
  const json_t *one;
  char at[OP_PATH];
  size_t i;
  if (!json_is_array(text)) return op_place_within(r->text, path, offset, line, column);
  json_array_foreach((json_t *)text, i, one) {
    const size_t n = json_string_length(one);
    snprintf(at, sizeof at, "%.150s[%zu]", path, i);
    if (offset <= n || i + 1 == json_array_size(text)) break;
    offset -= n + 1;
  }
  return op_place_within(r->text, at, offset, line, column);
}

/* In the attributes: `line` of them, as read_settings wrote it. */
static bool place_in_settings(const op_reader *r, const json_t *o, const char *path,
                              const hone_pattern_place *p, int *line, int *column) {
  const json_t *v;
  const char *name;
  char at[OP_PATH];
  int n = 0;
  json_object_foreach((json_t *)json_object_get(o, "attrs"), name, v) if (++n == p->line) {
    const char *term = json_is_string(v) ? json_string_value(v) : "";
    const int before = (int)strlen(name) + 4 + (*term == '%' && op_is_name(term + 1) ? 6 : 0);
    snprintf(at, sizeof at, "%.150s.attrs.%.40s", path, name);
    return op_place_within(r->text, at, p->column > before ? (size_t)(p->column - before) : 0, line, column);
  }
  return false;
}

static void say(op_reader *r, int line, int column, const char *what, ...)
    __attribute__((format(printf, 4, 5)));
static void say(op_reader *r, int line, int column, const char *what, ...) {
  va_list args;
  va_start(args, what);
  op_wrong_at(r, line, column, "", what, args);
  va_end(args);
}

/* As it is checked when the plugin is loaded. */
static void check(op_reader *r, const op_pattern *p, const json_t *v, const char *text_path,
                  const char *path) {
  const json_t *text = json_is_object(v) ? json_object_get(v, "text") : v;
  char name[130], at[OP_PATH];
  hone_error e = {0};
  hone_pattern_place place;
  int line, column;
  snprintf(name, sizeof name, "%.60s.%.60s", r->d->domain, r->d->op);
  const hone_pattern_desc desc = {HONE_DESC_HEAD(hone_pattern_desc), .name = name, .text = p->text,
                                  .inputs = p->inputs, .settings = p->settings};
  if (r->status != HONE_OK || hone_pattern_check(&desc, &place, &e) == HONE_OK) return;
  bool found = false;
  if (place.in && place.in == p->settings) {
    found = place_in_settings(r, v, path, &place, &line, &column);
  } else if (place.in && place.in == p->inputs) {
    snprintf(at, sizeof at, "%.150s.inputs", path);
    found = op_place_within(r->text, at, (size_t)place.column - 1, &line, &column);
  } else if (place.in && place.line > 0)
    found = place_in_text(r, text, text_path, offset_of(p->text, place.line, place.column), &line, &column);
  if (!found) (void)op_place(r->text, text_path, &line, &column);
  say(r, line, column, "%s", e.what);
}

/* A text, a list of lines, or an object with text, inputs and attrs. */
static void read_pattern(op_reader *r, const json_t *v, const char *path) {
  op_definition *d = r->d;
  const json_t *text = json_is_object(v) ? json_object_get(v, "text") : v, *line;
  char at[OP_PATH];
  words lines = {.n = 0}, inputs = {.n = 0};
  size_t i;
  if (d->n_patterns == OP_PATTERNS) {
    op_wrong(r, path, "at most 8", "too many patterns");
    return;
  }
  op_pattern *p = &d->pattern[d->n_patterns++];
  snprintf(at, sizeof at, "%.150s%s", path, json_is_object(v) ? ".text" : "");
  if (json_is_string(text)) put(&lines, "%s", json_string_value(text));
  json_array_foreach((json_t *)text, i, line)
      put(&lines, i ? "\n%s" : "%s", json_is_string(line) ? json_string_value(line) : "");
  if (!lines.n || lines.n >= sizeof lines.text)
    op_wrong(r, at, "lines such as \"%y = Relu(%x)\"", "the pattern has no text");
  for (i = 0; i < d->n_in; i++) put(&inputs, "%s%%%s", i ? " " : "", d->in[i].name);
  p->text = op_keep(r, "%s", lines.text);
  p->inputs = op_keep(r, "%s", inputs.text);
  if (json_is_object(v)) p->inputs = op_text_of(r, v, path, "inputs", p->inputs);
  if (strpbrk(p->inputs, "\"\\")) op_wrong(r, at, "names such as \"%x %b\"", "these are no inputs");
  p->settings = json_is_object(v) ? read_settings(r, v, path) : NULL;
  check(r, p, v, at, path);
}

void op_read_patterns(op_reader *r, const json_t *root, const char *path) {
  const json_t *v = json_object_get(root, "pattern"), *one;
  char at[OP_PATH];
  size_t i;
  snprintf(at, sizeof at, "%.150s.pattern", path);
  if (!v) return;
  if (!json_is_array(v) || !json_is_object(json_array_get(v, 0))) {
    read_pattern(r, v, at);
    return;
  }
  json_array_foreach((json_t *)v, i, one) {
    snprintf(at, sizeof at, "%.150s.pattern[%zu]", path, i);
    read_pattern(r, one, at);
  }
}
