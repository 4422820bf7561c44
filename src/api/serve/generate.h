/* What the files of generation share: sequences, the memory of their caches, and the thread that has them
 * run. */
#ifndef HN_API_SERVE_GENERATE_H
#define HN_API_SERVE_GENERATE_H

#include "api/serve/decoder.h"
#include "api/serve/serve.h"

enum {
  HN_MOST_ENDS = 64,
  HN_MOST_ID = 256,    /* bytes: each event has it */
  HN_STATUS_LEFT = 499 /* as proxies count it: nobody waited for the answer. It is never sent */
};

/* How the next token is chosen. */
typedef struct hn_sampling {
  float temperature; /* 0: the most probable one */
  float top_p;       /* of the most probable ones those that make up so much; 1: all */
  uint32_t top_k;    /* of the most probable ones so many; 0: all */
  uint64_t seed;
} hn_sampling;

typedef enum hn_finish {
  HN_FINISH_NONE = 0,
  HN_FINISH_LENGTH,    /* max_tokens */
  HN_FINISH_STOP,      /* one of end_ids */
  HN_FINISH_CANCELLED, /* the server is being stopped */
  HN_FINISH_GONE,      /* nobody waits for it any more */
  HN_FINISH_ERROR
} hn_finish;
enum { HN_FINISHES = HN_FINISH_ERROR + 1 };

/* A prompt and what follows it. The asker makes it and frees it; in between the generator's thread has it,
 * which alone writes what stands behind `news`; `ids`, `n` and how it ended are read with the generator's
 * lock. */
typedef struct hn_sequence {
  char *id;              /* as the client called it; NULL */
  uint32_t prompt, most; /* tokens of the prompt; tokens that may follow */
  hn_sampling how;
  int64_t end[HN_MOST_ENDS];
  uint32_t n_ends;

  int64_t *ids; /* [prompt + most] */
  uint32_t n;   /* there are so far, the prompt's among them */
  hn_finish finish;
  hone_status status;
  hone_error error;
  bool gone;      /* the asker wants no more of it */
  uint32_t known; /* tokens behind the prompt of which the asker has heard, or needs not hear */
  pthread_cond_t news;

  uint64_t arrived, begun, last; /* ns: asked for, taken up, the latest token */
  uint32_t fed;                  /* tokens whose keys and values lie in the cache */
  int32_t slot;                  /* < 0: it waits */
  struct hn_sequence *next;      /* in the row of those that wait */
} hn_sequence;

/* Tokens of a sequence that one run reads. */
typedef struct hn_part {
  hn_sequence *of;
  uint32_t tokens;
} hn_part;

/* What is counted, with the generator's lock. */
typedef struct hn_generated {
  uint64_t tokens, prompt_tokens, ended[HN_FINISHES];
  uint32_t live, waiting, blocks, blocks_used;
  hn_histogram first, between;
} hn_generated;

/* ---- slots.c, sizes.c, caches.c: caches of rows, one a sequence, and the plans that go with them */
typedef struct hn_slots hn_slots;

/* m: plan options, model, engine. o: what was asked for; slots and context are decided here. d is borrowed.
 */
hone_status hn_slots_create(const hn_served *m, hn_decoder *d, const hone_served_options *o, hn_slots **out,
                            hone_error *error);
void hn_slots_destroy(hn_slots *s);
uint32_t hn_slots_count(const hn_slots *s);
uint32_t hn_slots_context(const hn_slots *s);  /* tokens of a sequence */
uint64_t hn_slots_moved(const hn_slots *s);    /* sequences so far that went to another slot */
uint64_t hn_slots_captured(const hn_slots *s); /* how often work of the device was captured so far */
uint64_t hn_slots_bytes(const hn_slots *s);    /* of all caches */
int64_t hn_slots_vocabulary(const hn_slots *s);
bool hn_slots_share(const hn_slots *s, const char **why); /* may sequences share a run? */
/* A free slot for the sequence; false: there is none. */
bool hn_slots_take(hn_slots *s, hn_sequence *q);
void hn_slots_give_back(hn_slots *s, hn_sequence *q);
/* How many of the sequence's next `tokens` a run takes. */
uint32_t hn_slots_chunk(const hn_slots *s, const hn_sequence *q, uint32_t tokens);
/* Has the parts read: one of any hn_slots_chunk, or several of one token. Logits of the last token of part i
 * are then in hn_slots_logits(s, i), as f32, until the next run. */
hone_status hn_slots_run(hn_slots *s, const hn_part *part, uint32_t n, const hone_run_options *options,
                         hone_error *error);
const float *hn_slots_logits(const hn_slots *s, uint32_t i);

/* ---- sample.c: token number `at` of a sequence. room: [n] scratch. < 0: no logit is a number. */
typedef struct hn_candidate {
  float logit;
  uint32_t id;
  double weight; /* against that of the most probable one */
} hn_candidate;
int64_t hn_sample(const float *logits, uint32_t n, const hn_sampling *how, uint32_t at, hn_candidate *room);

/* ---- generate.c: the scheduler */
typedef struct hn_generator hn_generator;

/* Takes what d holds. */
hone_status hn_generator_create(hn_served *m, hn_decoder *d, const hone_served_options *o, hn_generator **out,
                                hone_error *error);
void hn_generator_stop(hn_generator *g); /* ends what runs and waits; again is fine */
void hn_generator_destroy(hn_generator *g);
const hn_slots *hn_generator_slots(const hn_generator *g);
void hn_generator_count(hn_generator *g, hn_generated *out);
/* Puts it into the row. */
hone_status hn_generator_begin(hn_generator *g, hn_sequence *q, hone_error *error);
/* Waits until there are more than `known` tokens behind the prompt, or it has ended (*done: then nothing of
 * it changes any more), or nobody wants it, and tells how many there are. gone (may be NULL) is asked now and
 * then. */
uint32_t hn_generator_wait(hn_generator *g, hn_sequence *q, uint32_t known, bool (*gone)(void *arg),
                           void *arg, bool *done);
/* Tests: after so many rounds more it stands still (UINT64_MAX: never). Returns when they are over, or there
 * is nothing to do. */
void hn_generator_rounds(hn_generator *g, uint64_t n);
/* It is the asker's again, ended or not. */
void hn_generator_end(hn_generator *g, hn_sequence *q);

/* ---- generate_ask.c: from the body of a request */
typedef struct hn_limits {
  uint32_t context;   /* tokens of a sequence */
  int64_t vocabulary; /* ids are below it */
} hn_limits;
hone_status hn_sequence_read(const hn_limits *limits, const hone_server_request *request, hn_sequence *out,
                             hone_error *error);
void hn_sequence_free(hn_sequence *q);

/* ---- stream.c: a request for generation from its body to its answer */
hone_status hn_stream_open(hn_served *m, const hone_server_request *request, hone_server_stream **out,
                           hone_error *error);
/* Waits for the end, and tells all at once: one JSON, or the events. */
hone_status hn_stream_answer(hone_server_stream *s, bool events, hn_str *o, hone_error *error);
bool hn_stream_left(const hone_server_stream *s);         /* has the asker hung up? NULL is fine */
void hn_stream_close(hone_server_stream *s, bool counts); /* counts: with its model's requests */

#endif
