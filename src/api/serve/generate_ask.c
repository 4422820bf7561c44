/* The body of a request for generation: the generate extension of the Open Inference Protocol, with ids of
 * tokens where Triton's models have texts. */
#include "api/serve/generate.h"
#include "base/error.h"
#include "base/json_read.h"
#include "base/os.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { DOCUMENT_BYTES = 64 << 20, LEAST_BYTES = 1 << 20, TOKEN_BYTES = 4 * 72, MAX_TOKENS = 16 };

typedef struct reader {
  const hn_limits *limits;
  hn_sequence *q;
  hone_error *error;
} reader;

static hone_status bad(const reader *r, const char *what, const char *name) {
  return hn_fail(r->error, HONE_ERROR_INPUT, what, name);
}

/* ------------------------------------------------------------------ tokens */

static hone_status read_id(const reader *r, const json_t *v, const char *name, size_t at, int64_t most,
                           int64_t *out) {
  const int64_t id = json_is_integer(v) ? json_integer_value(v) : -1;
  if (id >= 0 && id < most) {
    *out = id;
    return HONE_OK;
  }
  hn_fail(r->error, HONE_ERROR_INPUT, "'%s' has at element %zu what is no token of the model", name, at);
  hn_error_expected(r->error, "integers from 0 to %lld", (long long)most - 1);
  if (json_is_integer(v)) hn_error_got(r->error, "%lld", (long long)json_integer_value(v));
  return HONE_ERROR_INPUT;
}

static hone_status read_prompt(const reader *r, const json_t *list) {
  const size_t n = json_array_size(list), most = r->limits->context;
  if (!json_is_array(list) || !n) return bad(r, "the request has no 'input_ids', a list of tokens%s", "");
  if (n >= most) {
    hn_fail(r->error, HONE_ERROR_INPUT, "'input_ids' leaves no room for an answer");
    hn_error_expected(r->error, "at most %zu tokens", most - 1);
    hn_error_got(r->error, "%zu", n);
    return HONE_ERROR_INPUT;
  }
  r->q->prompt = (uint32_t)n;
  if ((uint64_t)n + r->q->most > most) {
    hn_fail(r->error, HONE_ERROR_INPUT, "'input_ids' and 'max_tokens' are more than a sequence may have");
    hn_error_expected(r->error, "%zu together", most);
    hn_error_got(r->error, "%zu and %u", n, r->q->most);
    return HONE_ERROR_INPUT;
  }
  r->q->ids = hn_calloc(n + r->q->most, sizeof *r->q->ids);
  if (!r->q->ids) return hn_fail_memory(r->error, n * sizeof *r->q->ids, "a request");
  hone_status status = HONE_OK;
  for (size_t i = 0; i < n && status == HONE_OK; i++)
    status = read_id(r, json_array_get(list, i), "input_ids", i, r->limits->vocabulary, &r->q->ids[i]);
  return status;
}

/* ------------------------------------------------------------------ parameters */

static hone_status read_whole(const reader *r, const json_t *v, const char *name, int64_t least, int64_t most,
                              int64_t *out) {
  if (json_is_integer(v) && json_integer_value(v) >= least && json_integer_value(v) <= most) {
    *out = json_integer_value(v);
    return HONE_OK;
  }
  hn_fail(r->error, HONE_ERROR_INPUT, "parameter '%s' is out of its range", name);
  hn_error_expected(r->error, "an integer from %lld to %lld", (long long)least, (long long)most);
  if (json_is_integer(v)) hn_error_got(r->error, "%lld", (long long)json_integer_value(v));
  return HONE_ERROR_INPUT;
}

static hone_status read_number(const reader *r, const json_t *v, const char *name, double most, float *out) {
  const double x = json_is_number(v) ? json_number_value(v) : (double)NAN;
  if (x >= 0 && x <= most) {
    *out = (float)x;
    return HONE_OK;
  }
  hn_fail(r->error, HONE_ERROR_INPUT, "parameter '%s' is out of its range", name);
  hn_error_expected(r->error, "a number from 0 to %g", most);
  if (json_is_number(v)) hn_error_got(r->error, "%g", x);
  return HONE_ERROR_INPUT;
}

static hone_status read_ends(const reader *r, const json_t *list) {
  hone_status status = HONE_OK;
  if (!json_is_array(list) || json_array_size(list) > HN_MOST_ENDS)
    return bad(r, "parameter 'end_ids' is no list of at most 64 tokens%s", "");
  for (size_t i = 0; i < json_array_size(list) && status == HONE_OK; i++)
    status =
        read_id(r, json_array_get(list, i), "end_ids", i, r->limits->vocabulary, &r->q->end[r->q->n_ends++]);
  return status;
}

/* One that is not known would change the answer, if it were. */
static hone_status read_parameter(const reader *r, const char *name, const json_t *v) {
  hn_sequence *q = r->q;
  int64_t n = 0;
  hone_status status = HONE_OK;
  if (strcmp(name, "max_tokens") == 0) {
    status = read_whole(r, v, name, 1, (int64_t)r->limits->context - 1, &n);
    if (status == HONE_OK) q->most = (uint32_t)n;
    return status;
  }
  if (strcmp(name, "top_k") == 0) {
    status = read_whole(r, v, name, 0, INT32_MAX, &n);
    q->how.top_k = (uint32_t)n;
    return status;
  }
  if (strcmp(name, "seed") == 0) {
    status = read_whole(r, v, name, 0, INT64_MAX, &n);
    q->how.seed = (uint64_t)n;
    return status;
  }
  if (strcmp(name, "temperature") == 0) return read_number(r, v, name, 1000, &q->how.temperature);
  if (strcmp(name, "top_p") == 0) return read_number(r, v, name, 1, &q->how.top_p);
  if (strcmp(name, "end_ids") == 0) return read_ends(r, v);
  bad(r, "there is no parameter '%.80s'", name);
  hn_error_hint(r->error, "there are max_tokens, end_ids, temperature, top_k, top_p and seed");
  return HONE_ERROR_INPUT;
}

static hone_status read_parameters(const reader *r, const json_t *all) {
  const char *name;
  json_t *v;
  hone_status status = HONE_OK;
  r->q->most = 0;
  r->q->how = (hn_sampling){.top_p = 1, .seed = hn_rng_mix(hn_now_ns())};
  if (!all) return HONE_OK;
  if (!json_is_object(all)) return bad(r, "'parameters' is no object%s", "");
  json_object_foreach((json_t *)(uintptr_t)all, name, v) {
    if (status == HONE_OK) status = read_parameter(r, name, v);
  }
  return status;
}

/* Parameters that stand beside `parameters` would be without effect. */
static hone_status check_members(const reader *r, json_t *doc) {
  const char *name;
  const json_t *v;
  json_object_foreach(doc, name, v) {
    if (strcmp(name, "id") == 0 || strcmp(name, "input_ids") == 0 || strcmp(name, "parameters") == 0)
      continue;
    bad(r, "a request for generation has no member '%.80s'", name);
    hn_error_hint(r->error, "it has id, input_ids and parameters, which max_tokens and others belong into");
    return HONE_ERROR_INPUT;
  }
  return HONE_OK;
}

static hone_status check_id(const reader *r, const json_t *id) {
  if (!json_is_string(id)) return bad(r, "'id' is no string%s", "");
  if (json_string_length(id) <= HN_MOST_ID) return HONE_OK;
  bad(r, "'id' is too long%s", "");
  hn_error_expected(r->error, "at most %d bytes", HN_MOST_ID);
  hn_error_got(r->error, "%zu", json_string_length(id));
  return HONE_ERROR_INPUT;
}

/* Without max_tokens 16, as servers of this protocol have it, or what there is room for. */
static void choose_most(const reader *r, const json_t *list) {
  const size_t n = json_array_size(list), context = r->limits->context;
  if (r->q->most || n >= context) return;
  r->q->most = context - n < MAX_TOKENS ? (uint32_t)(context - n) : MAX_TOKENS;
}

/* That a request's JSON may take in memory, some 72 a token: who sends many is told how many there may be,
 * and who sends any number not at that price. */
static size_t most_bytes(const hn_limits *limits) {
  const size_t most = LEAST_BYTES + (size_t)limits->context * TOKEN_BYTES;
  return most < DOCUMENT_BYTES ? most : DOCUMENT_BYTES;
}

hone_status hn_sequence_read(const hn_limits *limits, const hone_server_request *request, hn_sequence *out,
                             hone_error *error) {
  const reader r = {limits, out, error};
  json_error_t where = {0};
  *out = (hn_sequence){.slot = -1};
  if (request->json_size)
    return bad(&r, "tensors as bytes are for /infer: a request for generation is JSON alone%s", "");
  if (hn_json_need(request->body, request->size) > most_bytes(limits)) {
    bad(&r, "the request's JSON is larger than any that could be answered%s", "");
    hn_error_hint(error, "a sequence has at most %u tokens", limits->context);
    return HONE_ERROR_INPUT;
  }
  json_t *doc = hn_json_load(request->body, request->size, JSON_REJECT_DUPLICATES, &where);
  if (!doc) {
    hn_fail(error, HONE_ERROR_INPUT, "the request is no JSON: %.120s", where.text);
    hn_error_where(error, "byte %d", where.position > 0 ? where.position : 0);
    return HONE_ERROR_INPUT;
  }
  const json_t *id = json_object_get(doc, "id"), *list = json_object_get(doc, "input_ids");
  hone_status status = json_is_object(doc) ? HONE_OK : bad(&r, "the request is no JSON object%s", "");
  if (status == HONE_OK) status = check_members(&r, doc);
  if (status == HONE_OK && id) status = check_id(&r, id);
  if (status == HONE_OK && id && !(out->id = hn_strdup(json_string_value(id))))
    status = hn_fail_memory(error, json_string_length(id), "a request");
  if (status == HONE_OK) status = read_parameters(&r, json_object_get(doc, "parameters"));
  if (status == HONE_OK) choose_most(&r, list);
  if (status == HONE_OK) status = read_prompt(&r, list);
  json_decref(doc);
  return status;
}

void hn_sequence_free(hn_sequence *q) {
  hn_free(q->id);
  hn_free(q->ids);
  q->id = NULL;
  q->ids = NULL;
}
