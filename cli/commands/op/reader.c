#include "cli/commands/op/reader.h"

#include "cli/commands/op/place.h"
#include "cli/terminal/term.h"

#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_BYTES = 1 << 20 };
#define DOMAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* "float16" of msopgen, or "f16" of hone; NONE: neither. */
static hone_dtype type_of(const char *word) {
  static const struct {
    const char *word;
    hone_dtype dtype;
  } others[] = {{"float", HONE_DTYPE_F32},   {"float32", HONE_DTYPE_F32}, {"fp32", HONE_DTYPE_F32},
                {"float16", HONE_DTYPE_F16}, {"fp16", HONE_DTYPE_F16},    {"bfloat16", HONE_DTYPE_BF16},
                {"double", HONE_DTYPE_F64},  {"float64", HONE_DTYPE_F64}, {"int8", HONE_DTYPE_I8},
                {"uint8", HONE_DTYPE_U8},    {"int16", HONE_DTYPE_I16},   {"uint16", HONE_DTYPE_U16},
                {"int32", HONE_DTYPE_I32},   {"uint32", HONE_DTYPE_U32},  {"int64", HONE_DTYPE_I64},
                {"int", HONE_DTYPE_I32},     {"uint64", HONE_DTYPE_U64}};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(others[i].word, word) == 0) return others[i].dtype;
  return hone_dtype_from_name(word);
}

bool op_is_name(const char *word) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  const size_t n = strnlen(word, 61);
  return n > 0 && n <= 60 && strspn(word, letters) == n && !isdigit((unsigned char)word[0]);
}

/* ---- reading */

void op_wrong_at(op_reader *r, int line, int column, const char *expected, const char *what, va_list args) {
  if (r->status != HONE_OK) return;
  r->status = HONE_ERROR_INPUT;
  *r->error = (hone_error){.status = HONE_ERROR_INPUT};
  vsnprintf(r->error->what, sizeof r->error->what, what, args);
  snprintf(r->error->where, sizeof r->error->where, "%.200s:%d:%d", r->d->file, line, column);
  snprintf(r->error->expected, sizeof r->error->expected, "%s", expected);
}

void op_wrong(op_reader *r, const char *path, const char *expected, const char *what, ...) {
  int line, column;
  va_list args;
  va_start(args, what);
  (void)op_place(r->text, path, &line, &column);
  op_wrong_at(r, line, column, expected, what, args);
  va_end(args);
}

/* A string member; `otherwise` where it is absent, an error where that is NULL. */
const char *op_text_of(op_reader *r, const json_t *o, const char *path, const char *name,
                       const char *otherwise) {
  const json_t *v = json_object_get(o, name);
  char at[OP_PATH];
  snprintf(at, sizeof at, "%.150s.%.40s", path, name);
  if (!v && otherwise) return otherwise;
  if (!v)
    op_wrong(r, path, "a text", "there is no \"%s\"", name);
  else if (!json_is_string(v) || !*json_string_value(v))
    op_wrong(r, at, "a text that is not empty", "\"%s\" is no text", name);
  else
    return json_string_value(v);
  return "";
}

/* Words that C, or the code that is generated, needs for itself. */
static bool is_taken(const char *word) {
  static const char *const words[] = {
      "attrs",    "n",      "auto",     "break",  "case",   "char",     "const",    "continue",
      "default",  "do",     "double",   "else",   "enum",   "extern",   "float",    "for",
      "goto",     "if",     "inline",   "int",    "long",   "register", "restrict", "return",
      "short",    "signed", "sizeof",   "static", "struct", "switch",   "typedef",  "union",
      "unsigned", "void",   "volatile", "while",  "bool",   "true",     "false"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(words[i], word) == 0) return true;
  return false;
}

static const char *name_of(op_reader *r, const json_t *o, const char *path, const char *name) {
  char at[OP_PATH];
  const char *word = op_text_of(r, o, path, name, NULL);
  snprintf(at, sizeof at, "%.150s.%.40s", path, name);
  if (*word && !op_is_name(word)) op_wrong(r, at, OP_NAME, "'%.80s' is no name", word);
  if (is_taken(word))
    op_wrong(r, at, "another name", "'%s' has a meaning of its own in C or in what is generated", word);
  return word;
}

static void read_types(op_reader *r, const json_t *o, const char *path, op_operand *out) {
  const json_t *list = json_object_get(o, "type"), *word;
  char at[OP_PATH];
  size_t i;
  snprintf(at, sizeof at, "%.150s.type", path);
  if (json_is_string(list)) {
    const hone_dtype d = type_of(json_string_value(list));
    if (!d)
      op_wrong(r, at, "float, float16, bfloat16, int8...", "there is no type '%.60s'",
               json_string_value(list));
    out->types = HONE_TYPES(d);
    return;
  }
  if (!json_array_size(list)) {
    op_wrong(r, list ? at : path, "a list of types: [\"float\"]", "\"type\" lists none");
    return;
  }
  json_array_foreach((json_t *)list, i, word) {
    snprintf(at, sizeof at, "%.150s.type[%zu]", path, i);
    const hone_dtype d = json_is_string(word) ? type_of(json_string_value(word)) : HONE_DTYPE_NONE;
    if (!d)
      op_wrong(r, at, "float, float16, bfloat16, int8...", "there is no type '%.60s'",
               json_is_string(word) ? json_string_value(word) : "(no text)");
    out->types |= HONE_TYPES(d);
  }
}

enum { CODES = HONE_TYPES(HONE_DTYPE_I8) | HONE_TYPES(HONE_DTYPE_U8) };

bool op_has_codes(const op_definition *d) {
  bool some = false;
  for (uint32_t i = 0; i < d->n_in; i++) some = some || d->in[i].scale;
  for (uint32_t i = 0; i < d->n_out; i++) some = some || d->out[i].scale;
  return some;
}

/* "scale" or "zero" of an operand: 1 + the input that it names; 0: there is none. */
static uint32_t read_measure(op_reader *r, const json_t *o, const char *path, const char *name,
                             uint32_t types) {
  op_definition *d = r->d;
  char at[OP_PATH];
  uint32_t i = 1;
  if (!json_object_get(o, name)) return 0;
  const char *word = op_text_of(r, o, path, name, "");
  snprintf(at, sizeof at, "%.150s.%.40s", path, name);
  while (i < d->n_in && strcmp(d->in[i].name, word) != 0) i++;
  if (i >= d->n_in) {
    op_wrong(r, at, "the name of an input behind the first", "there is no such input: '%.60s'", word);
    return 0;
  }
  if (d->in[i].types & ~types)
    op_wrong(r, at, types == CODES ? "an input of int8 or uint8" : "an input of float",
             "'%.60s' has another type", word);
  d->in[i].measure = true;
  return i + 1;
}

/* What codes mean, when all operands are known. */
static void read_codes(op_reader *r, const json_t *root, const char *path, const char *name,
                       op_operand *operand) {
  const json_t *o;
  char at[OP_PATH];
  size_t i;
  json_array_foreach((json_t *)json_object_get(root, name), i, o) {
    op_operand *x = &operand[i];
    snprintf(at, sizeof at, "%.150s.%.20s[%zu]", path, name, i);
    x->scale = read_measure(r, o, at, "scale", HONE_TYPES(HONE_DTYPE_F32));
    x->zero = read_measure(r, o, at, "zero", CODES);
    if (x->zero && !x->scale)
      op_wrong(r, at, "\"scale\", too", "codes of '%.60s' have a zero point and no scale", x->name);
    if (x->scale && !(x->types & CODES))
      op_wrong(r, at, "int8 or uint8 among the types", "'%.60s' has a scale and no codes", x->name);
  }
}

static void check_codes(op_reader *r, const char *path) {
  const op_definition *d = r->d;
  char at[OP_PATH];
  for (uint32_t i = 0; i < d->n_in; i++) {
    snprintf(at, sizeof at, "%.150s.input_desc[%u]", path, i);
    if (d->in[i].measure && d->in[i].scale)
      op_wrong(r, at, "a number", "'%.60s' is a scale or zero point, and has one itself", d->in[i].name);
  }
}

/* Types and dimensions of results come from inputs, so these must be there; a result that may have several
 * types has that of the first input. */
static void check_sources(op_reader *r, const char *path) {
  const op_definition *d = r->d;
  char at[OP_PATH];
  snprintf(at, sizeof at, "%.150s.input_desc[0].param_type", path);
  if (d->n_in && d->in[0].optional)
    op_wrong(r, at, "a required input first: results take their type from it",
             "the first input, '%.60s', cannot be left out", d->in[0].name);
  for (uint32_t i = 0; i < d->n_out && d->n_in; i++) {
    const op_operand *y = &d->out[i];
    snprintf(at, sizeof at, "%.150s.output_desc[%u].shape", path, i);
    if (y->shape == OP_SHAPE_OF && y->of < d->n_in && d->in[y->of].optional)
      op_wrong(r, at, "the name of a required input, \"broadcast\" or \"function\"",
               "'%.60s' may be left out: '%.60s' would have no shape", d->in[y->of].name, y->name);
    snprintf(at, sizeof at, "%.150s.output_desc[%u].type", path, i);
    if ((y->types & (y->types - 1)) && (d->in[0].types & ~y->types))
      op_wrong(r, at, "one type, or every type of the first input",
               "'%.60s' has the first input's type where it may have several, and lacks one of them",
               y->name);
  }
}

/* "example": dimensions of an input. */
static void read_example(op_reader *r, const json_t *o, const char *path, op_operand *out) {
  const json_t *list = json_object_get(o, "example"), *v;
  char at[OP_PATH], text[HONE_MAX_RANK * 21 + 1] = "";
  size_t i;
  if (!list) return;
  snprintf(at, sizeof at, "%.150s.example", path);
  if (!json_is_array(list) || json_array_size(list) > HONE_MAX_RANK) {
    op_wrong(r, at, "a list of dimensions: [2, 8, 16]", "\"example\" is none");
    return;
  }
  json_array_foreach((json_t *)list, i, v) {
    if (!json_is_integer(v) || json_integer_value(v) < 0)
      op_wrong(r, at, "a list of dimensions: [2, 8, 16]", "\"example\" has what is no dimension");
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", i ? "x" : "",
             (long long)json_integer_value(v));
  }
  out->example = op_keep(r, "%s", text);
}

static void read_shape(op_reader *r, const json_t *o, const char *path, op_operand *out) {
  const char *word = op_text_of(r, o, path, "shape", r->d->n_in ? r->d->in[0].name : "function");
  char at[OP_PATH];
  if (strcmp(word, "broadcast") == 0) {
    out->shape = OP_SHAPE_BROADCAST;
  } else if (strcmp(word, "function") == 0) {
    out->shape = OP_SHAPE_FUNCTION;
  } else {
    out->shape = OP_SHAPE_OF;
    while (out->of < r->d->n_in && strcmp(r->d->in[out->of].name, word) != 0) out->of++;
    snprintf(at, sizeof at, "%.150s.shape", path);
    if (out->of == r->d->n_in)
      op_wrong(r, at, "the name of an input, \"broadcast\" or \"function\"", "there is no input '%.60s'",
               word);
  }
}

static uint32_t read_operands(op_reader *r, const json_t *root, const char *path, const char *name,
                              op_operand *out) {
  const json_t *list = json_object_get(root, name), *o;
  char at[OP_PATH];
  uint32_t n = 0;
  size_t i;
  snprintf(at, sizeof at, "%.150s.%.40s", path, name);
  if (!json_is_array(list) || !json_array_size(list) || json_array_size(list) > OP_OPERANDS) {
    op_wrong(r, list ? at : path, "1 to 16 of them", "\"%s\" is no list of operands", name);
    return 0;
  }
  json_array_foreach((json_t *)list, i, o) {
    snprintf(at, sizeof at, "%.150s.%.20s[%zu]", path, name, i);
    out[n] = (op_operand){.name = name_of(r, o, at, "name")};
    const char *need = op_text_of(r, o, at, "param_type", "required");
    if (strcmp(need, "optional") == 0)
      out[n].optional = true;
    else if (strcmp(need, "required") != 0)
      op_wrong(r, at, "required or optional", "param_type '%.60s' is not known", need);
    for (uint32_t k = 0; k < n; k++)
      if (strcmp(out[k].name, out[n].name) == 0)
        op_wrong(r, at, "names that differ", "there are two '%.60s'", out[n].name);
    read_types(r, o, at, &out[n]);
    if (out == r->d->out)
      read_shape(r, o, at, &out[n]);
    else
      read_example(r, o, at, &out[n]);
    n++;
  }
  return n;
}

const char *op_keep(op_reader *r, const char *format, ...) {
  va_list args;
  char *text = NULL;
  va_start(args, format);
  const int n = vasprintf(&text, format, args);
  va_end(args);
  json_t *kept = n >= 0 ? json_string(text) : NULL;
  if (n >= 0) free(text);
  if (!kept || json_array_append_new(json_object_get(r->d->memory, "kept"), kept) != 0) {
    r->status = r->error->status = HONE_ERROR_MEMORY;
    return "";
  }
  return json_string_value(kept);
}

/* A number as C writes it, of an attribute's type. */
static const char *number_text(op_reader *r, const op_attr *a, const char *text, const char *at) {
  char *end;
  if (a->type == HONE_ATTR_INT) {
    const long long v = strtoll(text, &end, 10);
    if (end == text || *end) op_wrong(r, at, "a whole number", "'%.60s' is none", text);
    return op_keep(r, "%lld", v);
  }
  const double v = strtod(text, &end);
  if (end == text || *end || !isfinite(v)) op_wrong(r, at, "a number", "'%.60s' is none", text);
  const char *number = op_keep(r, "%.9g", v);
  return op_keep(r, "%s%sf", number, strpbrk(number, ".en") ? "" : ".0");
}

/* A text that C reads as this text. */
static const char *quoted(op_reader *r, const char *text) {
  char q[560];
  size_t n = 0;
  q[n++] = '"';
  for (; *text && n < sizeof q - 6; text++) {
    if (*text == '"' || *text == '\\') q[n++] = '\\';
    if ((unsigned char)*text < 32)
      n += (size_t)snprintf(q + n, sizeof q - n, "\\%03o", (unsigned char)*text);
    else
      q[n++] = *text;
  }
  q[n++] = '"';
  q[n] = 0;
  return op_keep(r, "%s", q);
}

static void read_default(op_reader *r, const json_t *v, const char *at, op_attr *a) {
  char number[64];
  if (a->type == HONE_ATTR_STRING) {
    if (!json_is_string(v)) op_wrong(r, at, "a text", "the default of a string is no text");
    a->otherwise = quoted(r, json_is_string(v) ? json_string_value(v) : "");
    return;
  }
  if (a->type != HONE_ATTR_INT && a->type != HONE_ATTR_FLOAT) {
    op_wrong(r, at, "none: an absent list is empty", "a list has no default");
    return;
  }
  if (json_is_number(v))
    snprintf(number, sizeof number, json_is_integer(v) ? "%.0f" : "%.17g", json_number_value(v));
  else if (json_is_string(v))
    snprintf(number, sizeof number, "%.60s", json_string_value(v));
  else
    snprintf(number, sizeof number, "?");
  a->otherwise = number_text(r, a, number, at);
}

static void read_attrs(op_reader *r, const json_t *root, const char *path) {
  static const struct {
    const char *word;
    hone_attr_type type;
  } types[] = {{"int", HONE_ATTR_INT},    {"float", HONE_ATTR_FLOAT},       {"string", HONE_ATTR_STRING},
               {"str", HONE_ATTR_STRING}, {"list_int", HONE_ATTR_INTS},     {"ints", HONE_ATTR_INTS},
               {"bool", HONE_ATTR_INT},   {"list_float", HONE_ATTR_FLOATS}, {"floats", HONE_ATTR_FLOATS}};
  op_definition *d = r->d;
  const json_t *list = json_object_get(root, "attr"), *o;
  char at[OP_PATH];
  size_t i;
  snprintf(at, sizeof at, "%.150s.attr", path);
  if (!list) return;
  if (!json_is_array(list) || json_array_size(list) > OP_ATTRS) {
    op_wrong(r, at, "a list of at most 16", "\"attr\" is no list of attributes");
    return;
  }
  json_array_foreach((json_t *)list, i, o) {
    op_attr *a = &d->attr[d->n_attrs];
    snprintf(at, sizeof at, "%.150s.attr[%zu]", path, i);
    *a = (op_attr){.name = name_of(r, o, at, "name")};
    const char *type = op_text_of(r, o, at, "type", NULL),
               *need = op_text_of(r, o, at, "param_type", "optional");
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
      if (strcmp(types[k].word, type) == 0) a->type = types[k].type;
    if (!a->type)
      op_wrong(r, at, "int, float, string, list_int or list_float", "there is no type '%.60s'", type);
    a->required = strcmp(need, "required") == 0;
    const json_t *v = json_object_get(o, "default_value");
    if (v && !a->required) read_default(r, v, at, a);
    const bool list_type = a->type == HONE_ATTR_INTS || a->type == HONE_ATTR_FLOATS;
    if (!a->required && !a->otherwise && !list_type && r->status == HONE_OK)
      a->otherwise = a->type == HONE_ATTR_STRING ? "\"\"" : a->type == HONE_ATTR_INT ? "0" : "0.0f";
    d->n_attrs++;
  }
}

static void read_tiles(op_reader *r, const json_t *root, const char *path) {
  const json_t *list = json_object_get(root, "tile"), *v;
  char at[OP_PATH];
  size_t i;
  json_array_foreach((json_t *)list, i, v) {
    const json_int_t n = json_integer_value(v);
    snprintf(at, sizeof at, "%.150s.tile[%zu]", path, i);
    if (n < 1 || n > 1 << 20 || r->d->n_tiles == OP_TILES)
      op_wrong(r, at, "at most 8 whole numbers from 1 to 1048576", "this is no tile");
    else
      r->d->tile[r->d->n_tiles++] = (int)n;
  }
}

static void read_functions(op_reader *r, const json_t *root, const char *path) {
  static const struct {
    const char *word;
    uint32_t bit;
  } known[] = {{"need", OP_HAS_NEED}, {"prepack", OP_HAS_PREPACK}, {"count", OP_HAS_COUNT}};
  const json_t *list = json_object_get(root, "functions"), *v;
  char at[OP_PATH];
  size_t i;
  snprintf(at, sizeof at, "%.150s.functions", path);
  if (list && (!json_is_array(list) || r->d->kind != OP_GENERAL)) {
    op_wrong(r, at, "a list, of an operator with \"kind\": \"general\"", "\"functions\" is not for this one");
    return;
  }
  json_array_foreach((json_t *)list, i, v) {
    const char *word = json_is_string(v) ? json_string_value(v) : "";
    uint32_t bit = 0;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
      if (strcmp(known[k].word, word) == 0) bit = known[k].bit;
    snprintf(at, sizeof at, "%.150s.functions[%zu]", path, i);
    if (!bit) op_wrong(r, at, "need, prepack or count", "there is no function '%.60s'", word);
    r->d->functions |= bit;
  }
  if (r->d->functions & OP_HAS_PREPACK && !(r->d->functions & OP_HAS_NEED)) {
    snprintf(at, sizeof at, "%.150s.functions", path);
    op_wrong(r, at, "\"need\", too: it says how many bytes", "\"prepack\" has no room to write to");
  }
}

static void check_members(op_reader *r, const json_t *o, const char *path) {
  static const char *const known[] = {"op",      "language", "domain",     "since",       "about",
                                      "version", "kind",     "input_desc", "output_desc", "attr",
                                      "pattern", "tile",     "tolerance",  "functions"};
  const char *name;
  const json_t *v;
  char at[OP_PATH];
  json_object_foreach((json_t *)o, name, v) {
    bool found = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) found = found || strcmp(known[i], name) == 0;
    snprintf(at, sizeof at, "%.150s.%.40s", path, name);
    if (!found)
      op_wrong(r, at,
               "op, domain, since, about, version, kind, input_desc, output_desc, attr, functions, pattern, "
               "tile, tolerance",
               "\"%.60s\" is not known", name);
  }
}

static void read_all(op_reader *r, const json_t *root, const char *path) {
  op_definition *d = r->d;
  check_members(r, root, path);
  d->op = name_of(r, root, path, "op");
  d->domain = op_text_of(r, root, path, "domain", "custom");
  if (strspn(d->domain, DOMAIN) != strlen(d->domain) || strlen(d->domain) > 60)
    op_wrong(r, path, "letters, digits, '.', '-' and '_'", "'%.80s' is no domain", d->domain);
  d->about = op_text_of(r, root, path, "about", d->op);
  d->version = op_text_of(r, root, path, "version", "1.0.0");
  const char *kind = op_text_of(r, root, path, "kind", "elementwise");
  d->kind = strcmp(kind, "general") == 0 ? OP_GENERAL : OP_ELEMENTWISE;
  char at[OP_PATH];
  snprintf(at, sizeof at, "%.150s.kind", path);
  if (d->kind == OP_ELEMENTWISE && strcmp(kind, "elementwise") != 0)
    op_wrong(r, at, "elementwise or general", "there is no kind '%.60s'", kind);
  const json_t *since = json_object_get(root, "since"), *tolerance = json_object_get(root, "tolerance");
  d->since = since ? (int)json_integer_value(since) : 1; /* 0 of what is no number */
  snprintf(at, sizeof at, "%.150s.since", path);
  if (d->since < 1) op_wrong(r, at, "1 or more", "\"since\" is no version");
  d->tolerance = json_number_value(tolerance);
  snprintf(at, sizeof at, "%.150s.tolerance", path);
  if (tolerance && (!json_is_number(tolerance) || d->tolerance <= 0))
    op_wrong(r, at, "a number such as 1e-6", "\"tolerance\" is none");
  d->n_in = read_operands(r, root, path, "input_desc", d->in);
  d->n_out = read_operands(r, root, path, "output_desc", d->out);
  if (r->status == HONE_OK) check_sources(r, path);
  if (r->status == HONE_OK) read_codes(r, root, path, "input_desc", d->in);
  if (r->status == HONE_OK) read_codes(r, root, path, "output_desc", d->out);
  if (r->status == HONE_OK) check_codes(r, path);
  read_attrs(r, root, path);
  read_functions(r, root, path);
  op_read_patterns(r, root, path);
  read_tiles(r, root, path);
  for (uint32_t i = 0; d->kind == OP_ELEMENTWISE && i < d->n_out && r->status == HONE_OK; i++)
    if (d->out[i].shape == OP_SHAPE_FUNCTION || d->n_out > 1) {
      snprintf(at, sizeof at, "%.150s.output_desc[%u]", path, i);
      op_wrong(r, at, "one output with the shape of an input, or \"kind\": \"general\"",
               "an elementwise operator cannot have this output");
    }
}

/* ---- files */

/* The one .json file of a folder. */
static hone_status find_file(const char *folder, char *path, size_t size, hone_error *error) {
  struct stat st;
  char found[300] = "";
  if (stat(folder, &st) == 0 && !S_ISDIR(st.st_mode)) {
    snprintf(path, size, "%s", folder);
    return HONE_OK;
  }
  DIR *dir = opendir(folder);
  bool several = false;
  for (struct dirent *e; dir && (e = readdir(dir));) {
    const size_t n = strlen(e->d_name);
    if (e->d_name[0] == '.' || n < 6 || n > 200 || strcmp(e->d_name + n - 5, ".json") != 0) continue;
    several = several || *found;
    snprintf(found, sizeof found, "%s", e->d_name);
  }
  if (dir) closedir(dir);
  *error = (hone_error){.status = dir ? HONE_ERROR_INPUT : HONE_ERROR_MISSING};
  snprintf(error->where, sizeof error->where, "%.250s", folder);
  if (!dir)
    snprintf(error->what, sizeof error->what, "there is no such folder");
  else if (!*found)
    snprintf(error->what, sizeof error->what, "the folder has no definition, a .json file");
  else if (several)
    snprintf(error->what, sizeof error->what,
             "the folder has several .json files: name the one that is meant");
  else if ((size_t)snprintf(path, size, "%s/%s", folder, found) < size)
    return HONE_OK;
  snprintf(error->hint, sizeof error->hint, "hone op new NAME makes a folder with one");
  return error->status;
}

static bool split(const char *path, op_definition *d, op_reader *r) {
  const char *slash = strrchr(path, '/');
  snprintf(d->folder, sizeof d->folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
  const char *base = slash ? slash + 1 : path;
  d->file = op_keep(r, "%s", path);
  d->stem = op_keep(r, "%.*s", (int)strcspn(base, "."), base);
  if (op_is_name(d->stem)) return true;
  op_wrong(r, "", "letters, digits and '_'", "the file's name '%.60s' is not what C takes as a name",
           d->stem);
  return false;
}

hone_status op_definition_read(const char *folder, op_definition *d, hone_error *error) {
  char path[4096], *text;
  size_t size;
  json_error_t where;
  *d = (op_definition){0};
  hone_status status = find_file(folder, path, sizeof path, error);
  if (status == HONE_OK) status = hone_file_read(path, MOST_BYTES, &text, &size, error);
  if (status != HONE_OK) return status;
  json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
  d->memory = json_pack("{s:[]}", "kept");
  op_reader r = {.d = d, .text = text, .error = error};
  d->file = path;
  if (!d->memory) {
    r.status = error->status = HONE_ERROR_MEMORY;
  } else if (!root) {
    *error = (hone_error){.status = HONE_ERROR_INPUT};
    snprintf(error->what, sizeof error->what, "this is no JSON: %.200s", where.text);
    snprintf(error->where, sizeof error->where, "%.200s:%d:%d", path, where.line, where.column);
    r.status = HONE_ERROR_INPUT;
  } else if (split(path, d, &r)) {
    json_object_set(d->memory, "root", root);
    const json_t *one = json_is_array(root) ? json_array_get(root, 0) : root;
    if (!json_is_object(one) || (json_is_array(root) && json_array_size(root) != 1))
      op_wrong(&r, "", "one object, or a list with one", "this defines no operator");
    else
      read_all(&r, one, json_is_array(root) ? "[0]" : "");
  }
  json_decref(root);
  hone_file_free(text);
  if (r.status != HONE_OK) op_definition_free(d);
  return r.status;
}

void op_definition_free(op_definition *d) {
  json_decref(d->memory);
  d->memory = NULL;
}
