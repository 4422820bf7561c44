/* Models over HTTP, by the Open Inference Protocol (KServe's version 2): a server holds models by name, makes
 * batches of what arrives at the same time, and counts what it does (Prometheus).
 *
 * A request can be answered without a socket (hone_server_answer): the protocol in a program that has an HTTP
 * server of its own. hone_server_listen is the server that comes with it (libmicrohttpd).
 *
 * All functions may be called from several threads at once, except hone_server_destroy. */
#ifndef HONE_SERVE_H
#define HONE_SERVE_H

#include <hone/shapes.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_server hone_server;
typedef struct hone_server_stream hone_server_stream;

/* Zeroed: the defaults. */
typedef struct hone_server_options {
  uint64_t max_body;    /* bytes of a request; 0: 64 MiB */
  uint64_t max_bodies;  /* bytes of all requests that arrive or wait for their answer, and of all responses
                           that are being sent; 0: 512 MiB */
  uint32_t max_waiting; /* requests for a model that wait; what comes then is refused (503). 0: 256 */
  uint32_t connections; /* at the same time; 0: 128 */
  double max_seconds;   /* of a run; 0: as long as it takes */
  double stop_seconds;  /* that hone_server_stop waits for who sends or reads slowly; 0: 5 */
} hone_server_options;

/* Borrows the engine. options may be NULL. */
HONE_API hone_status hone_server_create(hone_engine *engine, const hone_server_options *options,
                                        hone_server **out, hone_error *error);
/* Stops it (hone_server_stop), and ends its models. NULL is fine. */
HONE_API void hone_server_destroy(hone_server *server);

typedef struct hone_served_options {
  const char *name;                  /* in URLs: UTF-8 without '/' and control characters; copied */
  const char *version;               /* copied; NULL: "1" */
  const hone_plan_options *plan;     /* NULL: the defaults. Borrowed as long as the server lives */
  const hone_size_profile *profiles; /* [n_profiles] sizes of symbolic dimensions that may differ from request
                                        to request; of the batch it says how many samples a run takes */
  uint32_t n_profiles;
  uint32_t
      max_batch; /* samples of a run, where the batch has no profile; 0: 8. 1: requests never share one */
  double batch_delay; /* seconds that the first request of a run waits for more; 0: only what waits already */
  uint32_t streams;   /* runs at the same time, on each engine; 0: 1 */
  /* Where it runs: on each of them, which take requests from one row as they are free (several GPUs). The
   * model is planned, and has its weights, on each. n_engines 0: on the server's. Borrowed as long as the
   * server lives; the array only during the call. */
  hone_engine *const *engines;
  uint32_t n_engines;
  /* A decoder with a cache is served for generation (docs/guide/generate.md says which are), on the first
   * engine: its sequences share runs, and come and go between two of them. */
  bool runs;            /* serve a decoder's runs instead, as those of any other model */
  uint32_t sequences;   /* at the same time; 0: 8. What comes then waits. At most 4096 */
  uint32_t context;     /* tokens of a sequence, prompt and answer; 0: 2048, or as many as the model knows */
  uint64_t cache_bytes; /* of keys and values: fewer sequences where it is too little for all; 0: any */
} hone_served_options;

/* Plans the model for its sizes, and serves it from now on. The first dimension of all inputs is its batch
 * when it is one symbol, or is fixed and can be opened (hone_model_open_batch). Keeps the model alive.
 * HONE_ERROR_USAGE: a name that is taken or none; HONE_ERROR_UNSUPPORTED: an input or output that the
 * protocol has no type for (sequences, maps). */
HONE_API hone_status hone_server_add(hone_server *server, hone_model *model,
                                     const hone_served_options *options, hone_error *error);

/* What it does and has done with a model. */
typedef struct hone_served {
  const char *name, *version;             /* as long as the server lives */
  uint32_t max_batch;                     /* samples of a run; 1: each by itself */
  const char *alone;                      /* why requests do not share runs; "": they do */
  uint32_t waiting;                       /* requests, now */
  uint64_t answered, failed;              /* requests */
  uint64_t runs, samples;                 /* runs of the model, and what they took */
  double mean_ms, p50_ms, p95_ms, p99_ms; /* from a request's arrival to its answer, of the last 4096; NaN
                                             before the first */
  uint32_t sequences, context;            /* of a model that is served for generation, as they are; else 0 */
  uint64_t cache_bytes;                   /* of its keys and values */
  uint64_t tokens;                        /* that were generated */
} hone_served;

/* Model i, in the order in which they were added; false behind the last. */
HONE_API bool hone_server_model(hone_server *server, uint32_t i, hone_served *out);

typedef struct hone_server_request {
  const char *method;    /* "GET", "POST" */
  const char *path;      /* "/v2/models/net/infer", without a query */
  const char *json_size; /* the header Inference-Header-Content-Length, or NULL */
  const void *body;      /* borrowed during the call */
  size_t size;
  /* Of requests for generation. */
  bool streams; /* the caller takes a response in parts: hone_server_response.stream */
  bool (*gone)(
      void *arg); /* does nobody wait for the answer any more? Asked now and then while it is made, by the
                     thread that waits for it, until the response is freed; NULL: somebody does */
  void *arg;
} hone_server_request;

typedef struct hone_server_response {
  int status;               /* of HTTP: 200, 400, 404, 405, 500, 503; sockets also give 413, 415 and 501, and
                               what libmicrohttpd answers by itself */
  const char *content_type; /* static */
  const char *allow;        /* of status 405: what is allowed; else NULL. Static */
  size_t json_size;         /* the same header; 0: there is none */
  char *body;               /* owned by the response */
  size_t size;
  hone_server_stream
      *stream; /* instead of a body, which comes in parts; owned by the response. NULL: there is none */
} hone_server_response;

/* Answers a request; waits until the model has run. Never fails: what goes wrong is the response (of status
 * 500 without a body, where there is no memory for it). Free with hone_server_response_free. */
HONE_API void hone_server_answer(hone_server *server, const hone_server_request *request,
                                 hone_server_response *out);
HONE_API void hone_server_response_free(hone_server_response *response); /* NULL is fine */

/* Of a response that comes in parts (/generate_stream, where the request `streams`): the next bytes of its
 * body, at most `room` of them; waits until there are some. 0: that was all. One thread at a time reads. */
HONE_API size_t hone_server_stream_read(hone_server_stream *stream, void *to, size_t room);
/* Ends what is not over yet. For who has taken the stream out of the response; NULL is fine. Before
 * hone_server_destroy. */
HONE_API void hone_server_stream_close(hone_server_stream *stream);

/* Listens at "127.0.0.1:8000", "[::1]:8000", ":8000" (all addresses) or "localhost:0" (a port that is free);
 * *port (may be NULL) is the one. Requests are answered by threads of the server until hone_server_stop.
 * HONE_ERROR_MISSING: libmicrohttpd is not there; HONE_ERROR_USAGE: no address, or it listens already;
 * HONE_ERROR_IO: the address cannot be had. */
HONE_API hone_status hone_server_listen(hone_server *server, const char *address, uint16_t *port,
                                        hone_error *error);
/* Takes no more requests, is not ready any more, and returns when those that were there are answered: runs
 * end, sequences with the token they are at, and responses have stop_seconds to be read; then connections
 * are cut. Again, or from two threads: waits for the first, and does nothing. */
HONE_API void hone_server_stop(hone_server *server);

#ifdef __cplusplus
}
#endif
#endif
