/* A model as it is served: which of its sizes are open, and whether requests may share a run. */
#include "api/api.h"
#include "api/serve/generate.h"
#include "base/error.h"
#include "base/text.h"

#include <string.h>

enum { MAX_BATCH = 8, CAPACITY = 16, STREAMS = 64 };

/* ------------------------------------------------------------------ names */

static hone_status check_name(const char *name, const char *what, hone_error *error) {
  bool good = name && *name && strlen(name) < 256;
  for (const char *c = name; good && *c;) {
    const size_t n = hn_text_character(c);
    good = !hn_text_is_hidden(c, n) && *c != '/';
    c += n ? n : 1;
  }
  if (good) return HONE_OK;
  hn_fail(error, HONE_ERROR_USAGE,
          "a served model's %s is UTF-8 of 1 to 255 bytes without '/' and control characters", what);
  if (name) hn_error_got(error, "%.100s", name);
  return HONE_ERROR_USAGE;
}

/* ------------------------------------------------------------------ the batch */

/* The first dimension of all inputs, where it is one symbol; NULL: it is not. *fixed: all of them are
 * numbers. */
static const char *symbol_of(const hone_model *model, bool *fixed) {
  const char *symbol = NULL;
  bool same = true;
  hone_port port;
  *fixed = true;
  for (uint32_t i = 0; hone_model_input(model, i, &port); i++) {
    if (port.optional) continue;
    const char *mine = port.desc.rank > 0 ? port.symbol[0] : NULL;
    same = same && mine && (!symbol || strcmp(symbol, mine) == 0);
    if (mine) symbol = mine;
    *fixed = *fixed && port.desc.rank >= 0 && (port.desc.rank == 0 || port.desc.dim[0] >= 0);
  }
  return same ? symbol : NULL;
}

/* A binding that says how large the batch is. */
static bool bound(const hone_plan_options *o, const char *symbol) {
  for (uint32_t i = 0; o->bindings && i < o->n_bindings; i++)
    if (o->bindings[i].input ||
        (symbol && o->bindings[i].symbol && strcmp(o->bindings[i].symbol, symbol) == 0))
      return true;
  return o->batch > 0;
}

/* Finds the batch, and opens it where the file fixes it. */
static hone_status find_batch(hn_served *m, hone_error *error) {
  bool fixed;
  const char *symbol = symbol_of(m->model, &fixed);
  if (bound(&m->plan_options, symbol)) {
    hn_refuse(&m->alone, "options fix the shapes of its inputs");
    return HONE_OK;
  }
  if (!symbol && fixed && m->max_batch > 1) {
    hone_model *opened = NULL;
    hone_error why = {0};
    const hone_status status = hone_model_open_batch(m->model, &opened, &why);
    if (status == HONE_ERROR_MEMORY) {
      if (error) *error = why;
      return status;
    }
    if (status != HONE_OK) {
      hn_refuse(&m->alone, "%.150s", why.what);
      return HONE_OK;
    }
    hone_model_release(m->model);
    m->model = opened;
    symbol = symbol_of(opened, &fixed);
  }
  if (!symbol) {
    hn_refuse(&m->alone, "its inputs do not begin with one batch dimension");
    return HONE_OK;
  }
  m->symbol = hn_strdup(symbol);
  return m->symbol ? HONE_OK : hn_fail_memory(error, strlen(symbol), "a served model");
}

/* ------------------------------------------------------------------ inputs and outputs */

static hone_status check_type(const hn_served_port *p, const char *what, hone_error *error) {
  if (hn_served_datatype(p->dtype)) return HONE_OK;
  hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s '%.80s' is %s, for which the protocol has no type", what,
          p->name, hone_dtype_name(p->dtype));
  hn_error_hint(error, "a model whose %ss are tensors can be served; hone run takes all", what);
  return HONE_ERROR_UNSUPPORTED;
}

static int32_t profile_of(const hone_size_profile *profile, uint32_t n, const char *symbol) {
  for (uint32_t i = 0; symbol && i < n; i++)
    if (strcmp(profile[i].symbol, symbol) == 0) return (int32_t)i;
  return -1;
}

static bool port_named(const hone_model *model, const char *name, hone_port *port) {
  for (uint32_t i = 0; hone_model_input(model, i, port); i++)
    if (strcmp(port->name, name) == 0) return true;
  return false;
}

/* plan: one for the usual sizes. */
static hone_status find_ports(hn_served *m, const hone_plan *plan, const hone_size_profile *profile,
                              uint32_t n, hone_error *error) {
  hone_status status = HONE_OK;
  m->n_in = hone_plan_inputs(plan);
  m->n_out = hone_plan_outputs(plan);
  m->in = hn_calloc(m->n_in + 1, sizeof *m->in);
  m->out = hn_calloc(m->n_out + 1, sizeof *m->out);
  if (!m->in || !m->out) return hn_fail_memory(error, m->n_in * sizeof *m->in, "a served model");
  for (uint32_t i = 0; i < m->n_in && status == HONE_OK; i++) {
    const hone_tensor_desc *d = hone_plan_input_desc(plan, i);
    hn_served_port *p = &m->in[i];
    hone_port port;
    *p = (hn_served_port){.dtype = d->dtype, .rank = d->rank};
    if (!port_named(m->model, hone_plan_input_name(plan, i), &port))
      return hn_fail(error, HONE_ERROR_INTERNAL, "the plan has other inputs than the model");
    p->name = port.name;
    for (int32_t k = 0; k < d->rank; k++) {
      const int32_t of = profile_of(profile, n, k < port.desc.rank ? port.symbol[k] : NULL);
      p->least[k] = of < 0 ? d->dim[k] : profile[of].min;
      p->most[k] = of < 0 ? d->dim[k] : profile[of].max;
    }
    status = check_type(p, "input", error);
  }
  for (uint32_t i = 0; i < m->n_out && status == HONE_OK; i++) {
    const hone_tensor_desc *d = hone_plan_output_desc(plan, i);
    hn_served_port *p = &m->out[i];
    hone_port port = {0};
    hone_model_output(m->model, i, &port);
    *p = (hn_served_port){.name = port.name, .dtype = d->dtype, .rank = d->rank};
    for (int32_t k = 0; k < d->rank; k++) /* what differs from run to run, or may */
      p->most[k] = n && (k >= port.desc.rank || port.desc.dim[k] < 0) ? -1 : d->dim[k];
    status = check_type(p, "output", error);
  }
  return status;
}

/* ------------------------------------------------------------------ plans */

/* What is the same on all engines is found on the first. */
static hone_status plan_fixed(hn_served *m, hn_replica *r, hone_error *error) {
  const hone_status status = hone_plan_create(r->engine, m->model, &m->plan_options, &r->plan, error);
  return status == HONE_OK && r == m->replica ? find_ports(m, r->plan, NULL, 0, error) : status;
}

static hone_status plan_open(hn_served *m, hn_replica *r, const hone_size_profile *profile, uint32_t n,
                             hone_error *error) {
  const hone_shapes_options o = {.profiles = profile,
                                 .n_profiles = n,
                                 .plan = &m->plan_options,
                                 .capacity = CAPACITY,
                                 .background = n > 1};
  const bool first = r == m->replica;
  hone_context *context = NULL;
  int64_t usual[HONE_PROFILES];
  hone_status status = hone_shapes_create(r->engine, m->model, &o, &r->shapes, error);
  for (uint32_t i = 0; i < n; i++) usual[i] = profile[i].opt;
  if (status == HONE_OK && first) status = hone_shapes_acquire(r->shapes, usual, &context, error);
  if (status == HONE_OK && first) status = find_ports(m, hone_context_plan(context), profile, n, error);
  hone_shapes_release(r->shapes, context);
  if (status == HONE_OK && first) status = hn_parts_create(m, profile, n, error);
  if (status == HONE_OK) hn_parts_check(m, r->shapes);
  if (status == HONE_OK && n == 1) status = hone_shapes_prepare(r->shapes, error);
  return status;
}

static hone_status plan(hn_served *m, const hone_served_options *o, hone_error *error) {
  hone_size_profile profile[HONE_PROFILES];
  uint32_t n = 0;
  if (o->n_profiles > HONE_PROFILES || (o->n_profiles && !o->profiles))
    return hn_fail(error, HONE_ERROR_USAGE, "%u dimensions have profiles, and %d may", o->n_profiles,
                   HONE_PROFILES);
  for (; n < o->n_profiles; n++) profile[n] = o->profiles[n];
  if (m->symbol) {
    const int32_t batch = profile_of(profile, n, m->symbol);
    if (batch >= 0)
      m->max_batch = profile[batch].max;
    else if (n < HONE_PROFILES)
      profile[n++] = (hone_size_profile){.symbol = m->symbol, .min = 1, .opt = 1, .max = m->max_batch};
  }
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < m->n_replicas && status == HONE_OK; i++)
    status = n ? plan_open(m, &m->replica[i], profile, n, error) : plan_fixed(m, &m->replica[i], error);
  return status;
}

static hone_status find_engines(hn_served *m, const hone_served_options *o, hone_error *error) {
  const uint32_t n = o->n_engines ? o->n_engines : 1;
  if (o->n_engines && !o->engines)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_server_add: %u engines are missing", n);
  m->replica = hn_calloc(n, sizeof *m->replica);
  if (!m->replica) return hn_fail_memory(error, n * sizeof *m->replica, "a served model");
  for (; m->n_replicas < n; m->n_replicas++) {
    hone_engine *engine = o->n_engines ? o->engines[m->n_replicas] : m->server->engine;
    if (!engine)
      return hn_fail(error, HONE_ERROR_USAGE, "hone_server_add: engine %u is missing", m->n_replicas);
    m->replica[m->n_replicas].engine = engine;
  }
  return HONE_OK;
}

/* ------------------------------------------------------------------ generation */

/* Inputs and outputs as the model has them. */
static hone_status tell_ports(hn_served *m, hone_error *error) {
  hone_port port;
  m->in = hn_calloc(hone_model_inputs(m->model) + 1, sizeof *m->in);
  m->out = hn_calloc(hone_model_outputs(m->model) + 1, sizeof *m->out);
  if (!m->in || !m->out) return hn_fail_memory(error, sizeof *m->in, "a served model");
  for (uint32_t i = 0; hone_model_input(m->model, i, &port); i++) {
    if (port.optional) continue;
    hn_served_port *p = &m->in[m->n_in++];
    *p = (hn_served_port){.name = port.name, .dtype = port.desc.dtype, .rank = port.desc.rank};
    for (int32_t k = 0; k < p->rank; k++)
      p->least[k] = p->most[k] = port.desc.dim[k] < 0 ? -1 : port.desc.dim[k];
  }
  for (uint32_t i = 0; hone_model_output(m->model, i, &port); i++) {
    hn_served_port *p = &m->out[m->n_out++];
    *p = (hn_served_port){.name = port.name, .dtype = port.desc.dtype, .rank = port.desc.rank};
    for (int32_t k = 0; k < p->rank; k++) p->most[k] = port.desc.dim[k] < 0 ? -1 : port.desc.dim[k];
  }
  return HONE_OK;
}

/* A decoder is served for generation, unless the caller wants its runs, or says its shapes. */
static hone_status find_decoder(hn_served *m, const hone_served_options *o, hone_error *error) {
  hn_decoder d = {0};
  if (o->runs) {
    hn_refuse(&m->no_decoder, "it is served for runs");
    return HONE_OK;
  }
  if (m->plan_options.n_bindings || m->plan_options.batch || o->n_profiles || m->plan_options.preview) {
    hn_refuse(&m->no_decoder, "options say the shapes of its inputs");
    return HONE_OK;
  }
  if (m->n_replicas > 1) {
    hn_refuse(&m->no_decoder, "it is on several devices, and a text's cache lies on one");
    return HONE_OK;
  }
  hone_status status = hn_decoder_find(m->model, &d, &m->no_decoder, error);
  if (status == HONE_OK && d.form != HN_DECODER_NONE) {
    hone_error own = {0};
    status = hn_generator_create(m, &d, o, &m->generator, &own);
    if (status == HONE_ERROR_UNSUPPORTED) { /* its runs can be had */
      hn_refuse(&m->no_decoder, "%.180s", own.what);
      status = HONE_OK;
    } else if (status == HONE_OK) {
      status = tell_ports(m, error);
    } else {
      if (status == HONE_ERROR_USAGE)
        hn_error_hint(&own,
                      "hone serve --no-generate (hone_served_options.runs) serves the runs of a decoder");
      if (error) *error = own;
    }
  }
  hn_decoder_free(&d);
  return status;
}

hone_status hn_served_create(hone_server *server, hone_model *model, const hone_served_options *o,
                             hn_served **out, hone_error *error) {
  hone_status status = check_name(o->name, "name", error);
  if (status == HONE_OK && o->version) status = check_name(o->version, "version", error);
  if (status != HONE_OK) return status;
  hn_served *m = hn_calloc(1, sizeof *m);
  if (!m) return hn_fail_memory(error, sizeof *m, "a served model");
  m->server = server;
  m->last = &m->first;
  m->model = hn_model_retain(model);
  m->plan_options = o->plan ? *o->plan : (hone_plan_options){.level = -1};
  m->max_batch = o->max_batch ? o->max_batch : MAX_BATCH;
  m->delay = o->batch_delay > 0 && o->batch_delay < 3600 ? (uint64_t)(o->batch_delay * 1e9) : 0;
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_mutex_init(&m->lock, NULL);
  pthread_cond_init(&m->arrived, &attributes);
  pthread_condattr_destroy(&attributes);
  m->name = hn_strdup(o->name);
  m->version = hn_strdup(o->version ? o->version : "1");
  m->times = hn_calloc(HN_SERVED_TIMES, sizeof *m->times);
  if (!m->name || !m->version || !m->times) status = hn_fail_memory(error, sizeof *m, "a served model");
  if (status == HONE_OK) status = find_engines(m, o, error);
  if (status == HONE_OK) status = find_decoder(m, o, error);
  const bool runs = status == HONE_OK && !m->generator;
  if (runs) status = find_batch(m, error);
  if (runs && status == HONE_OK) status = plan(m, o, error);
  if (status == HONE_OK && m->plan_options.preview)
    status = hn_fail(error, HONE_ERROR_USAGE, "a preview cannot run: a server needs plans that can");
  if (runs && status == HONE_OK)
    status = hn_served_workers(m, o->streams > STREAMS ? STREAMS : o->streams ? o->streams : 1, error);
  if (status == HONE_OK)
    *out = m;
  else
    hn_served_destroy(m);
  return status;
}

void hn_served_destroy(hn_served *m) {
  if (!m) return;
  hn_generator_destroy(m->generator);
  hn_served_close(m);
  for (uint32_t i = 0; i < m->n_replicas; i++) {
    hone_shapes_destroy(m->replica[i].shapes);
    hone_plan_destroy(m->replica[i].plan);
  }
  hn_parts_destroy(m->parts);
  hn_free(m->replica);
  pthread_cond_destroy(&m->arrived);
  pthread_mutex_destroy(&m->lock);
  hn_free(m->in);
  hn_free(m->out);
  hn_free(m->worker);
  hn_free(m->times);
  hn_free(m->symbol);
  hn_free(m->version);
  hn_free(m->name);
  hn_model_destroy(m->model);
  hn_free(m);
}
