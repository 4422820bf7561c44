/* What the files of the server share: a request for a run of a model, the models, and what is counted. */
#ifndef HN_API_SERVE_SERVE_H
#define HN_API_SERVE_SERVE_H

#include "base/str.h"
#include "model/padding_rules.h"

#include <hone/serve.h>
#include <pthread.h>
#include <stdatomic.h>

/* Upper ends of Prometheus' buckets, in seconds; one more has the rest. */
enum { HN_SERVED_BUCKETS = 14, HN_SERVED_TIMES = 4096 };
extern const double hn_served_bucket[HN_SERVED_BUCKETS];

typedef struct hn_histogram {
  uint64_t count[HN_SERVED_BUCKETS + 1];
  double sum;
} hn_histogram;

/* An input or output of a served model. */
typedef struct hn_served_port {
  const char *name; /* of the model */
  hone_dtype dtype;
  int32_t rank;                                      /* -1: known after a run */
  int64_t least[HONE_MAX_RANK], most[HONE_MAX_RANK]; /* the same: fixed. Outputs: most < 0 where it is open */
} hn_served_port;

/* How an output is told. */
typedef struct hn_told {
  uint32_t output;
  bool binary;
  uint32_t classes; /* the largest so many, as texts; 0: the numbers */
} hn_told;

/* A request for a run. Who made it waits until it is ready. */
typedef struct hn_ask {
  char *id;        /* as the client called it; NULL */
  hone_tensor *in; /* [inputs] data owned */
  hn_told *told;   /* [n_told], in the order of the response */
  uint32_t n_told;
  hone_tensor *out; /* [outputs] data owned, strings with it */
  int64_t samples;  /* of the batch; 1 where there is none */
  uint64_t arrived, begun;
  bool ready;
  hone_status status;
  hone_error error;
  pthread_cond_t done;
  struct hn_ask *next;
} hn_ask;

/* A model on an engine. */
typedef struct hn_replica {
  hone_engine *engine;
  hone_shapes *shapes; /* NULL: all shapes are fixed, and there is `plan` */
  hone_plan *plan;
} hn_replica;

typedef struct hn_parts hn_parts;
struct hn_generator;

typedef struct hn_served {
  hone_server *server;
  char *name, *version;
  hone_model *model;
  hone_plan_options plan_options;
  hone_binding *bindings;
  hn_replica *replica;
  uint32_t n_replicas;
  char *symbol; /* of the batch; NULL: none is open */
  uint32_t n_in, n_out;
  hn_served_port *in, *out;
  int64_t max_batch; /* of a run */
  bool shares;       /* requests share runs, where hn_parts_hold */
  hone_reason alone;
  hn_parts *parts;                /* NULL: all shapes are fixed */
  uint64_t delay;                 /* ns */
  struct hn_generator *generator; /* its requests are for generation; NULL: for runs */
  hone_reason no_decoder;         /* then: why */

  pthread_mutex_t lock;
  pthread_cond_t arrived;
  hn_ask *first, **last;
  uint32_t waiting, n_workers, n_running;
  bool closing;
  pthread_t *worker;

  uint64_t answered, failed[6], runs, samples; /* failed: by class of status, see metrics.c */
  hn_histogram whole, queue, run;
  double *times; /* [HN_SERVED_TIMES] the last ones of `whole`, in a ring */
  uint64_t n_times;
} hn_served;

struct hone_server {
  hone_engine *engine;
  hone_server_options options;
  pthread_mutex_t lock;      /* of the list */
  pthread_mutex_t listening; /* held by who begins to listen, or stops */
  hn_served **model;
  uint32_t n_models;
  atomic_bool stopping;
  atomic_uint_fast64_t body_bytes;   /* of requests and of responses that are being sent */
  atomic_uint_fast64_t responses[6]; /* by hundreds of their status */
  uint64_t started;
  struct hn_http *http;
  uint32_t linger_ms; /* that whoever was turned away may send on, and two fifths of it be silent */
};

/* ---- types.c */
const char *hn_served_datatype(hone_dtype dtype); /* "FP32"; NULL: the protocol has none */
hone_dtype hn_served_dtype(const char *datatype);

/* ---- served.c: models */
hone_status hn_served_create(hone_server *server, hone_model *model, const hone_served_options *options,
                             hn_served **out, hone_error *error);
void hn_served_destroy(hn_served *m);

/* ---- parts.c: may requests share a run? Of the usual sizes it is found out when the model is added
 * (m->parts, m->shares, m->alone), of others when they come together. */
hone_status hn_parts_create(hn_served *m, const hone_size_profile *profile, uint32_t n, hone_error *error);
void hn_parts_check(hn_served *m, const hone_shapes *shapes); /* what an engine's plans are made of */
void hn_parts_destroy(hn_parts *parts);
/* May these run together? rows: [outputs] how they follow the batch. Thread-safe. */
bool hn_parts_hold(hn_parts *parts, hn_ask *const *group, uint32_t n, int64_t samples, hn_pad *rows);

/* ---- batch.c: runs. Waits until the request has been run; its status is told. */
hone_status hn_served_run(hn_served *m, hn_ask *ask, hone_error *error);
hone_status hn_served_workers(hn_served *m, uint32_t each, hone_error *error); /* so many on each engine */
void hn_served_close(hn_served *m); /* ends them, when all that waits has run */

/* ---- ask.c: from the body of a request */
hone_status hn_ask_read(const hn_served *m, const hone_server_request *request, hn_ask *out,
                        hone_error *error);
void hn_ask_free(const hn_served *m, hn_ask *ask);
/* ---- numbers.c: the text of a JSON array, its brackets included, as elements of the tensor. */
hone_status hn_ask_numbers(const char *text, size_t size, const char *name, const hone_tensor *out,
                           hone_error *error);

/* ---- tell.c: bodies of responses. False: out of memory. */
bool hn_tell_answer(const hn_served *m, const hn_ask *ask, hone_server_response *out);
bool hn_tell_model(const hn_served *m, hn_str *o);
void hn_tell_text(hn_str *o, const char *text, size_t n); /* as a string of JSON */
/* {"error": text}, the model called as clients call it: where its file lies is not told. */
void hn_tell_error(const hn_served *m, const hone_error *error, hn_str *o);

/* ---- metrics.c */
void hn_observe(hn_histogram *h, double seconds);
/* A request that was answered, with the model's lock: when it came, was taken up and was ready, in ns. */
void hn_served_count(hn_served *m, uint64_t arrived, uint64_t begun, uint64_t now);
void hn_served_count_answer(hn_served *m, int status); /* of HTTP */
void hn_served_counted_run(hn_served *m, int64_t samples, double seconds);
bool hn_metrics(hone_server *server, hn_str *o);

/* ---- http.c */
hone_status hn_http_open(hone_server *server, const char *address, uint16_t *port, struct hn_http **out,
                         hone_error *error);
void hn_http_close(struct hn_http *http);

#endif
