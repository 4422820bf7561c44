/* Reading a chain: from a JSON text to stages whose values are linked. */
#include "api/chain/chain.h"
#include "base/error.h"
#include "base/json_read.h"
#include "base/os.h"

#include <stdio.h>
#include <string.h>

enum { STAGES_MOST = 256, INPUTS_MOST = 64 };

/* While a chain is read. */
typedef struct opening {
  hone_chain *c;
  hn_reading r;
  json_t *root;
  hone_error *error;
} opening;

const char *hone_chain_kind_name(hone_chain_kind kind) {
  static const char *const names[] = {"pictures", "tensors", "boxes", "answers"};
  return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : NULL;
}

hone_status hn_stage_fail(const hone_chain *c, const hn_stage *s, hone_status status, hone_error *error,
                          const char *what, ...) {
  char text[sizeof error->what];
  va_list args;
  va_start(args, what);
  vsnprintf(text, sizeof text, what, args);
  va_end(args);
  hn_fail(error, status, "%s", text);
  hn_error_where(error, "%s: line %d, column %d, stage '%s'", c->path, s->place.line, s->place.column,
                 s->name);
  return status;
}

static hone_status no_memory(opening *o) { return hn_fail_memory(o->error, 0, "a chain"); }

/* ------------------------------------------------------------------ values */

static hn_passed *find_value(const hone_chain *c, const char *name) {
  for (uint32_t i = 0; i < c->n_values; i++)
    if (strcmp(c->value[i].name, name) == 0) return &c->value[i];
  for (uint32_t i = 0; i < c->n_stages; i++) /* a stage by its name, where it makes one value */
    if (strcmp(c->stage[i].name, name) == 0 && c->stage[i].n_makes == 1) return &c->value[c->stage[i].makes];
  return NULL;
}

static bool add_value(opening *o, const char *name, hone_chain_kind kind, uint32_t stage, uint32_t output) {
  hone_chain *c = o->c;
  if (!name) return false;
  c->value[c->n_values++] =
      (hn_passed){.name = name, .kind = kind, .stage = stage, .output = output, .last = HN_NO_STAGE};
  return true;
}

/* The names that are there, for a hint. */
static void list_values(const hone_chain *c, char *buf, size_t size) {
  size_t n = 0;
  buf[0] = 0;
  for (uint32_t i = 0; i < c->n_values && n + 1 < size; i++)
    n += (size_t)snprintf(buf + n, size - n, "%s%s", i ? ", " : "", c->value[i].name);
}

/* The value that a text at `way` names, which the stage (its number) reads. */
static hone_status read_value(opening *o, const hn_json_way *way, json_t *name, uint32_t stage,
                              uint32_t *out) {
  const char *text;
  hone_status status = hn_member_text(&o->r, way, name, "the name of a value", &text, o->error);
  if (status != HONE_OK) return status;
  hn_passed *v = find_value(o->c, text);
  if (v) {
    *out = (uint32_t)(v - o->c->value);
    if (stage != HN_NO_STAGE) v->last = stage;
    return HONE_OK;
  }
  bool several = false;
  for (uint32_t i = 0; i < o->c->n_stages; i++) several |= strcmp(o->c->stage[i].name, text) == 0;
  hn_reading_fail(&o->r, way, HONE_ERROR_INPUT, o->error,
                  several                ? "stage '%s' has several outputs: name one of them"
                  : stage == HN_NO_STAGE ? "there is no value '%s'"
                                         : "no value '%s' is made before this stage",
                  text);
  char list[240];
  list_values(o->c, list, sizeof list);
  hn_error_hint(o->error, "there are: %s", list);
  return HONE_ERROR_INPUT;
}

/* ------------------------------------------------------------------ stages */

static hone_status wrong_kind(opening *o, const hn_json_way *way, const hn_passed *v, hone_chain_kind wants) {
  hn_reading_fail(&o->r, way, HONE_ERROR_INPUT, o->error, "'%s' is of another kind than this stage reads",
                  v->name);
  hn_error_expected(o->error, "%s", hone_chain_kind_name(wants));
  hn_error_got(o->error, "%s", hone_chain_kind_name(v->kind));
  return HONE_ERROR_INPUT;
}

static hone_status known_members(opening *o, const hn_json_way *way, json_t *object,
                                 bool (*known)(const hn_stage *, const char *), const hn_stage *stage) {
  const char *key;
  json_t *value;
  json_object_foreach(object, key, value) {
    const hn_json_way at = {way, object, key, 0};
    if (known(stage, key)) continue;
    hn_reading_fail(&o->r, &at, HONE_ERROR_INPUT, o->error, "there is no member '%s' here", key);
    hn_error_hint(o->error, "docs/guide/chains.md lists the members");
    return HONE_ERROR_INPUT;
  }
  return HONE_OK;
}

static bool any_of(const char *word, const char *const *list) {
  for (; *list; list++)
    if (strcmp(word, *list) == 0) return true;
  return false;
}

static bool of_root(const hn_stage *stage, const char *key) {
  static const char *const names[] = {"chain", "about", "inputs", "stages", "outputs", "precision", NULL};
  (void)stage;
  return any_of(key, names);
}

static bool of_stage(const hn_stage *stage, const char *key) {
  static const char *const all[] = {"name", "kind", "about", NULL};
  static const char *const models[] = {"path", "from", "precision", "shapes", "plans", NULL};
  if (any_of(key, all)) return true;
  if (!stage->link) return any_of(key, models);
  for (uint32_t i = 0; i < stage->link->n_reads; i++)
    if (strcmp(key, stage->link->reads[i].member) == 0) return true;
  return hn_member_find(stage->link->members, key) != NULL;
}

static hone_status link_stage(opening *o, const hn_json_way *way, json_t *object, hn_stage *s) {
  hone_chain *c = o->c;
  const uint32_t number = (uint32_t)(s - c->stage);
  const hn_link *link = s->link;
  s->n_reads = link->n_reads;
  s->reads = HN_NEW_ARRAY(&c->keep, uint32_t, link->n_reads + 1);
  s->settings = link->size ? hn_arena_memdup(&c->keep, link->defaults, link->size) : NULL;
  if (!s->reads || (link->size && !s->settings)) return no_memory(o);
  for (uint32_t i = 0; i < link->n_reads; i++) {
    const hn_json_way at = {way, object, link->reads[i].member, 0};
    json_t *name = json_object_get(object, at.key);
    if (!name)
      return hn_reading_fail(&o->r, way, HONE_ERROR_INPUT, o->error, "stage '%s' (%s) wants \"%s\"", s->name,
                             link->name, at.key);
    const hone_status status = read_value(o, &at, name, number, &s->reads[i]);
    if (status != HONE_OK) return status;
    if (c->value[s->reads[i]].kind != link->reads[i].kind)
      return wrong_kind(o, &at, &c->value[s->reads[i]], link->reads[i].kind);
  }
  for (const hn_member *row = link->members; row && row->name; row++) {
    const hn_json_way at = {way, object, row->name, 0};
    json_t *value = json_object_get(object, row->name);
    const hone_status status =
        value ? hn_member_read(&o->r, &at, value, row, s->settings, o->error) : HONE_OK;
    if (status != HONE_OK) return status;
  }
  s->makes = c->n_values;
  s->n_makes = 1;
  return add_value(o, s->name, link->makes, number, 0) ? HONE_OK : no_memory(o);
}

/* Two models, linked: whether one's output can be the other's input, as far as both say. */
static hone_status check_shapes(opening *o, const hn_json_way *way, const hn_passed *v, const hn_stage *to,
                                uint32_t input) {
  const hone_chain *c = o->c;
  if (v->stage == HN_NO_STAGE || !c->stage[v->stage].model) return HONE_OK;
  const hone_tensor_desc *a = hn_chain_model_out(c->stage[v->stage].model, v->output),
                         *b = hn_chain_model_in(to->model, input);
  bool fits = a->dtype == HONE_DTYPE_NONE || a->dtype == b->dtype;
  if (a->rank >= 0 && b->rank >= 0) fits &= a->rank == b->rank;
  for (int32_t k = 0; fits && k < a->rank && k < b->rank; k++)
    fits = a->dim[k] < 0 || b->dim[k] < 0 || a->dim[k] == b->dim[k];
  if (fits) return HONE_OK;
  char want[128], got[128];
  hn_reading_fail(&o->r, way, HONE_ERROR_INPUT, o->error,
                  "output '%s' of '%s' does not fit input '%s' of '%s'",
                  hn_chain_model_output(c->stage[v->stage].model, v->output), c->stage[v->stage].name,
                  hn_chain_model_input(to->model, input), to->name);
  hn_error_expected(o->error, "%s", hone_desc_format(b, want, sizeof want));
  hn_error_got(o->error, "%s", hone_desc_format(a, got, sizeof got));
  return HONE_ERROR_INPUT;
}

static hone_status model_reads(opening *o, const hn_json_way *way, json_t *name, hn_stage *s, uint32_t i) {
  hone_status status = read_value(o, way, name, (uint32_t)(s - o->c->stage), &s->reads[i]);
  if (status != HONE_OK) return status;
  const hn_passed *v = &o->c->value[s->reads[i]];
  if (v->kind != HONE_CHAIN_TENSORS) return wrong_kind(o, way, v, HONE_CHAIN_TENSORS);
  return check_shapes(o, way, v, s, i);
}

/* "from": the one input's value, or {"input": "value"} for all of them. */
static hone_status model_from(opening *o, const hn_json_way *way, json_t *object, hn_stage *s) {
  const hn_json_way at = {way, object, "from", 0};
  json_t *from = json_object_get(object, "from");
  const uint32_t n = hn_chain_model_inputs(s->model);
  if (json_is_string(from) && n == 1) return model_reads(o, &at, from, s, 0);
  if (!json_is_object(from)) {
    hn_reading_fail(&o->r, from ? &at : way, HONE_ERROR_INPUT, o->error,
                    "stage '%s' wants \"from\": what its %u input%s read%s", s->name, n, n > 1 ? "s" : "",
                    n > 1 ? "" : "s");
    hn_error_expected(o->error, n > 1 ? "{\"%.60s\": \"a value\", ...}" : "the name of a value, for '%.60s'",
                      hn_chain_model_input(s->model, 0));
    return HONE_ERROR_INPUT;
  }
  const char *key;
  json_t *name;
  json_object_foreach(from, key, name) {
    const hn_json_way entry = {&at, from, key, 0};
    bool there = false;
    for (uint32_t i = 0; i < n; i++) there |= strcmp(hn_chain_model_input(s->model, i), key) == 0;
    if (there) continue;
    hn_reading_fail(&o->r, &entry, HONE_ERROR_INPUT, o->error, "model '%s' has no input '%s'", s->name, key);
    hn_error_hint(o->error, "its first input is '%s'", hn_chain_model_input(s->model, 0));
    return HONE_ERROR_INPUT;
  }
  for (uint32_t i = 0; i < n; i++) {
    const hn_json_way entry = {&at, from, hn_chain_model_input(s->model, i), 0};
    name = json_object_get(from, entry.key);
    if (!name)
      return hn_reading_fail(&o->r, &at, HONE_ERROR_INPUT, o->error,
                             "nothing is linked to input '%s' of '%s'", entry.key, s->name);
    const hone_status status = model_reads(o, &entry, name, s, i);
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}

static hone_status model_stage(opening *o, const hn_json_way *way, json_t *object, hn_stage *s) {
  hone_chain *c = o->c;
  hone_status status = hn_chain_model_open(c, s, &o->r, way, o->error);
  if (status != HONE_OK) return status;
  c->n_models++;
  s->n_reads = hn_chain_model_inputs(s->model);
  s->reads = HN_NEW_ARRAY(&c->keep, uint32_t, s->n_reads + 1);
  const uint32_t n = hn_chain_model_outputs(s->model);
  hn_passed *more = HN_NEW_ARRAY(&c->keep, hn_passed, c->n_values + n + STAGES_MOST);
  if (!s->reads || !more) return no_memory(o);
  if (c->n_values) memcpy(more, c->value, c->n_values * sizeof *more);
  c->value = more;
  status = model_from(o, way, object, s);
  s->makes = c->n_values;
  s->n_makes = n;
  for (uint32_t i = 0; i < n && status == HONE_OK; i++) {
    const char *name = hn_arena_printf(&c->keep, "%s.%s", s->name, hn_chain_model_output(s->model, i));
    if (!add_value(o, name, HONE_CHAIN_TENSORS, (uint32_t)(s - c->stage), i)) status = no_memory(o);
  }
  return status;
}

static hone_status kinds_error(opening *o, const hn_json_way *way, const char *kind) {
  hn_reading_fail(&o->r, way, HONE_ERROR_INPUT, o->error, "there is no kind of stage '%s'", kind ? kind : "");
  char list[160] = "model";
  for (uint32_t i = 0; hn_link_at(i); i++) {
    const size_t n = strlen(list);
    snprintf(list + n, sizeof list - n, ", %s", hn_link_at(i)->name);
  }
  hn_error_expected(o->error, "%s", list);
  return HONE_ERROR_INPUT;
}

static hone_status read_stage(opening *o, const hn_json_way *way, json_t *object) {
  hone_chain *c = o->c;
  hn_stage *s = &c->stage[c->n_stages];
  const hn_json_way name = {way, object, "name", 0}, kind = {way, object, "kind", 0};
  const char *word;
  if (!json_is_object(object))
    return hn_reading_fail(&o->r, way, HONE_ERROR_INPUT, o->error, "a stage is an object");
  hone_status status = hn_member_text(&o->r, &name, json_object_get(object, "name"), "a name for the stage",
                                      &s->name, o->error);
  if (status == HONE_OK)
    status =
        hn_member_text(&o->r, &kind, json_object_get(object, "kind"), "a kind of stage", &word, o->error);
  if (status != HONE_OK) return status;
  s->place = hn_json_where(o->r.text, o->r.length, way);
  bool taken = find_value(c, s->name) != NULL;
  for (uint32_t i = 0; i < c->n_stages; i++) taken |= strcmp(c->stage[i].name, s->name) == 0;
  if (taken)
    return hn_reading_fail(&o->r, &name, HONE_ERROR_INPUT, o->error, "the name '%s' is taken", s->name);
  const bool model = strcmp(word, "model") == 0;
  s->link = model ? NULL : hn_link_find(word);
  if (!model && !s->link) return kinds_error(o, &kind, word);
  status = known_members(o, way, object, of_stage, s);
  if (status == HONE_OK) status = model ? model_stage(o, way, object, s) : link_stage(o, way, object, s);
  if (status == HONE_OK || s->model) c->n_stages++; /* also one that has to be ended */
  return status;
}

/* ------------------------------------------------------------------ the whole */

static hone_status read_inputs(opening *o, const hn_json_way *root) {
  hone_chain *c = o->c;
  const hn_json_way way = {root, o->root, "inputs", 0};
  json_t *inputs = json_object_get(o->root, "inputs"), *word;
  const char *key;
  if (!json_is_object(inputs) || !json_object_size(inputs) || json_object_size(inputs) > INPUTS_MOST) {
    hn_reading_fail(&o->r, inputs ? &way : root, HONE_ERROR_INPUT, o->error, "a chain wants \"inputs\"");
    hn_error_expected(o->error, "{\"image\": \"picture\"} or {\"x\": \"tensor\"}");
    return HONE_ERROR_INPUT;
  }
  json_object_foreach(inputs, key, word) {
    const hn_json_way at = {&way, inputs, key, 0};
    const char *kind = json_string_value(word);
    const bool picture = kind && strcmp(kind, "picture") == 0;
    if (!picture && !(kind && strcmp(kind, "tensor") == 0)) {
      hn_reading_fail(&o->r, &at, HONE_ERROR_INPUT, o->error, "input '%s' has no such kind", key);
      hn_error_expected(o->error, "\"picture\" or \"tensor\"");
      return HONE_ERROR_INPUT;
    }
    if (!add_value(o, hn_arena_strdup(&c->keep, key), picture ? HONE_CHAIN_PICTURES : HONE_CHAIN_TENSORS,
                   HN_NO_STAGE, 0))
      return no_memory(o);
  }
  c->n_inputs = c->n_values;
  return HONE_OK;
}

static hone_status read_stages(opening *o, const hn_json_way *root) {
  const hn_json_way way = {root, o->root, "stages", 0};
  json_t *stages = json_object_get(o->root, "stages");
  const size_t n = json_array_size(stages);
  if (!n || n > STAGES_MOST) {
    hn_reading_fail(&o->r, stages ? &way : root, HONE_ERROR_INPUT, o->error, "a chain wants \"stages\"");
    hn_error_expected(o->error, "a list of 1 to %d objects", STAGES_MOST);
    return HONE_ERROR_INPUT;
  }
  hone_status status = HONE_OK;
  for (size_t i = 0; i < n && status == HONE_OK; i++) {
    const hn_json_way at = {&way, stages, NULL, i};
    status = read_stage(o, &at, json_array_get(stages, i));
  }
  return status;
}

/* "outputs": names; without it what nobody reads. */
static hone_status read_outputs(opening *o, const hn_json_way *root) {
  hone_chain *c = o->c;
  const hn_json_way way = {root, o->root, "outputs", 0};
  json_t *names = json_object_get(o->root, "outputs");
  c->output = HN_NEW_ARRAY(&c->keep, uint32_t, c->n_values + json_array_size(names) + 1);
  if (!c->output) return no_memory(o);
  if (names && (!json_is_array(names) || !json_array_size(names)))
    return hn_reading_fail(&o->r, &way, HONE_ERROR_INPUT, o->error, "outputs is no list of values");
  for (size_t i = 0; i < json_array_size(names); i++) {
    const hn_json_way at = {&way, names, NULL, i};
    uint32_t v;
    const hone_status status = read_value(o, &at, json_array_get(names, i), HN_NO_STAGE, &v);
    if (status != HONE_OK) return status;
    if (c->value[v].stage == HN_NO_STAGE || c->value[v].shown)
      return hn_reading_fail(&o->r, &at, HONE_ERROR_INPUT, o->error,
                             c->value[v].shown ? "'%s' is named twice" : "'%s' is an input, no output",
                             c->value[v].name);
    c->value[v].shown = true;
    c->output[c->n_outputs++] = v;
  }
  for (uint32_t i = c->n_inputs; !names && i < c->n_values; i++)
    if (c->value[i].last == HN_NO_STAGE) {
      c->value[i].shown = true;
      c->output[c->n_outputs++] = i;
    }
  return HONE_OK;
}

static hone_status read_chain(opening *o) {
  hone_chain *c = o->c;
  const hn_json_way root = {NULL, NULL, NULL, 0};
  if (!json_is_object(o->root))
    return hn_reading_fail(&o->r, &root, HONE_ERROR_INPUT, o->error, "a chain is a JSON object");
  const hn_json_way version = {&root, o->root, "chain", 0}, precision = {&root, o->root, "precision", 0};
  json_t *v = json_object_get(o->root, "chain"), *p = json_object_get(o->root, "precision");
  if (v && json_integer_value(v) != 1) {
    hn_reading_fail(&o->r, &version, HONE_ERROR_INPUT, o->error, "this chain is of another version");
    hn_error_expected(o->error, "\"chain\": 1");
    return HONE_ERROR_INPUT;
  }
  hone_status status = known_members(o, &root, o->root, of_root, NULL);
  if (status == HONE_OK && p)
    status =
        hn_member_text(&o->r, &precision, p, "f32, bf16, fp16, tf32 or fp8", &c->options.precision, o->error);
  if (status != HONE_OK) return status;
  c->stage = HN_NEW_ARRAY(&c->keep, hn_stage, STAGES_MOST + 1);
  c->value = HN_NEW_ARRAY(&c->keep, hn_passed, INPUTS_MOST + STAGES_MOST);
  if (!c->stage || !c->value) return no_memory(o);
  status = read_inputs(o, &root);
  if (status == HONE_OK) status = read_stages(o, &root);
  if (status == HONE_OK) status = read_outputs(o, &root);
  for (uint32_t i = 0; i < c->n_stages && status == HONE_OK; i++)
    if (c->stage[i].link && c->stage[i].link->ready)
      status = c->stage[i].link->ready(c, &c->stage[i], o->error);
  return status;
}

/* ------------------------------------------------------------------ the interface */

static hone_status open_text(hone_engine *engine, const char *path, const char *folder, const char *text,
                             size_t size, const hone_chain_options *options, hone_chain **out,
                             hone_error *error) {
  const uint64_t lost = hn_mem_lost();
  hone_chain *c = hn_calloc(1, sizeof *c);
  if (!c) return hn_fail_memory(error, sizeof *c, "a chain");
  c->engine = engine;
  opening o = {.c = c, .error = error};
  hone_status status = HONE_OK;
  json_error_t where;
  c->path = hn_arena_strdup(&c->keep, path);
  const char *from = hn_arena_strdup(&c->keep, folder);
  if (options) {
    c->options = *options;
    if (options->precision) c->options.precision = hn_arena_strdup(&c->keep, options->precision);
  }
  if (!c->path || !from || (options && options->precision && !c->options.precision)) {
    status = no_memory(&o);
    goto done;
  }
  o.r = (hn_reading){c->path, from, text, size, &c->keep};
  o.root = hn_json_load(text, size, JSON_REJECT_DUPLICATES, &where);
  if (!o.root) {
    status = hn_fail(error, HONE_ERROR_INPUT, "not valid JSON: %s", where.text);
    hn_error_where(error, "%s: line %d, column %d", path, where.line, where.column);
    goto done;
  }
  status = read_chain(&o);
done:
  json_decref(o.root);
  status = hn_settle(status, lost, error);
  if (status == HONE_OK)
    *out = c;
  else
    hone_chain_destroy(c);
  return status;
}

hone_status hone_chain_parse(hone_engine *engine, const char *text, size_t size, const char *folder,
                             const hone_chain_options *options, hone_chain **out, hone_error *error) {
  if (!engine || !text || !out)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_chain_parse needs an engine, a text and a place for the result");
  *out = NULL;
  return open_text(engine, "chain", folder ? folder : "", text, size, options, out, error);
}

hone_status hone_chain_open(hone_engine *engine, const char *path, const hone_chain_options *options,
                            hone_chain **out, hone_error *error) {
  hn_file file;
  if (!engine || !path || !out)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_chain_open needs an engine, a path and a place for the result");
  *out = NULL;
  hone_status status = hn_file_map(path, NULL, HN_FILE_TEXT, &file, error);
  if (status != HONE_OK) return status;
  const char *slash = strrchr(path, '/');
  char folder[4096] = "";
  const size_t n = slash ? (size_t)(slash - path) + (slash == path) : 0;
  if (n >= sizeof folder)
    status = hn_fail(error, HONE_ERROR_USAGE, "the path is too long");
  else {
    memcpy(folder, path, n);
    status = open_text(engine, path, folder, (const char *)file.data, file.size, options, out, error);
  }
  hn_file_unmap(&file);
  return status;
}

void hone_chain_destroy(hone_chain *c) {
  if (!c) return;
  for (uint32_t i = 0; i < c->n_stages; i++)
    if (c->stage[i].model) hn_chain_model_end(c->stage[i].model);
  hn_chain_memory_end(c);
  hn_arena_free(&c->scratch);
  hn_arena_free(&c->arena);
  hn_arena_free(&c->keep);
  hn_free(c);
}

/* ------------------------------------------------------------------ what it is made of */

uint32_t hone_chain_inputs(const hone_chain *c) { return c ? c->n_inputs : 0; }
uint32_t hone_chain_outputs(const hone_chain *c) { return c ? c->n_outputs : 0; }
uint32_t hone_chain_stages(const hone_chain *c) { return c ? c->n_stages : 0; }
uint32_t hone_chain_models(const hone_chain *c) { return c ? c->n_models : 0; }

const char *hone_chain_input_name(const hone_chain *c, uint32_t i) {
  return c && i < c->n_inputs ? c->value[i].name : NULL;
}

hone_chain_kind hone_chain_input_kind(const hone_chain *c, uint32_t i) {
  return c && i < c->n_inputs ? c->value[i].kind : HONE_CHAIN_PICTURES;
}

const char *hone_chain_output_name(const hone_chain *c, uint32_t i) {
  return c && i < c->n_outputs ? c->value[c->output[i]].name : NULL;
}

bool hone_chain_stage_at(const hone_chain *c, uint32_t i, hone_chain_stage *out) {
  if (!c || !out || i >= c->n_stages) return false;
  const hn_stage *s = &c->stage[i];
  *out = (hone_chain_stage){s->name, s->link ? s->link->name : "model",
                            s->model ? hn_chain_model_path(s->model) : NULL};
  return true;
}

const hone_tensor_desc *hn_stage_wanted(const hone_chain *c, const hn_stage *s) {
  for (uint32_t i = 0; i < c->n_stages; i++)
    for (uint32_t k = 0; c->stage[i].model && k < c->stage[i].n_reads; k++)
      if (c->stage[i].reads[k] == s->makes) return hn_chain_model_in(c->stage[i].model, k);
  return NULL;
}
