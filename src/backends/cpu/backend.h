/* Entry of the CPU backend. */
#ifndef HN_BACKENDS_CPU_BACKEND_H
#define HN_BACKENDS_CPU_BACKEND_H

#include "optimize/step/backend.h"

extern const hn_backend hn_backend_cpu;

#endif
