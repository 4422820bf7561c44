/* From a file and options to a context that is ready to run, with its inputs. */
#include "cli/options/session.h"
#include "cli/terminal/clock.h"
#include "cli/terminal/interrupts.h"
#include "cli/options/arriving.h"
#include "cli/options/options.h"
#include "cli/options/precision.h"
#include "cli/options/preprocess.h"
#include "cli/options/shapes.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <stdio.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static hone_status fail(hone_error *error, hone_status status, const char *what) {
  *error = (hone_error){.status = status};
  snprintf(error->what, sizeof error->what, "%s", what);
  return status;
}

hone_status cli_check_device(const cli_args *args, hone_error *error) {
  const char *precision = cli_precision_name(args);
  static const char *const known[] = {"f32", "bf16", "auto", "fp16", "tf32", "fp8"}; /* the CPU's first */
  const bool cpu = strncmp(cli_device_name(args), "cpu", 3) == 0;
  bool fits = false;
  for (size_t i = 0; i < (cpu ? 4 : sizeof known / sizeof *known); i++)
    fits |= strcmp(precision, known[i]) == 0;
  if (!fits) {
    *error = (hone_error){.status = HONE_ERROR_USAGE};
    snprintf(error->what, sizeof error->what, "--precision %.80s is not available on device %.40s", precision,
             cli_device_name(args));
    snprintf(error->expected, sizeof error->expected,
             cpu ? "f32, bf16, fp16 or auto" : "f32, bf16, fp16, tf32, fp8 or auto");
    return HONE_ERROR_USAGE;
  }
  if (args->prefer && strcmp(args->prefer, "speed") != 0 && strcmp(args->prefer, "memory") != 0) {
    fail(error, HONE_ERROR_USAGE, "--prefer knows no such goal");
    snprintf(error->got, sizeof error->got, "%.80s", args->prefer);
    snprintf(error->expected, sizeof error->expected, "speed or memory");
    return HONE_ERROR_USAGE;
  }
  return hone_device_about(cli_device_name(args), NULL, error);
}

/* Whether the model has one input that no initializer serves: then --input needs no name. */
static bool one_input(const hone_model *model) {
  hone_port port;
  uint32_t required = 0;
  for (uint32_t i = 0; hone_model_input(model, i, &port); i++) required += !port.optional;
  return required == 1;
}

/* NAME=FILE of --input for this input; NULL: none. An argument without "=" belongs to the only input. */
static const char *file_of(const cli_args *args, const char *name, bool only) {
  size_t len = strlen(name);
  for (size_t i = 0; i < args->inputs.n; i++) {
    const char *text = args->inputs.item[i];
    if (strncmp(text, name, len) == 0 && text[len] == '=') return text + len + 1;
    if (only && !strchr(text, '=')) return text;
  }
  return NULL;
}

/* Every --input must name an input of the model. */
static hone_status check_input_names(const cli_args *args, const hone_model *model, hone_error *error) {
  uint32_t n = hone_model_inputs(model);
  bool one = one_input(model);
  for (size_t k = 0; k < args->inputs.n; k++) {
    const char *text = args->inputs.item[k], *names[32];
    size_t n_names = 0;
    bool found = false;
    for (uint32_t i = 0; i < n && !found; i++) {
      hone_port port;
      if (!hone_model_input(model, i, &port)) continue;
      size_t len = strlen(port.name);
      found = (strncmp(text, port.name, len) == 0 && text[len] == '=') || (one && !strchr(text, '='));
      if (n_names < 32) names[n_names++] = port.name;
    }
    if (found) continue;
    char name[200];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "="), text);
    fail(error, HONE_ERROR_USAGE, "");
    snprintf(error->what, sizeof error->what,
             strchr(text, '=') ? "--input: the model has no input '%s'" : "--input wants NAME=FILE, got '%s'",
             name);
    const char *near = cli_nearest(name, names, n_names);
    if (near || n_names)
      snprintf(error->hint, sizeof error->hint, near ? "did you mean '%s'?" : "its first input is '%s'",
               near ? near : names[0]);
    return HONE_ERROR_USAGE;
  }
  return HONE_OK;
}

/* What an input looks like after --shape, before defaults. */
static void apply_bindings(const cli_session *s, const hone_port *port, hone_tensor_desc *want) {
  *want = port->desc;
  for (uint32_t b = 0; b < s->n_bindings; b++) {
    const hone_binding *bind = &s->bindings[b];
    if (bind->input && strcmp(bind->input, port->name) == 0)
      *want = hone_desc(want->dtype, bind->rank, bind->dim);
    for (int32_t k = 0; bind->symbol && k < want->rank; k++)
      if (port->symbol[k] && strcmp(port->symbol[k], bind->symbol) == 0) want->dim[k] = bind->dim[0];
  }
}

/* What the plan takes: of a batch that is cut into slices the model has one slice's shape. */
static void want_of_plan(const cli_session *s, const char *name, hone_tensor_desc *want) {
  for (uint32_t p = 0; s->plan && p < hone_plan_inputs(s->plan); p++)
    if (strcmp(hone_plan_input_name(s->plan, p), name) == 0) *want = *hone_plan_input_desc(s->plan, p);
}

/* Reads the files that were given; their shapes settle what the model leaves open. */
static hone_status load_inputs(cli_session *s, const cli_args *args, hone_error *error) {
  hone_binding *more = realloc(s->bindings, (s->n_bindings + s->n_inputs + 1) * sizeof *more);
  if (!more) return fail(error, HONE_ERROR_MEMORY, "out of memory");
  s->bindings = more;
  uint32_t given = s->n_bindings;
  bool one = one_input(s->model);
  hone_preprocess preprocess;
  hone_status status = cli_preprocess(args, &preprocess, error);
  if (status != HONE_OK) return status;
  for (uint32_t i = 0; i < s->n_inputs; i++) {
    hone_port port;
    hone_tensor_desc want;
    hone_model_input(s->model, i, &port);
    const char *file = file_of(args, port.name, one && !port.optional);
    if (!file) continue;
    cli_session view = *s;
    view.n_bindings = given;
    apply_bindings(&view, &port, &want);
    if (s->saved) want_of_plan(s, port.name, &want);
    status = hone_data_load(file, port.name, &want, &preprocess, &s->data[i], error);
    if (status != HONE_OK) return status;
    hone_binding *b = &s->bindings[s->n_bindings++];
    *b = (hone_binding){.input = port.name, .rank = s->data[i].tensor.desc.rank};
    memcpy(b->dim, s->data[i].tensor.desc.dim, sizeof b->dim);
  }
  return HONE_OK;
}

/* Plan inputs are the model's inputs by name; fills what no file gave with random values. */
static hone_status make_feeds(cli_session *s, const cli_args *args, hone_error *error) {
  uint32_t n = hone_plan_inputs(s->plan);
  free(s->feeds);
  s->feeds = calloc(n + 1, sizeof *s->feeds);
  if (!s->feeds) return fail(error, HONE_ERROR_MEMORY, "out of memory");
  for (uint32_t p = 0; p < n; p++) {
    for (uint32_t i = 0; i < s->n_inputs; i++) {
      hone_port port;
      hone_model_input(s->model, i, &port);
      if (strcmp(port.name, hone_plan_input_name(s->plan, p)) != 0) continue;
      if (!s->data[i].impl && port.optional) continue; /* its initializer serves */
      if (!s->data[i].impl) {
        uint64_t seed = args->seed ? (uint64_t)args->seed : 1;
        hone_status status =
            hone_data_for_input(s->model, i, hone_plan_input_desc(s->plan, p), seed, &s->data[i], error);
        if (status != HONE_OK) return status;
      }
      s->feeds[p] = &s->data[i].tensor;
    }
  }
  return HONE_OK;
}

/* What the plan runs with. */
static hone_status make_ready(cli_session *s, const cli_args *args, hone_error *error) {
  if (args->plan_only) return HONE_OK;
  hone_status status = make_feeds(s, args, error);
  if (status == HONE_OK) status = hone_context_create(s->plan, &s->context, error);
  if (status == HONE_OK) cli_cancellable(s->context);
  return status;
}

/* The peak of resident memory counts from here, so that one plan is not blamed for what ran before it. */
static void reset_peak(void) {
  malloc_trim(0);
  FILE *f = fopen("/proc/self/clear_refs", "w");
  if (!f) return; /* then the peak is that of the whole process */
  fputs("5", f);
  fclose(f);
}

static hone_prefer prefer(const cli_args *args) {
  return args->prefer && strcmp(args->prefer, "memory") == 0 ? HONE_PREFER_MEMORY : HONE_PREFER_SPEED;
}

void cli_session_warn(const cli_session *s) {
  char text[2000];
  hone_engine_warnings(s->engine, text, sizeof text);
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) cli_note("warning: %s", line);
}

hone_plan_options cli_session_options(const cli_session *s, const cli_args *args, int level) {
  return (hone_plan_options){.level = level,
                             .precision = s->precision.name,
                             .f32_nodes = (const char *const *)s->precision.choice.f32_nodes,
                             .n_f32_nodes = s->precision.choice.n_f32_nodes,
                             .bindings = s->bindings,
                             .n_bindings = s->n_bindings,
                             .batch = args->batch,
                             .passes = args->passes,
                             .untuned = args->no_cache,
                             .chains = s->chains,
                             .prefer = prefer(args),
                             .slices = (uint32_t)args->slices,
                             .fold_seconds =
                                 args->max_seconds > 0 && args->max_seconds < 20 ? args->max_seconds : 0};
}

hone_status cli_session_replan(cli_session *s, const cli_args *args, int level, hone_error *error) {
  if (s->saved) {
    fail(error, HONE_ERROR_USAGE, "a saved plan cannot be planned anew");
    snprintf(error->hint, sizeof error->hint, "hone run, bench, profile and verify take it as it is");
    return HONE_ERROR_USAGE;
  }
  cli_cancellable(NULL);
  hone_context_destroy(s->context);
  s->context = NULL;
  hone_plan_destroy(s->plan);
  s->plan = NULL;
  hone_status status = HONE_OK;
  if (level < 0 || level >= 2)
    status = cli_precision_make(args, s->model, s->bindings, s->n_bindings, &s->precision, error);
  if (status != HONE_OK) return status;
  if (!args->no_peak) reset_peak();
  hone_plan_options o = cli_session_options(s, args, level);
  status = hone_plan_create(s->engine, s->model, &o, &s->plan, error);
  if (status == HONE_OK) status = make_ready(s, args, error);
  cli_session_warn(s);
  return status;
}

int64_t cli_batch(const cli_session *s) {
  const hone_tensor_desc *d = hone_plan_inputs(s->plan) ? hone_plan_input_desc(s->plan, 0) : NULL;
  return d && d->rank > 0 && d->dim[0] > 0 ? d->dim[0] : 1;
}

/* When a picture's size settled what the model leaves open, that may be what does not fit. */
void cli_session_hint(const cli_session *s, const cli_args *args, hone_error *error) {
  if (error->status != HONE_ERROR_INPUT || args->shapes.n || error->hint[0]) return;
  hone_port port;
  for (uint32_t i = 0; hone_model_input(s->model, i, &port); i++)
    for (int32_t k = 0; s->data[i].impl && k < port.desc.rank; k++)
      if (port.desc.dim[k] < 0 && s->data[i].tensor.desc.dim[k] > 1) {
        char word[104];
        snprintf(error->hint, sizeof error->hint,
                 "the --input file settled the shape of '%.60s'; --shape %s=1x3x224x224 sets it and "
                 "resizes pictures",
                 port.name, cli_shape_word(port.name, word, sizeof word));
        return;
      }
}

/* A saved plan is what it is: options that would change it are refused rather than ignored. */
static hone_status check_saved_options(const cli_args *args, const char *path, hone_error *error) {
  const char *option = args->level >= 0     ? "level"
                       : args->precision    ? "precision"
                       : args->prefer       ? "prefer"
                       : args->slices       ? "slices"
                       : args->passes       ? "passes"
                       : args->shapes.n     ? "shape"
                       : args->batch        ? "batch"
                       : args->input_type   ? "input-type"
                       : args->input_layout ? "input-layout"
                                            : NULL;
  if (!option) return HONE_OK;
  fail(error, HONE_ERROR_USAGE, "");
  snprintf(error->what, sizeof error->what, "--%s cannot change a saved plan", option);
  snprintf(error->where, sizeof error->where, "%.200s", path);
  snprintf(error->hint, sizeof error->hint,
           "give it when the plan is made: hone optimize MODEL --%s ... -o M.hone", option);
  return HONE_ERROR_USAGE;
}

static hone_status open_saved(cli_session *s, const cli_args *args, const char *path, hone_error *error) {
  double start = cli_now_ms();
  uint32_t threads = (uint32_t)args->threads;
  s->saved = true;
  hone_status status = check_saved_options(args, path, error);
  if (status == HONE_OK && !threads) status = hone_plan_saved_threads(path, &threads, error);
  hone_engine_options o = {.device = cli_device_name(args), .threads = threads, .tuning = ""};
  if (status == HONE_OK) status = hone_engine_create(&o, &s->engine, error);
  if (status == HONE_OK) status = hone_plan_open(s->engine, path, &s->plan, error);
  if (status != HONE_OK) return status;
  s->model = (hone_model *)hone_plan_model(s->plan); /* the plan's own, and only looked at */
  status = check_input_names(args, s->model, error);
  s->n_inputs = hone_model_inputs(s->model);
  s->data = calloc(s->n_inputs + 1, sizeof *s->data);
  if (!s->data) return fail(error, HONE_ERROR_MEMORY, "out of memory");
  if (status == HONE_OK) status = load_inputs(s, args, error);
  if (status == HONE_OK) status = make_ready(s, args, error);
  cli_session_warn(s);
  s->load_ms = cli_now_ms() - start;
  return status;
}

bool cli_is_model(const char *name) {
  const size_t n = strlen(name);
  return strncmp(name, "zoo:", 4) == 0 ||
         (n > 5 && (strcmp(name + n - 5, ".onnx") == 0 || strcmp(name + n - 5, ".hone") == 0));
}

hone_status cli_session_load(cli_session *s, const cli_args *args, const char *path, hone_error *error) {
  hone_status status = cli_load(args, path, &s->model, error);
  if (status == HONE_OK) status = cli_bindings(args, s->model, &s->bindings, &s->n_bindings, error);
  if (status == HONE_OK) status = check_input_names(args, s->model, error);
  if (status != HONE_OK) return status;
  s->n_inputs = hone_model_inputs(s->model);
  s->data = calloc(s->n_inputs + 1, sizeof *s->data);
  if (!s->data) return fail(error, HONE_ERROR_MEMORY, "out of memory");
  status = load_inputs(s, args, error);
  if (status != HONE_OK) return status;
  hone_engine_options o = {
      .device = cli_device_name(args), .threads = (uint32_t)args->threads, .tuning = args->cache};
  status = hone_engine_create(&o, &s->engine, error);
  const char *warning = "";
  if (status == HONE_OK) hone_engine_tuned(s->engine, NULL, &warning);
  if (*warning && !args->no_cache) cli_note("warning: %s", warning);
  return status;
}

void cli_session_note(const cli_session *s, const cli_args *args, const char *path, const hone_plan *plan) {
  if (args->batch && strncmp(path, "zoo:", 4) != 0 && !cli_open_batch(s->model))
    cli_note("--batch %lld changes nothing: the model fixes its batch", (long long)args->batch);
  for (uint32_t i = 0; i < hone_plan_inputs(plan); i++) {
    const hone_bound_shape *b = hone_plan_bound(plan, i);
    if (b) cli_note_bound(b, 1);
  }
}

hone_status cli_session_open(cli_session *s, const cli_args *args, const char *path, hone_error *error) {
  *s = (cli_session){0};
  double start = cli_now_ms();
  hone_status status = cli_check_device(args, error);
  if (status == HONE_OK && hone_plan_is_saved(path)) return open_saved(s, args, path, error);
  if (status == HONE_OK) status = cli_session_load(s, args, path, error);
  if (status != HONE_OK) return status;
  status = cli_session_replan(s, args, (int)args->level, error);
  if (status != HONE_OK) cli_session_hint(s, args, error);
  s->load_ms = cli_now_ms() - start;
  if (status == HONE_OK) cli_session_note(s, args, path, s->plan);
  return status;
}

hone_status cli_session_fork(const cli_session *from, const cli_args *args, int level, cli_session *out,
                             hone_error *error) {
  *out = *from;
  out->plan = NULL;
  out->context = NULL;
  out->feeds = NULL;
  out->borrows = true;
  return cli_session_replan(out, args, level, error);
}

hone_status cli_session_pin(cli_session *s, hone_error *error) {
  const hone_status status = cli_pin(s->engine, s->feeds, hone_plan_inputs(s->plan), &s->pinned, error);
  for (uint32_t i = 0; status == HONE_OK && i < s->pinned.n; i++) s->feeds[i] = &s->pinned.tensor[i];
  return status;
}

void cli_session_close(cli_session *s) {
  cli_cancellable(NULL);
  hone_context_destroy(s->context);
  hone_plan_destroy(s->plan);
  if (s->borrows) {
    free(s->feeds);
    *s = (cli_session){0};
    return;
  }
  cli_unpin(&s->pinned);
  hone_engine_destroy(s->engine);
  hone_precision_choice_free(&s->precision.choice);
  for (uint32_t i = 0; s->data && i < s->n_inputs; i++) hone_data_free(&s->data[i]);
  free(s->data);
  free(s->feeds);
  free(s->bindings);
  if (!s->saved) hone_model_release(s->model);
  *s = (cli_session){0};
}

/* Sanitizers look for what was forgotten. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WATCHED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define WATCHED true
#endif
#endif
#ifndef WATCHED
#define WATCHED false
#endif

void cli_session_leave(cli_session *s, const cli_args *args) {
  const bool processor = !args->device || strncmp(args->device, "cpu", 3) == 0;
  if (WATCHED || !processor)
    cli_session_close(s);
  else
    cli_cancellable(NULL);
}

hone_status cli_session_reload(cli_session *s, const cli_args *args, hone_error *error) {
  const bool one = one_input(s->model);
  hone_preprocess preprocess;
  hone_status status = cli_preprocess(args, &preprocess, error);
  if (status == HONE_OK) status = hone_context_stage_begin(s->context, HONE_SPAN_PRE, error);
  if (status != HONE_OK) return status;
  for (uint32_t p = 0; p < hone_plan_inputs(s->plan) && status == HONE_OK; p++)
    for (uint32_t i = 0; i < s->n_inputs && status == HONE_OK; i++) {
      const char *name = hone_plan_input_name(s->plan, p), *file = file_of(args, name, one);
      hone_data again = {0};
      if (!file || s->feeds[p] != &s->data[i].tensor) continue;
      status = hone_data_load(file, name, hone_plan_input_desc(s->plan, p), &preprocess, &again, error);
      if (status != HONE_OK) break;
      hone_data_free(&s->data[i]);
      s->data[i] = again;
    }
  hone_error other = {0};
  hone_context_stage_end(s->context, &other);
  return status;
}

hone_status cli_session_run(cli_session *s, const cli_args *args, hone_error *error) {
  hone_run_options o = {.max_seconds = args->max_seconds};
  cli_cancellable(s->context);
  if (cli_interrupted()) return fail(error, HONE_ERROR_CANCELLED, "");
  return hone_context_run(s->context, s->feeds, &o, error);
}

uint32_t cli_threads(const cli_session *s, const cli_args *args) {
  const hone_machine *m = hone_engine_machine(s->engine);
  return m ? m->threads : (uint32_t)args->threads;
}

/* Every input but that of the samples needs a file: random values are no data. */
hone_status cli_session_open_input(const cli_session *s, const cli_args *args, const char *what,
                                   uint32_t *input, hone_error *error) {
  const uint32_t n = hone_plan_inputs(s->plan);
  uint32_t open = 0;
  for (uint32_t i = 0; i < n; i++) {
    const char *name = hone_plan_input_name(s->plan, i);
    if (!file_of(args, name, false) && !open++) *input = i;
  }
  if (open == 1) return HONE_OK;
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  if (open)
    snprintf(error->what, sizeof error->what, "the model has %u inputs, and the %s fills one of them", open,
             what);
  else
    snprintf(error->what, sizeof error->what, "no input is left for the %s", what);
  snprintf(error->hint, sizeof error->hint, "--%s NAME=FILE gives all others their value",
           strcmp(what, "data") == 0 ? "input" : "other");
  return HONE_ERROR_USAGE;
}
