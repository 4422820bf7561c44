/* The backend's tactics. */
#ifndef HN_CUDA_TACTICS_H
#define HN_CUDA_TACTICS_H

#include "optimize/step/tactics.h"

/* Begins with tactics.def. */
extern hn_registry hn_cuda_tactics;

#endif
