#include "tactic_case.h"

#include "base/half.h"
#include "base/mem.h"
#include "base/os.h"
#include "model/ir/eval.h"
#include "model/operators.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void die(const char *what, const char *line) {
  printf("FAIL %s: %s\n", line, what);
  exit(1);
}

/* ---------------------------------------------------------------- lines */

bool open_cases(const char *path, case_file files[MOST_CASE_FILES], size_t *n) {
  char **names = NULL;
  size_t n_names = 0;
  if (!hn_is_folder(path)) return *n < MOST_CASE_FILES && (files[*n].file = fopen(path, "r")) && ++*n;
  const size_t before = *n;
  bool ok = hn_folder_list(path, &names, &n_names, NULL) == HONE_OK;
  for (size_t i = 0; i < n_names; i++) {
    char whole[1024];
    const char *end = strrchr(names[i], '.');
    snprintf(whole, sizeof whole, "%s/%s", path, names[i]);
    if (end && !strcmp(end, ".txt")) ok = ok && !hn_is_folder(whole) && open_cases(whole, files, n);
    hn_free(names[i]);
  }
  hn_free(names);
  return ok && *n > before;
}

static void start_sweep(case_file *f, const char *line) {
  char text[1024], *save = NULL;
  const char *end = strstr(line, " : ");
  if (!end) die("a sweep without a case", line);
  snprintf(text, sizeof text, "%.*s", (int)(end - line), line);
  snprintf(f->sweep, sizeof f->sweep, "%s", end + 3);
  f->n = 0;
  strtok_r(text, " ", &save); /* "for" */
  for (char *w; (w = strtok_r(NULL, " ", &save));) {
    if (!isupper((unsigned char)*w) || w[1] != '=' || f->n >= 6) die("bad sizes", line);
    f->axis[f->n].name = *w, f->axis[f->n].count = f->axis[f->n].at = 0;
    for (char *p = w + 1; *p && f->axis[f->n].count < 16;)
      f->axis[f->n].size[f->axis[f->n].count++] = strtol(p + 1, &p, 10);
    f->n++;
  }
}

/* The sweep's line for the present choice; then the next choice. */
static void step_sweep(case_file *f, char line[1024]) {
  size_t n = 0;
  int depth = 0;
  for (const char *p = f->sweep; *p && n + 24 < 1024; p++) {
    depth += (*p == '[') - (*p == ']');
    const bool size = depth || (p > f->sweep && p[-1] == '=' && p[1] == ' ');
    int k = 0;
    while (size && k < f->n && f->axis[k].name != *p) k++;
    if (size && k < f->n)
      n += (size_t)snprintf(line + n, 24, "%ld", f->axis[k].size[f->axis[k].at]);
    else
      line[n++] = *p;
  }
  line[n] = 0;
  int k = f->n - 1;
  while (k >= 0 && ++f->axis[k].at == f->axis[k].count) f->axis[k--].at = 0;
  if (k < 0) *f->sweep = 0;
}

bool next_case(case_file *f, const char *filter, char line[1024]) {
  for (;;) {
    if (*f->sweep) {
      step_sweep(f, line);
    } else {
      if (!fgets(line, 1024, f->file)) return false;
      line[strcspn(line, "\n")] = 0;
      if (!*line || *line == '#') continue;
      if (!strncmp(line, "for ", 4)) {
        start_sweep(f, line);
        continue;
      }
    }
    if (strstr(line, filter)) return true;
  }
}

/* ---------------------------------------------------------------- reading a case */

static void fill_random(hone_tensor *t, int64_t whole, bool positive, hn_rng *rng) {
  const int64_t n = hone_desc_count(&t->desc), below = whole ? whole : 100;
  for (int64_t i = 0; i < n; i++) {
    const double u = hn_rng_unit(rng);
    const int64_t v = (int64_t)hn_rng_below(rng, (uint64_t)below);
    switch (t->desc.dtype) {
    case HONE_DTYPE_F32:
      ((float *)t->data)[i] = (float)(whole ? (double)v : positive ? 0.2 + u : 2 * u - 1);
      break;
    case HONE_DTYPE_F64: ((double *)t->data)[i] = 2 * u - 1; break;
    case HONE_DTYPE_F16: ((uint16_t *)t->data)[i] = hn_f32_to_f16((float)(2 * u - 1)); break;
    case HONE_DTYPE_BF16: ((uint16_t *)t->data)[i] = hn_f32_to_bf16((float)(2 * u - 1)); break;
    case HONE_DTYPE_I64: ((int64_t *)t->data)[i] = v; break;
    case HONE_DTYPE_I32: ((int32_t *)t->data)[i] = (int32_t)v; break;
    case HONE_DTYPE_BOOL: ((uint8_t *)t->data)[i] = v & 1; break;
    default: /* any other element is moved as bits */
      for (size_t b = 0; b < hone_dtype_size(t->desc.dtype); b++)
        ((uint8_t *)t->data)[(size_t)i * hone_dtype_size(t->desc.dtype) + b] = (uint8_t)hn_rng_u64(rng);
    }
  }
}

static void put_value(hone_tensor *t, int64_t i, double v) {
  switch (t->desc.dtype) {
  case HONE_DTYPE_F32: ((float *)t->data)[i] = (float)v; break;
  case HONE_DTYPE_F16: ((uint16_t *)t->data)[i] = hn_f32_to_f16((float)v); break;
  case HONE_DTYPE_BF16: ((uint16_t *)t->data)[i] = hn_f32_to_bf16((float)v); break;
  case HONE_DTYPE_I64: ((int64_t *)t->data)[i] = (int64_t)v; break;
  case HONE_DTYPE_I32: ((int32_t *)t->data)[i] = (int32_t)v; break;
  default: ((uint8_t *)t->data)[i] = (uint8_t)(int64_t)v; break;
  }
}

enum { MAX_VALUES = 64 };

/* Numbers up to a closing bracket into value[MAX_VALUES]; where that stands. */
static const char *read_numbers(const one_case *c, const char *p, double *value, int64_t *count) {
  for (*count = 0; *p && !strchr("]}>", *p);) {
    char *end;
    const double v = strtod(p, &end);
    if (end == p || *count >= MAX_VALUES) die("bad input", c->line);
    value[(*count)++] = v;
    p = *end == ',' ? end + 1 : end;
  }
  return p;
}

/* "[2,3]%9", "{1,2}", "[1,2]{1,2}" or "<0.5>" behind the dtype. */
static void read_input(one_case *c, const char *word, hn_rng *rng) {
  const uint32_t k = c->n_in++;
  if (k >= MAX_TENSORS) die("too many inputs", c->line);
  if (!strcmp(word, "-")) return;
  c->present[k] = true;
  if (*word == '=') c->constant[k] = true, word++;
  char name[8] = "";
  size_t n = strcspn(word, "[{<");
  if (n >= sizeof name) die("bad dtype", c->line);
  memcpy(name, word, n);
  const bool positive = !strcmp(name, "p32");
  const hone_dtype dtype = positive ? HONE_DTYPE_F32 : hone_dtype_from_name(name);
  int64_t dim[HONE_MAX_RANK], count = 0;
  double value[MAX_VALUES];
  const char kind = word[n];
  const char *p = read_numbers(c, word + n + 1, value, &count);
  int32_t rank = kind == '[' ? (int32_t)count : kind == '{' ? 1 : 0;
  for (int32_t i = 0; i < rank; i++) dim[i] = kind == '[' ? (int64_t)value[i] : count;
  hone_tensor *t = &c->in[k];
  t->desc = hone_desc(dtype, rank, dim);
  t->data = hn_aligned(64, (size_t)hone_desc_bytes(&t->desc) + 1);
  const bool given = kind != '[' || (p[0] && p[1] == '{');
  if (kind == '[' && given) {
    read_numbers(c, p + 2, value, &count);
    if (count != hone_desc_count(&t->desc)) die("so many values do not fit the dimensions", c->line);
  }
  if (!given) fill_random(t, p[0] && p[1] == '%' ? strtoll(p + 2, NULL, 10) : 0, positive, rng);
  for (int64_t i = 0; given && i < count; i++) put_value(t, i, value[i]);
}

static void read_floats(one_case *c, const char *name, char *value) {
  float list[32];
  size_t n = 0;
  for (char *p = strtok(value, ","); p && n < 32; p = strtok(NULL, ",")) list[n++] = strtof(p, NULL);
  hn_node_set_floats(c->node, name, list, n);
}

static void read_strings(one_case *c, const char *name, char *value) {
  hone_string list[32];
  size_t n = 0;
  for (char *p = strtok(value, "|"); p && n < 32; p = strtok(NULL, "|"))
    list[n++] = (hone_string){p, strlen(p)};
  hn_node_set_strings(c->node, name, list, n);
}

/* "u8{0,6}" */
static void read_tensor(one_case *c, const char *name, char *value) {
  double list[32];
  int64_t n = 0;
  char *p = strchr(value, '{');
  *p++ = 0;
  const hone_dtype dtype = hone_dtype_from_name(value);
  if (!dtype) die("bad attribute", c->line);
  for (char *end; n < 32 && *p && *p != '}'; p = *end == ',' ? end + 1 : end) list[n++] = strtod(p, &end);
  hone_tensor t = {.desc = hone_desc(dtype, 1, &n)};
  t.data = hn_arena_alloc(&c->model->arena, (size_t)hone_desc_bytes(&t.desc) + 1);
  for (int64_t i = 0; i < n; i++) put_value(&t, i, list[i]);
  hn_node_set_tensor(c->node, name, &t);
}

static void read_attribute(one_case *c, char *word) {
  char *value = strchr(word, '=');
  if (!value) die("bad attribute", c->line);
  *value++ = 0;
  if (strchr(value, '{')) {
    read_tensor(c, word, value);
    return;
  }
  const char *ints = value + strspn(value, "-0123456789,");
  if (*ints == 0 && strchr(value, ',')) {
    int64_t list[32];
    size_t n = 0;
    for (char *p = strtok(value, ","); p && n < 32; p = strtok(NULL, ",")) list[n++] = strtoll(p, NULL, 10);
    hn_node_set_ints(c->node, word, list, n);
  } else if (strchr(value, ',') && !value[strspn(value, "-.0123456789f,")]) {
    read_floats(c, word, value);
  } else if (strchr(value, '|')) {
    read_strings(c, word, value);
  } else if (*ints == 0) {
    hn_node_set_int(c->node, word, strtoll(value, NULL, 10));
  } else if (value[strlen(value) - 1] == 'f' && (isdigit((unsigned char)*value) || *value == '-')) {
    hn_node_set_float(c->node, word, strtof(value, NULL));
  } else {
    hn_node_set_string(c->node, word, value, strlen(value));
  }
}

static bool is_chain(const one_case *c) { return !strcmp(c->op, "ConvChain"); }
static bool is_skip(const one_case *c) { return !strcmp(c->op, "SkipLayerNormalization"); }

void read_case(one_case *c, const char *line, hn_rng *rng) {
  char text[1024], *words[64] = {""}, *attributes[32], *save = NULL;
  uint32_t n = 0, n_attributes = 0, at = 1;
  memset(c, 0, sizeof *c);
  snprintf(c->line, sizeof c->line, "%s", line);
  snprintf(text, sizeof text, "%s", line);
  for (char *w = strtok_r(text, " \t\n", &save); w && n < 64; w = strtok_r(NULL, " \t\n", &save))
    words[n++] = w;
  long opset = 17;
  char *mark = strchr(words[0], '@');
  if (mark) *mark = 0, opset = strtol(mark + 1, NULL, 10);
  snprintf(c->op, sizeof c->op, "%s", words[0]);
  for (; at < n && strcmp(words[at], ":"); at++) attributes[n_attributes++] = words[at];
  for (at++; at < n && strcmp(words[at], "->") && strcmp(words[at], "@"); at++) read_input(c, words[at], rng);
  c->n_out = 1;
  if (at + 1 < n && !strcmp(words[at], "->")) c->n_out = (uint32_t)strtoul(words[at + 1], NULL, 10), at += 2;
  if (at + 1 < n && !strcmp(words[at], "@")) snprintf(c->required, sizeof c->required, "%s", words[at + 1]);
  c->model = hn_model_create("case");
  hn_vec_push(&c->model->opsets, (hn_opset){"", opset});
  hn_value *in[MAX_TENSORS] = {NULL}, *out[MAX_TENSORS];
  for (uint32_t i = 0; i < c->n_in; i++) {
    if (!c->present[i]) continue;
    in[i] = c->constant[i] ? hn_value_constant(c->model->graph, NULL, &c->in[i].desc, c->in[i].data, true)
                           : hn_value_create(c->model->graph, NULL);
    if (c->constant[i]) continue;
    in[i]->desc = c->in[i].desc;
    hn_graph_add_input(c->model->graph, in[i]);
  }
  for (uint32_t i = 0; i < c->n_out; i++) {
    out[i] = hn_value_create(c->model->graph, NULL);
    hn_graph_add_output(c->model->graph, out[i]);
  }
  if (is_skip(
          c)) { /* an anchor of lowering, no ONNX operator: its node is the LayerNormalization it ends in */
    hn_value *norm[3] = {in[0], in[2], in[3]};
    c->node = hn_node_create(c->model->graph, NULL, "LayerNormalization", NULL, "it", norm, 3, out, c->n_out);
  } else if (is_chain(c)) {
    hn_value *middle = hn_value_create(c->model->graph, NULL), *last[3] = {middle, in[3], in[4]};
    c->before = c->node =
        hn_node_create(c->model->graph, NULL, "Conv", NULL, "first", in, c->present[2] ? 3 : 2, &middle, 1);
    for (uint32_t i = 0; i < n_attributes; i++)
      if (strncmp(attributes[i], "last.", 5) != 0) read_attribute(c, attributes[i]);
    c->node = hn_node_create(c->model->graph, NULL, "Conv", NULL, "it", last, c->present[4] ? 3 : 2, out, 1);
    for (uint32_t i = 0; i < n_attributes; i++)
      if (strncmp(attributes[i], "last.", 5) == 0) read_attribute(c, attributes[i] + 5);
    return;
  } else {
    /* "com.microsoft.Inverse": what stands before the last dot is the domain. */
    char domain[64] = "";
    const char *dot = strrchr(c->op, '.');
    if (dot) {
      snprintf(domain, sizeof domain, "%.*s", (int)(dot - c->op), c->op);
      const char *kept = hn_arena_strdup(&c->model->arena, domain);
      hn_vec_push(&c->model->opsets, (hn_opset){kept, mark ? opset : strcmp(domain, "ai.onnx.ml") ? 1 : 3});
    }
    c->node = hn_node_create(c->model->graph, NULL, dot ? dot + 1 : c->op, dot ? domain : NULL, "it", in,
                             c->n_in, out, c->n_out);
  }
  for (uint32_t i = 0; i < n_attributes; i++) read_attribute(c, attributes[i]);
}

/* The last cases' references: one line comes many times, with another epilogue each. */
enum { KEPT = 3 }; /* storage types */
static struct kept {
  char line[sizeof((one_case *)0)->line];
  hone_dtype storage;
  uint32_t n;
  hone_tensor want[MAX_TENSORS];
} kept[KEPT];

static void copy_tensor(hone_tensor *to, const hone_tensor *from, const char *line) {
  const size_t bytes = (size_t)hone_desc_bytes(&from->desc);
  *to = *from;
  to->data = hn_aligned(64, hn_round_up(bytes + 1, 64));
  if (!to->data) die("no memory", line);
  memcpy(to->data, from->data, bytes);
}

static bool recall(one_case *c, hone_dtype storage) {
  for (const struct kept *k = kept; k < kept + KEPT; k++) {
    if (k->storage != storage || k->n != c->n_out || strcmp(k->line, c->line)) continue;
    for (uint32_t i = 0; i < k->n; i++) copy_tensor(&c->want[i], &k->want[i], c->line);
    return true;
  }
  return false;
}

static void remember(const one_case *c, hone_dtype storage) {
  static unsigned next;
  struct kept *k = &kept[next++ % KEPT];
  for (uint32_t i = 0; i < k->n; i++) hn_free(k->want[i].data);
  k->n = 0;
  for (uint32_t i = 0; i < c->n_out; i++)
    if (c->want[i].desc.dtype == HONE_DTYPE_STRING) return;
  memcpy(k->line, c->line, sizeof k->line);
  k->storage = storage, k->n = c->n_out;
  for (uint32_t i = 0; i < k->n; i++) copy_tensor(&k->want[i], &c->want[i], c->line);
}

static void make_ready(one_case *c) {
  hone_error error = {0};
  if (hn_model_ready(c->model, &error)) die(error.what, c->line);
  c->moves = c->node->op->flags & HONE_OP_MOVE;
}

bool describe_outputs(one_case *c) {
  make_ready(c);
  for (uint32_t i = 0; i < c->n_out; i++)
    if (!hone_desc_known(&c->node->out[i]->desc)) return false;
  for (uint32_t i = 0; i < c->n_out; i++) {
    c->want[i].desc = c->node->out[i]->desc;
    c->want[i].data = hn_calloc(1, (size_t)hone_desc_bytes(&c->want[i].desc) + 1);
    if (!c->want[i].data) die("no memory", c->line);
  }
  return true;
}

void compute_reference(one_case *c, hone_dtype storage, hn_arena *keep) {
  hone_error error = {0};
  hone_status s = HONE_OK;
  const hone_tensor *in[MAX_TENSORS] = {NULL};
  hone_tensor *out[MAX_TENSORS];
  hn_budget budget = {0};
  make_ready(c);
  if (recall(c, storage)) return;
  for (uint32_t i = 0; i < c->n_in; i++)
    if (c->present[i]) in[i] = &c->in[i];
  hone_tensor sum = c->in[0];
  if (is_skip(c)) {
    const int64_t n = hone_desc_count(&sum.desc), row = hone_desc_count(&c->in[2].desc);
    float *h = sum.data = hn_arena_alloc(keep, (size_t)n * sizeof *h);
    for (int64_t i = 0; i < n; i++)
      h[i] = ((float *)c->in[0].data)[i] + ((float *)c->in[1].data)[i] +
             (c->present[4] ? ((float *)c->in[4].data)[i % row] : 0);
    in[0] = &sum, in[1] = &c->in[2], in[2] = &c->in[3];
  }
  for (uint32_t i = 0; i < c->n_out; i++) out[i] = &c->want[i];
  hone_tensor middle = {0}, *made = &middle;
  if (is_chain(c)) {
    if (!s) s = hn_eval_node(c->before, in, &made, keep, &budget, &error);
    for (int64_t i = 0, n = s ? 0 : hone_desc_count(&middle.desc); i < n; i++)
      ((float *)middle.data)[i] = fmaxf(((float *)middle.data)[i], 0);
    in[0] = &middle, in[1] = &c->in[3], in[2] = &c->in[4];
  }
  if (!s) s = hn_eval_node(c->node, in, out, keep, &budget, &error);
  if (s) die(error.what, c->line);
  if (is_chain(c)) {
    hn_free(middle.data);
    for (int64_t i = 0, n = c->present[5] ? hone_desc_count(&c->want[0].desc) : 0; i < n; i++)
      ((float *)c->want[0].data)[i] = fmaxf(((float *)c->want[0].data)[i] + ((float *)c->in[5].data)[i], 0);
  }
  remember(c, storage);
}

/* ---------------------------------------------------------------- layouts */

void set_layout(hone_tensor_desc *d, char layout, bool output) {
  const bool last = layout == 'c' || layout == 'p' || layout == (output ? 'm' : 'n');
  if (last && d->rank >= 3)
    hone_desc_set_layout(d, HONE_LAYOUT_CHANNELS_LAST, layout == 'p' ? d->dim[1] + 3 : 0);
  else
    hone_desc_set_layout(d, HONE_LAYOUT_ROW_MAJOR, 0);
}

/* Offset of the i-th element in row-major order. */
void copy_in(const hone_tensor *from, const hone_tensor_desc *to, unsigned char *data) {
  const size_t size = hone_dtype_size(to->dtype);
  const int64_t n = hone_desc_count(to);
  const char *x = from->data;
  walk w = {{0}, 0};
  for (int64_t i = 0; i < n; i++, x += size) {
    unsigned char *y = data + (size_t)next_offset(&w, to) * size;
    if (size == 4)
      memcpy(y, x, 4);
    else
      memcpy(y, x, size);
  }
}

const char *anchor_of(const one_case *c) { return strcmp(c->op, "Identity") ? c->op : "Reformat"; }

void free_case(one_case *c) {
  for (uint32_t i = 0; i < MAX_TENSORS; i++) hn_free(c->in[i].data), hn_free(c->want[i].data);
  hn_model_destroy(c->model);
}
