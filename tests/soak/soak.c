/* Everything that may happen at the same time, at random, for as long as one likes; and many pictures through
 * a pipeline, some of them broken, ended at random moments. Answers are compared with those of one thread.
 *
 * soak SECONDS [SEED]            runs, submitted ones, cancels, deadlines, threads, plans, shapes, memory,
 * pipelines soak pictures N ENDS [SEED]    N pictures, one of a hundred broken; then pipelines ended ENDS
 * times
 *
 * Who makes no step for a minute is named, and the test fails: a deadlock. Memory may not grow in the second
 * half. */
#include "base/os.h"

#include <hone/hone.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jpeglib.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define WATCHED 1 /* freed memory is kept for a while */
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define WATCHED 1
#endif
#endif
#ifndef WATCHED
#define WATCHED 0
#endif

enum { WORKERS = 4, THREADS = 3, SAMPLES = 8, MOST_ROWS = 5, FILES = 50, STUCK_SECONDS = 60 };
#define GROWTH (16u << 20)

#define MUST(call) must((call), &e, __LINE__)
#define CHECK(what) check((what), #what, __LINE__)

static void check(bool so, const char *what, int line) {
  if (so) return;
  fprintf(stderr, "soak.c:%d: not so: %s\n", line, what);
  _exit(1);
}

static void must(hone_status status, const hone_error *e, int line) {
  if (status == HONE_OK) return;
  fprintf(stderr, "soak.c:%d: %s: %s\n", line, hone_status_name(status), e->what);
  _exit(1);
}

static uint32_t draw(uint64_t *seed, uint32_t below) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*seed >> 33) % below;
}

static double now(void) { return (double)hn_now_ns() * 1e-9; }

/* ---- what all share */

typedef struct world {
  hone_engine *engine;
  hone_model *model;
  hone_plan *plan; /* one row */
  hone_shapes *shapes;
  size_t in_size, out_size; /* numbers of a sample */
  float *in[SAMPLES], *right[SAMPLES];
  hone_tensor sample[SAMPLES];
  atomic_bool over;
} world;

/* Threads share work in other places, so sums may round otherwise. */
static bool same(const world *w, uint32_t sample, const void *data) {
  const float *got = data, *want = w->right[sample];
  for (size_t i = 0; i < w->out_size; i++)
    if (!(fabsf(got[i] - want[i]) <= 1e-4f * (1 + fabsf(want[i])))) return false;
  return true;
}

static hone_tensor_desc rows(const world *w, int64_t n) {
  hone_tensor_desc d = *hone_plan_input_desc(w->plan, 0);
  d.dim[0] = n;
  return d;
}

static void open_world(world *w) {
  hone_error e = {0};
  hone_context *c;
  hone_port port;
  *w = (world){0};
  MUST(hone_engine_create(&(hone_engine_options){.threads = THREADS}, &w->engine, &e));
  MUST(hone_zoo_build("mobilenetv2", &(hone_zoo_options){.width = 0.25, .size = 32}, &w->model, &e));
  MUST(hone_plan_create(w->engine, w->model, &(hone_plan_options){.level = -1}, &w->plan, &e));
  CHECK(hone_model_input(w->model, 0, &port) && port.symbol[0]);
  const hone_size_profile profile = {.symbol = port.symbol[0], .min = 1, .opt = 2, .max = MOST_ROWS};
  MUST(hone_shapes_create(
      w->engine, w->model,
      &(hone_shapes_options){.profiles = &profile, .n_profiles = 1, .capacity = 2, .background = true},
      &w->shapes, &e));
  MUST(hone_context_create(w->plan, &c, &e));
  MUST(hone_context_set_threads(c, 1, &e));
  w->in_size = (size_t)hone_desc_count(hone_plan_input_desc(w->plan, 0));
  w->out_size = (size_t)hone_desc_count(hone_plan_output_desc(w->plan, 0));
  uint64_t seed = 7;
  for (int s = 0; s < SAMPLES; s++) {
    w->in[s] = malloc(w->in_size * sizeof(float));
    w->right[s] = malloc(w->out_size * sizeof(float));
    CHECK(w->in[s] && w->right[s]);
    for (size_t i = 0; i < w->in_size; i++) w->in[s][i] = (float)draw(&seed, 1000) / 500 - 1;
    w->sample[s] = (hone_tensor){*hone_plan_input_desc(w->plan, 0), w->in[s]};
    MUST(hone_context_run(c, (const hone_tensor *const[]){&w->sample[s]}, NULL, &e));
    memcpy(w->right[s], hone_context_output(c, 0)->data, w->out_size * sizeof(float));
  }
  hone_context_destroy(c);
}

static void close_world(world *w) {
  hone_shapes_destroy(w->shapes);
  hone_plan_destroy(w->plan);
  hone_model_release(w->model);
  hone_engine_destroy(w->engine);
  for (int s = 0; s < SAMPLES; s++) free(w->in[s]), free(w->right[s]);
}

/* ---- operations */

typedef struct worker {
  world *w;
  uint32_t number;
  uint64_t seed;
  pthread_t thread;
  pthread_mutex_t lock; /* of the pointer below: others cancel */
  hone_context *context;
  _Atomic uint64_t done;
  _Atomic int doing;
  uint64_t cancelled, late;
  struct worker *all;
} worker;

/* Anybody may cancel a run at any time. */
static void ended(worker *k, hone_status status, const hone_error *e, uint32_t sample, const void *out) {
  if (status == HONE_ERROR_CANCELLED)
    k->cancelled++;
  else if (status == HONE_ERROR_BUDGET)
    k->late++;
  else {
    must(status, e, __LINE__);
    CHECK(same(k->w, sample, out));
  }
}

static void run(worker *k, double max_seconds) {
  hone_error e = {0};
  const uint32_t s = draw(&k->seed, SAMPLES);
  const hone_tensor *in = &k->w->sample[s];
  const hone_run_options o = {.max_seconds = max_seconds};
  const hone_status status = hone_context_run(k->context, &in, &o, &e);
  ended(k, status, &e, s, status == HONE_OK ? hone_context_output(k->context, 0)->data : NULL);
}

static void plain_run(worker *k) { run(k, 0); }
static void run_with_deadline(worker *k) { run(k, 1e-6 * (1 + draw(&k->seed, 2000))); }

static void count_done(void *arg, hone_context *context, hone_status status, const hone_error *error) {
  (void)context, (void)status, (void)error;
  atomic_fetch_add((_Atomic uint32_t *)arg, 1);
}

static void submitted_run(worker *k) {
  hone_error e = {0};
  _Atomic uint32_t told = 0;
  const uint32_t s = draw(&k->seed, SAMPLES), how = draw(&k->seed, 4);
  const hone_tensor *in = &k->w->sample[s];
  const bool tells = how & 1;
  MUST(hone_context_submit(k->context, &in, NULL, tells ? count_done : NULL, &told, &e));
  if (how & 2) usleep(draw(&k->seed, 300));
  if (draw(&k->seed, 4) == 0) hone_context_cancel(k->context);
  hone_status status = hone_context_wait(k->context, how == 3 ? 1e-5 : 0, &e);
  if (how == 3 && status == HONE_ERROR_BUDGET) status = hone_context_wait(k->context, 0, &e);
  ended(k, status, &e, s, status == HONE_OK ? hone_context_output(k->context, 0)->data : NULL);
  CHECK(atomic_load(&told) == (tells ? 1 : 0));
}

static void cancel_another(worker *k) {
  worker *other = &k->all[draw(&k->seed, WORKERS)];
  pthread_mutex_lock(&other->lock);
  if (other->context) hone_context_cancel(other->context);
  pthread_mutex_unlock(&other->lock);
}

static void other_threads(worker *k) {
  hone_error e = {0};
  MUST(hone_context_set_threads(k->context, draw(&k->seed, THREADS + 1), &e));
  plain_run(k);
}

static void replace(worker *k, hone_context *with) {
  pthread_mutex_lock(&k->lock);
  hone_context *old = k->context;
  k->context = with;
  pthread_mutex_unlock(&k->lock);
  hone_context_destroy(old);
}

static void new_context(worker *k) {
  hone_error e = {0};
  hone_context *c;
  if (draw(&k->seed, 2)) { /* destroyed with a run under way */
    const hone_tensor *in = &k->w->sample[0];
    MUST(hone_context_submit(k->context, &in, NULL, NULL, NULL, &e));
  }
  MUST(hone_context_create(k->w->plan, &c, &e));
  replace(k, c);
  plain_run(k);
}

static void bound_output(worker *k) {
  hone_error e = {0};
  const uint32_t s = draw(&k->seed, SAMPLES);
  const hone_tensor *in = &k->w->sample[s];
  hone_tensor out = {*hone_plan_output_desc(k->w->plan, 0), malloc(k->w->out_size * sizeof(float))};
  CHECK(out.data != NULL);
  MUST(hone_context_bind_output(k->context, 0, &out, &e));
  const hone_status status = hone_context_run(k->context, &in, NULL, &e);
  ended(k, status, &e, s, out.data);
  MUST(hone_context_bind_output(k->context, 0, NULL, &e));
  free(out.data);
}

static void any_shape(worker *k) {
  hone_error e = {0};
  hone_shapes_answer *answer;
  uint32_t s[MOST_ROWS];
  const uint32_t n = 1 + draw(&k->seed, MOST_ROWS);
  hone_tensor in = {rows(k->w, n), malloc(n * k->w->in_size * sizeof(float))};
  CHECK(in.data != NULL);
  in.desc = hone_desc(in.desc.dtype, in.desc.rank, in.desc.dim);
  for (uint32_t i = 0; i < n; i++) {
    s[i] = draw(&k->seed, SAMPLES);
    memcpy((float *)in.data + i * k->w->in_size, k->w->in[s[i]], k->w->in_size * sizeof(float));
  }
  MUST(hone_shapes_run(k->w->shapes, (const hone_tensor *const[]){&in}, NULL, &answer, &e));
  const float *out = hone_shapes_answer_output(answer, 0)->data;
  for (uint32_t i = 0; i < n; i++) CHECK(same(k->w, s[i], out + i * k->w->out_size));
  hone_shapes_answer_release(answer);
  free(in.data);
}

static void exact_shape(worker *k) {
  hone_error e = {0};
  hone_context *c;
  const int64_t size = 1 + draw(&k->seed, MOST_ROWS);
  MUST(hone_shapes_acquire(k->w->shapes, &size, &c, &e));
  hone_shapes_release(k->w->shapes, c);
}

static void memory(worker *k) {
  hone_error e = {0};
  hone_memory_stats stats;
  if (draw(&k->seed, 2)) hone_engine_reclaim(k->w->engine);
  MUST(hone_engine_memory(k->w->engine, &stats, &e));
  CHECK(stats.n_pools > 0);
  hone_memory_stats_free(&stats);
}

static void another_plan(worker *k) {
  hone_error e = {0};
  hone_plan *plan;
  hone_context *c;
  const uint32_t s = draw(&k->seed, SAMPLES);
  MUST(hone_plan_create(k->w->engine, k->w->model, &(hone_plan_options){.level = (int)draw(&k->seed, 3)},
                        &plan, &e));
  MUST(hone_context_create(plan, &c, &e));
  MUST(hone_context_run(c, (const hone_tensor *const[]){&k->w->sample[s]}, NULL, &e));
  CHECK(same(k->w, s, hone_context_output(c, 0)->data));
  hone_context_destroy(c);
  hone_plan_destroy(plan);
}

typedef struct flow {
  const world *w;
  hone_pipeline *pipeline;
  uint64_t told, cancelled, bad;
  uint64_t end_at; /* told: the callback ends it */
  bool closes;
} flow;

static void flow_told(void *arg, const hone_pipeline_result *r) {
  flow *f = arg;
  CHECK(r->number == f->told && r->user == f);
  f->told++;
  if (r->status == HONE_ERROR_CANCELLED)
    f->cancelled++;
  else if (r->number % 10 == 9) {
    CHECK(r->status == HONE_ERROR_INPUT);
    f->bad++;
  } else {
    must(r->status, r->error, __LINE__);
    CHECK(same(f->w, (uint32_t)(r->number % SAMPLES), r->out[0]->data));
  }
  if (f->told == f->end_at) (f->closes ? hone_pipeline_close : hone_pipeline_cancel)(f->pipeline);
}

static void pipeline(worker *k) {
  hone_error e = {0};
  flow f = {.w = k->w, .end_at = draw(&k->seed, 40), .closes = draw(&k->seed, 2)};
  static float few[3];
  const hone_tensor wrong = {hone_desc(HONE_DTYPE_F32, 1, (int64_t[]){3}), few};
  const hone_pipeline_options o = {.post = &(hone_post){.kind = HONE_POST_NONE},
                                   .workers = {draw(&k->seed, 3), 1 + draw(&k->seed, 2), draw(&k->seed, 3)},
                                   .threads = draw(&k->seed, 2),
                                   .in_flight = 1 + draw(&k->seed, 20),
                                   .gains = {.period = 0.002}};
  MUST(hone_pipeline_create(k->w->plan, &o, flow_told, &f, &f.pipeline, &e));
  const uint64_t n = 10 + draw(&k->seed, 30);
  uint64_t taken = 0;
  while (taken < n) {
    const hone_tensor *t = taken % 10 == 9 ? &wrong : &k->w->sample[taken % SAMPLES];
    if (hone_pipeline_submit(f.pipeline, &(hone_pipeline_item){.tensor = t, .user = &f}, &e) != HONE_OK)
      break;
    taken++;
  }
  if (draw(&k->seed, 4) == 0) hone_pipeline_cancel(f.pipeline);
  hone_pipeline_destroy(f.pipeline);
  CHECK(f.told == taken);
  CHECK(taken == n || f.end_at);
}

/* How often of all: the first ones are what programs do most. */
static const struct {
  const char *name;
  void (*run)(worker *k);
  uint32_t weight;
} operations[] = {
    {"run", plain_run, 20},         {"submit", submitted_run, 20}, {"deadline", run_with_deadline, 8},
    {"cancel", cancel_another, 10}, {"threads", other_threads, 4}, {"context", new_context, 4},
    {"bind", bound_output, 8},      {"shape", any_shape, 8},       {"acquire", exact_shape, 2},
    {"memory", memory, 3},          {"plan", another_plan, 1},     {"pipeline", pipeline, 2}};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static int choose(uint64_t *seed) {
  uint32_t all = 0, i = 0;
  for (uint32_t k = 0; k < OPERATIONS; k++) all += operations[k].weight;
  for (uint32_t at = draw(seed, all); at >= operations[i].weight; i++) at -= operations[i].weight;
  return (int)i;
}

static void *work(void *arg) {
  worker *k = arg;
  hone_error e = {0};
  hone_context *c;
  MUST(hone_context_create(k->w->plan, &c, &e));
  replace(k, c);
  while (!atomic_load(&k->w->over)) {
    const int i = choose(&k->seed);
    atomic_store(&k->doing, i);
    operations[i].run(k);
    atomic_fetch_add(&k->done, 1);
  }
  replace(k, NULL);
  return NULL;
}

/* ---- for some time */

static void look_for_deadlocks(const worker *k, uint64_t seen[WORKERS], double since[WORKERS]) {
  for (int i = 0; i < WORKERS; i++) {
    const uint64_t done = atomic_load(&k[i].done);
    if (done != seen[i] || since[i] == 0) seen[i] = done, since[i] = now();
    if (now() - since[i] < STUCK_SECONDS) continue;
    fprintf(stderr, "soak: thread %d has been in '%s' for %d s\n", i,
            operations[atomic_load(&k[i].doing)].name, STUCK_SECONDS);
    _exit(1);
  }
}

static int soak(double seconds, uint64_t seed) {
  static worker k[WORKERS];
  uint64_t seen[WORKERS] = {0}, half = 0, most = 0, all = 0, cancelled = 0, late = 0;
  double since[WORKERS] = {0};
  world w;
  open_world(&w);
  const double begin = now();
  for (int i = 0; i < WORKERS; i++) {
    k[i] = (worker){.w = &w, .number = (uint32_t)i, .seed = seed * 1000003u + (uint64_t)i, .all = k};
    pthread_mutex_init(&k[i].lock, NULL);
  }
  for (int i = 0; i < WORKERS; i++) CHECK(pthread_create(&k[i].thread, NULL, work, &k[i]) == 0);
  while (now() - begin < seconds) {
    usleep(50000);
    look_for_deadlocks(k, seen, since);
    uint64_t *to = now() - begin < seconds / 2 ? &half : &most;
    if (hn_rss_bytes() > *to) *to = hn_rss_bytes();
  }
  atomic_store(&w.over, true);
  for (int i = 0; i < WORKERS; i++) {
    pthread_join(k[i].thread, NULL);
    all += atomic_load(&k[i].done);
    cancelled += k[i].cancelled;
    late += k[i].late;
  }
  close_world(&w);
  printf(
      "%llu operations in %.1f s on %d threads: %llu runs cancelled, %llu over their time; at most %.1f MiB "
      "in the first half, %.1f in the second; seed %llu\n",
      (unsigned long long)all, now() - begin, WORKERS, (unsigned long long)cancelled,
      (unsigned long long)late, (double)half / 1048576, (double)most / 1048576, (unsigned long long)seed);
  CHECK(all > 0);
  CHECK(WATCHED || seconds < 10 || most < half + GROWTH);
  return 0;
}

/* ---- pictures */

typedef struct album {
  char folder[200], path[FILES + 2][300]; /* the last two are broken */
  float *right[FILES];
  size_t out_size;
  hone_pipeline *pipeline;
  uint64_t first, told, good, bad, cancelled, end_at;
} album;

static uint64_t mixed(uint64_t n) { return (n * 6364136223846793005u + 1442695040888963407u) >> 33; }
static bool is_broken(uint64_t n) { return mixed(n) % 100 == 0; }
static uint32_t file_of(uint64_t n) { return (uint32_t)(is_broken(n) ? FILES + n % 2 : mixed(n) % FILES); }

static void write_jpeg(const char *path, uint64_t seed) {
  enum { WIDTH = 48, HEIGHT = 40 };
  struct jpeg_compress_struct c;
  struct jpeg_error_mgr errors;
  unsigned char row[WIDTH * 3];
  unsigned char *line = row;
  FILE *f = fopen(path, "wb");
  CHECK(f != NULL);
  c.err = jpeg_std_error(&errors);
  jpeg_create_compress(&c);
  jpeg_stdio_dest(&c, f);
  c.image_width = WIDTH, c.image_height = HEIGHT, c.input_components = 3, c.in_color_space = JCS_RGB;
  jpeg_set_defaults(&c);
  jpeg_start_compress(&c, TRUE);
  for (int y = 0; y < HEIGHT; y++) {
    for (size_t i = 0; i < sizeof row; i++) row[i] = (unsigned char)(draw(&seed, 64) + (uint32_t)y * 4);
    jpeg_write_scanlines(&c, &line, 1);
  }
  jpeg_finish_compress(&c);
  jpeg_destroy_compress(&c);
  CHECK(fclose(f) == 0);
}

static void make_album(album *a, const world *w) {
  hone_error e = {0};
  hone_context *c;
  const char *base = getenv("TMPDIR");
  char folder[sizeof a->folder];
  snprintf(folder, sizeof folder, "%.150s/hone-soak-XXXXXX", base ? base : "/tmp");
  CHECK(mkdtemp(folder) != NULL);
  memcpy(a->folder, folder, sizeof folder);
  a->out_size = w->out_size;
  MUST(hone_context_create(w->plan, &c, &e));
  MUST(hone_context_set_threads(c, 1, &e));
  for (int i = 0; i < FILES + 2; i++) {
    snprintf(a->path[i], sizeof a->path[i], "%.200s/p%02d.jpg", folder, i);
    if (i == FILES) { /* the other broken one is not there */
      FILE *f = fopen(a->path[i], "wb");
      CHECK(f && fputs("\xff\xd8\xff\xe0 no picture", f) >= 0 && fclose(f) == 0);
    }
    if (i >= FILES) continue;
    hone_data data;
    write_jpeg(a->path[i], (uint64_t)i);
    MUST(hone_data_load(a->path[i], hone_plan_input_name(w->plan, 0), hone_plan_input_desc(w->plan, 0), NULL,
                        &data, &e));
    MUST(hone_context_run(c, (const hone_tensor *const[]){&data.tensor}, NULL, &e));
    hone_data_free(&data);
    a->right[i] = malloc(a->out_size * sizeof(float));
    CHECK(a->right[i] != NULL);
    memcpy(a->right[i], hone_context_output(c, 0)->data, a->out_size * sizeof(float));
  }
  hone_context_destroy(c);
}

static void drop_album(album *a) {
  for (int i = 0; i < FILES + 2; i++) unlink(a->path[i]);
  for (int i = 0; i < FILES; i++) free(a->right[i]);
  rmdir(a->folder);
}

static void picture_told(void *arg, const hone_pipeline_result *r) {
  album *a = arg;
  const uint64_t n = a->first + r->number;
  const uint32_t file = file_of(n);
  CHECK(r->number == a->told && strcmp(r->name, a->path[file]) == 0);
  a->told++;
  if (r->status == HONE_ERROR_CANCELLED) {
    CHECK(a->end_at != 0);
    a->cancelled++;
  } else if (is_broken(n)) {
    CHECK(r->status != HONE_OK && strstr(r->error->where, a->path[file]));
    a->bad++;
  } else {
    must(r->status, r->error, __LINE__);
    const float *got = (const float *)r->out[0]->data + (size_t)r->row * a->out_size;
    for (size_t i = 0; i < a->out_size; i++)
      CHECK(fabsf(got[i] - a->right[file][i]) <= 1e-4f * (1 + fabsf(a->right[file][i])));
    a->good++;
  }
  if (a->told == a->end_at) hone_pipeline_cancel(a->pipeline);
}

/* Pictures from `first` on, n at most. */
static void push(album *a, hone_plan *plan, uint64_t first, uint64_t n, uint64_t end_at) {
  hone_error e = {0};
  const hone_pipeline_options o = {.post = &(hone_post){.kind = HONE_POST_NONE}, .gains = {.period = 0.01}};
  a->first = first, a->told = a->good = a->bad = a->cancelled = 0, a->end_at = end_at;
  MUST(hone_pipeline_create(plan, &o, picture_told, a, &a->pipeline, &e));
  uint64_t taken = 0, broken = 0;
  while (taken < n) {
    const hone_pipeline_item item = {.path = a->path[file_of(first + taken)]};
    if (hone_pipeline_submit(a->pipeline, &item, &e) != HONE_OK) break;
    broken += is_broken(first + taken++);
  }
  hone_pipeline_destroy(a->pipeline);
  CHECK(a->told == taken && a->good + a->bad + a->cancelled == taken);
  if (!end_at) CHECK(taken == n && a->bad == broken && a->good == n - broken && !a->cancelled);
}

static int pictures(uint64_t n, uint64_t ends, uint64_t seed) {
  static album a;
  world w;
  hone_error e = {0};
  hone_plan *batches;
  open_world(&w);
  make_album(&a, &w);
  MUST(hone_plan_create(w.engine, w.model, &(hone_plan_options){.level = -1, .batch = 3}, &batches, &e));
  push(&a, w.plan, 0, n < 200 ? n : 200, 0); /* what grows once has */
  const uint64_t before = hn_rss_bytes();
  const double begin = now();
  push(&a, w.plan, seed, n, 0);
  const uint64_t good = a.good, bad = a.bad;
  uint64_t cancelled = 0;
  for (uint64_t i = 0; i < ends; i++) {
    push(&a, i % 2 ? batches : w.plan, seed + i, n, 1 + draw(&seed, n < 300 ? (uint32_t)n : 300));
    cancelled += a.cancelled;
  }
  const uint64_t after = hn_rss_bytes();
  printf("%llu pictures in %.1f s: %llu answered, %llu broken ones told, each once and in order; ended %llu "
         "times, "
         "%llu taken back; %.1f MiB before, %.1f after\n",
         (unsigned long long)n, now() - begin, (unsigned long long)good, (unsigned long long)bad,
         (unsigned long long)ends, (unsigned long long)cancelled, (double)before / 1048576,
         (double)after / 1048576);
  CHECK(WATCHED || after < before + GROWTH);
  hone_plan_destroy(batches);
  drop_album(&a);
  close_world(&w);
  return 0;
}

int main(int argc, char **argv) {
  if (argc >= 4 && strcmp(argv[1], "pictures") == 0)
    return pictures(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10),
                    argc > 4 ? strtoull(argv[4], NULL, 10) : 1);
  if (argc >= 2 && strtod(argv[1], NULL) > 0)
    return soak(strtod(argv[1], NULL), argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL));
  fprintf(stderr, "soak SECONDS [SEED] | soak pictures N ENDS [SEED]\n");
  return 2;
}
