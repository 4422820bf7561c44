/* The stage that runs a model: a plan for each of the shapes that come to it, a few of which are kept. */
#include "api/api.h"
#include "api/chain/chain.h"
#include "base/error.h"
#include "base/os.h"
#include "runtime/context.h"

#include <string.h>

enum { PLANS = 8, PLANS_MOST = 64 };

/* A plan for one set of input shapes. */
typedef struct shaped {
  hone_plan *plan; /* NULL: none */
  hone_context *context;
  hone_tensor_desc *in; /* [n_in] that it is for */
  uint32_t *at;         /* [n_in] which input of the plan */
  uint64_t used;        /* when: a count of runs */
} shaped;

/* An output that somebody reads: where its memory comes from. */
typedef struct sink {
  hone_chain *chain;
  const hn_passed *value;
  uint32_t output;
} sink;

struct hn_chain_model {
  const char *path, *precision;
  hone_model *model;
  uint32_t n_in, n_out;
  const char **in_name, **out_name;
  hone_tensor_desc *in, *out;
  sink *sink; /* [n_out] */
  int64_t plans;
  shaped *shaped; /* [plans] */
  uint64_t clock;
  const hone_tensor **given; /* [n_in] by plan input */
  hone_tensor_desc *now;     /* [n_in] */
  bool *reformat_in, *reformat_out, *in_place;
  bool *last_out; /* of the plan that is made */
};

uint32_t hn_chain_model_inputs(const hn_chain_model *m) { return m->n_in; }
uint32_t hn_chain_model_outputs(const hn_chain_model *m) { return m->n_out; }
const char *hn_chain_model_input(const hn_chain_model *m, uint32_t i) { return m->in_name[i]; }
const char *hn_chain_model_output(const hn_chain_model *m, uint32_t i) { return m->out_name[i]; }
const hone_tensor_desc *hn_chain_model_in(const hn_chain_model *m, uint32_t i) { return &m->in[i]; }
const hone_tensor_desc *hn_chain_model_out(const hn_chain_model *m, uint32_t i) { return &m->out[i]; }
const char *hn_chain_model_path(const hn_chain_model *m) { return m->path; }

bool hn_chain_model_reformats(const hn_chain_model *m, bool output, uint32_t i) {
  return output ? m->reformat_out[i] : m->reformat_in[i];
}

bool hn_chain_model_in_place(const hn_chain_model *m, uint32_t i) { return m->in_place[i]; }

/* ------------------------------------------------------------------ opening */

static hone_status take_ports(hone_chain *c, hn_chain_model *m, hone_error *error) {
  hone_port port;
  m->n_out = hone_model_outputs(m->model);
  for (uint32_t i = 0; hone_model_input(m->model, i, &port); i++) m->n_in += !port.optional;
  const uint32_t n = m->n_in > m->n_out ? m->n_in : m->n_out;
  m->in_name = HN_NEW_ARRAY(&c->keep, const char *, m->n_in + 1);
  m->out_name = HN_NEW_ARRAY(&c->keep, const char *, m->n_out + 1);
  m->in = HN_NEW_ARRAY(&c->keep, hone_tensor_desc, m->n_in + 1);
  m->now = HN_NEW_ARRAY(&c->keep, hone_tensor_desc, m->n_in + 1);
  m->out = HN_NEW_ARRAY(&c->keep, hone_tensor_desc, m->n_out + 1);
  m->sink = HN_NEW_ARRAY(&c->keep, sink, m->n_out + 1);
  m->given = HN_NEW_ARRAY(&c->keep, const hone_tensor *, m->n_in + 1);
  m->reformat_in = HN_NEW_ARRAY(&c->keep, bool, n + 1);
  m->reformat_out = HN_NEW_ARRAY(&c->keep, bool, n + 1);
  m->in_place = HN_NEW_ARRAY(&c->keep, bool, n + 1);
  m->last_out = HN_NEW_ARRAY(&c->keep, bool, n + 1);
  if (!m->in_name || !m->out_name || !m->in || !m->now || !m->out || !m->sink || !m->given ||
      !m->reformat_in || !m->reformat_out || !m->in_place || !m->last_out)
    return hn_fail_memory(error, n * sizeof *m->in, "a chain");
  uint32_t k = 0;
  for (uint32_t i = 0; hone_model_input(m->model, i, &port); i++) {
    if (port.optional) continue;
    m->in_name[k] = port.name;
    m->in[k++] = port.desc;
  }
  for (uint32_t i = 0; i < m->n_out; i++) {
    hone_model_output(m->model, i, &port);
    m->out_name[i] = port.name;
    m->out[i] = port.desc;
  }
  return HONE_OK;
}

/* "shapes": {"x": [1, 3, -1, -1]}: what the model leaves open, -1 for still open. */
static hone_status take_shape(const hn_reading *r, const hn_json_way *way, json_t *dims, hn_chain_model *m,
                              hone_error *error) {
  uint32_t i = 0;
  while (i < m->n_in && strcmp(m->in_name[i], way->key) != 0) i++;
  if (i == m->n_in)
    return hn_reading_fail(r, way, HONE_ERROR_INPUT, error, "the model has no input '%s'", way->key);
  hone_tensor_desc *d = &m->in[i];
  int64_t dim[HONE_MAX_RANK];
  const size_t rank = json_array_size(dims);
  bool fits = json_is_array(dims) && rank <= HONE_MAX_RANK && (d->rank < 0 || (size_t)d->rank == rank);
  for (size_t k = 0; fits && k < rank; k++) {
    const json_t *e = json_array_get(dims, k);
    dim[k] = json_integer_value(e) < 0 ? HONE_DIM_UNKNOWN : json_integer_value(e);
    fits = json_is_integer(e);
    if (d->rank > 0 && d->dim[k] >= 0) {
      fits &= dim[k] < 0 || dim[k] == d->dim[k];
      dim[k] = d->dim[k];
    }
  }
  if (!fits) {
    char text[128];
    hn_reading_fail(r, way, HONE_ERROR_INPUT, error, "the shape does not fit input '%s'", way->key);
    hn_error_expected(error, "a list of dimensions, -1 for open ones, of %s",
                      hone_desc_format(d, text, sizeof text));
    return HONE_ERROR_INPUT;
  }
  *d = hone_desc(d->dtype, (int32_t)rank, dim);
  return HONE_OK;
}

static hone_status take_shapes(const hn_reading *r, const hn_json_way *way, json_t *shapes, hn_chain_model *m,
                               hone_error *error) {
  const char *key;
  json_t *dims;
  if (!json_is_object(shapes))
    return hn_reading_fail(r, way, HONE_ERROR_INPUT, error, "shapes is no object of inputs and shapes");
  json_object_foreach(shapes, key, dims) {
    const hn_json_way at = {way, shapes, key, 0};
    const hone_status status = take_shape(r, &at, dims, m, error);
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}

typedef struct said {
  const char *path;
  int precision;
  int64_t plans;
} said;

static const char *const precisions[] = {"f32", "bf16", "fp16", "tf32", "fp8", NULL};
static const hn_member members[] = {
    {"path", HN_MEMBER_FILE, offsetof(said, path), 0, 0, NULL},
    {"precision", HN_MEMBER_WORD, offsetof(said, precision), 0, 0, precisions},
    {"plans", HN_MEMBER_COUNT, offsetof(said, plans), 1, PLANS_MOST, NULL},
    {0}};

hone_status hn_chain_model_open(hone_chain *c, hn_stage *stage, const hn_reading *r, const hn_json_way *way,
                                hone_error *error) {
  json_t *o = json_array_get(way->in, way->index);
  said s = {.precision = -1, .plans = PLANS};
  hone_status status = HONE_OK;
  hn_chain_model *m = stage->model = HN_NEW(&c->keep, hn_chain_model);
  if (!m) return hn_fail_memory(error, sizeof *m, "a chain");
  for (const hn_member *row = members; row->name && status == HONE_OK; row++) {
    const hn_json_way at = {way, o, row->name, 0};
    json_t *value = json_object_get(o, row->name);
    if (value) status = hn_member_read(r, &at, value, row, &s, error);
  }
  if (status != HONE_OK) return status;
  const hn_json_way path = {way, o, "path", 0}, shapes = {way, o, "shapes", 0};
  if (!s.path) return hn_reading_fail(r, way, HONE_ERROR_INPUT, error, "a model wants a \"path\"");
  m->path = s.path;
  m->plans = s.plans;
  m->precision = s.precision >= 0 ? precisions[s.precision] : c->options.precision;
  m->shaped = HN_NEW_ARRAY(&c->keep, shaped, (size_t)s.plans);
  if (!m->shaped) return hn_fail_memory(error, (size_t)s.plans * sizeof *m->shaped, "a chain");
  status = strncmp(m->path, "zoo:", 4) == 0 ? hone_zoo_build(m->path + 4, NULL, &m->model, error)
                                            : hone_model_load(m->path, &m->model, error);
  if (status != HONE_OK) {
    const hn_json_position p = hn_json_where(r->text, r->length, &path);
    hn_error_where(error, "%s: line %d, column %d", r->path, p.line, p.column);
    if (status != HONE_ERROR_USAGE) return status;
    if (error) error->status = HONE_ERROR_INPUT; /* the file asks for a network that is not built in */
    return HONE_ERROR_INPUT;
  }
  status = take_ports(c, m, error);
  if (status == HONE_OK && !m->n_in)
    status =
        hn_reading_fail(r, &path, HONE_ERROR_UNSUPPORTED, error, "the model has no inputs to be linked to");
  json_t *given = json_object_get(o, "shapes");
  return status == HONE_OK && given ? take_shapes(r, &shapes, given, m, error) : status;
}

static void end_shaped(shaped *s) {
  hone_context_destroy(s->context);
  hone_plan_destroy(s->plan);
  hn_free(s->in);
  hn_free(s->at);
  *s = (shaped){0};
}

void hn_chain_model_end(hn_chain_model *m) {
  for (int64_t i = 0; m->shaped && i < m->plans; i++) end_shaped(&m->shaped[i]);
  hone_model_release(m->model);
}

hone_status hn_chain_model_moved(hn_chain_model *m, void *shared, hone_error *error) {
  for (int64_t i = 0; m->shaped && i < m->plans; i++) {
    hn_context *inside;
    if (!m->shaped[i].context) continue;
    hone_status status = hn_api_enter(m->shaped[i].context, &inside, error);
    if (status == HONE_OK)
      status = hn_api_leave(m->shaped[i].context, hn_context_move(inside, shared, error));
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}

void hn_chain_model_memory(const hn_chain_model *m, hone_chain_memory *out) {
  for (int64_t i = 0; i < m->plans; i++) {
    uint64_t constants;
    if (!m->shaped[i].context) continue;
    hone_plan_memory(m->shaped[i].plan, NULL, &constants, NULL);
    const uint64_t need = hn_context_needs(hn_api_plan(m->shaped[i].plan));
    out->plans++;
    out->constants += constants;
    out->apart += need;
    if (need > out->arena) out->arena = need;
  }
}

/* ------------------------------------------------------------------ plans */

static void *give_memory(void *arg, uint32_t output, const hone_tensor_desc *desc) {
  const sink *s = arg;
  (void)output;
  return hn_chain_take(s->chain, s->value, (size_t)hone_desc_bytes(desc));
}

/* Is there a step that only brings this input, or output, into another order? */
static bool reordered(const hn_plan *p, bool output, uint32_t port) {
  const uint32_t slot = output ? p->output_slot[port] : p->input_slot[port];
  for (size_t k = 0; slot != HN_NO_SLOT && k < p->steps.len; k++) {
    const hn_step *s = &p->steps.ptr[k];
    const uint32_t at = output ? s->out[0] : s->in[0];
    if (s->role == HONE_STEP_REFORMAT && at != HN_NO_SLOT && hn_slot_root(p, at) == hn_slot_root(p, slot))
      return true;
  }
  return false;
}

static void look_for_reformats(const shaped *s, hn_chain_model *m) {
  const hn_plan *p = hn_api_plan(s->plan);
  for (uint32_t i = 0; i < m->n_in; i++) m->reformat_in[i] = reordered(p, false, s->at[i]);
  for (uint32_t i = 0; i < m->n_out; i++) m->reformat_out[i] = reordered(p, true, i);
}

/* The plan's number of the model's input i. */
static uint32_t port_of(const hone_plan *plan, const hn_chain_model *m, uint32_t i) {
  uint32_t k = 0;
  while (k < hone_plan_inputs(plan) && strcmp(hone_plan_input_name(plan, k), m->in_name[i]) != 0) k++;
  return k;
}

/* How the tensors of a plan that is made lie. */
typedef struct lying {
  const hn_chain_model *m;
  const hone_tensor_desc *in;
  const bool *last_out;
} lying;

static bool last(void *arg, bool output, const char *name) {
  const lying *l = arg;
  for (uint32_t i = 0; !output && i < l->m->n_in; i++)
    if (strcmp(l->m->in_name[i], name) == 0) return l->in[i].layout == HONE_LAYOUT_CHANNELS_LAST;
  for (uint32_t i = 0; output && i < l->m->n_out; i++)
    if (strcmp(l->m->out_name[i], name) == 0) return l->last_out[i];
  return false;
}

static hone_status plan_of(hone_chain *c, const lying *l, bool preview, hone_plan **out, hone_error *error) {
  const hn_chain_model *m = l->m;
  hone_binding *bindings = HN_NEW_ARRAY(&c->scratch, hone_binding, m->n_in + 1);
  if (!bindings) return hn_fail_memory(error, m->n_in * sizeof *bindings, "a plan");
  for (uint32_t i = 0; i < m->n_in; i++) {
    bindings[i] = (hone_binding){.input = m->in_name[i], .rank = l->in[i].rank};
    memcpy(bindings[i].dim, l->in[i].dim, sizeof bindings[i].dim);
  }
  const hone_plan_options o = {.level = -1,
                               .precision = m->precision,
                               .bindings = bindings,
                               .n_bindings = m->n_in,
                               .untuned = c->options.untuned,
                               .preview = preview};
  const hn_ports ports = {last, (void *)(uintptr_t)l};
  return hn_api_plan_create(c->engine, m->model, &o, &ports, NULL, out, error);
}

/* ------------------------------------------------------------------ a common layout */

/* Do only models read the value? Links, and who gets the chain's outputs, want it row-major. */
static bool for_models(const hone_chain *c, const hn_passed *v) {
  const uint32_t at = (uint32_t)(v - c->value);
  if (v->shown || v->last == HN_NO_STAGE) return false;
  for (uint32_t i = 0; i < c->n_stages; i++)
    for (uint32_t k = 0; k < c->stage[i].n_reads; k++)
      if (c->stage[i].reads[k] == at && !c->stage[i].model) return false;
  return true;
}

/* Would the reader take its input k as the maker's preview leaves it, without bringing it into another order?
 */
static bool takes(hone_chain *c, const hn_stage *maker, const hone_plan *made, const hn_stage *reader,
                  uint32_t k, uint32_t b) {
  hn_chain_model *m = reader->model;
  hone_tensor_desc *in = HN_NEW_ARRAY(&c->scratch, hone_tensor_desc, m->n_in + 1);
  bool *none = HN_NEW_ARRAY(&c->scratch, bool, m->n_out + 1);
  hone_plan *preview = NULL;
  hone_error other = {0};
  if (!in || !none) return false;
  for (uint32_t i = 0; i < m->n_in; i++) {
    const hn_passed *v = &c->value[reader->reads[i]];
    if (v->stage != HN_NO_STAGE && &c->stage[v->stage] == maker)
      in[i] = *hone_plan_output_desc(made, v->output);
    else if (v->there && b < v->n)
      in[i] = v->batch[b].tensor.desc;
    else
      return false; /* not known yet */
    if (!hone_desc_known(&in[i])) return false;
  }
  const lying l = {m, in, none};
  if (plan_of(c, &l, true, &preview, &other) != HONE_OK) return false; /* to be told when it is its turn */
  const uint32_t port = port_of(preview, m, k);
  const bool good = port < hone_plan_inputs(preview) &&
                    hone_plan_input_desc(preview, port)->layout == HONE_LAYOUT_CHANNELS_LAST &&
                    !reordered(hn_api_plan(preview), false, port);
  hone_plan_destroy(preview);
  return good;
}

/* Outputs that the model computes channels-last, and that all readers want so: they stay as they are. By
 * plans that are only previewed. */
static hone_status choose_layouts(hone_chain *c, hn_stage *stage, uint32_t b, hone_error *error) {
  hn_chain_model *m = stage->model;
  hn_device *device;
  hone_plan *preview = NULL;
  bool any = false;
  for (uint32_t i = 0; i < m->n_out; i++) {
    m->last_out[i] = m->sink[i].value && for_models(c, m->sink[i].value);
    any |= m->last_out[i];
  }
  if (hn_api_backend(c->engine, &device)->asynchronous || !any) {
    memset(m->last_out, 0, m->n_out * sizeof *m->last_out);
    return HONE_OK;
  }
  const lying l = {m, m->now, m->last_out};
  const hone_status status = plan_of(c, &l, true, &preview, error);
  if (status != HONE_OK) return status;
  for (uint32_t i = 0; i < m->n_out; i++) {
    if (!m->last_out[i]) continue;
    m->last_out[i] = hone_plan_output_desc(preview, i)->layout == HONE_LAYOUT_CHANNELS_LAST;
    for (uint32_t r = 0; r < c->n_stages; r++)
      for (uint32_t k = 0; k < c->stage[r].n_reads && m->last_out[i]; k++)
        if (c->stage[r].reads[k] == stage->makes + i)
          m->last_out[i] = takes(c, stage, preview, &c->stage[r], k, b);
  }
  hone_plan_destroy(preview);
  return HONE_OK;
}

static hone_status make_plan(hone_chain *c, hn_stage *stage, shaped *s, uint32_t b, hone_error *error) {
  hn_chain_model *m = stage->model;
  s->in = hn_calloc(m->n_in + 1, sizeof *s->in);
  s->at = hn_calloc(m->n_in + 1, sizeof *s->at);
  if (!s->in || !s->at) return hn_fail_memory(error, m->n_in * sizeof *s->in, "a plan");
  for (uint32_t i = 0; i < m->n_in; i++) s->in[i] = m->now[i];
  hone_status status = choose_layouts(c, stage, b, error);
  const lying l = {m, m->now, m->last_out};
  if (status == HONE_OK) status = plan_of(c, &l, false, &s->plan, error);
  if (status == HONE_OK) status = hn_chain_context(c, s->plan, &s->context, error);
  for (uint32_t i = 0; i < m->n_in && status == HONE_OK; i++) s->at[i] = port_of(s->plan, m, i);
  for (uint32_t i = 0; i < m->n_out && status == HONE_OK; i++)
    if (m->sink[i].value)
      status = hone_context_bind_allocator(s->context, i, give_memory, &m->sink[i], error);
  return status;
}

static bool same_shapes(const hn_chain_model *m, const shaped *s) {
  for (uint32_t i = 0; i < m->n_in; i++)
    if (!hone_desc_same_dims(&m->now[i], &s->in[i]) || m->now[i].layout != s->in[i].layout) return false;
  return true;
}

/* The plan for the shapes in m->now; a new one takes the place of the one that was not used for the longest
 * time. */
static hone_status plan_for(hone_chain *c, hn_stage *stage, uint32_t b, shaped **out, hone_error *error) {
  hn_chain_model *m = stage->model;
  shaped *oldest = &m->shaped[0];
  for (int64_t i = 0; i < m->plans; i++) {
    shaped *s = &m->shaped[i];
    if (s->plan && same_shapes(m, s)) {
      s->used = ++m->clock;
      *out = s;
      return HONE_OK;
    }
    if (s->used < oldest->used) oldest = s;
  }
  const uint64_t start = hn_now_ns();
  end_shaped(oldest);
  const hone_status status = make_plan(c, stage, oldest, b, error);
  if (status != HONE_OK) {
    end_shaped(oldest);
    if (error && !strstr(error->where, "stage '")) hn_error_where(error, "stage '%s'", stage->name);
    return status;
  }
  look_for_reformats(oldest, m);
  stage->time.plan_seconds += (double)(hn_now_ns() - start) * 1e-9;
  oldest->used = ++m->clock;
  *out = oldest;
  return HONE_OK;
}

/* ------------------------------------------------------------------ running */

static bool fits(const hone_tensor_desc *have, const hone_tensor_desc *want) {
  if (have->dtype != want->dtype || (want->rank >= 0 && have->rank != want->rank)) return false;
  for (int32_t k = 0; want->rank >= 0 && k < have->rank; k++)
    if (want->dim[k] >= 0 && have->dim[k] != want->dim[k]) return false;
  return true;
}

/* Batch b of every input. */
static hone_status give(hone_chain *c, hn_stage *stage, uint32_t b, hone_error *error) {
  hn_chain_model *m = stage->model;
  for (uint32_t i = 0; i < m->n_in; i++) {
    const hn_passed *v = &c->value[stage->reads[i]];
    const hone_tensor *t = &v->batch[b].tensor;
    if (!fits(&t->desc, &m->in[i])) {
      char want[128], got[128];
      hn_stage_fail(c, stage, HONE_ERROR_INPUT, error, "'%s' does not fit input '%s' of '%s'", v->name,
                    m->in_name[i], stage->name);
      hn_error_expected(error, "%s", hone_desc_format(&m->in[i], want, sizeof want));
      hn_error_got(error, "%s", hone_desc_format(&t->desc, got, sizeof got));
      return HONE_ERROR_INPUT;
    }
    m->now[i] = t->desc;
  }
  return HONE_OK;
}

static void take_output(hone_chain *c, hn_stage *stage, const shaped *s, uint32_t i, uint32_t b) {
  hn_passed *to = &c->value[stage->makes + i];
  const hone_chain_batch *from = &c->value[stage->reads[0]].batch[b];
  hone_chain_batch *batch = &to->batch[b];
  const hone_tensor *t = hone_context_output(s->context, i);
  *batch = (hone_chain_batch){*t, from->item, from->n};
  hn_context *inside;
  hone_error other = {0};
  if (hn_api_enter(s->context, &inside, &other) != HONE_OK) return;
  stage->model->in_place[i] = hn_context_lent(inside)->output && hn_context_lent(inside)->output[i].at;
  hn_api_leave(s->context, HONE_OK);
}

static hone_status run_batch(hone_chain *c, hn_stage *stage, uint32_t b, hone_error *error) {
  hn_chain_model *m = stage->model;
  shaped *s = NULL;
  hone_status status = give(c, stage, b, error);
  if (status == HONE_OK) status = plan_for(c, stage, b, &s, error);
  if (status != HONE_OK) return status;
  for (uint32_t i = 0; i < m->n_in; i++) m->given[s->at[i]] = &c->value[stage->reads[i]].batch[b].tensor;
  status = hone_context_run(s->context, m->given, NULL, error);
  if (status != HONE_OK) {
    hn_error_where(error, "stage '%s'", stage->name);
    return status;
  }
  stage->time.runs++;
  for (uint32_t i = 0; i < m->n_out; i++)
    if (m->sink[i].value) take_output(c, stage, s, i, b);
  return HONE_OK;
}

/* What the outputs are for is known when all stages are. */
static void find_sinks(hone_chain *c, hn_stage *stage) {
  hn_chain_model *m = stage->model;
  for (uint32_t i = 0; i < m->n_out; i++) {
    const hn_passed *v = &c->value[stage->makes + i];
    m->sink[i] = (sink){c, v->last != HN_NO_STAGE || v->shown ? v : NULL, i};
  }
}

hone_status hn_chain_model_run(hone_chain *c, hn_stage *stage, hone_error *error) {
  hn_chain_model *m = stage->model;
  const hn_passed *first = &c->value[stage->reads[0]];
  if (!m->clock) find_sinks(c, stage);
  for (uint32_t i = 1; i < m->n_in; i++) {
    const hn_passed *v = &c->value[stage->reads[i]];
    if (v->n != first->n)
      return hn_stage_fail(c, stage, HONE_ERROR_INPUT, error, "'%s' is %u batches, '%s' %u: they go together",
                           first->name, first->n, v->name, v->n);
  }
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < m->n_out && status == HONE_OK; i++) {
    hn_passed *v = &c->value[stage->makes + i];
    if (!m->sink[i].value) continue;
    status = hn_passed_batches(c, v, first->n, error);
    v->items = first->items;
    v->map = first->map;
    v->there = true;
  }
  for (uint32_t b = 0; b < first->n && status == HONE_OK; b++) {
    if (atomic_load(&c->cancel)) return hn_fail(error, HONE_ERROR_CANCELLED, "the run was cancelled");
    status = run_batch(c, stage, b, error);
  }
  stage->time.items = first->items;
  return status;
}
