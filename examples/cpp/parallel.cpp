// parallel MODEL.onnx [THREADS]: several threads run one network at the same time. A plan never changes and
// is shared; every thread has a context of its own. Prints the runs of each thread and whether all got the
// same answer.
#include <hone/hone.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

// Handles that free what they own.
template <auto free> struct releaser {
  template <typename T> void operator()(T *p) const { free(p); }
};
using model = std::unique_ptr<hone_model, releaser<hone_model_release>>;
using engine = std::unique_ptr<hone_engine, releaser<hone_engine_destroy>>;
using plan = std::unique_ptr<hone_plan, releaser<hone_plan_destroy>>;
using context = std::unique_ptr<hone_context, releaser<hone_context_destroy>>;

// A status that is no success, as an exception.
static void check(hone_status status, const hone_error &error) {
  if (status == HONE_OK) return;
  char text[1024];
  hone_error_format(&error, text, sizeof text);
  throw std::runtime_error(text);
}

static std::vector<char> answer(hone_plan *shared, const hone_tensor *const *inputs, int runs) {
  hone_error error = {};
  hone_context *made = nullptr;
  check(hone_context_create(shared, &made, &error), error);
  const context own(made);
  for (int i = 0; i < runs; i++) check(hone_context_run(own.get(), inputs, nullptr, &error), error);
  const hone_tensor *output = hone_context_output(own.get(), 0);
  const char *bytes = static_cast<const char *>(output->data);
  return {bytes, bytes + hone_desc_bytes(&output->desc)};
}

static int run(const char *path, int threads) {
  constexpr int runs = 20;
  hone_error error = {};
  hone_model *m = nullptr;
  hone_engine *e = nullptr;
  hone_plan *p = nullptr;
  check(hone_model_load(path, &m, &error), error);
  const model network(m);
  hone_engine_options options = {};
  options.threads = 1; // of hone's own: the program's threads are the parallel ones
  check(hone_engine_create(&options, &e, &error), error);
  const engine processor(e);
  check(hone_plan_create(processor.get(), network.get(), nullptr, &p, &error), error);
  const plan shared(p);

  std::vector<hone_data> data(hone_plan_inputs(shared.get()));
  std::vector<const hone_tensor *> inputs;
  for (std::uint32_t i = 0; i < data.size(); i++) {
    check(hone_data_for_input(network.get(), i, hone_plan_input_desc(shared.get(), i), 1, &data[i], &error),
          error);
    inputs.push_back(&data[i].tensor);
  }
  std::vector<std::vector<char>> answers(static_cast<std::size_t>(threads));
  std::vector<std::string> failures(answers.size());
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < answers.size(); i++)
    workers.emplace_back([&, i] {
      try {
        answers[i] = answer(shared.get(), inputs.data(), runs);
      } catch (const std::exception &failure) {
        failures[i] = failure.what();
      }
    });
  for (std::thread &worker : workers) worker.join();
  for (hone_data &d : data) hone_data_free(&d);

  bool same = true;
  for (std::size_t i = 0; i < answers.size(); i++) {
    if (!failures[i].empty()) throw std::runtime_error(failures[i]);
    same = same && answers[i] == answers[0];
  }
  std::printf("%d threads, %d runs each: %s\n", threads, runs,
              same ? "the same answer" : "different answers");
  return same ? 0 : 1;
}

int main(int argc, char **argv) {
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  if (argc < 2 || threads < 1 || threads > 64) {
    std::fprintf(stderr, "usage: parallel MODEL.onnx [THREADS]\n");
    return 2;
  }
  try {
    return run(argv[1], threads);
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "parallel: %s\n", failure.what());
    return 3;
  }
}
