#include "backends/cuda/libraries/cudnn_step.h"

#include <string.h>

#include "backends/cuda/libraries/library_step.h"
#include "backends/cuda/step/epilogue.h"
#include "base/error.h"
#include "base/mem.h"

enum { BLOB_ALIGN = 256 };

static size_t tensor_bytes(const hn_cudnn_tensor *t, int32_t rank) {
  size_t n = hone_dtype_size(t->dtype);
  for (int32_t i = 0; i < rank; i++) n *= (size_t)t->dim[i];
  return n;
}

void hn_cudnn_put(hn_cudnn_step *c, int32_t tensor, hn_cudnn_place place, uint32_t input) {
  hn_cudnn_source *s = &c->source[tensor];
  *s = (hn_cudnn_source){.place = place, .input = input};
  if (place != HN_CUDNN_BLOB) return;
  s->at = c->blob_bytes;
  c->blob_bytes += hn_round_up(tensor_bytes(&c->spec.tensor[tensor], c->spec.rank), BLOB_ALIGN);
  c->packed |= 1u << input;
}

int32_t hn_cudnn_add_vector(hn_cudnn_step *c, uint32_t input, hone_dtype dtype) {
  hn_cudnn_tensor t = c->vector;
  t.dtype = dtype;
  const int32_t at = hn_cudnn_add_tensor(&c->spec, &t);
  if (at >= 0) hn_cudnn_put(c, at, HN_CUDNN_BLOB, input);
  return at;
}

int32_t hn_cudnn_add_like_output(hn_cudnn_step *c, const hone_step *s, uint32_t input) {
  hn_cudnn_tensor t = c->spec.tensor[HN_CUDNN_Y];
  t.dtype = s->input[input].desc.dtype;
  const int32_t at = hn_cudnn_add_tensor(&c->spec, &t);
  if (at >= 0) hn_cudnn_put(c, at, HN_CUDNN_IN, input);
  return at;
}

int32_t hn_cudnn_plus(hn_cudnn_step *c, int32_t at, int32_t operand) {
  return operand < 0 ? -1 : hn_cudnn_add_op(&c->spec, HN_CUDNN_ADD, at, operand, 0, 0);
}

bool hn_cudnn_epilogue_fits(const hone_step *s, bool padding, hone_reason *why) {
  if (!hn_cuda_epilogue_accepts(s, why)) return false;
  for (uint32_t i = 0; i < s->n_epilogue; i++) {
    const hone_epilogue *e = &s->epilogue[i];
    if ((e->kind == HONE_EPI_BIAS || e->kind == HONE_EPI_SCALE) && !s->input[e->input].constant)
      return hn_refuse(why, "epilogue %u: the vector is not constant", i);
    if (e->kind == HONE_EPI_ACT && padding && !hn_keeps_zero(e->act, e->alpha, e->beta))
      return hn_refuse(why, "epilogue %u: the activation of padding is not zero", i);
  }
  return true;
}

bool hn_cudnn_add_epilogue(hn_cudnn_step *c, const hone_step *s, int32_t at, hone_reason *why) {
  for (uint32_t i = 0; i < s->n_epilogue && at >= 0; i++) {
    const hone_epilogue *e = &s->epilogue[i];
    const bool vector = e->kind == HONE_EPI_BIAS || e->kind == HONE_EPI_SCALE;
    if (e->kind == HONE_EPI_CAST) continue; /* to the type that the output has */
    if (e->kind == HONE_EPI_ACT) {
      at = hn_cudnn_add_act(&c->spec, e->act, e->alpha, e->beta, at);
      if (at < 0) return hn_refuse(why, "epilogue %u: cuDNN has no activation %d", i, (int)e->act);
      continue;
    }
    const int32_t operand =
        vector ? hn_cudnn_add_vector(c, e->input, HONE_DTYPE_F32) : hn_cudnn_add_like_output(c, s, e->input);
    const bool adds = e->kind == HONE_EPI_BIAS || e->kind == HONE_EPI_ADD;
    at = operand < 0 ? -1 : hn_cudnn_add_op(&c->spec, adds ? HN_CUDNN_ADD : HN_CUDNN_MUL, at, operand, 0, 0);
  }
  return at >= 0 || hn_refuse(why, "the epilogue is too long");
}

void hn_cudnn_pack(const hone_step *s, const hn_cudnn_kind *kind, const hn_cudnn_step *c, void *blob) {
  for (uint32_t i = 0; i < c->spec.n_tensors; i++) {
    const hn_cudnn_source *f = &c->source[i];
    if (c->spec.tensor[i].by_value || f->place != HN_CUDNN_BLOB) continue;
    void *to = (unsigned char *)blob + f->at;
    if (i == HN_CUDNN_W)
      kind->pack(s, c, to);
    else
      hn_library_store(&s->input[f->input], 0, c->channels, to, 0, c->spec.tensor[i].dtype);
  }
}
