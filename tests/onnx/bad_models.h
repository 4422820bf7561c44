/* Hostile and damaged models, made at test time. */
#ifndef TESTS_ONNX_BAD_MODELS_H
#define TESTS_ONNX_BAD_MODELS_H

#include "onnx/pb.h"

typedef struct bad_model {
  const char *name;
  pb *(*make)(void); /* files beside the model are made in the working folder */
} bad_model;

extern const bad_model bad_models[];
extern const size_t n_bad_models;

#endif
