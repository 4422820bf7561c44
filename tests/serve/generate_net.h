/* What tests of generation share: a server of a small decoder, requests, and the same tokens by plain runs.
 * Everything asserts. */
#ifndef HN_TESTS_SERVE_GENERATE_NET_H
#define HN_TESTS_SERVE_GENERATE_NET_H

#include "decoder.h"

#include <hone/hone.h>

enum { CONTEXT = 96, LONGEST = 512, SEQUENCES = 4, ASKED = 7, MOST = 64, VOCABULARY = 61 };

extern const decoder_size small;
extern hone_engine *engine;
extern const char *device; /* that tests run on; NULL: the processor */

int start(void **state); /* the engine: cmocka's setup, and its teardown */
int end(void **state);
hone_server *serve(const decoder_size *z, const hone_server_options *s, hone_served_options o);

/* ---- plain runs */

/* Prompts of so many tokens, and of up to so many more, in caches of so many. */
typedef struct prompt_sizes {
  uint32_t least, more, room;
} prompt_sizes;
extern prompt_sizes prompts;

uint32_t prompt_of(uint32_t k, int64_t *out);

typedef struct plain {
  hone_plan *plan;
  hone_context *context;
  hone_tensor in[32];
  const hone_tensor *given[32];
} plain;

/* A run of `tokens` tokens of one sequence, with caches of `past` rows and a mask of `keys`. */
void plain_open(hone_model *m, int64_t tokens, int64_t past, int64_t keys, plain *p);
void plain_close(plain *p);
/* The first `most` tokens behind prompt k. */
void alone(const decoder_size *z, uint32_t k, uint32_t most, int64_t *out);

/* ---- requests */

typedef struct asked {
  hone_server *server;
  uint32_t k, most;
  const char *more;  /* of the parameters */
  uint32_t after_us; /* when it comes */
  int status;
  char text[2048];
} asked;

void body_of(const asked *a, char *out, size_t size);
void *ask(void *arg);
void ask_all(asked *a, uint32_t n); /* at nearly the same time */
/* "output_ids":[...] of the text, how many there are. */
uint32_t ids_of(const char *text, int64_t *out);
double metric(hone_server *s, const char *name);
hone_server_response open_stream(hone_server *s, uint32_t k, uint32_t most);
/* Ids of all events of a stream, to its end. */
uint32_t read_all(hone_server_response *r, int64_t *out);
/* The answer to a POST. */
void wants(hone_server *s, const char *path, const char *body, int status, const char *text);

#endif
