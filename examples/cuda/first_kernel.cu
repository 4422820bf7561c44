/* A first kernel: 32 threads of one block add 1 to 32 numbers, and say who they are.
 *
 *   nvcc first_kernel.cu -o first_kernel && ./first_kernel
 */
#include <cstdio>
#include <cuda_runtime.h>

/* Called and run by both: the compiler makes two versions. */
__host__ __device__ static float one_more(float x) { return x + 1; }

/* Called by the GPU, run there; never put into its caller. */
__device__ __noinline__ static int place_in_grid() { return blockIdx.x * blockDim.x + threadIdx.x; }

/* Called by the processor, run on the GPU: a kernel. */
__global__ static void add_one(float *x, int n) {
  const int i = place_in_grid();
  if (i >= n) return; /* the last block may have more threads than there are numbers */
  printf("block %d, thread %d of it, thread %d of all\n", (int)blockIdx.x, (int)threadIdx.x, i);
  x[i] = one_more(x[i]);
}

/* __host__ may be left out: the processor's functions are what C++ has always had. */
__host__ static bool good(cudaError_t status, const char *what) {
  if (status == cudaSuccess) return true;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  return false;
}

int main() {
  const int n = 32;
  float host[n], *device = nullptr;
  for (int i = 0; i < n; i++) host[i] = (float)i;
  /* cudaMalloc writes the address into `device`: that is why it wants a pointer to the pointer. */
  bool fine = good(cudaMalloc(&device, sizeof host), "cudaMalloc") &&
              good(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice), "to the device");
  if (fine) {
    add_one<<<1, n>>>(device, n); /* blocks, threads a block; returns at once */
    fine = good(cudaGetLastError(), "launch") &&
           good(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost), "from the device"); /* waits */
  }
  cudaFree(device);
  for (int i = 0; fine && i < n; i++) {
    printf("%g\n", host[i]);
    fine = host[i] == one_more((float)i);
  }
  return fine ? 0 : 1;
}
