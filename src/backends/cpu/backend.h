/* Entry of the CPU backend. */
#ifndef HN_BACKENDS_CPU_BACKEND_H
#define HN_BACKENDS_CPU_BACKEND_H

#include "optimize/step/backend.h"

extern const hn_backend hn_backend_cpu;

/* HONE_ERROR_USAGE where HONE_CPU holds a word that names no instruction set. */
hone_status hn_cpu_held(hone_error *error);

#endif
