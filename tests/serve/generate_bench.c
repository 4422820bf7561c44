/* What it is worth that sequences come and go between two steps: tokens a second of the same requests one
 * after the other, in batches of which each waits for its longest sequence, and as they come.
 *
 *   generate_bench [layers [heads [vocabulary [rounds [form [halves [device]]]]]]]
 *
 * Heads have 64 values; form is a number of decoder.h's, halves 1 for f16.
 *
 * Requests have prompts of 8 to 64 tokens, and answers of 8 to 128. Rounds are interleaved; medians and
 * ratios of medians are told. */
#include "decoder.h"

#include <hone/hone.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { AT_ONCE = 8, REQUESTS = 32, MOST_ROUNDS = 16, CONTEXT = 256 };

typedef struct request {
  hone_server *server;
  int prompt, answer;
} request;

typedef struct row {
  request *list;
  int n, next;
  pthread_mutex_t lock;
} row;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void ask(const request *r) {
  char body[2048];
  size_t at = (size_t)snprintf(body, sizeof body, "{\"input_ids\":[");
  for (int i = 0; i < r->prompt; i++)
    at += (size_t)snprintf(body + at, sizeof body - at, "%s%d", i ? "," : "", i * 7 % 97);
  snprintf(body + at, sizeof body - at, "],\"parameters\":{\"max_tokens\":%d}}", r->answer);
  const hone_server_request q = {
      .method = "POST", .path = "/v2/models/net/generate", .body = body, .size = strlen(body)};
  hone_server_response out;
  hone_server_answer(r->server, &q, &out);
  if (out.status != 200) {
    fprintf(stderr, "%d %s\n", out.status, out.body ? out.body : "");
    exit(1);
  }
  hone_server_response_free(&out);
}

static void *client(void *arg) {
  row *w = arg;
  for (;;) {
    pthread_mutex_lock(&w->lock);
    const int mine = w->next < w->n ? w->next++ : -1;
    pthread_mutex_unlock(&w->lock);
    if (mine < 0) return NULL;
    ask(&w->list[mine]);
  }
}

static void run(request *list, int n, int clients) {
  row w = {.list = list, .n = n};
  pthread_t thread[AT_ONCE];
  pthread_mutex_init(&w.lock, NULL);
  for (int i = 0; i < clients; i++) pthread_create(&thread[i], NULL, client, &w);
  for (int i = 0; i < clients; i++) pthread_join(thread[i], NULL);
  pthread_mutex_destroy(&w.lock);
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  const int layers = argc > 1 ? atoi(argv[1]) : 4, heads = argc > 2 ? atoi(argv[2]) : 8,
            vocabulary = argc > 3 ? atoi(argv[3]) : 8000, rounds = argc > 4 ? atoi(argv[4]) : 3,
            form = argc > 5 ? atoi(argv[5]) : 0, halves = argc > 6 ? atoi(argv[6]) : 0;
  const decoder_size z = {.vocabulary = vocabulary,
                          .heads = heads,
                          .kv_heads = heads > 3 ? heads / 4 : 1,
                          .size = 64,
                          .layers = layers,
                          .positions = CONTEXT,
                          .form = (decoder_form)form,
                          .halves = halves != 0,
                          .seed = 5};
  hone_engine *engine = NULL;
  hone_server *server = NULL;
  hone_error e = {0};
  hone_model *m = decoder_build(&z);
  const double begun = now();
  if (hone_engine_create(&(hone_engine_options){.device = argc > 7 ? argv[7] : NULL}, &engine, &e) !=
          HONE_OK ||
      hone_server_create(engine, NULL, &server, &e) != HONE_OK ||
      hone_server_add(server, m, &(hone_served_options){.name = "net", .sequences = AT_ONCE}, &e) !=
          HONE_OK ||
      rounds < 1 || rounds > MOST_ROUNDS) {
    fprintf(stderr, "%s\n", e.what);
    return 1;
  }
  request list[REQUESTS];
  double seconds[3][MOST_ROUNDS], tokens = 0;
  for (int i = 0; i < REQUESTS; i++) {
    list[i] = (request){server, 8 + i * 37 % 57, 8 + i * 53 % 121};
    tokens += list[i].answer;
  }
  printf("ready in %.0f ms\n", 1e3 * (now() - begun));
  run(list, AT_ONCE, AT_ONCE); /* all is touched */
  for (int r = 0; r < rounds; r++) {
    double start = now();
    run(list, REQUESTS, 1);
    seconds[0][r] = now() - start, start = now();
    for (int i = 0; i < REQUESTS; i += AT_ONCE) run(list + i, AT_ONCE, AT_ONCE);
    seconds[1][r] = now() - start, start = now();
    run(list, REQUESTS, AT_ONCE);
    seconds[2][r] = now() - start;
  }
  static const char *const name[] = {"one after the other", "batches of 8", "as they come, 8 at once"};
  for (int k = 0; k < 3; k++) {
    qsort(seconds[k], (size_t)rounds, sizeof(double), by_size);
    printf("%-24s %8.1f tokens/s  %5.2f x\n", name[k], tokens / seconds[k][rounds / 2],
           seconds[0][rounds / 2] / seconds[k][rounds / 2]);
  }
  hone_server_destroy(server);
  hone_engine_destroy(engine);
  hone_model_release(m);
  return 0;
}
