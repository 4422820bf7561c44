/* 8 x 8 matrices of 16-bit elements between registers and shared memory, transposed on their way. */
#ifndef HN_TRANSPOSED_CUH
#define HN_TRANSPOSED_CUH

#include "hopper.cuh"

/* `count` (4, 2, 1) 8 x 8 matrices: lane l names row l % 8 of matrix l / 8. */
HN_FN void store_transposed(u32 row, const u32 *v, u32 count) {
  if (count == 4)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};"
                 : : "r"(row), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory");
  else if (count == 2)
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1,%2};"
                 : : "r"(row), "r"(v[0]), "r"(v[1]) : "memory");
  else
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" : : "r"(row), "r"(v[0]) : "memory");
}
HN_FN void load_transposed(u32 row, u32 *v, u32 count) {
  if (count == 4)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(row) : "memory");
  else if (count == 2)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(v[0]), "=r"(v[1]) : "r"(row) : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(v[0]) : "r"(row) : "memory");
}

#endif
