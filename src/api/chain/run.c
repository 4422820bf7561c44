/* Running a chain: inputs, stages one after the other, and the time that each took. */
#include "api/api.h"
#include "api/chain/chain.h"
#include "base/error.h"
#include "base/half.h"
#include "base/os.h"
#include "runtime/data/data.h"

#include <string.h>

static double seconds(uint64_t from, uint64_t to) { return (double)(to - from) * 1e-9; }

/* ------------------------------------------------------------------ what links use */

hone_status hn_passed_batches(hone_chain *c, hn_passed *v, uint32_t n, hone_error *error) {
  v->batch = HN_NEW_ARRAY(&c->arena, hone_chain_batch, n + 1);
  v->n = n;
  return v->batch ? HONE_OK : hn_fail_memory(error, n * sizeof *v->batch, v->name);
}

hone_status hn_passed_answers(hone_chain *c, hn_passed *v, uint32_t n, hone_error *error) {
  v->answer = HN_NEW_ARRAY(&c->arena, hone_chain_answer, n + 1);
  v->n = n;
  return v->answer ? HONE_OK : hn_fail_memory(error, n * sizeof *v->answer, v->name);
}

hone_status hn_chain_picture(hone_chain *c, const hn_passed *v, hone_tensor *picture, int64_t height,
                             int64_t width, hone_error *error) {
  picture->desc = hone_desc(HONE_DTYPE_U8, 3, (const int64_t[]){height, width, 3});
  picture->data = hn_chain_take(c, v, (size_t)hone_desc_bytes(&picture->desc));
  return picture->data ? HONE_OK : hn_fail_memory(error, (uint64_t)(height * width * 3), v->name);
}

hone_status hn_batch_row(hone_chain *c, const hn_stage *s, const hone_chain_batch *b, uint32_t r,
                         const float **row, int64_t *count, hone_error *error) {
  const hone_tensor_desc *d = &b->tensor.desc;
  const hn_passed *from = &c->value[s->reads[0]];
  char text[128];
  if (d->rank < 1 || d->dim[0] != (int64_t)b->n) {
    hn_stage_fail(c, s, HONE_ERROR_INPUT, error, "rows of '%s' are not the %u items that went in", from->name,
                  b->n);
    hn_error_got(error, "%s", hone_desc_format(d, text, sizeof text));
    return HONE_ERROR_INPUT;
  }
  *count = hone_desc_count(d) / (b->n ? b->n : 1);
  if (d->dtype == HONE_DTYPE_F32) {
    *row = (const float *)b->tensor.data + (int64_t)r * *count;
    return HONE_OK;
  }
  if (d->dtype != HONE_DTYPE_F16 && d->dtype != HONE_DTYPE_BF16 && d->dtype != HONE_DTYPE_F64) {
    hn_stage_fail(c, s, HONE_ERROR_UNSUPPORTED, error, "'%s' holds no floating-point numbers", from->name);
    hn_error_got(error, "%s", hone_desc_format(d, text, sizeof text));
    return HONE_ERROR_UNSUPPORTED;
  }
  hone_tensor part = {hone_desc(d->dtype, 1, count),
                      (char *)b->tensor.data + (size_t)r * (size_t)*count * hone_dtype_size(d->dtype)};
  hone_tensor out;
  const hone_status status = hn_tensor_convert(&part, HONE_DTYPE_F32, &c->scratch, &out, error);
  *row = out.data;
  return status;
}

/* ------------------------------------------------------------------ inputs */

static hone_status take_picture(hone_chain *c, hn_passed *v, const hone_tensor *t, hone_error *error) {
  const hone_tensor_desc *d = &t->desc;
  char text[128];
  if (d->dtype != HONE_DTYPE_U8 || d->rank != 3 || d->dim[2] != 3 || d->dim[0] < 1 || d->dim[1] < 1 ||
      d->layout != HONE_LAYOUT_ROW_MAJOR) {
    hn_fail(error, HONE_ERROR_USAGE, "input '%s' is a picture", v->name);
    hn_error_expected(error, "u8[height x width x 3], row-major");
    hn_error_got(error, "%s", hone_desc_format(d, text, sizeof text));
    return HONE_ERROR_USAGE;
  }
  v->picture = HN_NEW(&c->arena, hone_tensor);
  if (!v->picture) return hn_fail_memory(error, sizeof *v->picture, v->name);
  *v->picture = *t;
  v->n = v->items = 1;
  return HONE_OK;
}

/* Rows of a tensor that is given are its items. */
static hone_status take_tensor(hone_chain *c, hn_passed *v, const hone_tensor *t, hone_error *error) {
  const hone_tensor_desc *d = &t->desc;
  if (!hone_desc_known(d) || d->layout != HONE_LAYOUT_ROW_MAJOR || !hone_dtype_is_tensor(d->dtype))
    return hn_fail(error, HONE_ERROR_USAGE, "input '%s' is a row-major tensor of known shape", v->name);
  const uint32_t rows = d->rank && d->dim[0] > 0 && d->dim[0] < UINT32_MAX ? (uint32_t)d->dim[0] : 1;
  uint32_t *item = HN_NEW_ARRAY(&c->arena, uint32_t, rows);
  hone_status status = hn_passed_batches(c, v, 1, error);
  if (!item) status = hn_fail_memory(error, rows * sizeof *item, v->name);
  if (status != HONE_OK) return status;
  for (uint32_t i = 0; i < rows; i++) item[i] = i;
  v->batch[0] = (hone_chain_batch){*t, item, rows};
  v->items = rows;
  return HONE_OK;
}

static hone_status take_inputs(hone_chain *c, const hone_tensor *const *in, hone_error *error) {
  for (uint32_t i = 0; i < c->n_inputs; i++) {
    hn_passed *v = &c->value[i];
    const hone_tensor *t = in ? in[i] : NULL;
    if (!t || (!t->data && hone_desc_count(&t->desc)))
      return hn_fail(error, HONE_ERROR_USAGE, "input '%s' was not given", v->name);
    const hone_status status =
        v->kind == HONE_CHAIN_PICTURES ? take_picture(c, v, t, error) : take_tensor(c, v, t, error);
    if (status != HONE_OK) return status;
    v->there = true;
  }
  return HONE_OK;
}

static hone_status read_picture(hone_chain *c, const char *path, hone_tensor *out, hone_error *error) {
  hn_file file;
  hn_picture picture = {0};
  hone_status status = hn_file_map(path, NULL, HN_FILE_DATA, &file, error);
  if (status != HONE_OK) return status;
  status = hn_picture_decode((hn_bytes){file.data, file.size}, &c->arena, &picture, error);
  hn_file_unmap(&file);
  if (status != HONE_OK) {
    if (error && !strstr(error->where, path)) hn_error_where(error, "%s", path);
    return status;
  }
  out->desc = hone_desc(HONE_DTYPE_U8, 3, (const int64_t[]){picture.height, picture.width, 3});
  out->data = picture.rgb;
  return HONE_OK;
}

/* What the first model that reads the input wants of a file. */
static hone_tensor_desc wanted(const hone_chain *c, uint32_t input) {
  for (uint32_t i = 0; i < c->n_stages; i++)
    for (uint32_t k = 0; c->stage[i].model && k < c->stage[i].n_reads; k++)
      if (c->stage[i].reads[k] == input) return *hn_chain_model_in(c->stage[i].model, k);
  return (hone_tensor_desc){.rank = -1};
}

/* ------------------------------------------------------------------ stages */

static void begin(hone_chain *c) {
  hn_arena_free(&c->arena);
  hn_arena_free(&c->scratch);
  hn_chain_give_all(c);
  c->total = (hone_chain_total){0};
  for (uint32_t i = 0; i < c->n_values; i++) {
    hn_passed *v = &c->value[i];
    v->there = false;
    v->items = v->n = 0;
    v->picture = NULL;
    v->batch = NULL;
    v->box = NULL;
    v->answer = NULL;
    v->map = NULL;
  }
  for (uint32_t i = 0; i < c->n_stages; i++) c->stage[i].time = (hone_chain_time){0};
}

static hone_status run_link(hone_chain *c, hn_stage *s, hone_error *error) {
  const hn_passed *in[2] = {NULL, NULL};
  hn_passed *out = &c->value[s->makes];
  for (uint32_t i = 0; i < s->n_reads; i++) in[i] = &c->value[s->reads[i]];
  const hone_status status = s->link->run(c, s, in, out, error);
  out->there = status == HONE_OK;
  s->time.runs = 1;
  s->time.items = out->items;
  return status;
}

/* Memory that nobody reads any more. */
static void let_go(hone_chain *c, uint32_t stage) {
  for (uint32_t i = c->n_inputs; i < c->n_values; i++) {
    hn_passed *v = &c->value[i];
    if (!v->there || v->shown || v->stage > stage) continue;
    if (v->last != HN_NO_STAGE && v->last > stage) continue;
    hn_chain_give_back(c, v);
    v->there = false;
  }
}

static hone_status run_stages(hone_chain *c, uint64_t *stamp, hone_error *error) {
  for (uint32_t i = 0; i < c->n_stages; i++) {
    hn_stage *s = &c->stage[i];
    if (atomic_load(&c->cancel)) return hn_fail(error, HONE_ERROR_CANCELLED, "the run was cancelled");
    const uint64_t start = hn_now_ns();
    c->total.idle_s += seconds(*stamp, start);
    const hone_status status = s->model ? hn_chain_model_run(c, s, error) : run_link(c, s, error);
    *stamp = hn_now_ns();
    s->time.seconds = seconds(start, *stamp) - s->time.plan_seconds;
    c->total.stages_s += s->time.seconds;
    c->total.plan_s += s->time.plan_seconds;
    if (status != HONE_OK) return status;
    hn_arena_free(&c->scratch);
    let_go(c, i);
  }
  return HONE_OK;
}

static hone_status run_files(hone_chain *c, const char *const *paths, hone_error *error) {
  hone_tensor *given = HN_NEW_ARRAY(&c->arena, hone_tensor, c->n_inputs);
  const hone_tensor **in = HN_NEW_ARRAY(&c->arena, const hone_tensor *, c->n_inputs);
  hone_data *data = HN_NEW_ARRAY(&c->arena, hone_data, c->n_inputs);
  const uint64_t start = hn_now_ns();
  hone_status status = given && in && data ? HONE_OK : hn_fail_memory(error, 0, "inputs");
  for (uint32_t i = 0; i < c->n_inputs && status == HONE_OK; i++) {
    in[i] = &given[i];
    if (!paths[i]) {
      status = hn_fail(error, HONE_ERROR_USAGE, "input '%s' was not given", c->value[i].name);
    } else if (c->value[i].kind == HONE_CHAIN_PICTURES) {
      status = read_picture(c, paths[i], &given[i], error);
    } else {
      const hone_tensor_desc want = wanted(c, i);
      status = hone_data_load(paths[i], c->value[i].name, &want, NULL, &data[i], error);
      given[i] = data[i].tensor;
    }
  }
  uint64_t stamp = hn_now_ns();
  c->total.read_s = seconds(start, stamp);
  if (status == HONE_OK) status = take_inputs(c, in, error);
  if (status == HONE_OK) status = run_stages(c, &stamp, error);
  for (uint32_t i = 0; data && i < c->n_inputs; i++) hone_data_free(&data[i]);
  c->total.idle_s += seconds(stamp, hn_now_ns());
  return status;
}

static hone_status run_tensors(hone_chain *c, const hone_tensor *const *in, hone_error *error) {
  uint64_t stamp = hn_now_ns();
  hone_status status = take_inputs(c, in, error);
  if (status == HONE_OK) status = run_stages(c, &stamp, error);
  c->total.idle_s += seconds(stamp, hn_now_ns());
  return status;
}

/* After a run inputs are the caller's again. */
static hone_status end(hone_chain *c, hone_status status) {
  for (uint32_t i = 0; i < c->n_values; i++)
    if (i < c->n_inputs || status != HONE_OK) c->value[i].there = false;
  hn_arena_free(&c->scratch);
  atomic_store(&c->cancel, false);
  return status;
}

static hone_status guarded(hone_chain *c, const hone_tensor *const *in, const char *const *paths,
                           hone_error *error) {
  if (atomic_exchange_explicit(&c->busy, true, memory_order_acquire))
    return hn_fail(error, HONE_ERROR_USAGE, "the chain is in use by another thread");
  const uint64_t lost = hn_mem_lost(), outer = hn_now_raw_ns();
  begin(c);
  hone_status status = paths ? run_files(c, paths, error) : run_tensors(c, in, error);
  status = end(c, hn_settle(status, lost, error));
  c->total.wall_s = seconds(outer, hn_now_raw_ns());
  c->total.residual_s =
      c->total.wall_s - c->total.read_s - c->total.stages_s - c->total.plan_s - c->total.idle_s;
  atomic_store_explicit(&c->busy, false, memory_order_release);
  return status;
}

hone_status hone_chain_run(hone_chain *c, const hone_tensor *const *in, hone_error *error) {
  if (!c || !in) return hn_fail(error, HONE_ERROR_USAGE, "hone_chain_run needs a chain and its inputs");
  return guarded(c, in, NULL, error);
}

hone_status hone_chain_run_files(hone_chain *c, const char *const *paths, uint32_t n, hone_error *error) {
  if (!c || !paths) return hn_fail(error, HONE_ERROR_USAGE, "hone_chain_run_files needs a chain and paths");
  if (n != c->n_inputs)
    return hn_fail(error, HONE_ERROR_USAGE, "the chain has %u inputs, %u files were given", c->n_inputs, n);
  return guarded(c, NULL, paths, error);
}

void hone_chain_cancel(hone_chain *c) {
  if (c) atomic_store(&c->cancel, true);
}

/* ------------------------------------------------------------------ results */

static bool show(const hn_passed *v, hone_chain_value *out) {
  if (!v->there) return false;
  *out = (hone_chain_value){v->kind, v->items, v->n, v->picture, v->batch, v->box, v->answer};
  return true;
}

bool hone_chain_output(const hone_chain *c, uint32_t i, hone_chain_value *out) {
  return c && out && i < c->n_outputs && show(&c->value[c->output[i]], out);
}

bool hone_chain_value_of(const hone_chain *c, const char *name, hone_chain_value *out) {
  for (uint32_t i = 0; c && name && out && i < c->n_values; i++)
    if (strcmp(c->value[i].name, name) == 0) return show(&c->value[i], out);
  return false;
}

bool hone_chain_time_of(const hone_chain *c, uint32_t stage, hone_chain_time *out) {
  if (!c || !out || stage >= c->n_stages) return false;
  *out = c->stage[stage].time;
  return true;
}

bool hone_chain_total_of(const hone_chain *c, hone_chain_total *out) {
  if (!c || !out) return false;
  *out = c->total;
  return true;
}

bool hone_chain_memory_of(const hone_chain *c, uint32_t model, hone_chain_memory *out) {
  for (uint32_t i = 0; c && out && i < c->n_stages; i++) {
    if (!c->stage[i].model || model--) continue;
    *out = (hone_chain_memory){.stage = i};
    hn_chain_model_memory(c->stage[i].model, out);
    return true;
  }
  return false;
}

bool hone_chain_memory_sum(const hone_chain *c, hone_chain_memory_total *out) {
  if (!c || !out) return false;
  *out = (hone_chain_memory_total){
      .shared = c->shared_bytes, .links_apart = c->links_apart, .links = hn_chain_link_bytes(c)};
  hone_chain_memory m;
  for (uint32_t i = 0; hone_chain_memory_of(c, i, &m); i++) {
    out->constants += m.constants;
    out->apart += m.apart;
  }
  return true;
}

/* Links between models are counted by their readers. */
static bool link_at(const hone_chain *c, uint32_t *i, const hn_stage **reader, uint32_t *input) {
  for (uint32_t s = 0; s < c->n_stages; s++)
    for (uint32_t k = 0; c->stage[s].model && k < c->stage[s].n_reads; k++) {
      const hn_passed *v = &c->value[c->stage[s].reads[k]];
      if (v->stage == HN_NO_STAGE || !c->stage[v->stage].model || (*i)--) continue;
      *reader = &c->stage[s];
      *input = k;
      return true;
    }
  return false;
}

uint32_t hone_chain_links(const hone_chain *c) {
  const hn_stage *reader;
  uint32_t n = 0, input, i = 0;
  while (c && (i = n, link_at(c, &i, &reader, &input))) n++;
  return n;
}

bool hone_chain_link_of(const hone_chain *c, uint32_t i, hone_chain_link *out) {
  const hn_stage *reader;
  uint32_t input;
  if (!c || !out || !link_at(c, &i, &reader, &input)) return false;
  const hn_passed *v = &c->value[reader->reads[input]];
  const hn_chain_model *maker = c->stage[v->stage].model;
  *out = (hone_chain_link){.from = v->name,
                           .to = reader->name,
                           .input = hn_chain_model_input(reader->model, input),
                           .bound = hn_chain_model_in_place(maker, v->output),
                           .reformat_out = hn_chain_model_reformats(maker, true, v->output),
                           .reformat_in = hn_chain_model_reformats(reader->model, false, input)};
  out->channels_last = v->n && v->batch && v->batch[0].tensor.desc.layout == HONE_LAYOUT_CHANNELS_LAST;
  for (uint32_t b = 0; b < v->n; b++) out->bytes += (uint64_t)hone_desc_bytes(&v->batch[b].tensor.desc);
  return true;
}
