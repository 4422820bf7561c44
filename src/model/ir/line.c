/* One line of the text form: outputs = Operator(operands) {attributes} "name". */
#include "model/ir/text.h"
#include "model/ir/line.h"

#include "base/error.h"
#include "base/half.h"
#include "base/narrow.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { MAX_NUMBERS = 1 << 24, MAX_TERMS = 16 };

static bool no_memory(hn_lex *lex, size_t bytes) {
  if (lex->status == HONE_OK) lex->status = hn_fail_memory(lex->error, bytes, "the text form");
  return false;
}

/* ------------------------------------------------------------------ numbers */

/* expr := term {('/' | '*') term}; term := number | pi | sqrt '(' expr ')'. */
static double expression(hn_lex *lex, int depth);

static double term(hn_lex *lex, int depth) {
  char buf[64];
  double v = 0;
  if (depth > MAX_TERMS)
    hn_lex_fail(lex, "the expression is nested too deep");
  else if (lex->token.kind == HN_TOKEN_NUMBER) {
    v = lex->token.number;
    hn_lex_next(lex);
  } else if (hn_lex_accept_word(lex, "pi"))
    v = 3.14159265358979323846;
  else if (hn_lex_accept_word(lex, "sqrt")) {
    if (!hn_lex_expect(lex, '(')) return 0;
    v = sqrt(expression(lex, depth + 1));
    hn_lex_expect(lex, ')');
  } else
    hn_lex_fail(lex, "expected a number, found %s", hn_lex_describe(lex, buf));
  return v;
}

static double expression(hn_lex *lex, int depth) {
  double v = term(lex, depth);
  while (lex->status == HONE_OK) {
    if (hn_lex_accept(lex, '/'))
      v /= term(lex, depth);
    else if (hn_lex_accept(lex, '*'))
      v *= term(lex, depth);
    else
      break;
  }
  return v;
}

/* ------------------------------------------------------------------ types */

static bool dimension(hn_lex *lex, hn_model *symbols, const char **at, const char *stop, int64_t *dim) {
  const char *p = *at;
  if (p < stop && *p == '?') {
    *dim = HONE_DIM_UNKNOWN;
    *at = p + 1;
    return true;
  }
  if (p < stop && *p >= '0' && *p <= '9') {
    int64_t v = 0;
    for (; p < stop && *p >= '0' && *p <= '9'; p++)
      if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *p - '0', &v))
        return hn_lex_fail(lex, "a dimension is too large"), false;
    *dim = v;
    *at = p;
    return true;
  }
  const char *start = p, *end;
  if (p < stop && *p == '"') {
    start = ++p;
    while (p < stop && *p != '"') p++;
    end = p;
    if (p < stop) p++;
  } else {
    while (p < stop && *p != 'x' && *p != ',' && hn_lex_name_char(*p)) p++;
    end = p;
  }
  if (end == start) return hn_lex_fail(lex, "a dimension is a number, ? or a name"), false;
  char *name = hn_arena_strndup(lex->arena, start, (size_t)(end - start));
  if (!name) return no_memory(lex, 64);
  *dim = symbols ? hn_model_symbol(symbols, name) : HONE_DIM_UNKNOWN;
  *at = p;
  return true;
}

/* The current token is the element type's word. The dimensions are read as characters: 1x3xN is no sequence
 * of tokens. */
bool hn_lex_desc(hn_lex *lex, hn_model *symbols, hone_tensor_desc *desc) {
  hone_dtype dtype =
      lex->token.kind == HN_TOKEN_WORD ? hone_dtype_from_name(lex->token.text) : HONE_DTYPE_NONE;
  char buf[64];
  if (!dtype && !(lex->token.kind == HN_TOKEN_PUNCT && lex->token.punct == '?'))
    return hn_lex_fail(lex, "expected a type such as f32[1x3], found %s", hn_lex_describe(lex, buf)), false;
  if (lex->at >= lex->end || *lex->at != '[') { /* no dimensions: a scalar, or nothing known at all */
    *desc = hone_desc(dtype, 0, NULL);
    if (!dtype) desc->rank = -1;
    hn_lex_next(lex);
    return lex->status == HONE_OK;
  }
  const char *p = lex->at + 1, *stop = p;
  bool quoted = false;
  while (stop < lex->end && *stop != '\n' && (quoted || *stop != ']')) quoted ^= *stop++ == '"';
  if (stop >= lex->end || *stop != ']') return hn_lex_fail(lex, "the dimensions lack their ']'"), false;
  int64_t dim[HONE_MAX_RANK];
  int32_t rank = 0;
  if (p < stop && *p == '*') {
    rank = -1;
    p++;
  }
  while (p < stop && rank >= 0) {
    if (rank == HONE_MAX_RANK) return hn_lex_fail(lex, "more than %d dimensions", HONE_MAX_RANK), false;
    if (!dimension(lex, symbols, &p, stop, &dim[rank++])) return false;
    if (p < stop && (*p == 'x' || *p == ',')) {
      if (++p == stop) return hn_lex_fail(lex, "a dimension is missing before ']'"), false;
    } else if (p < stop)
      return hn_lex_fail(lex, "expected 'x' between dimensions, found '%c'", *p), false;
  }
  if (p != stop) return hn_lex_fail(lex, "'*' stands alone in the brackets"), false;
  if (rank < 0) {
    *desc = (hone_tensor_desc){.dtype = dtype, .rank = -1};
  } else
    *desc = hone_desc(dtype, rank, dim);
  lex->at = stop + 1;
  hn_lex_next(lex);
  return lex->status == HONE_OK;
}

/* ------------------------------------------------------------------ constants */

static void store(void *data, int64_t i, hone_dtype dtype, const hn_token *t) {
  double v = t->number;
  int64_t n = t->is_int ? t->integer
                        : (int64_t)(v > 9.2e18    ? 9.2e18
                                    : v < -9.2e18 ? -9.2e18
                                    : v == v      ? v
                                                  : 0);
  switch (dtype) {
  case HONE_DTYPE_F32: ((float *)data)[i] = (float)v; break;
  case HONE_DTYPE_F64: ((double *)data)[i] = v; break;
  case HONE_DTYPE_F16: ((uint16_t *)data)[i] = hn_f64_to_f16(v); break;
  case HONE_DTYPE_BF16: ((uint16_t *)data)[i] = hn_f64_to_bf16(v); break;
  case HONE_DTYPE_I64:
  case HONE_DTYPE_U64: ((int64_t *)data)[i] = n; break;
  case HONE_DTYPE_I32:
  case HONE_DTYPE_U32: ((uint32_t *)data)[i] = (uint32_t)n; break;
  case HONE_DTYPE_I16:
  case HONE_DTYPE_U16: ((uint16_t *)data)[i] = (uint16_t)n; break;
  case HONE_DTYPE_BOOL: ((uint8_t *)data)[i] = n != 0; break;
  default:
    ((uint8_t *)data)[i] =
        hn_narrow_bits(dtype) ? hn_narrow_from_f64(dtype, v, (hn_narrow_rule){.overflow = true}) : (uint8_t)n;
    break;
  }
}

static bool number_token(hn_lex *lex, hn_token *out) {
  char buf[64];
  if (lex->token.kind != HN_TOKEN_NUMBER)
    return hn_lex_fail(lex, "expected a number, found %s", hn_lex_describe(lex, buf)), false;
  *out = lex->token;
  hn_lex_next(lex);
  return lex->status == HONE_OK;
}

static hn_token real(double v) { return (hn_token){.kind = HN_TOKEN_NUMBER, .number = v}; }

static bool element(hn_lex *lex, hone_tensor *t, int64_t i) {
  char buf[64];
  if (t->desc.dtype != HONE_DTYPE_STRING) {
    hn_token v;
    if (!number_token(lex, &v)) return false;
    store(t->data, i, t->desc.dtype, &v);
    return true;
  }
  if (lex->token.kind != HN_TOKEN_STRING)
    return hn_lex_fail(lex, "expected a quoted text, found %s", hn_lex_describe(lex, buf)), false;
  ((hone_string *)t->data)[i] = (hone_string){lex->token.text, lex->token.len};
  hn_lex_next(lex);
  return lex->status == HONE_OK;
}

/* rand(seed[, low, high]): uniform; integers in [low, high]. */
static bool random_values(hn_lex *lex, hone_tensor *t, int64_t count) {
  hn_token seed, low = real(-1), high = real(1);
  if (!hn_lex_expect(lex, '(') || !number_token(lex, &seed)) return false;
  if (hn_lex_accept(lex, ',') &&
      (!number_token(lex, &low) || !hn_lex_expect(lex, ',') || !number_token(lex, &high)))
    return false;
  if (!hn_lex_expect(lex, ')')) return false;
  hn_rng rng = {(uint64_t)(seed.is_int ? seed.integer : 0)};
  bool whole = !hone_dtype_is_float(t->desc.dtype);
  for (int64_t i = 0; i < count; i++) {
    double u = hn_rng_unit(&rng);
    hn_token v = real(whole ? floor(low.number + u * (high.number - low.number + 1))
                            : low.number + u * (high.number - low.number));
    store(t->data, i, t->desc.dtype, &v);
  }
  return true;
}

/* Values of a constant whose type is known: {...}, full(v), rand(...), or for a scalar one plain value. */
hone_tensor *hn_lex_constant(hn_lex *lex, const hone_tensor_desc *desc, uint64_t *budget) {
  int64_t bytes = desc->dtype ? hone_desc_bytes(desc) : -1, count = hone_desc_count(desc);
  if (bytes < 0 || count < 0 || desc->dtype == HONE_DTYPE_C64 || desc->dtype == HONE_DTYPE_C128)
    return hn_lex_fail(lex, "a constant needs a known type and known dimensions"), NULL;
  if (!budget || (uint64_t)bytes > *budget)
    return hn_lex_fail(lex, budget ? "the constants are too large" : "a constant may not stand here"), NULL;
  *budget -= (uint64_t)bytes;
  hone_tensor *t = HN_NEW(lex->arena, hone_tensor);
  void *data = t ? hn_arena_aligned(lex->arena, (size_t)bytes, HN_MEM_ALIGN) : NULL;
  if (!data) return no_memory(lex, (size_t)bytes), NULL;
  t->desc = *desc;
  t->data = data;
  bool text = desc->dtype == HONE_DTYPE_STRING;
  if (hn_lex_accept(lex, '{')) {
    for (int64_t i = 0; i < count; i++)
      if ((i && !hn_lex_expect(lex, ',')) || !element(lex, t, i)) return NULL;
    if (!hn_lex_expect(lex, '}')) return NULL;
  } else if (hn_lex_accept_word(lex, "full")) {
    hone_tensor one = {.desc = hone_desc(desc->dtype, 0, NULL), .data = count ? data : NULL};
    uint64_t spare[2];
    if (!count) one.data = spare;
    if (!hn_lex_expect(lex, '(') || !element(lex, &one, 0) || !hn_lex_expect(lex, ')')) return NULL;
    size_t size = hone_dtype_size(desc->dtype);
    for (int64_t i = 1; i < count; i++) memcpy((char *)data + (size_t)i * size, data, size);
  } else if (!text && hn_lex_accept_word(lex, "rand")) {
    if (!random_values(lex, t, count)) return NULL;
  } else if (lex->token.kind == HN_TOKEN_PUNCT && lex->token.punct == '#')
    return hn_lex_fail(lex, "the values of this constant were left out when the text was printed"), NULL;
  else if (desc->rank == 0) {
    if (!element(lex, t, 0)) return NULL;
  } else {
    char buf[64];
    return hn_lex_fail(lex, "expected the values of the constant, found %s", hn_lex_describe(lex, buf)), NULL;
  }
  return t;
}

static hone_tensor *typed_constant(hn_lex *lex, hn_model *symbols, uint64_t *budget) {
  hone_tensor_desc desc;
  return hn_lex_desc(lex, symbols, &desc) ? hn_lex_constant(lex, &desc, budget) : NULL;
}

/* ------------------------------------------------------------------ attributes */

typedef HN_VEC(hn_token) token_list;

/* A list of numbers or strings; all its elements are floats when one is, or when typed so. */
static bool attr_list(hn_lex *lex, hn_attr *a, const char *word) {
  token_list list = {0};
  bool ok = false, floats = word && strcmp(word, "floats") == 0,
       strings = word && strcmp(word, "strings") == 0;
  while (lex->status == HONE_OK && !hn_lex_accept(lex, ']')) {
    if (list.len && !hn_lex_expect(lex, ',')) break;
    if (lex->token.kind == HN_TOKEN_STRING && (strings || !list.len))
      strings = true;
    else if (lex->token.kind == HN_TOKEN_NUMBER && !strings)
      floats |= !lex->token.is_int;
    else {
      char buf[64];
      hn_lex_fail(lex, "unexpected %s in a list", hn_lex_describe(lex, buf));
      break;
    }
    if (list.len >= MAX_NUMBERS) hn_lex_fail(lex, "the list is too long");
    if (!hn_vec_push(&list, lex->token)) {
      no_memory(lex, sizeof lex->token);
      break;
    }
    hn_lex_next(lex);
  }
  if (lex->status != HONE_OK) goto done;
  a->type = strings ? HONE_ATTR_STRINGS : floats ? HONE_ATTR_FLOATS : HONE_ATTR_INTS;
  size_t size = strings ? sizeof(hone_string) : floats ? sizeof(float) : sizeof(int64_t);
  void *values = hn_arena_alloc(lex->arena, list.len * size);
  ok = values != NULL;
  if (!ok) no_memory(lex, list.len * size);
  for (size_t i = 0; ok && i < list.len; i++) {
    if (strings)
      ((hone_string *)values)[i] = (hone_string){list.ptr[i].text, list.ptr[i].len};
    else if (floats)
      ((float *)values)[i] = (float)list.ptr[i].number;
    else
      ((int64_t *)values)[i] = list.ptr[i].integer;
  }
  a->list.n = list.len;
  a->list.ptr = values;
done:
  hn_vec_free(&list);
  return ok;
}

static bool attribute(hn_lex *lex, hn_attr *a, hn_model *symbols, uint64_t *budget, hn_line_graph graph,
                      void *arg) {
  char buf[64];
  if (lex->token.kind != HN_TOKEN_WORD)
    return hn_lex_fail(lex, "expected the name of an attribute, found %s", hn_lex_describe(lex, buf)), false;
  *a = (hn_attr){.name = lex->token.text};
  hn_lex_next(lex);
  if (!hn_lex_expect(lex, '=')) return false;
  const hn_token t = lex->token;
  if (t.kind == HN_TOKEN_NUMBER) {
    a->type = t.is_int ? HONE_ATTR_INT : HONE_ATTR_FLOAT;
    if (t.is_int)
      a->i = t.integer;
    else
      a->f = (float)t.number;
    hn_lex_next(lex);
  } else if (t.kind == HN_TOKEN_STRING) {
    a->type = HONE_ATTR_STRING;
    a->s = (hone_string){t.text, t.len};
    hn_lex_next(lex);
  } else if (hn_lex_accept(lex, '['))
    return attr_list(lex, a, NULL);
  else if (t.kind == HN_TOKEN_WORD &&
           (strcmp(t.text, "floats") == 0 || strcmp(t.text, "strings") == 0 || strcmp(t.text, "ints") == 0)) {
    hn_lex_next(lex);
    return hn_lex_expect(lex, '[') && attr_list(lex, a, t.text);
  } else if (t.kind == HN_TOKEN_WORD && strcmp(t.text, "type") == 0) {
    hn_lex_next(lex);
    a->type = HONE_ATTR_TYPE;
    a->i = lex->token.kind == HN_TOKEN_STRING ? hone_dtype_from_name(lex->token.text) : HONE_DTYPE_NONE;
    if (!a->i)
      return hn_lex_fail(lex, "expected a type such as \"seq f32\", found %s", hn_lex_describe(lex, buf)),
             false;
    hn_lex_next(lex);
  } else if (t.kind == HN_TOKEN_WORD && strcmp(t.text, "graph") == 0) {
    if (!graph) return hn_lex_fail(lex, "a graph may not stand here"), false;
    a->type = HONE_ATTR_GRAPH;
    a->g = graph(arg, lex);
    return a->g != NULL;
  } else if (t.kind == HN_TOKEN_WORD && hone_dtype_from_name(t.text)) {
    a->type = HONE_ATTR_TENSOR;
    a->t = typed_constant(lex, symbols, budget);
    return a->t != NULL;
  } else
    return hn_lex_fail(lex, "expected the value of attribute '%.40s', found %s", a->name,
                       hn_lex_describe(lex, buf)),
           false;
  return lex->status == HONE_OK;
}

/* ------------------------------------------------------------------ lines */

static bool operand(hn_lex *lex, hn_operand *o, hn_model *symbols, uint64_t *budget) {
  *o = (hn_operand){.kind = HN_OPERAND_NONE, .line = lex->token.line, .column = lex->token.column};
  if (hn_lex_accept_word(lex, "_")) return lex->status == HONE_OK;
  if (hn_lex_accept(lex, '?')) {
    o->optional = true;
    if (lex->token.kind != HN_TOKEN_VALUE) return hn_lex_fail(lex, "a %%name must follow '?'"), false;
  } else if (hn_lex_accept(lex, '!')) {
    o->constant = true;
    if (lex->token.kind != HN_TOKEN_VALUE) return hn_lex_fail(lex, "a %%name must follow '!'"), false;
  }
  if (lex->token.kind == HN_TOKEN_VALUE) {
    o->kind = HN_OPERAND_VALUE;
    o->name = lex->token.text;
    hn_lex_next(lex);
    return lex->status == HONE_OK;
  }
  if (lex->token.kind == HN_TOKEN_WORD && hone_dtype_from_name(lex->token.text)) {
    o->kind = HN_OPERAND_TENSOR;
    o->tensor = typed_constant(lex, symbols, budget);
    return o->tensor != NULL;
  }
  const char *start = lex->at - lex->token.len;
  o->kind = HN_OPERAND_NUMBER;
  o->number = expression(lex, 0);
  const char *stop = lex->at - (lex->token.kind == HN_TOKEN_PUNCT);
  while (stop > start && (stop[-1] == ' ' || stop[-1] == '\n')) stop--;
  o->spelled = lex->status == HONE_OK ? hn_arena_strndup(lex->arena, start, (size_t)(stop - start)) : "";
  return o->spelled ? lex->status == HONE_OK : no_memory(lex, 64);
}

static bool operator_names(hn_lex *lex, hn_line *out) {
  char buf[64];
  out->domain = "";
  do {
    if (out->n_op == HN_LINE_OPS) return hn_lex_fail(lex, "more than %d alternatives", HN_LINE_OPS), false;
    if (lex->token.kind != HN_TOKEN_WORD && lex->token.kind != HN_TOKEN_STRING)
      return hn_lex_fail(lex, "expected an operator, found %s", hn_lex_describe(lex, buf)), false;
    const char *word = lex->token.text;
    hn_lex_next(lex);
    if (!out->n_op && hn_lex_accept(lex, ':')) {
      out->domain = word;
      if (!hn_lex_expect(lex, ':')) return false;
      if (lex->token.kind != HN_TOKEN_WORD && lex->token.kind != HN_TOKEN_STRING)
        return hn_lex_fail(lex, "expected an operator, found %s", hn_lex_describe(lex, buf)), false;
      word = lex->token.text;
      hn_lex_next(lex);
    }
    out->op[out->n_op++] = word;
  } while (hn_lex_accept(lex, '|'));
  return lex->status == HONE_OK;
}

hone_status hn_line_parse(hn_lex *lex, hn_line *out, hn_model *symbols, uint64_t *budget, hn_line_graph graph,
                          void *arg) {
  HN_VEC(const char *) names = {0};
  HN_VEC(hn_operand) in = {0};
  HN_VEC(hn_attr) attrs = {0};
  *out = (hn_line){.line = lex->token.line, .column = lex->token.column, .domain = ""};
  char buf[64];
  /* A node without outputs has no '=' sign either. */
  bool bare = lex->token.kind == HN_TOKEN_STRING ||
              (lex->token.kind == HN_TOKEN_WORD && strcmp(lex->token.text, "_") != 0);
  do {
    if (bare) break;
    const char *name = lex->token.text;
    if (lex->token.kind == HN_TOKEN_WORD && strcmp(name, "_") == 0)
      name = NULL;
    else if (lex->token.kind != HN_TOKEN_VALUE) {
      hn_lex_fail(lex, "expected a %%name or '}', found %s", hn_lex_describe(lex, buf));
      goto done;
    }
    if (!hn_vec_push(&names, name)) goto memory;
    hn_lex_next(lex);
  } while (hn_lex_accept(lex, ','));
  if ((!bare && !hn_lex_expect(lex, '=')) || !operator_names(lex, out) || !hn_lex_expect(lex, '(')) goto done;
  while (!hn_lex_accept(lex, ')')) {
    hn_operand o;
    if ((in.len && !hn_lex_expect(lex, ',')) || !operand(lex, &o, symbols, budget)) goto done;
    if (!hn_vec_push(&in, o)) goto memory;
  }
  if (hn_lex_accept(lex, '{'))
    while (!hn_lex_accept(lex, '}')) {
      hn_attr a;
      if ((attrs.len && !hn_lex_expect(lex, ',')) || !attribute(lex, &a, symbols, budget, graph, arg))
        goto done;
      for (size_t i = 0; i < attrs.len; i++)
        if (strcmp(attrs.ptr[i].name, a.name) == 0) {
          hn_lex_fail(lex, "attribute '%.40s' is given twice", a.name);
          goto done;
        }
      if (!hn_vec_push(&attrs, a)) goto memory;
    }
  if (lex->token.kind == HN_TOKEN_STRING) {
    out->name = lex->token.text;
    hn_lex_next(lex);
  }
  out->n_out = (uint32_t)names.len;
  out->n_in = (uint32_t)in.len;
  out->n_attr = (uint32_t)attrs.len;
  out->out = hn_arena_memdup(lex->arena, names.ptr, names.len * sizeof *names.ptr);
  out->in = hn_arena_memdup(lex->arena, in.ptr, in.len * sizeof *in.ptr);
  out->attr = hn_arena_memdup(lex->arena, attrs.ptr, attrs.len * sizeof *attrs.ptr);
  if (out->out && out->in && out->attr) goto done;
memory:
  no_memory(lex, 4096);
done:
  hn_vec_free(&names);
  hn_vec_free(&in);
  hn_vec_free(&attrs);
  return lex->status;
}
