/* ModelProto -> hn_model. */
#include "model/onnx/onnx.h"

#include "base/error.h"
#include "model/onnx/load.h"

#include <string.h>

enum { OLDEST_IR = 3, MOST_OPSETS = 256 };

static hone_status load_opset(hn_onnx_loader *l, hn_pb *m) {
  hn_opset o = {"", 0};
  hn_model *model = l->model;
  hone_status status = hn_onnx_opset(m, &model->arena, &o);
  if (status != HONE_OK) return status;
  for (size_t i = 0; i < model->opsets.len; i++) {
    if (strcmp(model->opsets.ptr[i].domain, o.domain) != 0) continue;
    if (model->opsets.ptr[i].version == o.version) return HONE_OK;
    return hn_pb_fail(m, HONE_ERROR_INPUT,
                      "the opset of domain '%.80s' is imported as version %lld and as version %lld", o.domain,
                      (long long)model->opsets.ptr[i].version, (long long)o.version);
  }
  if (model->opsets.len == MOST_OPSETS)
    return hn_pb_fail(m, HONE_ERROR_INPUT, "more than %d opsets are imported", MOST_OPSETS);
  return hn_vec_push(&model->opsets, o) ? HONE_OK : hn_pb_no_memory(m);
}

/* Everything but the graph, whose nodes need the opsets and functions, which may come later in the file. */
static hone_status load_head(hn_onnx_loader *l, hn_pb *m, hn_pb_field *graph) {
  hn_model *model = l->model;
  hone_status status = HONE_OK;
  hn_pb part;
  model->ir_version = 0;
  for (hn_pb_field f; status == HONE_OK && hn_pb_next(m, &f);) {
    switch (f.number) {
    case HN_ONNX_MODEL_IR_VERSION: model->ir_version = (int64_t)f.value; break;
    case HN_ONNX_MODEL_PRODUCER_NAME: {
      const char *s = hn_pb_name(m, &f, &model->arena);
      if (s) model->producer = s;
      break;
    }
    case HN_ONNX_MODEL_OPSET_IMPORT:
      if (hn_pb_open(&part, m, &f)) status = load_opset(l, &part);
      break;
    case HN_ONNX_MODEL_FUNCTIONS:
      if (hn_pb_open(&part, m, &f)) status = hn_onnx_load_function(l, &part);
      break;
    case HN_ONNX_MODEL_GRAPH:
      if (graph->ptr) status = hn_pb_fail(m, HONE_ERROR_INPUT, "the model has two graphs");
      *graph = f;
      break;
    default: break;
    }
    if (status == HONE_OK) status = l->source.status;
  }
  return status != HONE_OK ? status : l->source.status;
}

static hone_status load_model(hn_onnx_loader *l) {
  hn_pb m, graph;
  hn_pb_field at = {0};
  hn_pb_begin(&m, &l->source, HN_ONNX_MODEL);
  hone_status status = load_head(l, &m, &at);
  if (status != HONE_OK) return status;
  if (!at.ptr) return hn_pb_fail(&m, HONE_ERROR_INPUT, "this is no ONNX model: it has no graph");
  if (l->model->ir_version <= 0)
    return hn_pb_fail(&m, HONE_ERROR_INPUT, "this is no ONNX model: it has no IR version");
  if (l->model->ir_version < OLDEST_IR)
    return hn_pb_fail(&m, HONE_ERROR_UNSUPPORTED, "the model has IR version %lld, hone reads %d and newer",
                      (long long)l->model->ir_version, OLDEST_IR);
  if (l->model->opsets.len == 0) return hn_pb_fail(&m, HONE_ERROR_INPUT, "the model imports no opset");
  if (!hn_pb_open(&graph, &m, &at)) return l->source.status;
  status = hn_onnx_load_graph(l, &graph, &(hn_onnx_scope){.graph = l->model->graph});
  if (status == HONE_OK && l->model->graph->outputs.len == 0)
    status = hn_pb_fail(&graph, HONE_ERROR_INPUT, "the graph has no outputs");
  for (size_t i = 0; status == HONE_OK && i < l->model->graph->inputs.len; i++) {
    const hn_value *v = l->model->graph->inputs.ptr[i];
    if (v->desc.dtype == HONE_DTYPE_NONE)
      status = hn_pb_fail(&graph, HONE_ERROR_INPUT, "the input '%.80s' has no type", v->name);
  }
  if (status != HONE_OK) return status;
  status = hn_graph_sort(l->model->graph, l->source.error);
  if (status != HONE_OK) hn_error_where(l->source.error, "%s", l->source.name);
  return status;
}

static hone_status load(const uint8_t *data, size_t size, const hn_file *file, const char *folder,
                        const char *name, const void *absent, size_t absent_bytes, hn_model **out,
                        hone_error *error) {
  hn_onnx_loader l = {.source = {.name = name, .data = data, .size = size, .error = error}};
  hone_status status;
  *out = NULL;
  l.model = hn_model_create(name);
  if (!l.model) {
    status = hn_fail_memory(error, sizeof *l.model, "a model");
    goto done;
  }
  l.data = (hn_onnx_data){.arena = &l.model->arena,
                          .folder = folder,
                          .files = &l.files,
                          .absent = absent,
                          .absent_bytes = absent_bytes};
  if (file) {
    if (!hn_vec_push(&l.files, *file)) {
      status = hn_fail_memory(error, sizeof *file, "a mapping");
      goto done;
    }
    file = NULL; /* it is the list's now */
  }
  const char *other = hn_onnx_sniff(data, size);
  if (other) {
    status = hn_fail(error, HONE_ERROR_INPUT, "not an ONNX model");
    hn_error_where(error, "%s", name);
    hn_error_hint(error, "%s", other);
    goto done;
  }
  status = load_model(&l);
done:
  if (file) {
    hn_file mine = *file;
    hn_file_unmap(&mine);
  }
  if (l.model) {
    l.model->files.ptr = l.files.ptr;
    l.model->files.len = l.files.len;
    l.model->files.cap = l.files.cap;
  }
  for (size_t i = 0; i < l.function_list.len; i++) {
    hn_vec_free(&l.function_list.ptr[i]->inputs);
    hn_vec_free(&l.function_list.ptr[i]->outputs);
    hn_vec_free(&l.function_list.ptr[i]->opsets);
  }
  hn_vec_free(&l.function_list);
  hn_map_free(&l.functions);
  hn_map_free(&l.taken_names);
  hn_map_free(&l.symbols);
  hn_map_free(&l.data.by_location);
  hn_arena_free(&l.scratch);
  hn_arena_free(&l.node);
  if (status == HONE_OK)
    *out = l.model;
  else
    hn_model_destroy(l.model);
  return status;
}

hone_status hn_onnx_load(const char *path, hn_model **out, hone_error *error) {
  hn_file file;
  char folder[4096];
  *out = NULL;
  const char *slash = strrchr(path, '/');
  size_t n = slash ? (size_t)(slash - path) + (slash == path) : 0;
  if (n >= sizeof folder) return hn_fail(error, HONE_ERROR_USAGE, "the path is too long");
  memcpy(folder, n ? path : ".", n ? n : 1);
  folder[n ? n : 1] = 0;
  hone_status status = hn_file_map(path, NULL, HN_FILE_MODEL, &file, error);
  return status != HONE_OK ? status : load(file.data, file.size, &file, folder, path, NULL, 0, out, error);
}

hone_status hn_onnx_load_memory(const void *data, size_t size, const char *folder, const char *name,
                                hn_model **out, hone_error *error) {
  return load(size ? data : (const uint8_t *)"", size, NULL, folder, name, NULL, 0, out, error);
}

hone_status hn_onnx_load_partial(const void *data, size_t size, const char *name, const void *absent,
                                 size_t absent_bytes, hn_model **out, hone_error *error) {
  return load(size ? data : (const uint8_t *)"", size, NULL, NULL, name, absent, absent_bytes, out, error);
}

hone_status hn_onnx_load_tensor_memory(const void *data, size_t size, const char *file, hn_arena *arena,
                                       hone_tensor *out, const char **name, hone_error *error) {
  hn_pb_source source = {
      .name = file, .data = size ? data : (const uint8_t *)"", .size = size, .error = error};
  hn_onnx_files files = {0};
  hn_onnx_data to = {.arena = arena, .copy = true, .files = &files};
  hn_pb m;
  hn_pb_begin(&m, &source, HN_ONNX_TENSOR);
  if (size == 0) return hn_pb_fail(&m, HONE_ERROR_INPUT, "not a tensor: the file is empty");
  return hn_onnx_tensor(&to, &m, out, name);
}

hone_status hn_onnx_load_tensor(const char *path, hn_arena *arena, hone_tensor *out, const char **name,
                                hone_error *error) {
  hn_file file;
  hone_status status = hn_file_map(path, NULL, HN_FILE_MODEL, &file, error);
  if (status != HONE_OK) return status;
  status = hn_onnx_load_tensor_memory(file.data, file.size, path, arena, out, name, error);
  hn_file_unmap(&file);
  return status;
}
