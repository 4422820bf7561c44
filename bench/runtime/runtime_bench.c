/* What the command cannot time, for runtime.py; each prints one JSON line.
 *
 * runtime_bench streams MODEL ROUNDS SECONDS   a stream a processor against one, on one and on all
 * runtime_bench pair A B ROUNDS SECONDS   two plans in two threads, or in two processes, against each in turn
 * runtime_bench submit ROUNDS RUNS        submit and wait against run
 * runtime_bench replan MODEL              plans of one model for sizes that are new
 * runtime_bench pictures DIR N WIDTH HEIGHT   JPEGs with something to decode in them */
#include <hone/hone.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jpeglib.h>

enum { MOST = 64 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(hone_status status, const hone_error *e) {
  if (status == HONE_OK) return;
  fprintf(stderr, "runtime_bench: %s\n", e->what);
  exit(hone_status_exit_code(status));
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *v, size_t n) {
  qsort(v, n, sizeof *v, by_size);
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* ---- a plan with a context and inputs */

typedef struct net {
  hone_model *model;
  hone_plan *plan;
  hone_context *context;
  hone_data data[8];
  const hone_tensor *in[8];
} net;

static void open_net(net *n, hone_engine *engine, hone_model *model) {
  hone_error e = {0};
  *n = (net){.model = model};
  must(hone_plan_create(engine, model, &(hone_plan_options){.level = -1}, &n->plan, &e), &e);
  must(hone_context_create(n->plan, &n->context, &e), &e);
  for (uint32_t i = 0; i < hone_plan_inputs(n->plan) && i < 8; i++) {
    must(hone_data_for_input(model, i, hone_plan_input_desc(n->plan, i), 1, &n->data[i], &e), &e);
    n->in[i] = &n->data[i].tensor;
  }
  for (int i = 0; i < 10; i++) must(hone_context_run(n->context, n->in, NULL, &e), &e);
}

static void close_net(net *n) {
  for (uint32_t i = 0; i < hone_plan_inputs(n->plan) && i < 8; i++) hone_data_free(&n->data[i]);
  hone_context_destroy(n->context);
  hone_plan_destroy(n->plan);
  hone_model_release(n->model);
}

static hone_model *load(const char *path) {
  hone_error e = {0};
  hone_model *model = NULL;
  must(hone_model_load(path, &model, &e), &e);
  return model;
}

/* ---- streams */

/* A second for each of `in_flight` contexts that divide `threads`; all read one input, as one stream does. */
static double load_rate(const net *n, uint32_t in_flight, uint32_t threads, double seconds) {
  const hone_load_target target = {
      .plan = n->plan, .in_flight = in_flight, .rows = 1, .in = n->in, .threads = threads};
  hone_load_settings settings;
  hone_load_result result;
  hone_error e = {0};
  hone_load_defaults(HONE_SCENARIO_CLOSED, &settings);
  settings.min_duration_ns = (uint64_t)(seconds * 1e9);
  settings.min_queries = 1;
  must(hone_load_run(&target, &settings, NULL, &result, &e), &e);
  return result.rate;
}

static int streams(const char *path, int rounds, double seconds) {
  hone_engine *engine[2] = {NULL, NULL};
  hone_error e = {0};
  net all, one;
  double one_rate[MOST], all_rate[MOST], many_rate[MOST], to_one[MOST], to_all[MOST];
  must(hone_engine_create(NULL, &engine[0], &e), &e);
  must(hone_engine_create(&(hone_engine_options){.threads = 1}, &engine[1], &e), &e);
  open_net(&all, engine[0], load(path));
  open_net(&one, engine[1], load(path));
  const uint32_t threads = hone_engine_machine(engine[0])->threads;
  for (int k = 0; k < rounds; k++) {
    one_rate[k] = load_rate(&one, 1, 0, seconds);
    all_rate[k] = load_rate(&all, 1, 0, seconds);
    many_rate[k] = load_rate(&all, threads, threads, seconds);
    to_one[k] = many_rate[k] / one_rate[k];
    to_all[k] = many_rate[k] / all_rate[k];
  }
  const size_t n = (size_t)rounds;
  const double over_one = median(to_one, n), over_all = median(to_all, n);
  printf("{\"ratio\": %.4f, \"one\": %.2f, \"all\": %.2f, \"streams\": %.2f}\n",
         over_one < over_all ? over_one : over_all, median(one_rate, n), median(all_rate, n),
         median(many_rate, n));
  close_net(&all);
  close_net(&one);
  for (int i = 0; i < 2; i++) hone_engine_destroy(engine[i]);
  return 0;
}

/* ---- pair */

typedef struct racer {
  net *n;
  double seconds, rate;
  pthread_barrier_t *together;
} racer;

static void *race(void *arg) {
  racer *r = arg;
  hone_error e = {0};
  unsigned runs = 0;
  if (r->together) pthread_barrier_wait(r->together);
  const double begin = now();
  double end = begin;
  for (; end - begin < r->seconds; end = now(), runs++)
    must(hone_context_run(r->n->context, r->n->in, NULL, &e), &e);
  r->rate = runs / (end - begin);
  return NULL;
}

static void race_both(racer *r) {
  pthread_barrier_t together;
  pthread_t thread;
  pthread_barrier_init(&together, NULL, 2);
  r[0].together = r[1].together = &together;
  if (pthread_create(&thread, NULL, race, &r[1]) != 0) exit(6);
  race(&r[0]);
  pthread_join(thread, NULL);
  r[0].together = r[1].together = NULL;
  pthread_barrier_destroy(&together);
}

static void set_threads(net n[2], uint32_t threads) {
  hone_error e = {0};
  for (int i = 0; i < 2; i++) must(hone_context_set_threads(n[i].context, threads, &e), &e);
}

/* The second plan in a process of its own: has nothing in common with the first but the machine. It runs for
 * some seconds for every byte that comes, and answers with its rate. */
typedef struct other {
  pid_t process;
  int to, from;
} other;

static uint32_t half_of(const hone_engine *engine) {
  const uint32_t all = hone_engine_machine(engine)->threads;
  return all / 2 ? all / 2 : 1;
}

static void serve(const char *path, double seconds, int in, int out) {
  hone_engine *engine = NULL;
  hone_error e = {0};
  net n;
  char go;
  must(hone_engine_create(NULL, &engine, &e), &e);
  open_net(&n, engine, load(path));
  must(hone_context_set_threads(n.context, half_of(engine), &e), &e);
  racer r = {&n, seconds, 0, NULL};
  do {
    if (write(out, &r.rate, sizeof r.rate) != sizeof r.rate) break;
    if (read(in, &go, 1) != 1) break;
    race(&r);
  } while (true);
  close_net(&n);
  hone_engine_destroy(engine);
}

static double answer_of(const other *o) {
  double rate;
  if (read(o->from, &rate, sizeof rate) != sizeof rate) exit(6);
  return rate;
}

/* Before this process has threads. */
static other start_other(const char *path, double seconds) {
  int to[2], from[2];
  if (pipe(to) || pipe(from)) exit(6);
  const other o = {fork(), to[1], from[0]};
  if (o.process < 0) exit(6);
  if (o.process == 0) {
    close(to[1]);
    close(from[0]);
    serve(path, seconds, to[0], from[1]);
    exit(0);
  }
  close(to[0]);
  close(from[1]);
  answer_of(&o); /* it is ready */
  return o;
}

static void end_other(const other *o) {
  close(o->to);
  close(o->from);
  waitpid(o->process, NULL, 0);
}

/* What both do at the same time, each with its part of the threads or all of them shared, in parts of what
 * each does alone with all of them: 1 is what running in turn does. What two processes lose, each with half
 * of the threads, too, is the machine's doing, and not that of what hone shares. */
static int pair(const char *a, const char *b, int rounds, double seconds) {
  const other o = start_other(b, seconds);
  hone_engine *engine = NULL;
  hone_error e = {0};
  net n[2];
  double own[MOST], shared[MOST], apart[MOST];
  must(hone_engine_create(NULL, &engine, &e), &e);
  open_net(&n[0], engine, load(a));
  open_net(&n[1], engine, load(b));
  for (int k = 0; k < rounds; k++) {
    racer r[2] = {{&n[0], seconds, 0, NULL}, {&n[1], seconds, 0, NULL}};
    double alone[2];
    for (int i = 0; i < 2; i++) {
      race(&r[i]);
      alone[i] = r[i].rate;
    }
    race_both(r);
    shared[k] = r[0].rate / alone[0] + r[1].rate / alone[1];
    set_threads(n, half_of(engine));
    race_both(r);
    own[k] = r[0].rate / alone[0] + r[1].rate / alone[1];
    if (write(o.to, "", 1) != 1) exit(6);
    race(&r[0]);
    apart[k] = r[0].rate / alone[0] + answer_of(&o) / alone[1];
    set_threads(n, 0);
  }
  const size_t m = (size_t)rounds;
  printf("{\"own\": %.4f, \"shared\": %.4f, \"processes\": %.4f}\n", median(own, m), median(shared, m),
         median(apart, m));
  for (int i = 0; i < 2; i++) close_net(&n[i]);
  hone_engine_destroy(engine);
  end_other(&o);
  return 0;
}

/* ---- submit */

static int submit(int rounds, int runs) {
  static const char text[] = "opset 17 graph g(%x: f32[1x64]) -> (%y) { %y = Relu(%x) }";
  hone_engine *engine = NULL;
  hone_model *model = NULL;
  hone_error e = {0};
  net n;
  double more[MOST];
  double *plain = calloc((size_t)runs, sizeof *plain), *waited = calloc((size_t)runs, sizeof *waited);
  if (!plain || !waited) return 6;
  must(hone_engine_create(NULL, &engine, &e), &e);
  must(hone_model_parse(text, sizeof text - 1, &model, &e), &e);
  open_net(&n, engine, model);
  for (int k = 0; k < rounds; k++) {
    for (int i = 0; i < runs; i++) {
      const double begin = now();
      must(hone_context_run(n.context, n.in, NULL, &e), &e);
      const double between = now();
      must(hone_context_submit(n.context, n.in, NULL, NULL, NULL, &e), &e);
      must(hone_context_wait(n.context, 0, &e), &e);
      plain[i] = between - begin;
      waited[i] = now() - between;
    }
    more[k] = (median(waited, (size_t)runs) - median(plain, (size_t)runs)) * 1e6;
  }
  printf("{\"us\": %.3f}\n", median(more, (size_t)rounds));
  close_net(&n);
  hone_engine_destroy(engine);
  free(plain);
  free(waited);
  return 0;
}

/* ---- replan */

/* Sizes of the batch, the dimension that the networks here leave open. */
static int replan(const char *path) {
  enum { FIRST = 2, LAST = 12 };
  hone_engine *engine = NULL;
  hone_model *model = load(path);
  hone_shapes *shapes = NULL;
  hone_error e = {0};
  hone_port port;
  double ms[LAST];
  size_t n = 0;
  must(hone_engine_create(NULL, &engine, &e), &e);
  if (!hone_model_input(model, 0, &port) || port.desc.rank < 1 || !port.symbol[0]) {
    fprintf(stderr, "runtime_bench: the model fixes its batch\n");
    return 2;
  }
  const hone_size_profile profile = {.symbol = port.symbol[0], .min = 1, .opt = 1, .max = LAST};
  const hone_plan_options plan = {.level = -1};
  const hone_shapes_options options = {
      .profiles = &profile, .n_profiles = 1, .plan = &plan, .capacity = LAST, .never_pad = true};
  must(hone_shapes_create(engine, model, &options, &shapes, &e), &e);
  for (int64_t size = FIRST; size <= LAST; size++) {
    hone_context *context = NULL;
    const double begin = now();
    must(hone_shapes_acquire(shapes, &size, &context, &e), &e);
    ms[n++] = (now() - begin) * 1e3;
    hone_shapes_release(shapes, context);
  }
  printf("{\"ms\": %.3f}\n", median(ms, n));
  hone_shapes_destroy(shapes);
  hone_engine_destroy(engine);
  hone_model_release(model);
  return 0;
}

/* ---- pictures */

static int picture(const char *path, unsigned width, unsigned height, unsigned seed) {
  struct jpeg_compress_struct c;
  struct jpeg_error_mgr errors;
  FILE *f = fopen(path, "wb");
  unsigned char *row = malloc((size_t)width * 3);
  if (!f || !row) return 6;
  c.err = jpeg_std_error(&errors);
  jpeg_create_compress(&c);
  jpeg_stdio_dest(&c, f);
  c.image_width = width;
  c.image_height = height;
  c.input_components = 3;
  c.in_color_space = JCS_RGB;
  jpeg_set_defaults(&c);
  jpeg_set_quality(&c, 85, TRUE);
  jpeg_start_compress(&c, TRUE);
  for (unsigned y = 0; y < height; y++) {
    for (unsigned x = 0; x < width * 3; x++) {
      seed = seed * 1664525u + 1013904223u; /* a slope with some grain */
      row[x] = (unsigned char)(((x / 3 + y * (1 + x % 3)) / 4 + (seed >> 28)) & 255);
    }
    jpeg_write_scanlines(&c, &row, 1);
  }
  jpeg_finish_compress(&c);
  jpeg_destroy_compress(&c);
  free(row);
  return fclose(f) == 0 ? 0 : 6;
}

static int pictures(const char *folder, int n, unsigned width, unsigned height) {
  char path[4200];
  int status = 0;
  for (int i = 0; i < n && !status; i++) {
    snprintf(path, sizeof path, "%.4000s/p%05d.jpg", folder, i);
    status = picture(path, width, height, (unsigned)i);
  }
  return status;
}

static int count(const char *text) {
  const long n = strtol(text, NULL, 10);
  return n < 1 ? 1 : n > 100000 ? 100000 : (int)n;
}

static int rounds_of(const char *text) { return count(text) < MOST ? count(text) : MOST; }

int main(int argc, char **argv) {
  if (argc == 5 && strcmp(argv[1], "streams") == 0)
    return streams(argv[2], rounds_of(argv[3]), strtod(argv[4], NULL));
  if (argc == 6 && strcmp(argv[1], "pair") == 0)
    return pair(argv[2], argv[3], rounds_of(argv[4]), strtod(argv[5], NULL));
  if (argc == 4 && strcmp(argv[1], "submit") == 0) return submit(rounds_of(argv[2]), count(argv[3]));
  if (argc == 3 && strcmp(argv[1], "replan") == 0) return replan(argv[2]);
  if (argc == 6 && strcmp(argv[1], "pictures") == 0)
    return pictures(argv[2], count(argv[3]), (unsigned)count(argv[4]), (unsigned)count(argv[5]));
  fprintf(stderr, "runtime_bench streams|pair|submit|replan|pictures, see its first lines\n");
  return 2;
}
