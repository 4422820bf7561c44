/* classify MODEL.onnx [PICTURE | ARRAY.npy]: runs a network once and prints the five largest numbers of its
 * first output. Without a file the input is random. */
#include <hone/hone.h>
#include <stdio.h>

/* What a run needs, and what has to be freed in the end. */
typedef struct network {
  hone_model *model;
  hone_engine *engine;
  hone_plan *plan;
  hone_context *context;
  hone_data input;
} network;

/* Every call says with its status whether it worked, and in the error why it did not. */
static hone_status open_network(network *net, const char *path, const char *file, hone_error *error) {
  hone_status status = hone_model_load(path, &net->model, error);
  if (status == HONE_OK) status = hone_engine_create(NULL, &net->engine, error);
  if (status == HONE_OK) status = hone_plan_create(net->engine, net->model, NULL, &net->plan, error);
  if (status == HONE_OK) status = hone_context_create(net->plan, &net->context, error);
  if (status != HONE_OK) return status;
  if (hone_plan_inputs(net->plan) != 1) {
    *error = (hone_error){.status = HONE_ERROR_USAGE};
    snprintf(error->what, sizeof error->what, "%s has %u inputs, not one", path, hone_plan_inputs(net->plan));
    return error->status;
  }
  const hone_tensor_desc *want = hone_plan_input_desc(net->plan, 0);
  return file ? hone_data_load(file, NULL, want, NULL, &net->input, error)
              : hone_data_for_input(net->model, 0, want, 1, &net->input, error);
}

static void close_network(network *net) {
  hone_data_free(&net->input);
  hone_context_destroy(net->context);
  hone_plan_destroy(net->plan);
  hone_engine_destroy(net->engine);
  hone_model_release(net->model);
}

static void print_largest(const hone_tensor *output) {
  const float *values = output->data;
  const int64_t n = hone_desc_count(&output->desc);
  int64_t best[5], kept = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t at = kept < 5 ? kept++ : 5;
    for (; at > 0 && values[i] > values[best[at - 1]]; at--)
      if (at < 5) best[at] = best[at - 1];
    if (at < 5) best[at] = i;
  }
  for (int64_t i = 0; i < kept; i++) printf("%6lld  %g\n", (long long)best[i], (double)values[best[i]]);
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: classify MODEL.onnx [PICTURE | ARRAY.npy]\n");
    return 2;
  }
  network net = {0};
  hone_error error = {0};
  hone_status status = open_network(&net, argv[1], argc > 2 ? argv[2] : NULL, &error);
  const hone_tensor *inputs[] = {&net.input.tensor};
  if (status == HONE_OK) status = hone_context_run(net.context, inputs, NULL, &error);
  if (status == HONE_OK) {
    const hone_tensor *output = hone_context_output(net.context, 0);
    if (output->desc.dtype == HONE_DTYPE_F32)
      print_largest(output);
    else
      printf("the output is no f32\n");
  } else {
    char text[1024];
    hone_error_format(&error, text, sizeof text);
    fprintf(stderr, "classify: %s\n", text);
  }
  close_network(&net);
  return hone_status_exit_code(status);
}
